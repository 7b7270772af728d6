"""Go's test framework: `go test`, and the parser of its events, also of truncated reports."""

# ruff: noqa: PTH118, PTH120 - paths are plain strings, as everywhere below FileView

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import dropwhile, takewhile
from typing import Any, ClassVar

from typing_extensions import override

from codeagent_lsp.tools.testing.framework import (
    COVERAGE,
    REPORTS,
    Ecosystem,
    Project,
    Script,
    Selection,
    TestFramework,
    TestRun,
    Words,
)
from codeagent_lsp.tools.testing.reports import (
    CaseOutcome,
    Parsed,
    TestCase,
    bounded_cases,
    message,
)
from codeagent_lsp.workspace.files.file_view import FileView

_OUTCOMES: Mapping[str, CaseOutcome] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
_PLACE = re.compile(r"^\s*([^\s:]+\.go):(\d{1,9}):", re.MULTILINE)
_NOT_BUILT = re.compile(r"^FAIL\t(\S+) \[(?:build|setup) failed\]$")
_CHATTER = re.compile(r"^\s*(?:=== |--- (?:PASS|FAIL|SKIP))|^(?:PASS|FAIL|ok)\b")


@dataclass
class _Unit:
    """The events so far of one test, or of a package if `test` is empty."""

    package: str
    test: str
    ended: str = ""
    seconds: float = 0.0
    output: list[str] = field(default_factory=list)


class GoTest(TestFramework):
    """The framework of Go, `go test`, whose report is its stream of events as JSON."""

    name: ClassVar[str] = "go"
    title: ClassVar[str] = "go test"
    command: ClassVar[str] = r"go test(?: \./\.\.\.)?"
    report: ClassVar[str] = "report.json"
    style: ClassVar[str] = "Go's testing package, in the package of the code"
    suffixes: ClassVar[Words] = (".go",)
    coverage_form: ClassVar[str] = "go"
    coverage_unit: ClassVar[str] = "statements"

    @override
    def script(self, project: Project, selection: Selection) -> Script:
        chosen = (f"-run={selection.pattern}",) if selection.pattern else ()
        words = (*project.program, "test", "-json", *chosen, _packages(project))
        return words, f'exec "$@" > "{REPORTS}/{self.report}"'

    @override
    def parse(self, run: TestRun) -> Parsed:
        return parse(run)

    @override
    def measuring(self, project: Project, view: FileView) -> Script:
        return (*project.program, _packages(project)), f'exec "$1" test "-coverprofile={REPORTS}/{COVERAGE}" "$2"'


GO_TEST = GoTest()


def parse(run: TestRun) -> Parsed:
    """Return the cases of a report of `go test -json`, also of a truncated one. A test without an end event is an
    error. ReportBroken above 100,000 tests.
    """
    units: dict[tuple[str, str], _Unit] = {}
    builds: dict[str, list[str]] = {}
    broken = ""
    for line in run.report.decode("utf-8", "replace").splitlines():
        if failed := _NOT_BUILT.match(line):  # plain text before Go 1.24
            units[failed[1], ""] = _Unit(failed[1], "", "fail")
            continue
        try:
            _take(json.loads(line), units, builds)
        except (ValueError, TypeError, AttributeError, RecursionError):
            broken = "has lines that are not events of go test"
    tests = {key: unit for key, unit in units.items() if key[1]}
    cases = [case for key, unit in tests.items() for case in _test(key, unit, tests, run)]
    failing = {unit.package for unit in tests.values() if unit.ended == "fail"}
    for unit in units.values():
        if not unit.test and unit.ended != "pass" and unit.package not in failing:
            cases.extend(_package(unit, builds, run))
    return Parsed(bounded_cases(cases), broken)


