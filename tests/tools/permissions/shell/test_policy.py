"""What runs without a question, what asks, and how fast that is said."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from codeagent_lsp.tools.permissions.shell.reading import read
from codeagent_lsp.tools.permissions.shell.syntax import parse
from codeagent_lsp.tools.permissions.shell.wrappers import unwrap
from codeagent_lsp.tools.permissions.shell_policy import MAX_BYTES, MAX_COMMANDS, judge, words
from tests.tools.permissions.shell.cases import ALLOWED, ASKED, BOUNDED, DENIED
from tests.tools.permissions.shell.everyday import EVERYDAY

ASKING = [(about, command) for about, commands in ASKED.items() for command in commands]


@pytest.mark.parametrize(("about", "command"), ASKING)
def test_what_could_do_something_asks(about: str, command: str) -> None:
    judgement = judge(command)
    assert judgement.decision == "ask", about
    assert judgement.reasons


@pytest.mark.parametrize("command", DENIED)
def test_what_changes_what_programs_run_is_denied(command: str) -> None:
    assert judge(command, allow=("*",)).decision == "deny"


@pytest.mark.parametrize("command", BOUNDED)
def test_what_only_uses_time_is_not_denied(command: str) -> None:
    assert judge(command).decision in ("allow", "ask")


@pytest.mark.parametrize("command", [*ALLOWED, *EVERYDAY])
def test_what_only_looks_is_allowed(command: str) -> None:
    assert judge(command).decision == "allow", judge(command).reasons


@pytest.mark.parametrize(
    "command",
    [
        # options: unknown, shortened, hidden in a cluster or behind operands, values that look like options
        *("ls --hyperlink=x", "ls --al", "wc --files0-from=list", "sort -uo out a", "sort a -o out", "sort -k -o a"),
        *("grep -R x .", "grep -f list x", "grep -n", "rg --pre=./x y", "rg -z x", "rg -uu x", "rg --hidden x"),
        *("rg -g .env x", "grep -r --include=.env x .", "grep -r x --include .env .", "rg -L x"),
        *("rg --hostname-bin=x y",),
        *("tail -f log", "tail -F log", "tail --follow log", "tree -o out", "tree -R -H x", "file -z a", "du -L ."),
        *("xxd -r a", "xxd a b", "xxd a -i", "xxd a --", "uniq a --", "xxd -pl 5 a", "xxd -l a b", "uniq a b"),
        *("uniq a -c", "tree -Po a b", "uniq -- a b", "uniq - b", "date -s now", "date 01010000", "date -- 01"),
        *("diff -r a ../b", "diff -r -X p a b"),
        *("diff -l a b", "hostname other", "base64 a b", "id root", "cd", "cd -", "cd a b"),
        # expressions
        *("find . -delete", "find . -name x -delete", "find -L .", "find . -fls out", "find -files0-from x"),
        *("find . -na x",),
        *("find . -name", "find ~ -name x", "find . -newer ../x", "test -v x", "test -R x", "test x -eq 'a[0]'"),
        *("test -f ../x", "[ -f x", "[ -v x ]", "[[ -f x ]]", "test a -o b", "[ x -eq y ]", "[ -f .env ]"),
        *("printf %n x", "printf -v x y", "printf '%1$s' a", "printf '%(%F)T'", "echo *", "echo .*", "echo /etc/*"),
        *("sed -n 1p -i a", "sed -i 1p a", "sed 1w a", "sed -n '1p;w x' a", "sed -n 1e a", "sed --quiet 1p a"),
        *("sed 1r.env a",),
        *("jq env", "jq -n '$ENV'", "jq -f x y", "jq 'input_filename' a", "command ls", "command -p ls", "type -t *"),
        # places and names
        *("cat /etc/passwd", "cat ../a", "cat a/../../b", "cat ~/a", "cat '~/a'", "ls /", "ls ..", "cat .env"),
        *("cat a/.env.local",),
        *("cat .ssh/x", "cat id_rsa", "cat server.pem", "cat SECRETS.YAML", "cat my-credentials.json", "cat .git/HEAD"),
        *("cat < ../a", "cat < .env", "wc -l < /etc/passwd", "cat a 3< b", "cat *.json", "cat *", "cat .*"),
        *("cat s*t.txt",),
        *("cat a?.py", "cat [a].py", "cat {a,b}", "sort *.py", "rg x *.py", "sed -n 1p *.py", "cat */x.py"),
        *("uniq src/*.py",),
        *("grep foo* a.py", "basename /*", "ls -*.py", "ls link/*", "find *.py", "stat /proc/self/environ"),
        *("cat /dev/sda",),
        # structure
        *("ls\\\n -la", "ls &", "ls & pwd", "(ls)", "! ls", "time ls", "ls 2>&3", "ls >&-"),
        *("ls >> /dev/null", "ls 1<>/dev/null", "a=b ls", "a= ls", "ls; a=b", "ls;;", "| ls", "&& ls", "ls ||"),
        *("ls |", "if", "{ ls"),
        *("ls )", "ls 'a", 'ls "a', "ls `", 'echo "`ls`"', 'echo "\\`ls\\`"', 'echo "$x"', 'echo "${x}"'),
        *('echo "$(ls)"', "echo $x"),
        *("echo $'a'", 'echo $"a"', "echo a\\ b", "echo \\$", "e'ch'o a", "\\ls", "'ls'", "/bin/ls", "./ls"),
        *("LS", "echo =ls", "echo ~"),
        *("# only a word", "ls # \u200b", "echo '\u202e'", "echo '\ufeff'", "cat 'a\u00a0b'"),
        *("echo '\U000e0041'",),
        *("history -r", "env", "printenv", "set", "export", "jobs", "less a", "man ls", "awk -f a b"),
        *("python3 a.py", "git log"),
        *("xargs ls", "env ls", "nice ls", "timeout 5 ls", "sudo ls", "bash -c ls", "sh", "eval ls", "exec ls"),
        *("trap ls EXIT", "tee"),
    ],
)  # fmt: skip
def test_more_that_asks(command: str) -> None:
    assert judge(command).decision == "ask"


def test_one_command_that_asks_makes_the_whole_ask_and_is_named() -> None:
    judgement = judge("ls && wc -l a && touch b && rmdir c")
    assert judgement.decision == "ask"
    assert [reason.partition(" ")[0] for reason in judgement.reasons] == ["'touch'", "'rmdir'"]


@pytest.mark.slow
def test_too_many_or_too_long_asks_and_what_no_program_can_get_is_denied() -> None:
    assert judge("; ".join(["true"] * MAX_COMMANDS)).decision == "allow"
    assert judge("; ".join(["true"] * (MAX_COMMANDS + 1))).decision == "ask"
    assert judge("echo " + "a" * 9_000).decision == "ask"
    assert judge("echo " + "a" * MAX_BYTES).decision == "deny"
    assert judge("true; " * 10_000, allow=("*",)).decision == "deny"


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        *("ls ", "(", "a$(", "<<a ", "<<E\n", "$[[ ", "[[", "if ", "ls;", "cd a;", "true && ", "bash -c '", "sudo "),
        *("{a,b}", "\\\n", "find -exec ", "eval eval ", "f(){ f|f& };", "> a ", "echo a | sh | ", "x=1;$x ", "/*", "'"),
        *("fork ", "a", "\u202e", "`"),
    ],
)  # fmt: skip
def test_anything_is_judged_in_bounded_time(unit: str) -> None:
    start = time.process_time()
    judgement = judge((unit * 100_000)[:40_000])
    assert judgement.decision != "allow"
    assert time.process_time() - start < 5


def test_what_people_write_is_judged_at_once() -> None:
    judge("ls")
    start = time.process_time()
    for command in EVERYDAY:
        judge(command)
    assert (time.process_time() - start) / len(EVERYDAY) < 0.004


def test_words_are_those_of_all_commands_without_quotes() -> None:
    found = words("cat 'a b' | grep --include=.env x > out; bash -c 'head secret' < in")
    assert {"a b", ".env", "out", "in", "secret", "head"} <= set(found)
    assert words("") == ()


def test_commands_are_found_wherever_they_stand() -> None:
    script = read("ls -la | wc && $(touch a) ; sudo rm -r b; bash -c 'mv c d' & if x; then y; fi")
    found = {invocation.text for invocation in unwrap(script).invocations}
    assert {"ls -la", "wc", "touch a", "rm -r b", "mv c d", "x", "y"} <= found


def test_the_grammar_is_not_loaded_before_the_first_command() -> None:
    code = "import sys, codeagent_lsp.tools.permissions.shell_policy; sys.exit('tree_sitter_bash' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_a_script_that_takes_too_long_to_parse_is_given_up() -> None:
    assert parse(b"$[[ " * 30_000, seconds=0.001) is None
    assert parse(b"ls") is not None
