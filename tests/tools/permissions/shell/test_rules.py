"""The user's rules: what they cover, what wins, and what no rule covers."""

from __future__ import annotations

import pytest

from codeagent_lsp.tools.permissions.shell_policy import judge


@pytest.mark.parametrize(
    ("rule", "command", "covered"),
    [
        ("pytest *", "pytest", True),
        ("pytest *", "pytest -q tests/x.py", True),
        ("pytest *", "pytest 'tests/a b.py'", True),
        ("pytest *", "  pytest -q  ", True),
        ("pytest *", "pytester", False),
        ("pytest *", "pytest-xdist", False),
        ("pytest *", "python -m pytest", False),
        ("pytest *", "./pytest -q", False),
        ("pytest *", "'pytest -q'", False),
        ("pytest*", "pytest -q", True),
        ("pytest*", "pytester", False),
        ("git log", "git log", True),
        ("git log", "git log -p", False),
        ("git log*", "git logout", False),
        ("git log *", "git logout", False),
        ("git log *", "git   log  -1", True),
        ("npm run test:*", "npm run test:unit", True),
        ("npm run *", "npm run build -- --watch", True),
        ("./scripts/*", "./scripts/check.sh a", True),
        ("./scripts/*", "./scripts/../odd.sh", False),
        ("*", "anything at all", True),
        ("", "anything", False),
        ('git commit -m "a b"', 'git commit -m "a b"', True),
        ("git commit -m 'a b'", 'git commit -m "a b"', True),
        ("git commit -m a b", 'git commit -m "a b"', False),
        ("make", "make", True),
        ("make", "cmake", False),
        ("timeout 60 pytest *", "timeout 60 pytest -q", True),
    ],
)
def test_what_an_allow_rule_covers(rule: str, command: str, covered: bool) -> None:
    assert judge(command, allow=(rule,)).decision == ("allow" if covered else "ask")


@pytest.mark.parametrize(
    "command",
    [
        *("pytest > out", "pytest; make", "pytest && touch a", "pytest | tee a", "pytest $(touch a)"),
        *("pytest `a`", "pytest &", "pytest $A"),
        *("A=b pytest", "PYTEST_ADDOPTS=x pytest", "pytest <(a)", "pytest <<< a", "pytest \\\n-q", "(pytest)"),
        *("pytest 2>a", "time pytest"),
        *("! pytest", "if pytest; then pytest; fi", "pytest 'a", "pytest {a,b}", "pytest ~", "pytest \u202e"),
        *("pytest\u00a0-q"),
        *("env pytest", "nice pytest", "timeout 5 pytest", "sudo pytest", "bash -c pytest", "xargs pytest"),
        *("eval pytest", "command pytest"),
        *("find . -exec pytest \\;", "coproc pytest", "exec pytest", "pytest " + "a" * 9_000, "pytest\ntouch a"),
        *("pytest # \u200b",),
    ],
)  # fmt: skip
def test_an_allow_rule_covers_only_plain_commands_and_no_wrapper(command: str) -> None:
    assert judge(command, allow=("pytest *",)).decision == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *(
            "pytest -q 2>&1 | tail -20",
            "cd src && pytest",
            "pytest -q; echo done",
            "pytest > /dev/null 2>&1 || echo failed",
        ),
        "# run them\npytest -q\n",
    ],
)
def test_an_allow_rule_and_harmless_commands_go_together(command: str) -> None:
    assert judge(command).decision == "ask"
    assert judge(command, allow=("pytest *",)).decision == "allow"


@pytest.mark.parametrize(
    "command",
    [
        *("rm a", "rm", "  rm   -r a", "ls; rm a", "ls | xargs rm", "sudo rm a", "sudo -u x rm a"),
        *("bash -c 'ls; rm a'", "echo $(rm a)", "(rm a)"),
        *("\\rm a", "'rm' a", "r''m a", "/bin/rm a", "X=1 rm a", "if a; then rm b; fi", "find . -exec rm {} \\;"),
        *("timeout 5 nice rm a", "rm a > b"),
        *("a=rm; $a b", "rm 'a", "env -S 'rm a'", "rm\ta", "rm\\\n a", "echo 'rm a' | sh", "$'rm' a"),
        *("{ rm a; }", "rm <<E\nx\nE", "! rm a"),
    ],
)  # fmt: skip
def test_ask_and_deny_rules_see_through_everything(command: str) -> None:
    assert judge(command, allow=("*",), deny=("rm *",)).decision == "deny"
    assert judge(command, allow=("*",), ask=("rm *",)).decision == "ask"
    assert "rm *" in judge(command, deny=("rm *",)).reasons[0]


@pytest.mark.parametrize(
    "command",
    [
        *("git -C sub push", "git -c user.name=x push", "git --git-dir=.git push", "git --git-dir .git push origin"),
        *("git --work-tree=. -P push", "git -c alias.x=push x", "git -c alias.x=push X", "git -c ALIAS.x='push -f' x"),
        *("git -c alias.x=y -c alias.y=push x", "git -c alias.x='!git push' x", "/usr/bin/git -C . push", "git-push"),
        *("git -c core.pager='git push' log", "git submodule foreach git push", "git rebase --exec='git push' main"),
        *("alias p='git push'\np", "sudo git -C . push", "npm --prefix sub publish", "npm --silent publish --tag x"),
        *("find . -exec git -C {} push \\;", "xargs git <<< push"),
    ],
)  # fmt: skip
def test_deny_rules_see_through_options_before_the_subcommand_and_aliases(command: str) -> None:
    assert judge(command, allow=("*",), deny=("git push *", "npm publish*")).decision == "deny"


def test_options_before_a_subcommand_cover_no_more_than_it() -> None:
    for command in ("git -C push status", "git -c push.default=x status", "git -c alias.x=push status", "git"):
        assert judge(command, deny=("git push *",)).decision == "ask"


def test_a_git_alias_is_allowed_only_by_a_rule_that_names_it() -> None:
    assert judge("git log", allow=("git *",)).decision == "allow"
    for command in ("git p", "git -c alias.x=log x", "git --no-pager lg"):
        assert judge(command, allow=("git *", "*")).decision == "ask"
    assert judge("git lg -5", allow=("git lg *",)).decision == "allow"


def test_deny_and_ask_rules_are_read_widely_and_allow_rules_narrowly() -> None:
    assert judge("rmdir a", deny=("rm*",)).decision == "deny"
    assert judge("rmdir a", allow=("rm*",)).decision == "ask"
    assert judge("echo rm a", deny=("rm *",)).decision == "allow"


def test_deny_wins_then_ask_then_allow_then_what_is_built_in() -> None:
    every = ("make *",)
    assert judge("make", allow=every, ask=every, deny=every).decision == "deny"
    assert judge("make", allow=every, ask=every).decision == "ask"
    assert judge("make", allow=every).decision == "allow"
    assert judge("ls", ask=("ls",)).decision == "ask"
    assert judge("ls", deny=("*",)).decision == "deny"
    assert judge("cat .env", allow=("cat *",)).decision == "allow"
    assert judge("rm -rf /", allow=("rm -rf /",)).decision == "deny"
