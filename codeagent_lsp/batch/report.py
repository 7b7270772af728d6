"""The report of a batch, from the results alone: its figures (tasks by outcome, sums, medians and distributions, and
how they are written), and `report.md`, with which they are pasted into a pull request or an issue.

Not here: `report.html`, for a person (`report_page.py`), writing both (`command.py`).
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import get_args

from codeagent_lsp.batch.results import Reason, TaskResult
from codeagent_lsp.session.spending import dollars
from codeagent_lsp.terminal.display import one_line
from codeagent_lsp.texts import text

SOLVED, DONE = "solved", "done"
"""Outcomes beside the reasons: the check passed; the run was completed and there is no check."""

DECIMAL = tuple(digit * 10.0**power for power in range(-6, 13) for digit in (1, 2, 5))
SECONDS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 43200, 86400)
"""Where the steps of an axis may lie."""

_BINS = 8
_UNEVEN = 30  # with a largest value of so many times the smallest, equal steps would show one bar
_DECADES = 1e4
_MOST_READ = 1000  # characters of a text of which one line is shown
_MINUTE, _HOUR = 60, 3600

MOST_ROWS = 200
_MOST_WORDS = 100
_PIPE = "¦"  # stands for `|`, which ends a cell even in a code span, and whose escape forges read in different ways


@dataclass(frozen=True, slots=True)
class Group:
    """Some tasks of a batch, such as all with one outcome, and their figures."""

    results: tuple[TaskResult, ...]

    @property
    def count(self) -> int:
        """The number of tasks."""
        return len(self.results)

    @property
    def solved(self) -> int:
        """The number of solved tasks, those without a check included."""
        return sum(result.solved for result in self.results)

    @property
    def costs(self) -> tuple[float, ...]:
        """The costs that are known, in USD, one per task."""
        return tuple(result.cost for result in self.results if result.cost is not None)

    @property
    def unknown(self) -> int:
        """The number of tasks that used a model and whose cost is not known."""
        return sum(result.cost is None and result.tokens > 0 for result in self.results)

    @property
    def tokens(self) -> int:
        """The tokens of all tasks together: of prompts and replies, and of every try."""
        return sum(result.tokens for result in self.results)

    @property
    def seconds(self) -> float | None:
        """The median of the tasks' times in seconds; None for no tasks."""
        return median(result.seconds for result in self.results) if self.results else None

    @property
    def elapsed(self) -> float:
        """The seconds from the start of the first task to the end of the last; 0 if no start is known. Tasks without a
        start do not count.
        """
        starts = [result.started for result in self.results if result.started > 0]
        ends = [result.started + result.seconds for result in self.results if result.started > 0]
        return max(ends) - min(starts) if starts else 0.0


@dataclass(frozen=True, slots=True)
class Bin:
    """One bar of a distribution: its bounds (`low` included, `high` not, but for the last bar), how many tasks are in
    it, and how many of them are solved.
    """

    low: float
    high: float
    count: int
    solved: int


def outcome(result: TaskResult) -> str:
    """Return the name of a task's outcome: `solved`, `done` (without a check), or the reason why it is neither,
    `failed` for an unknown one.
    """
    if result.solved:
        return SOLVED if result.checked else DONE
    return result.reason if result.reason and result.reason in get_args(Reason) else "failed"


def outcome_words(name: str, language: str) -> str:
    """Return an outcome, given by its name as `outcome` returns it, in the user's language (`en` or `zh-cn`), without a
    full stop. KeyError for an unknown name.
    """
    if name == SOLVED:
        return text("batch.report.solved", language)
    if name == DONE:
        return text("batch.report.done", language)
    return text(f"batch.reason.{name}", language).rstrip(".。")


def by_outcome(results: Iterable[TaskResult]) -> dict[str, Group]:
    """Return the tasks by the name of their outcome, in order: solved, done, then the reasons from the most frequent to
    the rarest; {} for no tasks.
    """
    found: dict[str, list[TaskResult]] = {}
    for result in results:
        found.setdefault(outcome(result), []).append(result)
    order = sorted(found, key=lambda name: (name != SOLVED, name != DONE, -len(found[name]), name))
    return {name: Group(tuple(found[name])) for name in order}


def worst_first(results: Iterable[TaskResult]) -> list[TaskResult]:
    """Return the tasks that are not solved, then the others, each by id."""
    return sorted(results, key=lambda result: (result.solved, result.id))


