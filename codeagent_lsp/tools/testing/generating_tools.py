"""The tool `generate_tests`: the model writes a test file, which stays staged only if it passes in the shadow.

Not here: what the model is asked (`testing/writing.py`), how tests run (`testing_tools.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydantic import Field

from codeagent_lsp.call_forms import CallForms
from codeagent_lsp.errors import ModelError, ToolFailed, ToolRetry
from codeagent_lsp.tools.code.extent import extent_of
from codeagent_lsp.tools.code.source import required
from codeagent_lsp.tools.code.targets import find_one
from codeagent_lsp.tools.commands.command_tools import shell_of
from codeagent_lsp.tools.context import Complete, OnTested, Tally, ToolContext
from codeagent_lsp.tools.testing.projects import is_test_file
from codeagent_lsp.tools.testing.testing_tools import RunTests, RunTestsParameters
from codeagent_lsp.tools.testing.writing import INSTRUCTIONS, Order, file_in, order
from codeagent_lsp.tools.tool import FILE_PATH, Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.changes.staging import Step

NO_MODEL = "No model can be asked here, so no tests can be written. Write them yourself and use run_tests."
SAVED_ONLY = (
    "Commands run in the real folder here, on saved files only, so new tests cannot be tried before they are accepted. "
    "Write the tests yourself."
)


class GenerateTestsParameters(Parameters):
    """The code to write tests for."""

    path: str = Field(description="File with the code, relative to the workspace")
    function_name: str | None = Field(None, description="Only this: name or Class.method")


@dataclass(frozen=True, slots=True)
class Trial:
    """A staged test file that was run: its path, its text, its staged step, and the output of the run."""

    path: str
    tests: str
    step: Step
    output: ToolOutput

    @property
    def reports(self) -> Sequence[Mapping[str, Any]]:
        """Return the reports, one for each framework that ran."""
        reports: Sequence[Mapping[str, Any]] = self.output.data["reports"]
        return reports

    @property
    def ok(self) -> bool:
        """Return whether some test passed and none failed, without any problem."""
        bad = any(report["failed"] or report["errors"] or report["problem"] for report in self.reports)
        return not bad and any(report["passed"] for report in self.reports)

    def tally(self) -> Tally:
        """Return the counts of the run."""
        return Tally(
            sum(report["passed"] for report in self.reports),
            sum(report["failed"] + report["errors"] for report in self.reports),
            whole=not any(report["problem"] for report in self.reports),
        )


class GenerateTests(Tool[GenerateTestsParameters]):
    """Write one file of tests, with one correction if it fails."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "generate_tests",
        "Write a test file for a file or a function and run it. It is staged only when its tests pass.",
        "run",
        group="tests",
        timeout=None,  # the model and the shell have their own, longer limits
        path_parameters=("path",),
    )
    parameters = GenerateTestsParameters
    example: ClassVar[Example] = {"path": "src/cart.py", "function_name": "Cart.total"}
    forms: ClassVar[CallForms] = CallForms(arguments=FILE_PATH)
    output = dict[str, Any]  # path, rounds, reports as of run_tests

    async def run(self, arguments: GenerateTestsParameters, context: ToolContext) -> ToolOutput:
        """Return the output of run_tests; `data` has the path and the reports. ToolFailed if tests still fail."""
        complete = context.need(Complete, NO_MODEL)
        if shell_of(context).isolation.level == "direct":
            raise ToolFailed(SAVED_ONLY)
        wanted = await asyncio.to_thread(_order, arguments, context)
        context.note(f"generate_tests: {context.view.roots.relative(wanted.target)}")
        tests = await _written(complete, wanted.asked())
        trial = await _tried(tests, await _free(wanted, arguments, context), context)
        rounds = 1
        if not trial.ok:
            _take_back(trial.step, context)
            tests = await _written(complete, wanted.asked_again(trial.tests, trial.output.text))
            trial = await _last_try(tests, await _free(wanted, arguments, context), context)
            rounds = 2
        name = context.view.roots.relative(trial.path)
        if (tested := context.get(OnTested)) is not None:
            tested()(trial.tally())
        again = ", after one correction" if rounds == 2 else ""
        text = f"Staged {name}; its tests pass{again}.\n{trial.output.text}"
        return ToolOutput(text, {"path": name, "rounds": rounds, "reports": list(trial.reports)})


def _order(arguments: GenerateTestsParameters, context: ToolContext) -> Order:
    """Return the order for a test file: the code and the path of the tests. Blocks; call it in a thread."""
    path = context.view.roots.resolve(arguments.path)
    if is_test_file(path):
        raise ToolRetry(f"{arguments.path} holds tests itself. Give the file with the code.")
    code = context.view.read(path).text
    if arguments.function_name is None:
        return order(context.view, path, code)
    source = required(path, code)
    extent = extent_of(source, find_one(source, arguments.function_name))
    focus = source.slice(source.line_start(extent.top), source.line_end(extent.end))
    return order(context.view, path, code, focus, arguments.function_name)


async def _free(wanted: Order, arguments: GenerateTestsParameters, context: ToolContext) -> Order:
    """Return the order with a path where there is still no file: the user may have made one while the model wrote.

    To be staged without a wait between.
    """
    while context.view.exists(wanted.target):
        wanted = replace(wanted, target=(await asyncio.to_thread(_order, arguments, context)).target)
    return wanted


async def _last_try(tests: str, wanted: Order, context: ToolContext) -> Trial:
    """Stage the corrected tests and run them. ToolFailed, with nothing left staged, if they fail too."""
    trial = await _tried(tests, wanted, context)
    if trial.ok:
        return trial
    _take_back(trial.step, context)
    name = context.view.roots.relative(trial.path)
    raise ToolFailed(
        f"The tests that were written for {name} do not all pass, also after one correction, so nothing is staged. "
        f"Either the tests or the code are wrong.\n{trial.output.text}"
    )


async def _tried(tests: str, wanted: Order, context: ToolContext) -> Trial:
    """Stage the tests and run them; unstage them if the run raises."""
    revealed = str(context.redaction.reveal({"content": tests})["content"])
    step = context.staging.write({wanted.target: revealed})
    try:
        quiet = context.having((OnTested, None))  # only what stays counts
        where = context.view.roots.relative(wanted.target)
        output = await RunTests().run(RunTestsParameters(path=where, pattern=None), quiet)
    except BaseException:
        _take_back(step, context)
        raise
    return Trial(wanted.target, tests, step, output)


async def _written(complete: Complete, asked: str) -> str:
    try:
        return file_in(await complete(INSTRUCTIONS, asked))
    except ModelError as error:
        raise ToolFailed(f"The model could not be asked for tests: {error}", error.code) from error


def _take_back(step: Step, context: ToolContext) -> None:
    """Unstage the file and everything staged after it by its run."""
    with suppress(ToolFailed):  # the user has decided about it meanwhile
        context.staging.undo(step.change_id)
