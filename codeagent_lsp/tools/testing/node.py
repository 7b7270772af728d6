"""JavaScript's test frameworks: vitest, jest, the runner of Node itself, and whatever `npm test` runs.

Not here: the report of Node's runner (`junit.py`).
"""

# ruff: noqa: PTH118, PTH120, PTH122 - paths are plain strings, as everywhere below FileView

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from typing_extensions import override

from codeagent_lsp.errors import ToolRetry
from codeagent_lsp.shadow.shell import Finished
from codeagent_lsp.tools.testing import junit
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
    nearest_program,
)
from codeagent_lsp.tools.testing.reports import (
    CaseOutcome,
    Parsed,
    ReportBroken,
    TestCase,
    bounded_cases,
    message,
    plain,
    relative,
)
from codeagent_lsp.workspace.files.file_view import FileView

_SCRIPTS = (".js", ".cjs", ".mjs", ".jsx", ".ts", ".cts", ".mts", ".tsx")
_PROVIDER = re.compile(r"(?i)missing dependency.*?(@vitest/coverage-\w+)", re.DOTALL)
_MEASURE = f"""
"$@" "$directory={REPORTS}/measured"
code=$?
mv "{REPORTS}/measured/coverage-final.json" "{REPORTS}/{COVERAGE}" 2>/dev/null; rm -rf "{REPORTS}/measured"
exit $code
"""
_OUTCOMES: Mapping[str, CaseOutcome] = {
    "passed": "passed",
    "failed": "failed",
    "pending": "skipped",
    "skipped": "skipped",
    "todo": "skipped",
    "disabled": "skipped",
}
_FRAME = re.compile(r"^\s*(?:at |❯ )(?:.*?\()?((?:file://)?[^\s():]+):(\d{1,9}):\d+\)?$", re.MULTILINE)


class _Script(TestFramework):
    """What all that know single tests have in common."""

    suffixes: ClassVar[Words] = _SCRIPTS

    @override
    def new_test(self, view: FileView, project: Project, source: str, words: str) -> str:
        return os.path.join(os.path.dirname(source), f"{words}.test{os.path.splitext(source)[1]}")


class _Installed(_Script):
    """What vitest and jest have in common: the form of their reports."""

    report: ClassVar[str] = "report.json"
    coverage_form: ClassVar[str] = "istanbul"

    @override
    def parse(self, run: TestRun) -> Parsed:
        return parse_json(run.report, run.folder)


class Vitest(_Installed):
    """The framework vitest, as installed in the project; its report is JSON."""

    name: ClassVar[str] = "vitest"
    title: ClassVar[str] = "vitest"
    command: ClassVar[str] = r"(?:npx )?vitest(?: run)?"
    style: ClassVar[str] = "vitest; import describe, expect, it from 'vitest'"
    image_program: ClassVar[str] = "vitest"

    @override
    def script(self, project: Project, selection: Selection) -> Script:
        words = (*project.program, "run", "--reporter=default", "--reporter=json", *_name_option(selection))
        return (*words, *project.targets), f'exec "$@" "--outputFile.json={REPORTS}/{self.report}"'

    @override
    def measuring(self, project: Project, view: FileView) -> Script:
        options = ("--coverage.enabled", "--coverage.reporter=json", "--coverage.reportOnFailure")
        words = (*project.program, "run", *options, *project.targets)
        return words, f"directory=--coverage.reportsDirectory\n{_MEASURE}"

    @override
    def missing(self, project: Project, finished: Finished) -> str:
        provider = _PROVIDER.search(finished.output)
        return f"`npm install --save-dev {provider[1]}`" if provider else ""


class Jest(_Installed):
    """The framework jest, as installed in the project; its report is JSON."""

    name: ClassVar[str] = "jest"
    title: ClassVar[str] = "jest"
    command: ClassVar[str] = r"(?:npx )?jest"
    style: ClassVar[str] = "jest, with its globals describe, expect, it"
    image_program: ClassVar[str] = "jest"

    @override
    def script(self, project: Project, selection: Selection) -> Script:
        words = (*project.program, "--json", "--testLocationInResults", *_name_option(selection), *project.targets)
        return words, f'exec "$@" "--outputFile={REPORTS}/{self.report}"'

    @override
    def measuring(self, project: Project, view: FileView) -> Script:
        words = (*project.program, "--coverage", "--coverageReporters=json", *project.targets)
        return words, f"directory=--coverageDirectory\n{_MEASURE}"


