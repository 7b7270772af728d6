"""The report of a batch: `report.html` for a person, `report.md` for a pull request; both from the results alone.

Not here: the page (`report_page.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from codeagent_lsp.batch.report_figures import (
    DONE,
    SOLVED,
    Group,
    brief,
    by_outcome,
    cost_of,
    duration,
    outcome,
    outcome_words,
    part_of,
    percent,
    short_count,
    sum_of,
    worst_first,
)
from codeagent_lsp.batch.report_page import report_page
from codeagent_lsp.batch.results import TaskResult
from codeagent_lsp.errors import UsageError
from codeagent_lsp.texts import text

PAGE, SUMMARY = "report.html", "report.md"
MOST_ROWS = 200
_MOST_WORDS = 100
_PIPE = "¦"  # stands for `|`, which ends a cell even in a code span, and whose escape forges read in different ways


def write_report(folder: Path, results: Sequence[TaskResult], language: str) -> list[Path]:
    """Write `report.html` and `report.md` into the folder of a batch, in place of earlier ones, and return their paths
    in this order. UsageError if they cannot be written.
    """
    written = []
    for name, content in ((PAGE, report_page(folder, results, language)), (SUMMARY, report_summary(results, language))):
        path = folder / name
        try:
            path.write_text(content, encoding="utf-8")
        except OSError as error:
            raise UsageError("batch.unwritable", path=path, reason=error.strerror or error) from error
        written.append(path)
    return written


# The report of a batch in Markdown, to be pasted into a pull request or an issue.


def report_summary(results: Sequence[TaskResult], language: str) -> str:
    """Return the report as Markdown in `language`: the figures, the outcomes, and at most 200 tasks, those not solved
    first.
    """
    title = f"## {text('batch.report.title', language)}\n"
    if not results:
        return f"{title}\n{text('batch.report.none', language)}\n"
    whole, groups = Group(tuple(results)), by_outcome(results)
    ordered = worst_first(results)
    parts = [title, _figures(whole, groups, language), _outcomes(whole, groups, language)]
    parts.append(_table(("task", "outcome", "changes", "tokens", "cost", "time"), _rows(ordered, language), language))
    if left := len(ordered[MOST_ROWS:]):
        parts.append(f"{text('batch.report.more', language, count=left)}\n")
    return "\n".join(parts)


def code(value: str) -> str:
    """Return a text from outside, made visible, as a Markdown code span on one line, at most 100 characters, fit for a
    cell of a table; '' for none.
    """
    line = brief(value, _MOST_WORDS).replace("|", _PIPE)
    if not line:
        return ""
    # A code span ends at a run of as many backticks as began it.
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    return f"{fence} {line} {fence}" if "`" in line else f"{fence}{line}{fence}"


def _figures(whole: Group, groups: Mapping[str, Group], language: str) -> str:
    """Return the figures that are to be seen first, as a list."""
    unchecked = groups[DONE].count if DONE in groups else 0
    share = percent(whole.solved, whole.count)
    if whole.solved:
        key = "batch.report.unchecked" if unchecked else "batch.report.checked"
        share = text(key, language, share=share, count=unchecked)
    solved = text("batch.report.of", language, part=f"{whole.solved:,}", whole=f"{whole.count:,}")
    cost = sum_of(whole, language)
    if whole.unknown and whole.costs:
        told = text("batch.report.unknown_count", language, count=whole.unknown, whole=whole.count)
        cost = f"{cost} ({told})"
    lines = (
        (text("batch.report.solved", language), f"**{solved}** ({share})"),
        (text("batch.report.cost", language), f"**{cost}**"),
        (text("batch.report.tokens", language), f"**{short_count(whole.tokens)}**"),
        (text("batch.report.median_time", language), f"**{duration(whole.seconds)}**"),
    )
    return "".join(f"- {name}: {value}\n" for name, value in lines)


def _outcomes(whole: Group, groups: Mapping[str, Group], language: str) -> str:
    rows = (
        (
            outcome_words(name, language),
            f"{group.count:,}",
            percent(group.count, whole.count),
            part_of(group, language),
            duration(group.seconds),
        )
        for name, group in groups.items()
    )
    return _table(("outcome", "count", "share", "cost", "median_time"), rows, language)


def _rows(results: Sequence[TaskResult], language: str) -> Iterable[tuple[str, ...]]:
    for result in results[:MOST_ROWS]:
        mark = {SOLVED: "✓", DONE: "○"}.get(outcome(result), "✗")
        verdict = f"{mark} {outcome_words(outcome(result), language)}"
        changes = text("batch.report.file_count", language, count=len(result.files))
        yield (
            code(result.id),
            f"{verdict} {code(result.error)}".strip(),
            f"+{result.added:,} −{result.removed:,}, {changes}" if result.files else "–",
            f"{result.tokens:,}",
            cost_of(result, language),
            duration(result.seconds),
        )


def _table(names: Sequence[str], rows: Iterable[Sequence[str]], language: str) -> str:
    """Return a table; figures are at the right."""
    heads = [text(f"batch.report.{name}", language) for name in names]
    sides = [":--" if name in ("task", "outcome") else "--:" for name in names]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (heads, sides, *rows))
