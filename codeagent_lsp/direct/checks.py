"""Checks of a change: what a check found, compared with one before, and running one in the shadow: named tests, all
tests, a command, or the tests beside the files.

They go through the executor, so that permissions, limits and records apply; files that they write are not proposed.
Not here: which checks a task asks for (`brief.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.agent.loop import call_data, result_event
from codeagent_lsp.messages import ToolCall, ToolResult
from codeagent_lsp.shadow.shell import Command, CommandResult, Isolation, OnOutput, Shell, no_output
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.tools.testing.reports import contains, shorten
from codeagent_lsp.workspace.text.excerpts import excerpt

REPORT_CHARS = 1500
MOST_TOLD = 3
# What unittest draws of a difference: `- a`, `? ^^`, `First differing element`. It takes room and tells no more than
# the values.
_DRAWN = re.compile(r"^\s*(?:\? |[-+] |Traceback |First differing|First list|Second list|\[\.\.\.|[\^~]+$)")
RUN_TESTS, RUN_COMMAND = "run_tests", "run_cmd"


@dataclass(frozen=True, slots=True)
class FailedTest:
    """A failed test: its id in the words of its framework, its file relative to the workspace ('' for unknown), and its
    line.
    """

    test_id: str
    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one check. `report` is for the model, shortened to the failures; with a `problem` (English) there
    is no result: the tests could not run. A command that failed counts as one failed test. `binding` says that the task
    mentions what was checked, so that all of it has to pass; else the tests were only chosen by the names of the files.
    """

    passed: int = 0
    failed: tuple[FailedTest, ...] = ()
    report: str = ""
    problem: str = ""
    binding: bool = True

    @property
    def known(self) -> bool:
        """Return whether the check has a result."""
        return not self.problem and bool(self.passed or self.failed)

    @property
    def good(self) -> bool:
        """Return whether all that was checked passed."""
        return self.known and not self.failed

    @property
    def names(self) -> frozenset[str]:
        """Return the ids of the failed tests."""
        return frozenset(each.test_id for each in self.failed)


def satisfied(after: Verdict | None, before: Verdict | None) -> bool:
    """Return whether a change is good enough as far as a check can tell: all passes, or, where the check is not
    binding, less fails than before and nothing new. A check that has no result counts only when it had one before.
    """
    if after is None or after.good:
        return True
    if not after.known:
        return before is None or not before.known
    return no_worse(after, before) and before is not None and after.names != before.names


def no_worse(after: Verdict | None, before: Verdict | None) -> bool:
    """Return whether a change broke nothing that passed before, in a check that is not binding, or without a check."""
    if after is None:
        return True
    return after.known and not after.binding and before is not None and before.known and after.names <= before.names


def better(one: Verdict | None, other: Verdict | None) -> bool:
    """Return whether `one` went better than `other`: fewer failures, then more passes. False if `one` has no result,
    else True if `other` has none. A test file that cannot be loaded is worse than failures of all the tests in it.
    """
    if one is None or not one.known:
        return False
    if other is None or not other.known:
        return True
    return (_weight(one, other), -one.passed) < (_weight(other, one), -other.passed)


def _weight(verdict: Verdict, other: Verdict) -> int:
    """Return the number of failures; one that contains failures of the other check counts for them, and one more."""
    return sum(1 + sum(contains(one, each) for each in other.names) for one in verdict.names)


# Runs the checks of a change in the shadow: named tests, all tests, a command, or the tests beside the files.


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """The check to run: a command, or the tests in these files (relative paths), or all tests; no check if all are
    empty.

    `beside` says that the task does not mention tests: they were only chosen by the names of the files that change.
    """

    command: str = ""
    tests: tuple[str, ...] = ()
    all_tests: bool = False
    beside: bool = False


