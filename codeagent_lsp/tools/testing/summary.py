"""The text about a test run for the model: one line with the counts, then the failures, within a budget.

Not here: the structured report for programs (`TestReport.as_dict`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from codeagent_lsp.tools.testing.reports import TestCase, TestReport

BUDGET = 4000
_SHORTEST = 120
_LONGEST = 1200
_POINT = re.compile(
    r"^E\s|Error\b|^\s*(?:Expected|Received|left:|right:|[-+] )"
    r"|assert|panicked at|^panic:|expected|want|got|!=|_test\.go:\d+:"
)

Locate = Callable[[str], str]
"""Maps a file in a report, relative to the folder of the run, to the name that the model uses."""


def headline(report: TestReport, scope: str = "", state: str = "") -> str:
    """Return the line `tests: 41 passed, 2 failed, 1 skipped in 3.2 s (pytest), on the unsaved buffers`; `scope` names
    the tests.
    """
    counts = [
        (report.passed, "passed"),
        (report.failed, "failed"),
        (report.errors, "could not run"),
        (report.skipped, "skipped"),
    ]
    told = [f"{number} {word}" for number, word in counts if number] or ["no result of any test"]
    doubt = "INCOMPLETE, " if report.problem and report.cases else ""
    return f"tests{scope}: {doubt}{', '.join(told)} in {report.seconds:.1f} s ({report.framework}){state}"


def details(report: TestReport, locate: Locate, budget: int = BUDGET) -> str:
    """Return the problems and the failed tests with their messages, in about `budget` characters."""
    parts = [text for text in (report.note, report.problem) if text]
    bad = [case for case in report.cases if case.outcome in ("failed", "error")]
    left = budget - sum(map(len, parts))
    return "\n".join([*parts, *_failures(bad, locate, left)])


def _failures(bad: Sequence[TestCase], locate: Locate, budget: int) -> list[str]:
    """Return as many failures as fit, each with its share of the budget; a last line counts the rest."""
    shown: list[str] = []
    for number, case in enumerate(bad):
        share = min(_LONGEST, budget // min(len(bad) - number, 8))
        if budget < _SHORTEST:
            shown.append(f"... and {len(bad) - number} more. Run a part of them with path or pattern.")
            break
        text = _failure(case, locate, max(share, _SHORTEST))
        budget -= len(text) + 1
        shown.append(text)
    return shown


def _failure(case: TestCase, locate: Locate, limit: int) -> str:
    word = "ERROR" if case.outcome == "error" else "FAILED"
    place = f" ({locate(case.file)}{f':{case.line}' if case.line else ''})" if case.file else ""
    head = f"{word} {case.id}{place}"
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
        if cost > limit and kept:
            break
        limit -= cost
        kept.add(index)
    return "\n".join(lines[index][:300] for index in sorted(kept))
