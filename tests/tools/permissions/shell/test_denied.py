"""What is never run, in whatever disguise, and what only looks like it."""

from __future__ import annotations

import base64

import pytest

from codeagent_lsp.tools.permissions.shell_policy import judge

NEVER = [
    *("rm -rf /", "rm -rf /*", "rm -fr ~", "rm -r -f $HOME", 'rm -rf "$HOME"/', "rm -rf ${HOME}/*", "rm / -rf"),
    *("rm --recursive /",),
    *("rm -rf //", "rm -rf /.", "rm -rf /usr/..", "rm -rf /etc", "rm -rf /usr/*", "rm -Rf /home/someone"),
    *("rm -rf ~root", "rm -rf /?*"),
    *("rm -rf -- /", "rm -rf a b /", "cd / && rm -rf *", "cd ~; rm -rf .", "rm --no-preserve-root -rf x"),
    *("RM -rf /", "rm -rf /{bin,etc}"),
    *("chmod -R 777 /", "chown -R me ~", "chgrp -R x /etc", "mv / x", "mv ~ /tmp/x", "mv /* /dev/null"),
    *("find / -delete", "find / -type f -delete", "find ~ -exec rm -rf {} +", "mkfs /dev/sda"),
    *("mkfs.ext4 -F /dev/sda1", "wipefs -a /dev/sda"),
    *("dd if=a of=/dev/sda", "dd of=/dev/nvme0n1 if=/dev/zero", "echo a > /dev/sda", "cat a >/dev/mem"),
    *("tee /dev/sda < a", "cp a /dev/sda"),
    *("ls >/dev/null2", "ls > /dev/nul"),
    *("shred /dev/sda", "fdisk /dev/sda", "parted /dev/sda mklabel gpt", "sgdisk -Z /dev/sda"),
    *("shutdown now", "reboot", "halt -f", "/sbin/poweroff", "init 0", "telinit 6", "systemctl reboot"),
    *("kill -9 -1", "killall5"),
    *("echo a > /etc/passwd", "echo a | tee -a /etc/sudoers", "echo b > /proc/sysrq-trigger", "cp a /etc/shadow"),
]  # fmt: skip

CLOSER = [
    *("rm --recur --forc /", "rm --r ~", "rm --no-preserve-r -r a", "rm --no -r a", "chmod --recurs 777 /"),
    *("rm -rf ${HOME:?}", 'rm -rf "${HOME:?no home}"', "rm -rf ${HOME%/}", "rm -rf ${HOME:-a}", "rm -rf ${A:-/}"),
    *("rm -rf /e*c", "rm -rf /us?", "rm -rf /u[s]r/lib*", "rm -rf /va*/l?b"),
    *("echo / | xargs rm -rf",),
    *("xargs rm -rf <<< /", "printf '%s\\0' ~ | xargs -0 rm -rf", "echo a / | xargs -n1 rm -r"),
    *("find / | xargs rm -rf", "find ~ -print0 | xargs -0 rm -r", "find / -name '*' -delete"),
    *("find / -exec sh -c 'rm -rf \"$1\"' _ {} +", "find / -type f -exec shred {} +"),
    *("rsync -a --delete empty/ /",),
    *("rsync --delete -r x/ /home/", "rsync -a --dele e/ ~", "rsync -a --delete-after e/ ~/"),
    *("rsync -a --delete e/ me@host:/", "rsync -a --delete e/ host:~/"),
    *("rm -rf ~/..", "rm -rf $HOME/../", "rm -rf ~/./.."),
    *("python3 -c \"import shutil,os; shutil.rmtree(os.path.expanduser('~'))\"",),
    *("python3 -c 'import shutil,pathlib; shutil.rmtree(pathlib.Path.home())'",),
    *("python3 -c 'import os,shutil; shutil.rmtree(os.environ[\"HOME\"])'",),
    *("node -e 'fs.rmSync(os.homedir(), {recursive: true})'", "ruby -e 'FileUtils.rm_rf(Dir.home)'"),
    *("git -c alias.x='!rm -rf /' x", "git -c core.pager='rm -rf /' log", "git submodule foreach 'rm -rf /'"),
    *("git rebase -x 'rm -rf /' main", "git bisect run rm -rf /", "alias l='rm -rf /'"),
]  # fmt: skip

