"""The tools `run_tests` and `analyze_coverage`: the workspace's tests, and the lines that none of them reaches.

Both run on unsaved buffers and staged changes. Not here: which framework (`projects.py`), its commands and reports
(`framework.py`), the formats of coverage (`coverage.py`), the shell.
"""

# ruff: noqa: PTH118, PTH120 - paths are plain strings, as everywhere below FileView

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from pydantic import Field

from codeagent_lsp.call_forms import CallForms, ForeignTool, Shape, place_of, unpack_json, without
from codeagent_lsp.errors import AgentError, ErrorCode, ToolFailed, ToolRetry
from codeagent_lsp.shadow.shell import Command, CommandResult, Isolation, OnOutput, Shell, no_output
from codeagent_lsp.tools.context import OnTested, Tally, ToolContext
from codeagent_lsp.tools.testing import framework, projects
from codeagent_lsp.tools.testing.coverage import CoverageReport, describe_coverage
from codeagent_lsp.tools.testing.framework import Project, Selection, is_test_file, measuring_command, read_coverage
from codeagent_lsp.tools.testing.reports import (
    BUDGET,
    RED,
    Baseline,
    Compared,
    Fate,
    TestReport,
    all_cases,
    details,
    headline,
)
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.files.paths import within
from codeagent_lsp.workspace.text.excerpts import join_names

MAX_NAMED = 20
NO_TESTS = (
    "No tests were found{where}. Known are {known}, by their project files ({markers}) or by Python files named "
    "test_*.py."
)