class NodeRunner(_Script):
    """The runner of Node itself, `node --test`, which reports as JUnit XML."""

    name: ClassVar[str] = "node"
    title: ClassVar[str] = "node --test"
    command: ClassVar[str] = "node --test"
    report: ClassVar[str] = "report.xml"
    style: ClassVar[str] = "node:test and node:assert/strict of Node itself"

    @override
    def script(self, project: Project, selection: Selection) -> Script:
        pattern = (f"--test-name-pattern={selection.pattern}",) if selection.pattern else ()
        # The options stand before the files: Node gives what is behind a file to that file.
        lines = (
            'program=$1; shift; exec "$program" --test --test-reporter=spec --test-reporter-destination=stdout '
            f'--test-reporter=junit "--test-reporter-destination={REPORTS}/{self.report}" "$@"'
        )
        return (*project.program, *pattern, *project.targets), lines

    @override
    def parse(self, run: TestRun) -> Parsed:
        return junit.parse(run.report, run.folder)


class NpmScript(TestFramework):
    """The test script of a package that uses none of the frameworks known here: only its exit code is known."""

    name: ClassVar[str] = "npm"
    command: ClassVar[str] = "npm (?:run )?test"

    @override
    def script(self, project: Project, selection: Selection) -> Script:
        if selection.pattern:
            raise ToolRetry("This project's tests run by `npm test`, which takes no pattern. Call again without one.")
        return (*project.program, "test"), 'exec "$@"'


VITEST, JEST, NODE_RUNNER, NPM_SCRIPT = Vitest(), Jest(), NodeRunner(), NpmScript()


def parse_json(data: bytes, folder: str) -> Parsed:
    """Return the cases in the report of jest (`--json`) and vitest (`--reporter=json`), which share one format;
    `folder` is where the tests ran. ReportBroken if it is malformed or too large.
    """
    try:
        report = json.loads(data)
        return Parsed(bounded_cases(case for suite in report["testResults"] for case in _suite(suite, folder)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ReportBroken("is not whole") from None


def _suite(suite: Mapping[str, Any], folder: str) -> Iterator[TestCase]:
    file = relative(str(suite["name"]), folder)
    cases = [_case(item, file, folder) for item in suite["assertionResults"]]
    yield from cases
    # A file that fails before its first test, by an import say, has no case that tells of it.
    if suite["status"] == "failed" and not any(case.outcome == "failed" for case in cases):
        text = str(suite.get("message") or "") or "The file could not be run."
        yield TestCase(file, "error", 0.0, message(text), file, _line(text, file, folder))


def _case(item: Mapping[str, Any], file: str, folder: str) -> TestCase:
    outcome = _OUTCOMES[item["status"]]
    text = _without_library_frames("\n".join(item.get("failureMessages") or ())) if outcome == "failed" else ""
    location = item.get("location") or {}
    name = " > ".join([*item.get("ancestorTitles", ()), item["title"]])
    return TestCase(
        f"{file} > {name}",
        outcome,
        float(item.get("duration") or 0) / 1000,
        message(text),
        file,
        # Where it failed, rather than where the test begins.
        _line(text, file, folder) or location.get("line"),
    )


def _line(text: str, file: str, folder: str) -> int | None:
    """Return the 1-based line in the test file from the stack frame nearest to the failure; None if there is none."""
    frames = ((relative(match[1], folder), int(match[2])) for match in _FRAME.finditer(plain(text)))
    return next((line for name, line in frames if name == file), None)


def _without_library_frames(text: str) -> str:
    """Return a failure's text without the stack frames of libraries."""
    lines = plain(text).splitlines()
    return "\n".join(
        line for line in lines if not re.match(r"\s+at .*(?:node_modules/|node:internal|file:///.*/node_modules)", line)
    )


def _name_option(selection: Selection) -> Words:
    return (f"--testNamePattern={selection.pattern}",) if selection.pattern else ()


def _find(view: FileView, folder: str, target: str) -> Project | None:
    try:
        package = json.loads(view.text(os.path.join(folder, "package.json")) or "")
        packages = {**(package.get("devDependencies") or {}), **(package.get("dependencies") or {})}
        script = str((package.get("scripts") or {}).get("test", ""))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    if "node --test" in script:
        return Project(NODE_RUNNER, folder, ("node",), target)
    for framework in _frameworks(packages, script):
        # The nearest node_modules upwards, as in monorepos.
        program = nearest_program(view, folder, (f"node_modules/.bin/{framework.name}",))
        return Project(framework, folder, (program,) if program else (), target)
    # What `npm init` writes where there are no tests yet.
    if not script or "no test specified" in script:
        return None
    return Project(NPM_SCRIPT, folder, ("npm",), target)


def _frameworks(packages: Mapping[str, Any], script: str) -> Iterator[TestFramework]:
    """Yield the frameworks in the test script; without a script, those among the dependencies."""
    yield from (each for each in (VITEST, JEST) if re.search(rf"\b{each.name}\b", script))
    if not script or "no test specified" in script:
        yield from (each for each in (VITEST, JEST) if each.name in packages)


NODE = Ecosystem((VITEST, JEST, NODE_RUNNER, NPM_SCRIPT), "package.json", (*_SCRIPTS, ".vue", ".svelte"), _find)
