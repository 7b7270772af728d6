"""Three-way merge of texts by lines (diff3, by the `merge3` library), and the hunks between two texts. Pure.

Where both sides changed the same lines differently, the user's text is kept and the conflict is reported. Not here:
what is no conflict although it is near (`beside.py`), files, versions, whole changesets (`changes/changeset.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from merge3 import Merge3

from codeagent_lsp.workspace.edits.beside import pieces
from codeagent_lsp.workspace.edits.line_matching import LineMatcher, runs_of
from codeagent_lsp.workspace.edits.line_matching import Run as Run
from codeagent_lsp.workspace.edits.spelling import in_spelling_of
from codeagent_lsp.workspace.text.lines import content_of, dominant_newline, ending_of, split_lines, with_newlines

CONTEXT = 3


@dataclass(frozen=True, slots=True)
class Conflict:
    """Lines that both sides changed differently; `line` (0-based) is their position in the merged text, `base` what
    both have changed.
    """

    line: int
    ours: str
    theirs: str
    base: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged text; at each conflict it holds `theirs`."""

    text: str
    conflicts: tuple[Conflict, ...]


def merge(base: str, ours: str, theirs: str, *, beside: bool = False, formatted: bool = False) -> Merged:
    """Return `theirs` with the changes, by lines, that `ours` made to `base`. Where both sides changed the same lines
    in different ways, the lines of `theirs` stay and a conflict is reported. So it is for changes of adjacent lines,
    unless `beside` is true; then both are made. With `formatted`, lines that `theirs` only writes in another way, as
    formatters do, count as not changed.
    """
    if theirs == base:
        return Merged(ours, ())
    if ours in (base, theirs):
        return Merged(theirs, ())
    if formatted:
        base, ours = in_spelling_of(base, ours, theirs)
    merged: list[str] = []
    conflicts: list[Conflict] = []
    before, left, right = map(split_lines, (base, ours, theirs))
    merging = Merge3(before, left, right, sequence_matcher=LineMatcher)
    for kind, *parts in merging.merge_groups():
        if kind != "conflict":
            merged.extend(parts[0])
            continue
        for lines, sides in pieces(*parts) if beside else [(parts[2], parts)]:
            if sides is not None:
                was, wanted, kept = map("".join, sides)
                conflicts.append(Conflict(len(merged), wanted, kept, was))
            merged.extend(lines)
    return Merged("".join(merged), tuple(conflicts))


def runs(old: str, new: str) -> tuple[Run, ...]:
    """Return the runs of lines in which the texts differ, in order, separated by equal lines."""
    return () if old == new else runs_of(split_lines(old), split_lines(new))


def select_hunks(old: str, new: str, chosen: Collection[int]) -> str:
    """Return `old` with only the runs of the given numbers (0-based, in order) changed to `new`."""
    return select_runs(old, new, {run for number, run in enumerate(runs(old, new)) if number in chosen})


def select_runs(old: str, new: str, chosen: Collection[Run]) -> str:
    """Return `old` with only the given ones of the `runs` between the texts changed to `new`."""
    before, after = split_lines(old), split_lines(new)
    kept: list[str] = []
    position = 0
    for run in sorted(chosen):
        kept.extend(before[position : run.old_start])
        kept.extend(after[run.new_start : run.new_end])
        position = run.old_end
    kept.extend(before[position:])
    return "".join(kept)


def with_line_ends_of(old: str, new: str) -> str:
    """Return `new` with the line ends of `old`: unchanged lines keep their own, lines in the place of as many others
    get theirs, all others the dominant one.
    """
    before, after = split_lines(old), split_lines(with_newlines(new, dominant_newline(old)))
    uniform = "".join(after)
    # By content: the line ends are what may differ.
    matcher = LineMatcher(None, [*map(content_of, before)], [*map(content_of, after)])
    i_end = j_end = 0
    for i, j, size in matcher.get_matching_blocks():
        if i - i_end == j - j_end:
            for old_line, place in zip(before[i_end:i], range(j_end, j), strict=True):
                if ending_of(old_line) and ending_of(after[place]):
                    after[place] = content_of(after[place]) + ending_of(old_line)
        for old_line, place in zip(before[i : i + size], range(j, j + size), strict=True):
            if ending_of(old_line) and ending_of(after[place]):
                after[place] = old_line
        i_end, j_end = i + size, j + size
    mixed = "".join(after)
    return mixed if len(split_lines(mixed)) == len(after) else uniform  # a CR and the LF after it would be one end