def _around(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with several files as the folder around them, and the only name of a test as the pattern."""
    place, names = place_of(given.get("files")), unpack_json(given.get("testNames"))
    given = {**without(given, "files", "testNames"), **({"path": place} if place else {})}
    return {**given, "pattern": names[0]} if isinstance(names, list) and len(names) == 1 else given


class RunTestsParameters(Parameters):
    """Parameters of `run_tests`: which tests to run; by default all."""

    path: str | None = Field(None, description="File or folder; default: all tests")
    pattern: str | None = Field(None, description="Only tests whose name matches")


class RunTests(Tool[RunTestsParameters]):
    """The tool `run_tests`: runs the tests of each project in the shadow, on unsaved and staged text, one after the
    other.
    """

    traits: ClassVar[ToolTraits] = ToolTraits(
        "run_tests",
        "Run the tests on the current state, unsaved and proposed changes included, and see what fails.",
        "run",
        timeout=None,  # the shell has its own, longer limit
        path_parameters=("path",),
        errors=(ErrorCode.NOT_FOUND,),
        result="printed",
    )
    parameters = RunTestsParameters
    example: ClassVar[Example] = {"path": "tests/test_cart.py", "pattern": "total"}
    forms: ClassVar[CallForms] = CallForms(
        foreign=(
            ForeignTool(
                "runTests", ("Copilot",), ignored=("mode", "coverageFiles"),
                shapes=(Shape("several files are the folder around them", _around),),
            ),
        ),
        near=("test_failure",),
    )  # fmt: skip
    output = dict[str, Any]  # reports: framework, the counts, seconds, cases

    async def run(self, arguments: RunTestsParameters, context: ToolContext) -> ToolOutput:
        """Run the tests, wait for their end and return the counts and the failures; `data["reports"]` has every test.
        Failing tests are no error of the tool. ToolFailed if no test framework is found or installed, ToolRetry for
        tests that cannot be selected.
        """
        shell = Noted(context.open_shell())
        path, node = _split_node(arguments.path, context)
        selection = Selection(_pattern(arguments.pattern), node)
        found = await projects_at(path, context)
        if node and not all(project.framework.has_ids for project in found):
            raise ToolRetry("`::` names a test of pytest only. Give the file as path and the name as pattern.")
        state = state_of(context, shell.isolation)  # before the run may stage something itself
        own = frozenset(map(context.view.roots.relative, context.staging.paths()))
        baseline = context.get(Baseline)
        # Read before the run, which may stage something and so end what can be the baseline.
        changed = baseline is not None and baseline.changed
        # Asked for now as well: it notes the text that is tested, and not what stands there when the tests have ended.
        tested = noting() if (noting := context.get(OnTested)) is not None else None
        reports = [await _test(project, selection, context, shell) for project in found]
        placed = [_with_shown_files(report, project, context) for project, report in zip(found, reports, strict=True)]
        differs = await baseline.compare(placed) if baseline is not None and changed else None
        # Nothing of ours was in it: how the tests stand now is how the user's own text stands.
        if baseline is not None and not changed:
            baseline.record(placed, whole=not (selection.node or selection.pattern))
        if tested is not None:
            whole = not (selection.node or selection.pattern)
            covered = await asyncio.to_thread(covered_by, found, placed, path, context) if whole else frozenset()
            tested(tally(placed, differs, whole=whole, covered=covered))
        scope, budget = _scope(path, arguments, context), BUDGET // len(found)
        texts = [
            _report_text(report, headline(report, scope, state, differs), budget, differs, own) for report in placed
        ]
        counts, seconds = tally(placed, differs), sum(report.seconds for report in placed)
        why = next((report.problem for report in reports if report.problem), "")
        summary = told_short(counts, seconds, context.words, why)
        return ToolOutput(
            "\n\n".join(texts) + wrote(shell.results, context),
            {"reports": [report.as_dict() for report in reports], "failures": _failures(placed, differs)},
            failed=summary if counts.red else "",
            summary=summary,
        )


def tally(
    reports: Sequence[TestReport],
    differs: Compared | None = None,
    *,
    whole: bool = False,
    covered: frozenset[str] = frozenset(),
) -> Tally:
    """Return the summed counts of several reports, and the names of their tests, with what is known of them before.
    `whole` says that all tests of their files were to run, `covered` what else is green.
    """
    cases = [case for report in reports for case in report.cases]
    failing = frozenset(case.id for case in cases if case.outcome in RED)
    return Tally(
        sum(report.passed for report in reports),
        sum(report.failed + report.errors for report in reports),
        whole=not any(report.problem for report in reports),
        passing=frozenset(case.id for case in cases if case.outcome == "passed"),
        failing=failing,
        as_before=failing.intersection(case.id for case in differs.as_before) if differs else frozenset(),
        mended=frozenset(differs.mended) if differs else frozenset(),
        green=_green(reports) | covered if whole else frozenset(),
        skipped=sum(report.skipped for report in reports),
    )


def told_short(counts: Tally, seconds: float, words: Callable[..., str], why: str = "") -> str:
    """Return the counts of a test run and its seconds in a few words for the user; `words` returns a sentence of the
    catalogue, `why` says in English what kept it from any result.
    """
    before = len(counts.as_before)
    parts = {
        "failed": counts.failed - before,
        "before": before,
        "passed": counts.passed,
        "skipped": counts.skipped,
    }
    told = [words(f"ran.{key}", count=count) for key, count in parts.items() if count]
    unclear = words("ran.unclear" if told else "ran.none") if not counts.whole or not told else ""
    ran = words("ran.all", counts=words("ran.and").join(filter(None, (*told, unclear))), seconds=f"{seconds:.1f}")
    reason = why.partition("\n")[0]
    # A line that ends with a colon only introduces the output of a program.
    return ran if told or not reason or reason.endswith(":") else words("ran.why", ran=ran, why=reason)


def _green(reports: Sequence[TestReport]) -> frozenset[str]:
    """Return the files of which something passed and nothing failed, in reports that are complete."""
    cases = [case for report in reports if not report.problem for case in report.cases if case.file]
    passing = {case.file for case in cases if case.file and case.outcome == "passed"}
    return frozenset(passing.difference(case.file for case in cases if case.outcome in RED))


def covered_by(
    projects: Sequence[Project], reports: Sequence[TestReport], path: str | None, context: ToolContext
) -> frozenset[str]:
    """Return what is green, as `Tally` names it, beside the files that the reports name: folders whose runner names
    none, and all tests.
    """
    roots = context.view.roots
    if path is not None and roots.kind(path) != "folder":
        return frozenset()
    green = [not report.problem and bool(report.passed) and not (report.failed or report.errors) for report in reports]
    found = {""} if all(green) and (path is None or path in roots.folders) else set()
    for project, report, passes in zip(projects, reports, green, strict=True):
        if passes and not any(case.file for case in report.cases):
            folder = path if path is not None and within(path, (project.folder,)) else project.folder
            found.add("/" if folder in roots.folders else f"{roots.relative(folder)}/")
    return frozenset(found)


def wrote(results: Sequence[CommandResult], context: ToolContext) -> str:
    """Return lines for the model, each after a line end, about files that the tests wrote; '' if there are none."""
    names = sorted({context.view.roots.relative(path) for result in results for path in result.staged})
    left = sum(len(result.left_out) for result in results)
    lines = [f"Written by the run and now staged: {join_names(names, MAX_NAMED)}"] if names else []
    lines += [f"Not staged: {left} other file{'s' if left > 1 else ''} it wrote"] if left else []
    return "".join(f"\n{line}" for line in lines)


class Noted:
    """A shell that keeps the results of its commands in `results`; it closes nothing."""

    def __init__(self, shell: Shell) -> None:
        self.results: list[CommandResult] = []
        self._shell = shell

    @property
    def isolation(self) -> Isolation:
        """The isolation of the wrapped shell."""
        return self._shell.isolation

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        """Run a command in the wrapped shell, return its result and record it in `results`; errors as of that shell."""
        result = await self._shell.run(command, on_output)
        self.results.append(result)
        return result


async def projects_at(path: str | None, context: ToolContext) -> Sequence[Project]:
    """Return the projects with the tests at `path` (absolute; None: everywhere). In a container they use its programs.
    ToolFailed if there are none, or none is installed.
    """
    found = await asyncio.to_thread(projects.find, context.view, path)
    # Programs of this machine say nothing about those of the image.
    if context.shell is not None and context.shell.isolation.level == "container":
        found = tuple(map(projects.in_an_image, found))
    if not found:
        where = f" for {context.view.roots.relative(path)}" if path else ""
        markers = ", ".join(ecosystem.marker for ecosystem in projects.ECOSYSTEMS)
        raise ToolFailed(
            NO_TESTS.format(where=where, known=projects.known_frameworks(), markers=markers), ErrorCode.NOT_FOUND
        )
    if not any(project.program for project in found):
        raise ToolFailed(not_installed(found[0]))
    return found


def not_installed(project: Project) -> str:
    """Return a sentence for the model on a Node framework that package.json names and node_modules lacks. Nothing is
    looked at: call it when that is known.
    """
    name = project.framework.name
    return (
        f"{name} is in package.json but not installed: there is no node_modules/.bin/{name}. "
        "The user has to run `npm install` first."
    )


def existing(path: str | None, context: ToolContext) -> str | None:
    """Return the absolute path of the file or folder that a call names, relative to the workspace or absolute; None for
    the workspace itself (None, '' or '.'). ToolRetry if it does not exist, PathRefused if it is outside of the
    workspace or no path can have that form.
    """
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
    """Return the end of a sentence, from its comma on, that says which texts the tests run on: open buffers, staged
    changes, or in the `direct` level of isolation the saved files only; '' if all are saved.
    """
    over = context.view.over_disk()
    if not over:
        return ""
    staged = frozenset(context.staging.paths())
    if isolation.level == "direct":
        return ", on the saved files only: unsaved and staged changes are not in it"
    layers = [name for name, there in (("open buffers", over - staged), ("staged changes", staged)) if there]
    return f", on the {' and '.join(layers)}"


def _split_node(path: str | None, context: ToolContext) -> tuple[str | None, str]:
    """Return the path, and the rest of a pytest id after it."""
    name, separator, rest = (path or "").partition("::")
    return existing(name or None, context), separator + rest


def _pattern(pattern: str | None) -> str:
    if pattern and (pattern.startswith("-") or "\0" in pattern):
        raise ToolRetry("A pattern is (part of) a test's name and does not begin with '-'.")
    return pattern or ""


def _failures(reports: Sequence[TestReport], differs: Compared | None) -> list[dict[str, Any]]:
    """Return each failure's id, file in the workspace, and how it stands to the user's own text."""
    cases = [case for report in reports for case in all_cases(report) if case.outcome in RED]
    fates: dict[str, Fate] = {case.id: "as_before" for case in (differs.as_before if differs else ())}
    fates |= {case.id: "otherwise" for case in (differs.otherwise if differs else ())}
    fates |= {case.id: "new" for case in (differs.new if differs else ())}
    return [{"id": case.id, "file": case.file, "fate": fates.get(case.id, "unknown")} for case in cases]


async def _test(project: Project, selection: Selection, context: ToolContext, shell: Shell) -> TestReport:
    if not project.program:
        return TestReport(project.framework.name, problem=not_installed(project))
    result = await _run(project, selection, context, shell)
    instead = project.framework.instead(project, result.finished)
    if instead is not None:
        return await _tested_instead(project, *instead, selection, context, shell)
    return framework.read(project, result.finished)


async def _tested_instead(
    project: Project, other: Project, advice: str, selection: Selection, context: ToolContext, shell: Shell
) -> TestReport:
    """Run the tests by another framework, as that of the project is missing; if none ran, report that."""
    name = project.framework.name
    if selection.node:
        return TestReport(name, problem=advice)
    report = framework.read(other, (await _run(other, selection, context, shell)).finished)
    if any(case.outcome in ("passed", "failed") for case in report.cases):
        return replace(report, note=f"{advice} Only {other.framework.name}'s tests could run.")
    return TestReport(name, problem=advice, seconds=report.seconds)


async def _run(project: Project, selection: Selection, context: ToolContext, shell: Shell) -> CommandResult:
    command = framework.command(project, selection, offline=shell.isolation.offline)
    return await shell.run(command, context.output)


def _scope(path: str | None, arguments: RunTestsParameters, context: ToolContext) -> str:
    """Return which part of the tests ran, as the end of a phrase; '' for all."""
    where = f" of {context.view.roots.relative(path)}" if path else ""
    return f"{where} matching {arguments.pattern!r}" if arguments.pattern else where


def _with_shown_files(report: TestReport, project: Project, context: ToolContext) -> TestReport:
    """Return the report with its files relative to the workspace."""
    locate = partial(_locate, project.folder, context)
    cases = tuple(replace(case, file=locate(case.file)) if case.file else case for case in report.cases)
    return replace(report, cases=cases)


def _locate(folder: str, context: ToolContext, file: str) -> str:
    """Return the shown path of a file: Cargo names files from the top of its workspace, others from the project."""
    roots = context.view.roots
    # Upwards from the project; where nothing is found, the name stays below the outermost folder.
    while not context.view.exists(os.path.join(folder, file)) and folder not in (*roots.folders, "/"):
        folder = os.path.dirname(folder)
    return roots.relative(os.path.join(folder, file))


def _report_text(report: TestReport, head: str, budget: int, differs: Compared | None, own: frozenset[str]) -> str:
    body = details(report, budget - len(head), differs, own)
    return f"{head}\n{body}" if body else head


class AnalyzeCoverageParameters(Parameters):
    """Parameters of `analyze_coverage`: the file or folder to report on; by default everything."""

    path: str | None = Field(None, description="File or folder to report on, or a test file to run alone")


class AnalyzeCoverage(Tool[AnalyzeCoverageParameters]):
    """The tool `analyze_coverage`: runs the tests and reports the lines that none of them reaches, the worst files
    first.
    """

    traits: ClassVar[ToolTraits] = ToolTraits(
        "analyze_coverage",
        "Run the tests and list the lines they do not reach.",
        "run",
        group="tests",
        timeout=None,  # the shell has its own, longer limit
        path_parameters=("path",),
        errors=(ErrorCode.NOT_FOUND,),
        result="printed",
    )
    parameters = AnalyzeCoverageParameters
    example: ClassVar[Example] = {"path": "src/cart.py"}
    output = dict[str, Any]  # reports: framework, percent, total, files

    async def run(self, arguments: AnalyzeCoverageParameters, context: ToolContext) -> ToolOutput:
        """Run the tests and return the share of covered lines and the uncovered ones, 1-based; `data["reports"]` has
        every file. ToolFailed if no test framework is found, or the program that measures is missing.
        """
        shell = Noted(context.open_shell())
        path = existing(arguments.path, context)
        found = await projects_at(path, context)
        alone = len(found) == 1
        state = state_of(context, shell.isolation)  # before the run may stage something itself
        reports = [await _attempt(project, path, context, shell, alone=alone) for project in found]
        texts = [
            describe_coverage(report, _locator(project, context), state, BUDGET // len(found))
            for project, report in zip(found, reports, strict=True)
        ]
        return ToolOutput(
            "\n\n".join(texts) + wrote(shell.results, context), {"reports": [report.as_dict() for report in reports]}
        )


async def _attempt(
    project: Project, path: str | None, context: ToolContext, shell: Shell, *, alone: bool
) -> CoverageReport:
    """Measure one project; if there are several, a failure becomes the problem of its report."""
    try:
        if not project.program:
            raise ToolFailed(not_installed(project))
        return await _measure(project, path, context, shell)
    except ToolFailed as error:
        if alone:
            raise
        return CoverageReport(project.framework.name, (), str(error))


async def _measure(project: Project, path: str | None, context: ToolContext, shell: Shell) -> CoverageReport:
    """Run all tests, since any may reach the path, unless the path is a test file; return the coverage of the path."""
    alone = path is not None and is_test_file(path)
    chosen = project if alone else replace(project, target="")
    command = measuring_command(chosen, context.view, offline=shell.isolation.offline)
    report = read_coverage(chosen, (await shell.run(command, context.output)).finished)
    if path is None or alone:
        return report
    files = tuple(file for file in report.files if within(os.path.join(project.folder, file.path), (path,)))
    return replace(report, files=files)


def _locator(project: Project, context: ToolContext) -> Callable[[str], str]:
    return lambda file: context.view.roots.relative(os.path.join(project.folder, file))
