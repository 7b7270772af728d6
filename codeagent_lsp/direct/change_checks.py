"""Runs the checks of a change in the shadow: named tests, all tests, a command, or the tests beside the files.

They go through the executor, so that permissions, limits and records apply; files that they write are not proposed. Not
here: the meaning of a result (`direct/verdict.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.agent.loop import call_data, result_event
from codeagent_lsp.direct.verdict import FailedTest, Verdict
from codeagent_lsp.messages import ToolCall, ToolResult
from codeagent_lsp.shadow.shell import Command, CommandResult, Isolation, OnOutput, Shell, no_output
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.tools.testing.summary import shorten
from codeagent_lsp.workspace.text.excerpts import excerpt

REPORT_CHARS = 1500
MOST_TOLD = 3
_DRAWN = re.compile(r"^\s*(?:\? |[-+] |Traceback |First differing|First list|Second list|\[\.\.\.|[\^~]+$)")
RUN_TESTS, RUN_COMMAND = "run_tests", "run_cmd"


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
    if finished.exit_code == 127:
        return Verdict(problem=excerpt(result.text, REPORT_CHARS))
    return Verdict(failed=(FailedTest(command),), report=excerpt(result.text, REPORT_CHARS))
