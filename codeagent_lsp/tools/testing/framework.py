"""A test framework as one object: how tests run, what their report means, how coverage is measured, how new ones look.

One more framework is a subclass of `TestFramework` in the file of its ecosystem, or a file with an `Ecosystem` of its
own, named in `projects.py`. Texts of the model (a path, a pattern) are only used as whole arguments of a program, never
inside a script, and never look like an option. Not here: the frameworks (`python.py`, `node.py`, `golang.py`,
`cargo.py`), finding projects (`projects.py`).
"""

# ruff: noqa: PTH118, PTH119, PTH120, PTH122 - paths are plain strings, as everywhere below FileView

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.index.grammars import is_test_name
from codeagent_lsp.shadow.shell import REPORT_VARIABLE, Command, Finished
from codeagent_lsp.tools.testing import coverage
from codeagent_lsp.tools.testing.coverage import CoverageReport
from codeagent_lsp.tools.testing.reports import Parsed, ReportBroken, TestReport, describe_ending, judge_run, tail
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.paths import path_of, relative_name

REPORTS = f"${REPORT_VARIABLE}"
"""The folder for reports, as scripts write it."""
COVERAGE = "coverage"
"""The name of the coverage report."""

Words = tuple[str, ...]
Script = tuple[Words, str]
"""The arguments of a bash script, and the script."""

_FOLDER = "folder"  # where the tests really ran: another folder than the workspace's where that is a copy
_ENVIRONMENT = {
    "CARGO_TERM_COLOR": "never",
    "NO_COLOR": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "RUST_BACKTRACE": "0",
}


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with tests: the framework, the program that runs them, and which of them.

    `folder` is absolute. `program` starts the framework; its first word is a name on PATH or relative to `folder`, so
    that it is found in any copy of the workspace; empty if not installed. `target` is relative to `folder`, empty for
    all tests. `module` is the path of the Go module.
    """

    framework: TestFramework
    folder: str
    program: Words
    target: str = ""
    module: str = ""

    @property
    def targets(self) -> Words:
        """The target as an argument that cannot be taken for an option; () for all tests."""
        return (f"./{self.target}" if self.target.startswith("-") else self.target,) if self.target else ()


@dataclass(frozen=True, slots=True)
class Selection:
    """The tests to run: a pattern of names, and after a pytest file the rest of a test's id (`::Class::test`)."""

    pattern: str = ""
    node: str = ""


@dataclass(frozen=True, slots=True)
class TestRun:
    """The result of a finished run: the bytes of its report, the folder in which it ran, what it printed, and its
    project's `module`.
    """

    __test__: ClassVar[bool] = False  # the name is not meant for pytest

    report: bytes
    folder: str
    printed: str = ""
    module: str = ""


class TestFramework(ABC):
    """A test framework. `name` is how reports call it, `title` how people do ('' for one that only runs a script),
    `command` is a pattern of command lines that run all of its tests, `some` of what people add to run some of them.

    `report` is the name of its report, '' if it has none of single tests. `style` tells a model how its tests look, and
    `suffixes` are those of files that it can write tests for. `coverage_form` is that of its coverage report
    (`coverage.parse`), which counts in `coverage_unit`. `image_program` runs it in a container image, which lacks what
    is installed in the workspace; '' for the program of the project. `has_ids`: one test can be named by its id.
    """

    __test__: ClassVar[bool] = False

    name: ClassVar[str]
    title: ClassVar[str] = ""
    command: ClassVar[str]
    some: ClassVar[str] = ""
    report: ClassVar[str] = ""
    style: ClassVar[str] = ""
    suffixes: ClassVar[Words] = ()
    coverage_form: ClassVar[str] = ""
    coverage_unit: ClassVar[str] = "lines"
    image_program: ClassVar[str] = ""
    has_ids: ClassVar[bool] = False

    @abstractmethod
    def script(self, project: Project, selection: Selection) -> Script:
        """Return (program words, script text) that run the selected tests and write the report into the folder of
        reports (the variable `REPORT_VARIABLE`). ToolRetry for what cannot be selected.
        """

    def parse(self, run: TestRun) -> Parsed:
        """Parse the report. ReportBroken if nothing of it can be used."""
        return Parsed((), "has no results of single tests, since the framework is not known")

    def note(self, finished: Finished) -> str:
        """Return a remark for the readers of the report, made from what the run printed and reported; '' for none."""
        return ""

    def instead(self, project: Project, finished: Finished) -> tuple[Project, str] | None:
        """Return (project, advice): the project to run instead, and advice for the model, if the run shows that the
        framework is missing; else None.
        """
        return None

    def measuring(self, project: Project, view: FileView) -> Script:
        """Return the script that runs the tests and writes the coverage report. ToolFailed if that is not supported."""
        raise ToolFailed(f"Coverage cannot be measured for {self.name}: only the tests can be run.")

    def missing(self, project: Project, finished: Finished) -> str:
        """Return the command that installs the program that measures coverage, if the run shows that it is missing;
        else ''.
        """
        return ""

    def new_test(self, view: FileView, project: Project, source: str, words: str) -> str:
        """Return the absolute path for a new test of the file `source` (absolute); `words` are for its name. Only
        called for frameworks with a `style`.
        """
        return os.path.join(os.path.dirname(source), f"{words}_test{os.path.splitext(source)[1]}")


