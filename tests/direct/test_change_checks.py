"""What a check says: tests by their reports, a command by its exit code, and what could not run says nothing."""

from __future__ import annotations

from typing import Any

import pytest

from codeagent_lsp import events
from codeagent_lsp.direct.checks import REPORT_CHARS, Checker, CheckPlan, LookingShell
from codeagent_lsp.messages import Status, ToolCall, ToolError, ToolResult
from codeagent_lsp.shadow.shell import Command, CommandResult, Finished
from tests.tools.shells import OVERLAY, FakeShell


class Executor:
    """Answers calls from a list and remembers them."""

    def __init__(self, *results: ToolResult) -> None:
        self.calls: list[ToolCall] = []
        self._results = list(results)

    async def execute(self, call: ToolCall) -> ToolResult:
        self.calls.append(call)
        return self._results.pop(0)


def report(*cases: tuple[str, str, str], problem: str = "") -> ToolResult:
    rows: list[dict[str, Any]] = [
        {"id": name, "outcome": outcome, "message": message, "file": "test_a.py", "line": 3}
        for name, outcome, message in cases
    ]
    passed = sum(row["outcome"] == "passed" for row in rows)
    return ToolResult("ok", "tests: …", {"reports": [{"cases": rows, "passed": passed, "problem": problem}]})


def ran(code: int, text: str = "said") -> ToolResult:
    return ToolResult("ok", text, CommandResult(Finished(code, text), OVERLAY))


def refused(status: Status = "denied") -> ToolResult:
    return ToolResult(status, "no", error=ToolError("PERMISSION_DENIED", "not allowed", "execution_error"))


def checker(*results: ToolResult) -> tuple[Checker, Executor, list[events.Event]]:
    executor, told = Executor(*results), list[events.Event]()
    return Checker(executor, told.append), executor, told  # type: ignore[arg-type]


PASSED, FAILED = ("a", "passed", ""), ("b", "failed", "assert 1 == 2")


async def test_nothing_to_run() -> None:
    check, executor, _ = checker()
    assert await check.run(CheckPlan()) is None
    assert executor.calls == []


async def test_named_tests_are_run_one_file_after_the_other() -> None:
    check, executor, told = checker(report(PASSED), report(PASSED, FAILED))
    verdict = await check.run(CheckPlan(tests=("test_a.py", "test_b.py")))
    assert [call.arguments for call in executor.calls] == [{"path": "test_a.py"}, {"path": "test_b.py"}]
    assert verdict is not None
    assert (verdict.passed, [each.test_id for each in verdict.failed], verdict.known) == (2, ["b"], True)
    assert "assert 1 == 2" in verdict.report
    assert [event.type for event in told] == ["tool_calls", "tool_result"] * 2
    assert len({call.id for call in executor.calls}) == 2


async def test_what_is_only_drawn_is_left_out_of_the_report() -> None:
    message = "Traceback (most recent call last):\nFile x\nAssertionError: [1] != [2]\n- [1]\n?  ^\n+ [2]\n    ^^^^"
    check, _, _ = checker(report(("b", "failed", message)))
    verdict = await check.run(CheckPlan(all_tests=True))
    assert verdict is not None
    assert verdict.report == "b\nFile x\nAssertionError: [1] != [2]"


async def test_a_long_report_is_cut() -> None:
    check, _, _ = checker(report(*[(f"t{n}", "failed", "assert x\n" * 900) for n in range(50)]))
    verdict = await check.run(CheckPlan(all_tests=True))
    assert verdict is not None
    assert len(verdict.failed) == 50
    assert len(verdict.report) < 2 * REPORT_CHARS


@pytest.mark.parametrize(("code", "good"), [(0, True), (1, False), (2, False)])
async def test_a_command_decides_by_its_exit_code(code: int, *, good: bool) -> None:
    check, executor, _ = checker(ran(code))
    verdict = await check.run(CheckPlan(command="make x"))
    assert executor.calls[0].name == "run_cmd"
    assert verdict is not None
    assert (verdict.good, verdict.known) == (good, True)


@pytest.mark.parametrize(
    ("plan", "result"),
    [
        (CheckPlan(command="nowhere"), ran(127, "nowhere: command not found")),
        (CheckPlan(command="x"), refused()),
        (CheckPlan(all_tests=True), refused()),
        (CheckPlan(all_tests=True), report(problem="pytest is not installed")),
        (CheckPlan(all_tests=True), report()),
    ],
)
async def test_what_could_not_run_says_nothing(plan: CheckPlan, result: ToolResult) -> None:
    check, _, _ = checker(result)
    verdict = await check.run(plan)
    assert verdict is not None
    assert not verdict.known
    assert verdict.problem


async def test_tests_that_cannot_be_imported_do_say_something() -> None:
    check, _, _ = checker(report(problem="ended with 1: SyntaxError: invalid syntax (a.py, line 3)"))
    verdict = await check.run(CheckPlan(all_tests=True))
    assert verdict is not None
    assert verdict.known
    assert verdict.failed


async def test_what_a_check_writes_is_not_proposed() -> None:
    shell = FakeShell()
    await LookingShell(shell).run(Command("touch x", "/w"))
    assert shell.commands[0].proposes is False
    assert LookingShell(shell).isolation == OVERLAY
