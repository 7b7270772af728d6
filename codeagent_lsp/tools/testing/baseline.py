"""What failed before a change: test results on the user's own text, and how the results on a change differ from them.

Pure values and comparisons, and the port by which a test run gets them. Not here: running the tests of the baseline
(`session/toolbox.py`), the text about it for the model (`summary.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from codeagent_lsp.tools.testing.reports import TestCase, TestReport

Fate = Literal["new", "otherwise", "as_before", "unknown"]
"""How a failure stands to the baseline: it passed before or was not there, it failed in another way, it failed in the
same way, or nobody knows.
"""

RED = ("failed", "error")

_RAISED = re.compile(r"\b[A-Za-z_][\w.]*(?:Error|Exception|Failure|Warning|Panic)\b|\bpanic(?:ked)?\b|\bSystemExit\b")
_CHANGING = re.compile(r"0x[0-9a-fA-F]+|\d+")


@dataclass(frozen=True, slots=True)
class Results:
    """What is known of the tests on the user's own text: the last result of each test, and the files of which all tests
    ran. Files are relative to the workspace.
    """

    cases: Mapping[str, TestCase] = field(default_factory=dict)
    files: frozenset[str] = frozenset()

    def with_reports(self, reports: Iterable[TestReport], *, whole: bool) -> Results:
        """Return these results with those of a run; `whole` says that it ran all tests of the files that it names."""
        cases = [case for report in reports for case in all_cases(report)]
        files = {case.file for case in cases if case.file} if whole else set()
        return Results({**self.cases, **{case.id: case for case in cases}}, self.files | files)

    def fate(self, case: TestCase) -> Fate:
        """Return how a failure of a change stands to these results."""
        before = self.cases.get(case.id)
        if before is not None:
            if before.outcome not in RED:
                return "new"
            return "as_before" if _way(before) == _way(case) else "otherwise"
        if any(other.outcome in RED and contains(other.id, case.id) for other in self.cases.values()):
            return "otherwise"  # its file or class could not be loaded
        return "new" if case.file in self.files else "unknown"


@dataclass(frozen=True, slots=True)
class Compared:
    """The failures of a test run by their fates, and the names of the tests that failed before and pass now."""

    new: tuple[TestCase, ...] = ()
    otherwise: tuple[TestCase, ...] = ()
    as_before: tuple[TestCase, ...] = ()
    unknown: tuple[TestCase, ...] = ()
    mended: tuple[str, ...] = ()

    @property
    def caused(self) -> tuple[TestCase, ...]:
        """Return the failures that the change has to answer for, as far as is known."""
        return (*self.new, *self.otherwise, *self.unknown)


class Baseline(Protocol):
    """Port: the results of tests on the user's own text."""

    @property
    def changed(self) -> bool:
        """Return whether the run has changed something: results are then not those of the user's own text."""

    def record(self, reports: Sequence[TestReport], *, whole: bool) -> None:
        """Keep the results of a run on the user's own text; `whole` says that all tests of the files have run."""

    async def compare(self, reports: Sequence[TestReport]) -> Compared:
        """Return how these results differ from those on the user's own text; what is not known yet is found out, as far
        as that takes a bounded time.
        """


def compared(reports: Iterable[TestReport], before: Results) -> Compared:
    """Return how the results of a run differ from those before the change."""
    cases = [case for report in reports for case in all_cases(report)]
    fates: dict[Fate, list[TestCase]] = {"new": [], "otherwise": [], "as_before": [], "unknown": []}
    for case in cases:
        if case.outcome in RED:
            fates[before.fate(case)].append(case)
    red = {name for name, case in before.cases.items() if case.outcome in RED}
    mended = tuple(case.id for case in cases if case.outcome == "passed" and case.id in red)
    new, otherwise, as_before, unknown = map(tuple, fates.values())
    return Compared(new, otherwise, as_before, unknown, mended)


def all_cases(report: TestReport) -> tuple[TestCase, ...]:
    """Return the tests of a report; one that says only why it has none counts as a failure of its own."""
    if report.problem and not any(case.outcome in RED for case in report.cases):
        problem = TestCase(f"{report.framework}: no test ran", "error", message=report.problem)
        return (*report.cases, problem)
    return report.cases


def contains(outer: str, inner: str) -> bool:
    """Return whether one test id is that of a file or class, and the other of a test in it."""
    return inner.startswith(outer) and inner[len(outer) : len(outer) + 1] in (".", ":", "/", " ")


def _way(case: TestCase) -> tuple[str, ...]:
    """Return in which way a test failed: what was raised, else the message without its numbers."""
    raised = _RAISED.findall(case.message)
    if raised:
        return tuple(sorted({name.rpartition(".")[2] for name in raised}))
    lines = [line.strip() for line in case.message.splitlines() if line.strip()]
    return tuple(_CHANGING.sub("#", line) for line in lines[:3])