@dataclass(frozen=True, slots=True)
class Ecosystem:
    """Frameworks that share their project files. `find` returns the project of a folder, with a target in it, if it has
    tests; `suffixes` are those of its source files, `marker` is the file that shows such a project, which is only
    looked for where it is, unless it may be `unmarked`.
    """

    frameworks: tuple[TestFramework, ...]
    marker: str
    suffixes: Words
    find: Callable[[FileView, str, str], Project | None]
    unmarked: bool = False

    def may_be_in(self, view: FileView, folder: str) -> bool:
        """Return whether a folder may be a project of this kind, without reading any file."""
        return self.unmarked or view.exists(os.path.join(folder, self.marker))


def command(project: Project, selection: Selection, *, offline: bool) -> Command:
    """Return the command that runs the tests of a project; with `offline`, without network. ToolRetry for what cannot
    be selected.
    """
    return _script_command(project, project.framework.script(project, selection), offline=offline)


def read(project: Project, finished: Finished) -> TestReport:
    """Return the test report of a finished command; what cannot be read is its `problem`."""
    framework = project.framework
    folder = _ran_in(project, finished)
    report = judge_run(
        framework.name, finished, _parse_report(project, finished, folder), note=framework.note(finished)
    )
    prefix = path_of(folder, "")  # meaningless where the tests ran in a copy
    cases = tuple(replace(case, message=case.message.replace(prefix, "")) for case in report.cases)
    return replace(report, cases=cases, problem=report.problem.replace(prefix, ""))


def measuring_command(project: Project, view: FileView, *, offline: bool) -> Command:
    """Return the command that runs the tests and measures coverage; with `offline`, without network. ToolFailed for a
    framework without support.
    """
    return _script_command(project, project.framework.measuring(project, view), offline=offline)


def read_coverage(project: Project, finished: Finished) -> CoverageReport:
    """Return the coverage that a finished command has reported; what cannot be read is its `problem`. ToolFailed, with
    how to install it, if a tool is missing.
    """
    framework = project.framework
    if missing := framework.missing(project, finished):
        raise ToolFailed(f"What measures coverage is not installed here. The user can install it: {missing}.")
    empty = CoverageReport(framework.name, unit=framework.coverage_unit)
    data = finished.reports.get(COVERAGE)
    if data is None:
        return replace(empty, problem=_problem(finished, "left no coverage report"))
    try:
        files = coverage.parse(framework.coverage_form, data, _ran_in(project, finished), project.module)
    except ReportBroken as error:
        return replace(empty, problem=_problem(finished, f"left a coverage report that {error}"))
    inside = tuple(file for file in files if not Path(file.path).is_absolute() and not _of_tests(file.path))
    note = f"The test run {describe_ending(finished)}; run_tests shows which tests fail." if finished.exit_code else ""
    return replace(empty, files=inside, problem=note if inside else _problem(finished, "measured no file"))


def is_test_file(path: str) -> bool:
    """Return whether a file contains tests, by its name and the naming conventions of the frameworks, unread; not
    whether it only belongs to tests, as fixtures do (`is_test` in `index/grammars.py`).
    """
    name = os.path.basename(path)
    stem, suffix = os.path.splitext(name)
    if suffix == ".py":
        return stem.startswith("test") or stem.endswith(("_test", "_tests"))
    return is_test_name(name) or "/tests/" in path or "/__tests__/" in path


def nearest_program(view: FileView, folder: str, names: Words) -> str:
    """Return the nearest of these files (paths such as `.venv/bin/python`) in `folder` (absolute) or above it in the
    workspace, relative to `folder` and with a slash in it; '' for none.
    """
    for around in view.roots.upwards(folder):
        for name in names:
            if view.exists(program := os.path.join(around, name)):
                inside = relative_name(program, folder)
                return inside if "/" in inside else f"./{inside}"
    return ""


def _script_command(project: Project, script: Script, *, offline: bool) -> Command:
    words, lines = script
    noted = f'pwd -P > "{REPORTS}/{_FOLDER}"; {lines}'
    environment = {**_ENVIRONMENT, **({"CARGO_NET_OFFLINE": "true", "GOPROXY": "off"} if offline else {})}
    # `tests` is the script's `$0`.
    return Command(("bash", "-c", noted, "tests", *words), project.folder, environment=environment)


def _ran_in(project: Project, finished: Finished) -> str:
    """Return the folder in which the command ran, as it reported itself."""
    return finished.reports.get(_FOLDER, b"").decode("utf-8", "replace").strip() or project.folder


def _parse_report(project: Project, finished: Finished, folder: str) -> Parsed:
    framework = project.framework
    data = finished.reports.get(framework.report)
    if data is None and framework.report:
        return Parsed((), "is missing")
    try:
        return framework.parse(TestRun(data or b"", folder, finished.output, project.module))
    except ReportBroken as error:
        return Parsed((), str(error))


def _of_tests(path: str) -> bool:
    return is_test_file(path) or path.endswith("conftest.py") or path.startswith("tests/")


def _problem(finished: Finished, what: str) -> str:
    return f"The test run {describe_ending(finished)} and {what}. The end of its output:\n{tail(finished.output)}"
