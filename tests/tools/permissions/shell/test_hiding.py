"""A denied command is found wherever it hides; what cannot be read is asked about, and everyday work is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.config import PermissionsSettings, ShellSettings
from codeagent_lsp.tools.commands.command_tools import RunCmd
from codeagent_lsp.tools.permissions.policy import CommandEnvironment, decide
from codeagent_lsp.tools.permissions.shell.unread import meet
from codeagent_lsp.tools.permissions.shell_policy import judge
from tests.tools.fakes import Bench
from tests.tools.permissions.shell.hiding import (
    DENIED_COMMANDS,
    IN_NAMES,
    LOOPS,
    NAMES,
    OF_GIT,
    READ,
    SET_IN_LOOPS,
    UNREAD,
    WORK,
    hidden,
    lines,
)
from tests.tools.shells import OVERLAY

RULES = tuple(f"{first} {second} *" for first, second in DENIED_COMMANDS)


def decided(bench: Bench, command: str, *, mode: str = "ask", **rules: tuple[str, ...]) -> str:
    """The verdict about a command under an allow rule for every one, where isolation asks nothing."""
    given = {kind: tuple(f"run_cmd({rule})" for rule in texts) for kind, texts in rules.items()}
    settings = PermissionsSettings(mode=mode, allow=("run_cmd(*)",), **given)  # type: ignore[arg-type]
    arguments = {"command": command, "timeout": None, "working_dir": None, "allow_network": False}
    place = CommandEnvironment(ShellSettings(), OVERLAY)
    return decide(RunCmd.traits, arguments, settings, bench.view.roots, place).verdict


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "work")


@pytest.mark.slow
@pytest.mark.parametrize("first", [first for first, _ in DENIED_COMMANDS])
def test_what_can_be_read_is_denied(first: str) -> None:
    rows = [(rule, command) for rule, command in hidden(READ) if rule.startswith(first)]
    assert len(rows) > 280
    assert [command for rule, command in rows if judge(command, allow=("*",), deny=(rule,)).decision != "deny"] == []


@pytest.mark.slow
def test_what_cannot_be_read_is_asked_about_in_any_isolation(bench: Bench) -> None:
    rows = list(hidden(UNREAD))[::2]
    assert [command for rule, command in rows if decided(bench, command, deny=(rule,)) == "allow"] == []
    assert [command for command in lines(OF_GIT) if decided(bench, command, deny=("git push *",)) == "allow"] == []


@pytest.mark.slow
def test_a_rule_that_asks_is_not_evaded_either(bench: Bench) -> None:
    rows = [*hidden(READ), *hidden(UNREAD)][::7]
    assert [command for rule, command in rows if decided(bench, command, ask=(rule,)) != "ask"] == []


def test_a_deny_rule_is_not_evaded_in_the_mode_that_bypasses_questions(bench: Bench) -> None:
    rows = list(hidden(UNREAD))[::7]
    assert [command for rule, command in rows if decided(bench, command, mode="bypass", deny=(rule,)) == "allow"] == []
    assert decided(bench, "cat f | sh", mode="bypass", ask=("git push *",)) == "allow"


@pytest.mark.slow
def test_everyday_work_is_not_asked_about(bench: Bench) -> None:
    assert len(lines(WORK)) > 250
    assert [command for command in lines(WORK) if decided(bench, command, deny=RULES) != "allow"] == []


def test_without_rules_nothing_is_asked_more(bench: Bench) -> None:
    assert [command for _, command in list(hidden(UNREAD))[::9] if decided(bench, command) != "allow"] == []


def test_a_file_that_a_loop_goes_through_is_no_option(bench: Bench) -> None:
    rules = ("rm -rf *", "git push *")
    assert [command for command in lines(LOOPS) if decided(bench, command, deny=rules) != "allow"] == []
    assert [command for command in lines(SET_IN_LOOPS) if decided(bench, command, deny=rules) == "allow"] == []


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["git push", "rm -rf", "npm publish"])
def test_the_name_of_a_test_is_no_command(bench: Bench, rule: str) -> None:
    def told(rows: str) -> list[str]:
        return [row.replace("§", rule) for row in lines(rows)]

    deny = (f"{rule} *",)
    assert [command for command in told(NAMES) if decided(bench, command, deny=deny) != "allow"] == []
    assert [command for command in told(IN_NAMES) if decided(bench, command, deny=deny) == "allow"] == []


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        *(("git push *", "git *", True), ("git push", "git *", True), ("git push", "*", True), ("a*b", "*", True)),
        *(("git push", "git add *", False), ("git push *", "git *pull", True), ("a*c", "ab", False), ("", "", True)),
        *(("git push", "g?t pus[h]", True), ("git push", "git pushes", False), ("a*", "b*", False)),
    ],
)
def test_two_patterns_meet_if_a_text_matches_both(one: str, other: str, both: bool) -> None:
    assert meet(one, other) is meet(other, one) is both