# A function that removes what it is given, as it is defined, called by `f`; and where the call decides.
REMOVES = [
    *('{ rm -rf "$1"; }', '{ rm -r -- "$1"; }', '{ rm -rf "$@"; }', "{ rm -rf $*; }", '( rm -rf "$1" )'),
    *('{ local d="$1"; rm -rf "$d"; }', '{ d=$1; rm -rf "$d"; }', '{ for d in "$@"; do rm -rf "$d"; done; }'),
    *('{ while [ "$1" ]; do rm -rf "$1"; shift; done; }', '{ if [ -d "$1" ]; then rm -rf "$1"; fi; }'),
    *('{ g "$1"; }; g() { rm -rf "$1"; }', '{ h() { rm -rf "$1"; }; h "$1"; }', '{ sudo rm -rf "$1"; }'),
    *('{ bash -c \'rm -rf "$1"\' x "$1"; }', '{ rm -rf "${1:?}"; }', '{ [ -n "$1" ] && rm -rf "$1"; }'),
    *('{ echo "$1" | xargs rm -rf; }', '{ eval "rm -rf $1"; }', '{ chmod -R 777 "$1"; }', '{ mv "$1" x; }'),
    *('{ rm -rf "$1"/*; }', '{ rm -rf "$1"/; }', "{ rm -rf $1/*; }", '{ f "$1/x"; rm -rf "$1"; }'),
]  # fmt: skip
CALLS = [
    *("f /", "f ~", "f build; f /", "eval f /", "eval 'f /'", "trap 'f /' EXIT", "export -f f; bash -c 'f /'"),
    *("time f /", "echo $(f /)", "f / &", "if f /; then ls; fi", "x=/; f $x", "for x in /; do f $x; done", "! f /"),
    *("f /etc", "f $HOME", "(f /)", "ls && f /", "false || f /", "f '/'", "f {/,x}"),
    "echo / | xargs -I{} bash -c 'f {}'",
]  # fmt: skip
HARMLESS_CALLS = [
    "ls",
    "f build",
    "f ./build",
    "f a b",
    "f /tmp/x",
    "trap 'f build' EXIT",
    "d=build; f $d",
    "eval f build",
]

