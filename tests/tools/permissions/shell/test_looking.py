"""Commands that read more than plain words: programs of `awk` and `sed`, filters, here-documents, processes."""

from __future__ import annotations

import pytest

from codeagent_lsp.tools.permissions.shell_policy import followed_folders, judge, paths_named

ASKING = {
    "awk": [
        *('awk \'BEGIN{system("id")}\'', 'awk \'{print > "f"}\' a', 'awk \'{print | "sh"}\' a'),
        *('awk \'"id" | getline\' a', 'awk \'BEGIN{while(("cat x")|getline l) print l}\''),
        *('awk \'{getline x < "/etc/passwd"; print x}\' a', "awk -f p a", "awk -i inplace '{print}' a"),
        *("awk '{print $1 > $2}' a", 'awk \'{ if (1) /"/; print > "x" #"}\' a'),
        *('awk \'{ a / b > "f" / c }\' a', 'awk \'BEGIN{print ENVIRON["X"]}\''),
        *('awk \'BEGIN{ARGV[1]="/etc/passwd";ARGC=2}{print}\'', 'awk \'@load "x"\' a'),
        *("awk '{print}' /etc/passwd", "awk '{print}' .env", "awk --version -f x", "awk -vx=1 -f p a"),
        *('awk \'{printf "%s", $0 >> "f"}\' a', 'awk \'length /"/ {print > "x" } #"\' a'),
        *('awk \'{print (1)(2) > "f"}\' a', 'awk \'1;{close("x")}\' a', "awk -E x a", "gawk -e 1 a"),
        *('awk \'{f="system"; @f("id")}\' a', 'awk \'/[/"]/{print > "f"} #"\' a'),
        *('awk \'/[[:alpha:]/"]/ {print > "f"} #"\' a', 'awk \'{x=1; y = x++ /"/; print > "f" #"/\n}\' a'),
    ],
    "sed": [
        *("sed 's/x/y/e' a", "sed 's/x/y/w f' a", "sed 's|x|y|we' a", "sed '/x/w f' a", "sed '/x/r f' a"),
        *("sed -n '/x/e' a", "sed 's/[/]/x/w f/' a", "sed 's/a/b/;e' a", "sed '1s/a/b/;w f' a"),
        *("sed -i.bak 's/a/b/' a", "sed -n -i p a", "sed 's/a/b/' -i a", "sed 's/a\\\nb/w f/' a"),
    ],
    "processes": [
        *("ps eww", "ps auxe", "ps -auxe", "ps auxeww", "ps -p 1 -o environ", "ps e", "ps -e -o pid,env"),
    ],
    "here-documents": [
        *("cat <<EOF\n$(id)\nEOF", "bash <<'EOF'\nid\nEOF", "cat <<'EOF' > f\nx\nEOF"),
        *("cat <<'EOF' | sh\nid\nEOF", "cat <<'EOF'\nx", "cat <<'E' '\nE\nid\n'", "cat <<'E'; id\nx\nE"),
        *("cat <<'E'\nx\nE\nidx", "cat <<'E' <<'F'\nx\nE\nF\nidx\nF", "cat <<-'E'\n\tE\nidx"),
        *("cat '<<E'\nidx\nE", 'echo "<<\'E\'"\nidx\nE', "cat <<'E' # '\nE\nidx\n#'"),
        *("cat <<'E'x\nE\nidx\nE", "cat <<''\nidx\n", "cat <<'E' \\\nidx\nE", "ls | cat <<'E' | sh\nE"),
        *("cat <<'E'\nE \nid\nE\nidx", "cat <<'E'\n\nE\n\nidx"),
    ],
    "the rest": [
        *("rg -ng .env x", "rg -ng '*.pem' x", "rg -g 'cred*' x", "rg -g '*' x", "rg -g '**' x"),
        *("rg -g '.*' x", "rg --iglob '.ENV' x", "rg --glob '.e[n]v' x", "rg -g '{a,{.env,b}}' x"),
        *("grep -r --include '.n*' x", "jq '..env' a", 'jq -n \'"\\(env)"\'', "jq --arg a b env"),
        *("jq '.|env' a", "jq --arg x *", "strings @x", "strings -- @x", "strings -n 5 @x"),
        *("diff --recursive -X p a b", "du --files0-from=x", "fd -x rm", "fd . -X rm", "fd --exec id"),
        *("shuf -o x a", "iconv -o x a", "bc ../x", "fd x /", "ss -K", "netstat -c", "yarn --version"),
        *("jq . -- --arg /etc/passwd .env", "jq . a -- --argjson ../x b", "jq -- --arg ../x y ."),
        *("history -c", "history -w x", "history -a", "history 5 x", "history -p '!x'", "history 5 -c"),
        *("history '5$(id)'", "history +5", "history ５", "history *", "history -- -c"),
        *("pnpm --version", "mvn --version", "go env", "go version -m x", "cargo version x"),
    ],
}  # fmt: skip
ALLOWED = [
    *("hostname -I", "ulimit -a"),
    *("awk '{print $1}' f", "awk -F: '{print $1, $NF}' /dev/null"),
    *("awk -F '\\t' 'NR>1 && $3 >= 5 {s += $3} END {print s/NR}' data.csv",),
    *("awk '/error|warn/ {n++} END {print n}' build.log", "awk 'length($0) > 80' src/*.py"),
    *("awk '{a[$1]++} END {for (k in a) print k, a[k]}' f | sort -rn", "awk -v n=3 'NR % n == 0' f"),
    *('awk \'$1 ~ /^[A-Z]+$/ {printf "%s\\n", toupper($2)}\' f',),
    *("awk '{if ($1 > 5) print $2; else print (a+b)/2}' f", "awk 'BEGIN { print 1/3 }'"),
    *("awk '!seen[$0]++' f", 'awk \'{ sub(/a\\/b/, "c"); print substr($0, 1, 5) }\' f'),
    *("awk 'NR==FNR{a[$1];next} $1 in a' x y", "sed 's/a/b/g' f", "sed -n '/^def /p' f"),
    *("sed -n '/start/,/end/p' f", "sed '/^#/d' f", "sed -e 's/a/b/' -e 's|x/y|z|' f", "sed '$!d' f"),
    *("sed -E 's/([a-z]+)=.*/\\1/' f | sort -u", "sed 's/[[:space:]]*$//' f", "sed '1~2d' f", "ps aux"),
    *("ps -ef", "ps -ef | grep node", "ps -p 123 -o pid,ppid,cmd", "ps aux --sort=-%mem | head"),
    *("ps -eo pid,comm,args", "ps", "diff -r a b", "diff -rq a b", "diff -Naur a b", "du -sh *"),
    *("du -sh * | sort -h", "ls *", "wc -l *", "go version", "cargo --version", "npm --version"),
    *("java -version", "pip --version", "jq '.env.dev' c.json", "jq --arg n x '.[$n]' c.json"),
    *("rg -g '*.json' x", "rg -g '!node_modules' x", "rg -g '*.{ts,tsx}' x", "rg -ng '*.py' x"),
    *("grep -rn --include='*.yml' x .", "grep -rn --include='*.[ch]' x .", "egrep -n 'a|b' f", "fd -e py"),
    *("fd test src", "uptime", "free -h", 'echo "1+1" | bc', "cal", "ss -tlnp", "strings a"),
    *("strings node_modules/@types/x", "which -a node", "tail -n 20 app.log", "openssl version"),
    *("cat <<'EOF'\na $(id) `x`\nEOF", 'cat <<"EOF" | wc -l\nx\nEOF\n', "grep a <<'E'\nb\nE\nls"),
    *("history", "history 20", "history | tail", "history | grep git", "type history"),
    *("cat <<'EOF'\nEOF", "cat <<'EOF' && ls\nx y 'z\nEOF\npwd"),
]  # fmt: skip


