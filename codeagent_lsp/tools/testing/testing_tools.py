"""`run_tests`: the workspace's own tests on the unsaved buffers and the staged changes, with a result for each test.

Not here: which framework (`testing/projects.py`), its commands and reports (`testing/`), the shell.
"""

# ruff: noqa: PTH118, PTH120 - paths are plain strings, as everywhere below FileView

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import Field

from codeagent_lsp.errors import AgentError, ErrorCode, ToolFailed, ToolRetry
from codeagent_lsp.shadow.shell import Command, CommandResult, Isolation, OnOutput, Shell, no_output
from codeagent_lsp.tools.commands.command_tools import MAX_NAMED, shell_of
from codeagent_lsp.tools.context import OnTested, Tally, ToolContext
from codeagent_lsp.tools.testing import projects, runners
from codeagent_lsp.tools.testing.projects import Project
from codeagent_lsp.tools.testing.reports import TestReport
from codeagent_lsp.tools.testing.runners import Selection
from codeagent_lsp.tools.testing.summary import BUDGET, details, headline
from codeagent_lsp.tools.tool import Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits

NO_TESTS = (
    "No tests were found{where}. Known are pytest, unittest, vitest, jest, node --test, go test and cargo test, by "
    "their project files (pyproject.toml, package.json, go.mod, Cargo.toml) or by Python files named test_*.py."
)


class RunTestsParameters(Parameters):
    """Which tests; nothing means all."""

    path: str | None = Field(None, description="File or folder; default: all tests")
    pattern: str | None = Field(None, description="Only tests whose name matches")


class RunTests(Tool[RunTestsParameters]):
    """Runs the tests of every project that is meant, one after the other."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "run_tests",
        "Run the tests on the current state, unsaved and proposed changes included, and see what fails.",
        "run",
        timeout=None,  # the shell has its own, longer limit
        path_parameters=("path",),
    )
    parameters = RunTestsParameters
    output = dict[str, Any]  # reports: framework, the counts, seconds, cases

    async def run(self, arguments: RunTestsParameters, context: ToolContext) -> ToolOutput:
        """A summary for the model; `data["reports"]` has every test."""
        shell = Noted(shell_of(context))
        path, node = _parted(arguments.path, context)
        selection = Selection(_pattern(arguments.pattern), node)
        found = await projects_at(path, context)
        if node and any(project.framework != "pytest" for project in found):
            raise ToolRetry("`::` names a test of pytest only. Give the file as path and the name as pattern.")
        state = state_of(context, shell.isolation)  # before the run may stage something itself
        reports = [await _tested(project, selection, context, shell) for project in found]
        scope = _scope(path, arguments, context)
        heads = [headline(report, scope, state) for report in reports]
        if (tested := context.get(OnTested)) is not None:
            tested(tally(reports))
        told = zip(found, reports, heads, strict=True)
        texts = [_told(head, report, project, context, len(found)) for project, report, head in told]
        return ToolOutput(
            "\n\n".join(texts) + wrote(shell.results, context), {"reports": [report.as_dict() for report in reports]}
        )


def tally(reports: Sequence[TestReport]) -> Tally:
    """The numbers of several reports together."""
    return Tally(
        sum(report.passed for report in reports),
        sum(report.failed + report.errors for report in reports),
        whole=not any(report.problem for report in reports),
    )


def wrote(results: Sequence[CommandResult], context: ToolContext) -> str:
    """What became of files that the tests wrote, as a line for the model; '' when they wrote none."""
    names = sorted({context.view.roots.relative(path) for result in results for path in result.staged})
    left = sum(len(result.left_out) for result in results)
    shown = ", ".join(names[:MAX_NAMED]) + (f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else "")
    lines = [f"Written by the run and now staged: {shown}"] if names else []
    lines += [f"Not staged: {left} other file{'s' if left > 1 else ''} it wrote"] if left else []
    return "".join(f"\n{line}" for line in lines)


class Noted:
    """The shell, remembering what its commands left."""

    def __init__(self, shell: Shell) -> None:
        self.results: list[CommandResult] = []
        self._shell = shell

    @property
    def isolation(self) -> Isolation:
        """As the shell's."""
        return self._shell.isolation

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        """As the shell's."""
        result = await self._shell.run(command, on_output)
        self.results.append(result)
        return result