def unified_diff(
    old: str, new: str, old_name: str, new_name: str, labels: Sequence[str] = (), *, apart: bool = False
) -> str:
    """Return a unified diff with the given names; '' when the texts are equal.

    Each hunk's header ends with its label. Runs whose context lines would meet form one hunk, but with `apart` each run
    has its own, and they share the lines between them.
    """
    lines: list[str] = []
    before, after = split_lines(old), split_lines(new)
    found = runs(old, new)
    hunks = _single(found, len(before)) if apart else _grouped(found, len(before))
    for number, hunk in enumerate(hunks):
        title = f" {labels[number]}" if labels else ""
        lines.append(_header(hunk, title))
        lines.extend(_body(hunk, before, after))
    if not lines:
        return ""
    return f"--- {old_name}\n+++ {new_name}\n" + "".join(lines)


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Runs that a diff shows together, with so many equal lines before and after them."""

    runs: tuple[Run, ...]
    lead: int
    trail: int


def _grouped(found: Sequence[Run], length: int) -> list[_Hunk]:
    """Return hunks of runs that have at most twice the context between them; `length` is that of the old text."""
    grouped: list[list[Run]] = []
    for run in found:
        if grouped and run.old_start - grouped[-1][-1].old_end <= 2 * CONTEXT:
            grouped[-1].append(run)
        else:
            grouped.append([run])
    return [
        _Hunk(tuple(each), min(CONTEXT, each[0].old_start), min(CONTEXT, length - each[-1].old_end)) for each in grouped
    ]


def _single(found: Sequence[Run], length: int) -> list[_Hunk]:
    """Return a hunk for each run; `length` is that of the old text."""
    return [_Hunk((run,), *_room(found, number, length)) for number, run in enumerate(found)]


def _room(found: Sequence[Run], number: int, length: int) -> tuple[int, int]:
    """Return how many lines before and after a run are its context if each run is a hunk. Of lines between two, the
    upper hunk has the odd one: programs that apply diffs take one without lines after it for the end of the file.
    """
    run = found[number]
    lead = (run.old_start - found[number - 1].old_end) // 2 if number else run.old_start
    more = number + 1 < len(found)
    trail = (found[number + 1].old_start - run.old_end + 1) // 2 if more else length - run.old_end
    return min(CONTEXT, lead), min(CONTEXT, trail)


def _header(hunk: _Hunk, title: str) -> str:
    first, last = hunk.runs[0], hunk.runs[-1]
    old = _span(first.old_start - hunk.lead, last.old_end + hunk.trail)
    new = _span(first.new_start - hunk.lead, last.new_end + hunk.trail)
    return f"@@ -{old} +{new} @@{title}\n"


def _span(start: int, end: int) -> str:
    count = end - start
    # Of an empty range, unified diffs name the line above it.
    first = start + 1 if count else start
    return str(first) if count == 1 else f"{first},{count}"


def _body(hunk: _Hunk, before: list[str], after: list[str]) -> list[str]:
    position = hunk.runs[0].old_start - hunk.lead
    lines: list[str] = []
    for run in hunk.runs:
        lines.extend(_marked(" ", before[position : run.old_start]))
        lines.extend(_marked("-", before[run.old_start : run.old_end]))
        lines.extend(_marked("+", after[run.new_start : run.new_end]))
        position = run.old_end
    lines.extend(_marked(" ", before[position : position + hunk.trail]))
    return lines


def _marked(mark: str, lines: list[str]) -> list[str]:
    return [mark + _row(line) for line in lines]


def _row(line: str) -> str:
    """Return a line as a row of a diff: it always ends with LF, also after a lone CR."""
    if line.endswith("\n"):
        return line
    return f"{line}\n" if line.endswith("\r") else f"{line}\n\\ No newline at end of file\n"