def _take(event: Mapping[str, Any], units: dict[tuple[str, str], _Unit], builds: dict[str, list[str]]) -> None:
    action = event.get("Action", "")
    if action == "build-output":
        builds.setdefault(event.get("ImportPath", ""), []).append(event.get("Output", ""))
    package, test = event.get("Package"), event.get("Test", "")
    if not package:
        return
    unit = units.setdefault((package, test), _Unit(package, test))
    if action == "output":
        unit.output.append(event.get("Output", ""))
    elif action in _OUTCOMES:
        unit.ended, unit.seconds = action, float(event.get("Elapsed", 0))
        unit.output += builds.get(event.get("FailedBuild", ""), ())


def _test(
    key: tuple[str, str], unit: _Unit, tests: Mapping[tuple[str, str], _Unit], run: TestRun
) -> Iterator[TestCase]:
    """Yield the case of a test; none for a parent of subtests unless it failed by itself."""
    inner = [other for name, other in tests.items() if name[0] == key[0] and name[1].startswith(f"{key[1]}/")]
    if inner and (unit.ended != "fail" or any(other.ended == "fail" for other in inner)):
        return
    outcome = _OUTCOMES.get(unit.ended, "error")
    text = "" if outcome == "passed" else _output_of(unit)
    if not unit.ended:
        text = f"It never ended.\n{text}"
    elif re.search("^panic: ", text, re.MULTILINE):
        text = f"It ended the package's run: tests after it did not run.\n{text}"
    file, line = _place(text, unit.package, run)
    yield TestCase(f"{unit.package}.{unit.test}", outcome, unit.seconds, message(text), file, line)


def _package(unit: _Unit, builds: Mapping[str, list[str]], run: TestRun) -> Iterator[TestCase]:
    """Yield an error case for a package that failed without a failing test: in its build or set-up."""
    if unit.ended == "skip":  # no test files
        return
    built = [text for path, output in builds.items() if path.split(" ")[0] == unit.package for text in output]
    built = built or _compiler_output(unit.package, run.printed)
    text = "".join(built) or _output_of(unit) or "The package failed without a failing test."
    file, line = _place(text, "" if built else unit.package, run)
    yield TestCase(unit.package, "error", unit.seconds, message(text), file, line)


def _output_of(unit: _Unit) -> str:
    return "\n".join(line for line in "".join(unit.output).splitlines() if not _CHATTER.match(line))


def _compiler_output(package: str, printed: str) -> list[str]:
    """Return the compiler's output about a package, from `# package` to the next such line."""
    lines = iter(printed.splitlines(keepends=True))
    found = dropwhile(lambda line: line.split()[:2] != ["#", package], lines)
    next(found, None)
    return list(takewhile(lambda line: not line.startswith("# "), found))


def _place(text: str, package: str, run: TestRun) -> tuple[str | None, int | None]:
    """Return the file and line of a failure: the first frame in the user's code, else the last place in the text."""
    if frame := re.search(rf"{re.escape(run.folder)}/(\S+\.go):(\d{{1,9}})", text):
        return frame[1], int(frame[2])
    matches = list(_PLACE.finditer(text))
    if not matches:
        return None, None
    folder = package[len(run.module) + 1 :] if package.startswith(f"{run.module}/") else ""
    name = matches[-1][1].removeprefix("./")
    return (f"{folder}/{name}" if folder and "/" not in name else name), int(matches[-1][2])


def _packages(project: Project) -> str:
    """Return the package pattern of a project's target, as go expects it."""
    if project.target.endswith(".go"):
        return f"./{os.path.dirname(project.target)}"
    return f"./{project.target}/..." if project.target else "./..."


def _find(view: FileView, folder: str, target: str) -> Project | None:
    text = view.text(os.path.join(folder, "go.mod")) or ""
    module = re.search(r'^module\s+"?([^\s"]+)', text, re.MULTILINE)
    return Project(GO_TEST, folder, ("go",), target, module[1]) if module else None


GO = Ecosystem((GO_TEST,), "go.mod", (".go",), _find)