class Checker:
    """Runs the checks of one run. `executor` works on the run's staged state; `emit` receives the calls and results."""

    def __init__(self, executor: ToolExecutor, emit: Callable[[events.Event], None]) -> None:
        self._executor = executor
        self._emit = emit
        self._ids = count(1)

    async def run(self, plan: CheckPlan) -> Verdict | None:
        """Run the check and return the verdict on all of it; None if there is nothing to run."""
        if plan.command:
            return _of_command(plan.command, await self._call(RUN_COMMAND, command=plan.command))
        if plan.all_tests:
            return _of_tests([await self._call(RUN_TESTS)])
        if not plan.tests:
            return None
        return _of_tests([await self._call(RUN_TESTS, path=path) for path in plan.tests])

    async def _call(self, name: str, **arguments: object) -> ToolResult:
        return await self.call(ToolCall(name, arguments))

    async def call(self, call: ToolCall) -> ToolResult:
        """Run a call of a tool, shown to the user as any call is, and return its result."""
        # An id of our own: no model has made this call, and clients pair results by it.
        call = replace(call, id=f"check_{next(self._ids)}")
        self._emit(events.ToolCalls(calls=(call_data(call),)))
        result = await self._executor.execute(call)
        self._emit(result_event(call, result))
        return result


class LookingShell:
    """A shell whose commands propose no changes, for checks."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    @property
    def isolation(self) -> Isolation:
        """Return the isolation of the wrapped shell."""
        return self._shell.isolation

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        """Run the command in the wrapped shell; files that it writes do not become changes."""
        return await self._shell.run(replace(command, proposes=False), on_output)


def _of_tests(results: Sequence[ToolResult]) -> Verdict:
    refused = next((result for result in results if not result.ok), None)
    if refused is not None:
        return Verdict(problem=refused.error.message if refused.error else refused.text)
    reports = [report for result in results for report in (result.data or {}).get("reports", ())]
    cases = [case for report in reports for case in report["cases"]]
    failed = tuple(
        _failed(case) for report in reports for case in report["cases"] if case["outcome"] in ("failed", "error")
    )
    passed = sum(report["passed"] for report in reports)
    problems = [report["problem"] for report in reports if report["problem"]]
    if problems and not failed:  # nothing ran, or not to its end: only its message is known
        # A syntax error keeps tests from running as well, but by the change's own fault.
        failed = (FailedTest(problems[0].splitlines()[0][:200]),) if passed or _is_fault(problems[0]) else ()
    told = "\n".join(map(_told, [case for case in cases if case["outcome"] in ("failed", "error")][:MOST_TOLD]))
    text = told or excerpt("\n".join(result.text for result in results), REPORT_CHARS)
    return Verdict(passed, failed, text, "" if passed or failed else "; ".join(problems) or text)


def _told(case: Mapping[str, Any]) -> str:
    """Return a failed test for the model: the assertion and the values, without the drawing of a difference."""
    lines = [line for line in str(case["message"]).splitlines() if line.strip() and not _DRAWN.match(line)]
    return f"{case['id']}\n{shorten(chr(10).join(lines), REPORT_CHARS // MOST_TOLD)}"


def _is_fault(problem: str) -> bool:
    """Return whether the problem of tests that could not run is one of the code, not of the machine."""
    return any(
        word in problem for word in ("SyntaxError", "ImportError", "IndentationError", "NameError", "AttributeError")
    )


def _failed(case: dict[str, Any]) -> FailedTest:
    return FailedTest(str(case["id"]), case.get("file") or "", case.get("line") or 0)


def _of_command(command: str, result: ToolResult) -> Verdict:
    if not result.ok or not isinstance(result.data, CommandResult):
        return Verdict(problem=result.error.message if result.error else result.text)
    finished = result.data.finished
    if finished.exit_code == 0 and finished.ending == "exited":
        return Verdict(passed=1, report=excerpt(result.text, REPORT_CHARS))
    # The shell has no such command: the machine lacks it.
    if finished.exit_code == 127:
        return Verdict(problem=excerpt(result.text, REPORT_CHARS))
    return Verdict(failed=(FailedTest(command),), report=excerpt(result.text, REPORT_CHARS))