async def projects_at(path: str | None, context: ToolContext) -> Sequence[Project]:
    """What is to be tested; ToolFailed when there is nothing."""
    found = await asyncio.to_thread(projects.find, context.view, path)
    if context.shell is not None and context.shell.isolation.level == "container":
        found = tuple(map(projects.in_an_image, found))
    if not found:
        where = f" for {context.view.roots.relative(path)}" if path else ""
        raise ToolFailed(NO_TESTS.format(where=where), ErrorCode.NOT_FOUND)
    if not any(project.program for project in found):
        raise ToolFailed(not_installed(found[0]))
    return found


def not_installed(project: Project) -> str:
    """What to do about a framework of Node that package.json names and node_modules does not have."""
    name = project.framework
    return (
        f"{name} is in package.json but not installed: there is no node_modules/.bin/{name}. "
        "The user has to run `npm install` first."
    )


def existing(path: str | None, context: ToolContext) -> str | None:
    """The absolute path; ToolRetry when nothing is there."""
    if path is None or path in ("", "."):
        return None
    real = context.view.roots.resolve(path)
    if not context.view.exists(real):
        try:
            context.view.read(real)
        except AgentError as error:
            raise ToolRetry(str(error)) from None
    return real


def state_of(context: ToolContext, isolation: Isolation) -> str:
    """What the tests ran on, as the end of a sentence."""
    over = context.view.over_disk()
    if not over:
        return ""
    staged = frozenset(context.staging.paths())
    if isolation.level == "direct":
        return ", on the saved files only: unsaved and staged changes are not in it"
    layers = [name for name, there in (("unsaved buffers", over - staged), ("staged changes", staged)) if there]
    return f", on the {' and '.join(layers)}"


def _parted(path: str | None, context: ToolContext) -> tuple[str | None, str]:
    """The path, and the rest of a pytest id behind it."""
    name, separator, rest = (path or "").partition("::")
    return existing(name or None, context), separator + rest


def _pattern(pattern: str | None) -> str:
    if pattern and (pattern.startswith("-") or "\0" in pattern):
        raise ToolRetry("A pattern is (part of) a test's name and does not begin with '-'.")
    return pattern or ""


async def _tested(project: Project, selection: Selection, context: ToolContext, shell: Shell) -> TestReport:
    if not project.program:
        return TestReport(project.framework, problem=not_installed(project))
    result = await _run(project, selection, context, shell)
    if project.framework == "pytest" and runners.lacks_pytest(result.finished):
        return await _without_pytest(project, selection, context, shell)
    return runners.read(project, result.finished)


async def _without_pytest(project: Project, selection: Selection, context: ToolContext, shell: Shell) -> TestReport:
    """unittest's tests still run; if that is not enough, what is missing is the problem."""
    python = project.program[0]
    advice = f"pytest is not installed for {python}. The user can install it: `{python} -m pip install pytest`."
    if selection.node:
        return TestReport("pytest", problem=advice)
    plain = replace(project, framework="unittest")
    report = runners.read(plain, (await _run(plain, selection, context, shell)).finished)
    if any(case.outcome in ("passed", "failed") for case in report.cases):
        return replace(report, note=f"{advice} Only unittest's tests could run.")
    return TestReport("pytest", problem=advice, seconds=report.seconds)


async def _run(project: Project, selection: Selection, context: ToolContext, shell: Shell) -> CommandResult:
    command = runners.command(project, selection, offline=shell.isolation.offline)
    return await shell.run(command, context.output)


def _scope(path: str | None, arguments: RunTestsParameters, context: ToolContext) -> str:
    """Which tests ran, when not all: a part that passes says little about the rest."""
    where = f" of {context.view.roots.relative(path)}" if path else ""
    return f"{where} matching {arguments.pattern!r}" if arguments.pattern else where


def _told(head: str, report: TestReport, project: Project, context: ToolContext, shares: int) -> str:
    roots = context.view.roots

    def locate(file: str) -> str:
        """Cargo names files from the top of its workspace, others from the project's folder."""
        folder = project.folder
        while not context.view.exists(os.path.join(folder, file)) and folder not in (*roots.folders, "/"):
            folder = os.path.dirname(folder)
        return roots.relative(os.path.join(folder, file))

    body = details(report, locate, BUDGET // shares - len(head))
    return f"{head}\n{body}" if body else head