@pytest.mark.parametrize("command", [command for commands in ASKING.values() for command in commands])
def test_what_could_do_more_than_look_asks(command: str) -> None:
    assert judge(command).decision == "ask"


@pytest.mark.parametrize("command", ALLOWED)
def test_what_only_looks_is_allowed(command: str) -> None:
    assert judge(command).decision == "allow", judge(command).reasons


@pytest.mark.parametrize(
    "name", ["hosts.yml", "terraform.tfstate.backup", "a.auto.tfvars", "kubeconfig.yaml", "auth.json", "keys.txt"]
)
def test_files_that_hold_secrets_are_those_of_the_one_table(name: str) -> None:
    assert judge(f"cat conf/{name}").decision == judge(f"grep x {name}").decision == "ask"


def test_paths_are_named_from_every_folder_that_a_command_may_be_in() -> None:
    assert {"link", "sub/link", "sub/deep/link", "deep/link"} <= set(paths_named("cd sub && cd deep; cat link") or ())
    assert "work/a.txt" in (paths_named("cat a.txt", "work") or ())
    assert "/etc/x" in (paths_named("cd sub && cat /etc/x") or ())
    assert paths_named("; ".join(f"cd a{number}" for number in range(9))) is None


def test_folders_in_which_links_are_followed() -> None:
    assert followed_folders("diff -r a b") == ("a", "b")
    assert followed_folders("cd s && diff --recursive a b; ls -R c") == ("a", "b", "s/a", "s/b")
    assert followed_folders("diff a b") == ()