DISGUISED = [
    *("fakeroot rm -rf /", "prlimit --nofile=9 rm -rf ~", "runuser -u me -- rm -rf /", "setpriv --reuid 0 rm -rf /"),
    *("uv run rm -rf /", "poetry run rm -rf ~", "mise exec -- rm -rf /", "direnv exec . rm -rf /", "xvfb-run rm -rf /"),
    *("npx -c 'rm -rf /'", "npm exec -- rm -rf /", "npm exec -c 'rm -rf ~'", "valgrind rm -rf /", "perf stat rm -rf /"),
    *("bwrap --dev-bind / / rm -rf /", "nix-shell --run 'rm -rf /'", "wrapper --fast rm -rf /", "w1 w2 /bin/rm -r ~"),
    *("tar cf a -I 'rm -rf /' b", "tar xf a --to-command='rm -rf /'", "tar cf a --checkpoint-action=exec='rm -rf /' b"),
    *("trap -- 'rm -rf /' 0", "sed '1e rm -rf /' a", "sed -e 's/a/b/; e rm -rf /' a", "mapfile -C 'rm -rf /' -c 1 a"),
    *("GIT_PAGER='rm -rf ~' git log", "PAGER='rm -rf /' man ls", "EDITOR='rm -rf /' crontab -l"),
    *("/bin/r? -rf /", "/bin/[r]m -rf ~", "r\\\nm -rf /", "rm -r\\\nf /"),
    *("sudo rm -rf /", "sudo -u root -n rm -rf /", "env A=b rm -rf /", "env -S 'rm -rf /'", "nice -n 5 rm -rf /"),
    *("nohup rm -rf / &",),
    *("timeout -k 5 10 rm -rf /", "stdbuf -oL rm -rf /", "setsid -f rm -rf /", "command rm -rf /"),
    *("exec rm -rf /", "time rm -rf /"),
    *("xargs rm -rf / < a", "echo / | xargs -I x rm -rf /", "find . -exec rm -rf / \\;", "flock a rm -rf /"),
    *("script -qc 'rm -rf /' a",),
    *("bash -c 'rm -rf /'", "sh -lc 'rm -rf /'", "bash -c \"bash -c 'rm -rf /'\"", "eval 'rm -rf /'"),
    *("eval rm -rf /", "su -c 'rm -rf /'"),
    *("sudo env nice timeout 5 bash -c 'sudo rm -rf /'", "trap 'rm -rf /' EXIT", "busybox rm -rf /"),
    *("ssh host rm -rf /", "watch 'rm -rf /'"),
    *("\\rm -rf /", "'rm' -rf /", "r''m -rf /", 'r"m" -r"f" "/"', "$'rm' -rf /", "$'\\x72m' -rf /"),
    *("rm$IFS-rf$IFS/", "rm${IFS}-rf${IFS}/"),
    *("{rm,-rf,/}", "a=rm; $a -rf /", "a=r b=m; $a$b -rf /", "x=/; rm -rf $x", "for x in /; do rm -rf $x; done"),
    *("$(echo rm) -rf /", "r$@m -rf /"),
    *("/bin/rm -rf /", "ls; rm -rf /", "ls && rm -rf / || true", "(rm -rf /)", "{ rm -rf /; }"),
    *("if a; then rm -rf /; fi", "! rm -rf /"),
    *("echo $(rm -rf /)", "echo `rm -rf /`", 'echo "$(rm -rf /)"', "cat <(rm -rf /)", "a=$(rm -rf /)"),
    *("f() { rm -rf /; }; f", "a=b rm -rf /"),
    *("while true; do rm -rf /; done", "case a in a) rm -rf /;; esac", "rm -rf / )", "rm -rf / 'a", "rm -rf / >"),
    *("rm \\\n-rf /", "ls &\nrm -rf /"),
    *("bash <<< 'rm -rf /'", "bash <<E\nrm -rf /\nE", "echo 'rm -rf /' | sh", "printf 'rm -rf /' | sudo bash"),
    *("echo 'rm -rf /' | tee | sh",),
    *("python3 -c \"import os; os.system('rm -rf /')\"", "perl -e 'system(\"rm -rf /\")'"),
    *("node -e \"fs.rmSync('/', {recursive: true})\"",),
    *("python3 -c \"import subprocess as s; s.run(['rm', '-rf', '/'])\"",),
    *("python -c \"import shutil; shutil.rmtree('/')\"",),
    *("echo " + base64.b64encode(b"rm -rf /").decode() + " | base64 -d | sh",),
    *("echo " + b"rm -rf /".hex() + " | xxd -r -p | bash",),
    *("echo '/ fr- mr' | rev | sh",),
]  # fmt: skip

BOMBS = [
    *(
        ":(){ :|:& };:",
        ":() { : | : & } ; :",
        ":(){:|:&};:",
        "f(){ f|f& };f",
        "bomb() { bomb & bomb & }; bomb",
        "function f { f | f & }; f",
    ),
    *(
        "f() ( f & f & ); f",
        "f(){ g & g & }; g(){ f & f & }; f",
        "f(){ f | cat; }; f",
        "f(){ (f)& (f)& }; f",
        "f(){ x=$(f)$(f); }; f",
    ),
    *(
        "bash -c ':(){ :|:& };:'",
        "$0 & $0 &",
        "while true; do bash x & done",
        "while :; do $0 & done",
        "for ((;;)); do a & done",
    ),
    *(
        "perl -e 'fork while fork'",
        "perl -e 'while(1){fork}'",
        "ruby -e 'loop { fork }'",
        "python -c 'import os\nwhile 1: os.fork()'",
    ),
    *("yes | while read; do sh -c x & done", "cat /dev/zero | while IFS= read -r a; do x & done"),
    *("sudo bash -c 'f(){ f|f& };f'", "f(){ while true; do f & done; }; f"),
]

