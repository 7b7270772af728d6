"""The text about a test run for the model: one line with the counts, then the failures, within a budget.

Not here: the structured report for programs (`TestReport.as_dict`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from codeagent_lsp.tools.testing.reports import RED, Compared, TestCase, TestReport

BUDGET = 4000
NAMES = 2500
"""Characters for the names of tests whose messages are not shown."""
SHARES = 8
"""Failures that share what is left of the budget."""
_SHORTEST = 120
_LONGEST = 1200
_POINT = re.compile(
    r"^E\s|Error\b|^\s*(?:Expected|Received|left:|right:|[-+] )"
    r"|assert|panicked at|^panic:|expected|want|got|!=|_test\.go:\d+:"
)


def headline(report: TestReport, scope: str = "", state: str = "", differs: Compared | None = None) -> str:
    """Return the line `tests: 41 passed, 2 failed (1 new, 1 as before), 1 skipped in 3.2 s (pytest), on the unsaved
    buffers`; `scope` names the tests.
    """
    counts = [
        (report.passed, "passed"),
        (report.failed, f"failed{_by_fate(report, 'failed', differs)}"),
        (report.errors, f"could not run{_by_fate(report, 'error', differs)}"),
        (report.skipped, "skipped"),
    ]
    told = [f"{number} {word}" for number, word in counts if number] or ["no result of any test"]
    doubt = "INCOMPLETE, " if report.problem and report.cases else ""
    return f"tests{scope}: {doubt}{', '.join(told)} in {report.seconds:.1f} s ({report.framework}){state}"


def details(
    report: TestReport,
    budget: int = BUDGET,
    differs: Compared | None = None,
    own: frozenset[str] = frozenset(),
) -> str:
    """Return the problems and the failed tests with their messages, in about `budget` characters; those for which there
    is no room by their names. With a baseline, those of the files `own` come first,
    then what failed in no such way before, and what failed as before only by its names.
    """
    parts = [text for text in (report.note, report.problem) if text]
    bad = [case for case in report.cases if case.outcome in RED]
    before = frozenset(case.id for case in differs.as_before) if differs else frozenset()
    changed = frozenset(case.id for case in differs.otherwise) if differs else frozenset()
    caused = [case for case in bad if case.id not in before]
    if differs is not None:
        caused.sort(key=lambda case: (case.file not in own, case.id in changed))
    many = caused if len(caused) > SHARES else []
    names = sum(len(name) + 2 for name in (*before, *(case.id for case in many)))
    left = budget - sum(map(len, parts)) - min(names, NAMES)
    shown = _failures(caused, left, changed)
    mended = [case.id for case in report.cases if differs and case.id in frozenset(differs.mended)]
    if mended:
        shown.append(f"Failed before your changes and pass now: {_named(mended)}")
    if before:
        shown.append(f"Failed before your changes, too, in the same way: {_named(sorted(before))}")
    return "\n".join([*parts, *shown])


def _by_fate(report: TestReport, outcome: str, differs: Compared | None) -> str:
    """Return how many of the failures are new and as before, in brackets; '' without a baseline."""
    if differs is None:
        return ""
    ids = {case.id for case in report.cases if case.outcome == outcome}
    kinds = (
        (differs.new, "new"),
        (differs.otherwise, "in another way than before"),
        (differs.as_before, "as before"),
        (differs.unknown, "not known before"),
    )
    counted = [(sum(case.id in ids for case in cases), words) for cases, words in kinds]
    return f" ({', '.join(f'{number} {words}' for number, words in counted if number)})" if ids else ""


def _failures(bad: Sequence[TestCase], budget: int, changed: frozenset[str]) -> list[str]:
    """Return as many failures as fit, each with its share of the budget, and the names of the rest."""
    shown: list[str] = []
    for number, case in enumerate(bad):
        share = min(_LONGEST, budget // min(len(bad) - number, SHARES))
        if budget < _SHORTEST:
            shown.append(f"Also failed: {_named([each.id for each in bad[number:]])}")
            break
        text = _failure(case, max(share, _SHORTEST), otherwise=case.id in changed)
        budget -= len(text) + 1
        shown.append(text)
    return shown


def _named(ids: Sequence[str]) -> str:
    """Return the names of tests in at most `NAMES` characters."""
    lines, room = [], NAMES
    for number, name in enumerate(ids):
        room -= len(name) + 2
        if room < 0:
            lines.append(f"and {len(ids) - number} more")
            break
        lines.append(name)
    return ", ".join(lines)


def _failure(case: TestCase, limit: int, *, otherwise: bool = False) -> str:
    word = "ERROR" if case.outcome == "error" else "FAILED"
    place = f" ({case.file}{f':{case.line}' if case.line else ''})" if case.file else ""
    head = f"{word} {case.id}{place}{', in another way than before your changes' if otherwise else ''}"
    body = shorten(case.message, limit - len(head))
    return "\n".join([head, *(f"    {line}" for line in body.splitlines())])


def shorten(text: str, limit: int) -> str:
    """Return the most informative lines of a failure within `limit` characters, in their original order."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    if sum(len(line) + 5 for line in lines) <= limit:
        return "\n".join(lines)
    ranked = sorted(range(len(lines)), key=lambda index: (not _POINT.search(lines[index]), index))
    kept: set[int] = set()
    for index in ranked:
        cost = min(len(lines[index]), 300) + 5
        # the best line is shown even where it is too long: without it, a failure says nothing
        if cost > limit and kept:
            break
        limit -= cost
        kept.add(index)
    return "\n".join(lines[index][:300] for index in sorted(kept))