# --- the environment, which may hold keys

_ENVIRONMENT = (
    *("$ENV", "$ ENV", "$\tENV", "$\nENV", "$ # x\nENV", "$#\nENV", "$ \n ENV.PATH", "env", "$__prog_args", "$ __x"),
)  # fmt: skip
_AROUND = (
    *("{(§ | tojson): 1}",),
    *("§", ". | §", "§ | keys", '"\\(§)"', "[§]", "{a: §}", ". as $x | §", ".a[§]", "try § catch ."),
)  # fmt: skip


@pytest.mark.parametrize("program", ["jq -n", "jq -r --arg ENV x", "jq"])
def test_a_filter_that_shows_the_environment_asks(program: str) -> None:
    for named in _ENVIRONMENT:
        filters = [around.replace("§", named) for around in _AROUND]
        assert [text for text in filters if judge(f"{program} '{text}' a.json").decision == "allow"] == []


@pytest.mark.parametrize("text", ["$__loc__", ". as $x | $x", ".env", ".env.dev", ".a.env", "$x.ENV", ".x[$x]"])
def test_a_filter_that_shows_its_input_alone_is_allowed(text: str) -> None:
    assert judge(f"jq --arg x y '{text}' a.json").decision == "allow"


@pytest.mark.parametrize(
    "command",
    [
        *("printenv", "printenv A", "env", "env -0", "export", "declare -p", "declare -x", "typeset -p", "set"),
        *("readonly -p", "compgen -v", "compgen -e", "compgen -A variable", "ps e", "ps axe", "ps -E", "ps -o environ"),
        *("ps -O env", "cat /proc/self/environ", "tr '\\0' '\\n' < /proc/self/environ", "cat /proc/*/environ"),
        *("cd /proc/self && cat environ", "awk 'BEGIN{for (k in ENVIRON) print k, ENVIRON[k]}'", "make -p", "php -i"),
        *("gawk 'BEGIN{for (k in SYMTAB) print k}'", "python3 -c 'import os; print(os.environ)'", "git var -l"),
        *("node -p process.env", "perl -e 'print %ENV'", "ruby -e 'p ENV'", "lua -e 'print(os.getenv(1))'"),
        *("systemctl show-environment", "tmux show-environment -g", "npm config list", "sed -n p /proc/self/environ"),
        *('echo "$TOKEN"', "echo ${!A*}", "xargs -I{} env", "find /proc/self -name environ", "go env"),
    ],
)  # fmt: skip
def test_a_command_that_shows_the_environment_asks(command: str) -> None:
    assert judge(command).decision == "ask"