SETTINGS = [
    *(
        "echo a > .vscode/tasks.json",
        "echo a >> ~/.zshrc",
        "cat a > $HOME/.bashrc",
        "tee .idea/x.xml",
        "cp a .git/hooks/pre-commit",
    ),
    *(
        "ln -s a .git/hooks/post-merge",
        "install -m 755 a .git/hooks/x",
        "sed -i s/a/b/ .git/config",
        "mv a .envrc",
        "cp -t .cursor a",
    ),
    *(
        "echo k >> ~/.ssh/authorized_keys",
        "bash -c 'echo a > .mcp.json'",
        "echo a > x.code-workspace",
        "cp .bashrc ~",
        "dd of=.nvim.lua",
    ),
    *(
        "crontab -",
        "crontab -r",
        "git config --global user.name x",
        "git -C a config --system core.pager x",
        "code --install-extension=x",
    ),
    *(
        "echo a > .codeagent/permissions.toml",
        "echo a 2> ./.vscode/../.vscode/a",
        "env git config --global alias.x '!y'",
    ),
]

NOT_DENIED = [
    *("rm -rf /tmp/x", "rm -rf build", "rm -rf ./build/*", "rm -rf node_modules", "rm -f /etc/x"),
    *("rm -rf ~/project/build", "rm /", "rm -rf ."),
    *("rm -rf /usr/local/lib/x", "rm -rf /home/me/project", "rm -rf $BUILD", 'rm -rf "$BUILD"/x', "git rm -r ."),
    *("rm -rf '*'", "rm -rf a/etc"),
    *("echo 'rm -rf /' > note.md", "grep -rn 'rm -rf /' src", "git commit -m 'never rm -rf /'"),
    *("cat <<E > a.md\nrm -rf /\nE", "man shutdown"),
    *("sudo echo rm -rf /", "timeout 5 grep -r shutdown src", "xargs grep reboot", "printf 'rm -rf /' | wc"),
    *("echo ':(){ :|:& };:' | cat -A | wc",),
    *("dd if=a of=b", "dd if=/dev/sda of=/dev/null", "echo a > /dev/null", "echo a > /dev/stderr"),
    *("echo a > /dev/tcp/x/1", "cat /dev/sda"),
    *("mkfs --help", "fdisk -l /dev/sda", "shred a.txt", "chmod -R 755 src", "chmod 755 /", "mv a /tmp"),
    *("find / -name core -delete", "find . -delete"),
    *("find . -name x -exec rm -rf {} +", "find src -type d | xargs rm -rf", "find / -name '*.core' -delete"),
    *("rsync --delete -a a/ b/", "rsync -a a/ ~/"),
    *("rsync --delete a/ host:/srv/a", "rm -rf ~/a/..b", "rm -rf /tmp*", "rm -rf /tmp/e*c"),
    *("rm --verbose /", "rm --dir /"),
    *("echo / | xargs ls -d", "xargs rm <<< /", "seq 3 | while read x; do a & done", "rm -rf ${A:?}/x"),
    *("python3 -c 'import shutil; shutil.rmtree(\"build\")'", "git -c user.name='rm -rf /' commit"),
    *("systemctl status", "init", "kill -9 123", "kill -1 123", "kill %1", "pkill -1 x", "npm init 0"),
    *("shutdown --help", "crontab -l"),
    *("git config user.name x", "git config --global --list", "git config --global user.name", "code ."),
    *("cp .vscode/settings.json /tmp/x",),
    *("cat ~/.bashrc", "cat .git/hooks/pre-commit", "ls .vscode", "mkdir -p .vscode", "echo a > vscode/x"),
    *("echo a > .github/workflows/x.yml",),
    *("f() { ls | wc; }; f", "walk() { for x in $1/*; do test -d $x && walk $x | sort; done; }; walk ."),
    *("f(){ if a; then f & fi; }; f",),
    *("while true; do a & wait; done", "while true; do a && sleep 1 & sleep 1; done"),
    *("for x in a b; do x & done", "a() { b & }; b() { c; }; a"),
    *("echo $0 | cat", "python -c 'import os; os.fork()'", "bash -c 'ls /'", "eval ls", "echo / | xargs ls"),
    *("perl -e 'print 1'",),
    *("gh pr create --title 'rm -rf /'", "git commit -m 'rm -rf / is bad'", "apt-cache show rm", "npm run chmod"),
    *("conda install find", "uv run pytest", "npx -c 'tsc -p .'", "docker run a rm -rf build", "PAGER=cat git log"),
    *("[ -f a ]", "/bin/l? /", "ls \\\n -la", "tar xf a --to-command='cat'", "sed -e 's/e /x/' a"),
]  # fmt: skip