def bins(pairs: Sequence[tuple[float, bool]], steps: Sequence[float]) -> tuple[Bin, ...]:
    """Return the distribution of values, each paired with whether its task is solved, as bars from 0; `steps` are the
    widths, or for very uneven values the bounds, that bars may have. () for no values.
    """
    if not pairs:
        return ()
    edges = _edges([value for value, _ in pairs], steps)
    counts = [[0, 0] for _ in edges[1:]]
    for value, solved in pairs:
        place = min(max(bisect_right(edges, value) - 1, 0), len(counts) - 1)
        counts[place][0] += 1
        counts[place][1] += solved
    return tuple(Bin(low, high, *both) for (low, high), both in zip(pairwise(edges), counts, strict=True))


def within_nine_of_ten(values: Iterable[float]) -> float:
    """Return the smallest of the values that at least nine of ten of them do not exceed. IndexError without values."""
    ordered = sorted(values)
    return ordered[math.ceil(0.9 * len(ordered)) - 1]


def money(cost: float | None, language: str) -> str:
    """Return a cost in USD as text, or that it is not known for None."""
    return text("batch.report.unknown", language) if cost is None else dollars(cost)


def cost_of(result: TaskResult, language: str) -> str:
    """Return the cost of a task as text, such as `$0.12`, or that it is not known; `–` if it used no model."""
    return "–" if result.cost is None and not result.tokens and not result.status else money(result.cost, language)


def sum_of(group: Group, language: str) -> str:
    """Return the known costs of some tasks together as text, in USD, or that none is known."""
    return money(math.fsum(group.costs) if group.costs else None, language)


def part_of(group: Group, language: str) -> str:
    """Return the known costs of the tasks of one outcome together as text, or that none is known; `–` if they used no
    model.
    """
    return sum_of(group, language) if group.costs or group.unknown else "–"


def brief(words: str, width: int) -> str:
    """Return a text from outside, made visible, on one line of at most `width` characters, cut with a "…"."""
    return one_line(words[:_MOST_READ], width)


def percent(part: float, whole: float) -> str:
    """Return the share of `part` in `whole` as text, such as `12 %`; `100 %` and `0 %` only if it is exactly all or
    nothing, `0 %` also if `whole` is 0.
    """
    share = 100 * part / whole if whole else 0.0
    return f"{min(max(round(share), 1), 99) if 0 < share < 100 else round(share)} %"


def duration(seconds: float | None) -> str:
    """Return a time in seconds as text, such as `2 min 10 s`; `–` for None."""
    if seconds is None:
        return "–"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{seconds:.1f} s".replace(".0 ", " ") if seconds < 10 else f"{whole} s"
    large, small, names = (
        (*divmod(whole, _MINUTE), ("min", "s")) if whole < _HOUR else (*divmod(round(whole / 60), 60), ("h", "min"))
    )
    return f"{large} {names[0]} {small} {names[1]}" if small else f"{large} {names[0]}"


def short_count(number: float) -> str:
    """Return a count with at most three significant digits and the unit `k`, `M` or `G`, such as `1.2 M`; without a
    unit below 1 k.
    """
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        # What three digits would round to 1000 of a unit belongs to the next.
        if number >= limit * 0.9995:
            return f"{float(f'{number / limit:.3g}'):g} {unit}"
    return f"{number:g}"


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


def _edges(values: Sequence[float], steps: Sequence[float]) -> tuple[float, ...]:
    """Return the bounds of the bars: equal steps from 0, or growing ones where the values are very uneven."""
    high, low = max(values), min((value for value in values if value > 0), default=0.0)
    if high <= 0:
        return (0.0, 1.0)
    if high / low < _UNEVEN:
        step = _step(high / _BINS, steps)
        # Rounded first: 0.3 / 0.1 is a little less than 3, or a little more.
        return tuple(step * number for number in range(max(math.ceil(round(high / step, 6)), 1) + 1))
    first = bisect_right(steps, max(low, high / _DECADES))
    last = bisect_left(steps, high)
    return (0.0, *steps[min(first, last) : last], steps[last] if last < len(steps) else high)


def _step(least: float, steps: Sequence[float]) -> float:
    place = bisect_left(steps, least)
    return steps[place] if place < len(steps) else least


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
