"""Rust's test framework: `cargo test`, and a strict parser of its output: the stable harness has no other report.

Test names count only between `running N tests` and the N-th of them, and only if the totals agree, so that a test that
prints such lines itself cannot add or hide one.
"""

# ruff: noqa: PTH118, PTH122 - paths are plain strings, as everywhere below FileView

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import ClassVar

from typing_extensions import override

from codeagent_lsp.shadow.shell import Finished
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
    plain,
)
from codeagent_lsp.workspace.files.file_view import FileView

_UNIT = re.compile(r"^\s+Running (?:unittests )?(?P<file>\S+) \(.*?(?P<name>[^/\\]+)-[0-9a-f]+(?:\.exe)?\)$")
_DOCS = re.compile(r"^\s+Doc-tests (?P<name>\S+)$")
_BEGIN = re.compile(r"^running (?P<count>\d{1,9}) tests?$")
_TEST = re.compile(r"^test (?P<name>.+?)(?: - should panic)? \.\.\. (?P<how>ok|FAILED|ignored)(?:, (?P<why>.*))?$")
_BLOCK = re.compile(r"^---- (?P<name>.+) stdout ----$")
_TOTAL = re.compile(
    r"^test result: \w+\. (?P<passed>\d{1,9}) passed; (?P<failed>\d{1,9}) failed; (?P<ignored>\d{1,9}) ignored; "
)
_PLACE = re.compile(r"(?:panicked at |^\s*--> )(?P<file>[^\s:]+\.rs):(?P<line>\d{1,9}):\d+", re.MULTILINE)
_OUTCOMES: dict[str, CaseOutcome] = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}


@dataclass
class _Unit:
    """The lines so far of one test program, or of the doc tests of a crate."""

    name: str
    file: str | None
    expected: int
    seen: dict[str, tuple[CaseOutcome, str]] = field(default_factory=dict)
    blocks: dict[str, list[str]] = field(default_factory=dict)
    block: list[str] | None = None
    whole: bool = False

    def agrees(self, total: re.Match[str]) -> bool:
        """Return whether a line of totals agrees with the tests seen."""
        outcomes = [outcome for outcome, _ in self.seen.values()]
        return [outcomes.count("passed"), outcomes.count("failed"), outcomes.count("skipped")] == [
            int(number) for number in total.groups()
        ]


class CargoTest(TestFramework):
    """The framework of Rust, `cargo test`, whose report is what it prints."""

    name: ClassVar[str] = "cargo"
    title: ClassVar[str] = "cargo test"
    command: ClassVar[str] = "cargo test"
    report: ClassVar[str] = "report.txt"
    style: ClassVar[str] = "Rust's test attribute, in a file below tests/ that uses the crate by its name"
    suffixes: ClassVar[Words] = (".rs",)
    coverage_form: ClassVar[str] = "lcov"

    @override
    def script(self, project: Project, selection: Selection) -> Script:
        words = (*project.program, "test", "--no-fail-fast", *_chosen(project, selection))
        # Or the exit code would be that of `tee`.
        return words, f'set -o pipefail; "$@" 2>&1 | tee "{REPORTS}/{self.report}"'

    @override
    def parse(self, run: TestRun) -> Parsed:
        return parse(run.report)

    @override
    def measuring(self, project: Project, view: FileView) -> Script:
        words = (*project.program, "llvm-cov", "--no-fail-fast", "--lcov", *_chosen(project, Selection()))
        return words, f'exec "$@" "--output-path={REPORTS}/{COVERAGE}"'

    @override
    def missing(self, project: Project, finished: Finished) -> str:
        return "`cargo install cargo-llvm-cov`" if "no such command: `llvm-cov`" in finished.output else ""

    @override
    def new_test(self, view: FileView, project: Project, source: str, words: str) -> str:
        return os.path.join(project.folder, "tests", f"{words}_test.rs")


CARGO_TEST = CargoTest()


def parse(data: bytes) -> Parsed:
    """Return the cases of all test programs in the output `data` of `cargo test`. The result has a problem if the
    counts of a program do not add up. ReportBroken above 100,000 tests.
    """
    units: list[_Unit] = []
    name, file, unit = "", None, None
    for line in plain(data.decode("utf-8", "replace")).split("\n"):
        if match := _UNIT.match(line) or _DOCS.match(line):
            # Printed by a test, it ends that test's program too soon, which is then seen to be cut.
            name, file, unit = match["name"], match.groupdict().get("file"), None
        elif unit is not None and not unit.whole:
            _take(unit, line)
        elif match := _BEGIN.match(line):
            unit = _Unit(name, file, int(match["count"]))
            units.append(unit)
    open_ended = [unit.name for unit in units if not unit.whole]
    cases = bounded_cases(case for unit in units for case in _cases(unit))
    return Parsed(cases, f"breaks off in {', '.join(open_ended)}" if open_ended else "")


def _take(unit: _Unit, line: str) -> None:
    if len(unit.seen) < unit.expected:
        if match := _TEST.match(line):
            unit.seen[match["name"]] = (_OUTCOMES[match["how"]], match["why"] or "")
    elif (total := _TOTAL.match(line)) and unit.agrees(total):
        unit.whole = True
    elif (match := _BLOCK.match(line)) and match["name"] in unit.seen and match["name"] not in unit.blocks:
        unit.block = unit.blocks[match["name"]] = []
    elif line == "failures:" and unit.blocks.keys() >= {n for n, (how, _) in unit.seen.items() if how == "failed"}:
        unit.block = None
    elif unit.block is not None:
        unit.block.append(line)


def _cases(unit: _Unit) -> list[TestCase]:
    return [_case(unit, name, outcome, why) for name, (outcome, why) in unit.seen.items()]


def _case(unit: _Unit, name: str, outcome: CaseOutcome, why: str) -> TestCase:
    text = "\n".join(unit.blocks.get(name, ())) or why
    text = "\n".join(line for line in text.splitlines() if not line.startswith("note: run with `RUST_BACKTRACE"))
    # A doc test's name begins with its file, and places in it count from the test's own first line.
    in_docs = re.match(r"(?P<file>\S+\.(?:rs|md)) - .*\(line (?P<line>\d{1,9})\)", name) if unit.file is None else None
    found = in_docs or (_PLACE.search(text) if outcome == "failed" else None)
    place = (found["file"], int(found["line"])) if found else (unit.file, None)
    separator = ": " if unit.file is None else "::"
    return TestCase(f"{unit.name}{separator}{name}", outcome, 0.0, message(text), *place)


def _chosen(project: Project, selection: Selection) -> Words:
    """Return the arguments that select tests: an integration test by its file's name, others by their module."""
    folder, _, name = project.target.rpartition("/")
    stem, suffix = os.path.splitext(name)
    pattern = (selection.pattern,) if selection.pattern else ()
    if suffix == ".rs" and folder == "tests":
        return ("--test", stem, *pattern)
    if suffix == ".rs" and not pattern and stem not in ("lib", "main", "mod"):
        return (f"{stem}::",)
    return pattern


def _find(view: FileView, folder: str, target: str) -> Project | None:
    text = view.text(os.path.join(folder, "Cargo.toml")) or ""
    if not re.search(r"^\s*\[(?:package|workspace)\b", text, re.MULTILINE):
        return None
    return Project(CARGO_TEST, folder, ("cargo",), target)


CARGO = Ecosystem((CARGO_TEST,), "Cargo.toml", (".rs",), _find)