@pytest.mark.parametrize("command", [*NEVER, *CLOSER, *DISGUISED, *BOMBS, *SETTINGS])
def test_it_is_denied_whatever_the_user_allows(command: str) -> None:
    assert judge(command, allow=("*",)).decision == "deny"


@pytest.mark.parametrize("command", NOT_DENIED)
def test_it_only_looks_like_it(command: str) -> None:
    judgement = judge(command)
    assert judgement.decision != "deny", judgement.reasons


def test_the_reason_for_settings_tells_what_to_do() -> None:
    assert "edit" in judge("echo a > .vscode/x.json").reasons[0]


@pytest.mark.parametrize("wrapped", range(1, 12))
def test_no_depth_of_wrapping_hides_it(wrapped: int) -> None:
    assert judge("sudo " * wrapped + "rm -rf /", allow=("*",)).decision == "deny"


def test_padding_hides_nothing() -> None:
    assert judge("echo " + "a" * 60_000 + "; rm -rf /", allow=("*",)).decision == "deny"
    assert judge("true\n" * 1_500 + "rm -rf /", allow=("*",)).decision == "deny"
    assert judge("cat <<A\n" * 70 + "x\nA\nrm -rf /", allow=("*",)).decision == "deny"


@pytest.mark.slow
@pytest.mark.parametrize("body", REMOVES)
def test_a_function_is_judged_by_the_words_of_its_calls(body: str) -> None:
    denied = [call for call in CALLS if judge(f"f() {body}; {call}").decision == "deny"]
    assert denied == CALLS
    assert [call for call in HARMLESS_CALLS if judge(f"function f {body}; {call}").decision == "deny"] == []
    assert judge(f"f() {body}").decision == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *('f() { shift; rm -rf "$1"; }; f x /', 'f() { rm -rf "$2"; }; f x ~', 'f() { rm -rf "$@"; }; f build /'),
        *('f() { d="$1"; }; f /; rm -rf "$d"', 'f() { set -- /; rm -rf "$1"; }; f x', 'f() { rm -rf "${1:-/}"; }'),
        *("f() { rm -rf /; }", "f() { rm -rf ~; }; ls", 'x=/; f() { rm -rf "$x"; }; f', 'f() { rm -rf "$1"/*; }; f'),
        *('rm -rf "$1"/*', 'set -- /; rm -rf "$1"', 'bash -c \'f() { rm -rf "$1"; }; f "$1"\' x /'),
        *('for x in "/" a; do rm -rf "$x"; done', 'f() { git config --global user.name "$1"; }; f me'),
        *("f() { f | f & }; f", 'f() { rm -rf "$1"; }; f() { ls; }; f; rm -rf /'),
    ],
)
def test_a_function_hides_nothing(command: str) -> None:
    assert judge(command, allow=("*",)).decision == "deny"


def test_calls_without_end_are_followed_some_way_only() -> None:
    script = 'f() { for x in "$@"; do f "$x/a" "$x/b"; done; }; f a b c d'
    assert judge(script).decision == "ask"
