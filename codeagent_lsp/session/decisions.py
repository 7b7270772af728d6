"""What became of the model's changes, hunk by hunk, as it is when a request is built.

The user decides later, elsewhere, in parts, takes back, or changes the lines by hand: what a run's end knew of it may
be false by the next request. The texts themselves decide; what was decided only tells why something is not there. Not
here: the decisions (`proposal.py`), going back (`rewind/`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from codeagent_lsp.session.run_parts import RunParts
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.workspace.changes.changeset import FileChange
from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.edits.line_matching import likeness
from codeagent_lsp.workspace.files.file_view import own_text
from codeagent_lsp.workspace.text.position import split_lines
from codeagent_lsp.workspace.text.visible import cut

Fate = Literal["applied", "changed", "waiting", "undone", "discarded"]

WORDS: dict[Fate, str] = {
    "applied": "in the user's files",
    "changed": "applied, then changed by the user",
    "waiting": "waiting for the user's decision, not in the file",
    "undone": "undone by the user",
    "discarded": "discarded by the user",
}
HEAD = "What became of your changes, as of now:"
ALL_APPLIED = "All your changes are in the user's files."
MOST_FILES, MOST_HUNKS, SHOWN_CHARS = 20, 12, 60
ALIKE = 0.5

Text = Callable[[str], str | None]
"""Returns the user's present text of a file by its absolute path; None if there is none."""


@dataclass(frozen=True, slots=True)
class HunkFate:
    """What became of one hunk: `applied`, `changed` (applied, then changed by the user), `waiting` (for the user's
    decision), `undone` or `discarded`. `line` is its first line, 1-based, in the user's file as it is now; `shown` is
    that line's text.
    """

    fate: Fate
    line: int
    shown: str


async def decisions(parts: RunParts) -> str:
    """Return a note for the model on what became of the changes of the session's earlier runs, without what an earlier
    note said; '' for nothing new. What it returns counts as told from then on. Reads files in a thread.
    """
    context = parts.session.context
    earlier = [
        run
        for run in context.runs.values()
        # Without messages the model knows nothing of it, as of a quick action.
        if run is not parts.record and run.messages and _changes(run) and run.run_id not in context.rewinds.silenced
    ]
    if not earlier:
        return ""
    view = parts.proposal.view
    now = partial(own_text, view)
    told = await asyncio.to_thread(lambda: {run.run_id: describe(run, now, view.roots.relative) for run in earlier})
    news = [text for run_id, text in told.items() if context.decisions_told.get(run_id) != text]
    context.decisions_told.update(told)
    if not news:
        return ""
    return news[0] if news == [ALL_APPLIED] else "\n".join((HEAD, *(text for text in news)))


def describe(run: RunRecord, now: Text, name: Callable[[str], str]) -> str:
    """Return what became of the changes of one run, for the model: one sentence if all are in the user's files, else a
    line for each file, or for each hunk if they differ. `now` returns a file's present text, None if there is none;
    `name` returns a path for display.
    """
    fates = {change.path: fates_of(run, change, now(change.path)) for change in _changes(run)}
    if all(hunk.fate == "applied" for hunks in fates.values() for hunk in hunks):
        return ALL_APPLIED
    lines: list[str] = []
    for path, hunks in list(fates.items())[:MOST_FILES]:
        if len({hunk.fate for hunk in hunks}) == 1:
            lines.append(f"- {name(path)}: {WORDS[hunks[0].fate]}")
            continue
        lines.append(f"- {name(path)}:")
        lines += [f"  line {hunk.line} ({hunk.shown}): {WORDS[hunk.fate]}" for hunk in hunks[:MOST_HUNKS]]
        lines += [f"  (and {len(hunks) - MOST_HUNKS} more)"] if len(hunks) > MOST_HUNKS else []
    lines += [f"(and {len(fates) - MOST_FILES} more files)"] if len(fates) > MOST_FILES else []
    return "\n".join(lines)


def _changes(run: RunRecord) -> tuple[FileChange, ...]:
    """Return what a run wanted to change: what the user was shown, and what it staged before it was cancelled."""
    return (*run.proposed, *run.staged.without(run.proposed.paths))


def fates_of(run: RunRecord, change: FileChange, now: str | None) -> tuple[HunkFate, ...]:
    """Return what became of each hunk of one file's change, by its present text `now` (None: no such file); of a file
    that was made, deleted or moved, of all of it.
    """
    if change.base is None or change.text is None or change.moved_from is not None or now is None:
        return (_of_file(run, change, now),)
    base, wanted, present = split_lines(change.base), split_lines(change.text), split_lines(now)
    moved = merge.runs(change.base, now)
    found = []
    for hunk in merge.runs(change.base, change.text):
        old, new = base[hunk.old_start : hunk.old_end], wanted[hunk.new_start : hunk.new_end]
        start, end = _place(moved, hunk.old_start, hunk.old_end)
        region = present[start:end]
        state = _state(region, old, new)
        # Of a file in which nothing was ever applied, the user alone has changed the lines.
        untouched = change.path in run.staged.paths and run.accepted.get(change.path) is None
        stands = state == "applied" or (state == "changed" and not untouched)
        fate: Fate = state if stands and state != "absent" else _why_absent(run, change, hunk)
        # The region has what was typed right before the hunk as well; the line of the hunk itself is named.
        at = start + (_index(region, new) or 0 if fate == "applied" else 0)
        found.append(HunkFate(fate, at + 1, _short(new or old)))
    return tuple(found)


def _of_file(run: RunRecord, change: FileChange, now: str | None) -> HunkFate:
    shown = _short(split_lines(change.text or ""))
    if now == change.text:
        return HunkFate("applied", 1, shown)
    # Changed from the base alone proves nothing: the user may have worked on it without the agent's change.
    if now is not None and now != change.base and run.accepted.get(change.path) is not None:
        return HunkFate("changed", 1, shown)
    return HunkFate(_why_absent(run, change, None), 1, shown)


def _state(region: Sequence[str], old: Sequence[str], new: Sequence[str]) -> Literal["applied", "changed", "absent"]:
    """Return whether a region of the present text has the new lines, neither, or the old ones."""
    if new:
        if _index(region, new) is not None:
            return "applied"
        if old and _index(region, old) is not None:
            return "absent"
        alike = likeness("".join(region), "".join(new)) if region else 0.0
        # Lines that were added, and are not there: typed text at their place is theirs only if it resembles them.
        return "changed" if old or alike >= ALIKE else "absent"
    if _index(region, old) is not None:
        return "absent"
    return "changed" if region else "applied"


def _why_absent(run: RunRecord, change: FileChange, hunk: merge.Run | None) -> Fate:
    """Return why a change is not in the user's file: it waits, or was applied once, or else was discarded."""
    if _contains(run.staged.get(change.path), change, hunk):
        return "waiting"
    return "undone" if _contains(run.accepted.get(change.path), change, hunk) else "discarded"


def _contains(other: FileChange | None, change: FileChange, hunk: merge.Run | None) -> bool:
    """Return whether another change of the same file has a hunk, or for None the whole change."""
    if other is None:
        return False
    if hunk is None or other.text is None or other.base is None:
        return other.text == change.text
    wanted, has = split_lines(change.text or ""), split_lines(other.text)
    new, old = wanted[hunk.new_start : hunk.new_end], split_lines(change.base or "")[hunk.old_start : hunk.old_end]
    for run in merge.runs(other.base, other.text):
        if _index(has[run.new_start : run.new_end], new) is not None if new else True:
            gone = split_lines(other.base)[run.old_start : run.old_end]
            if new or _index(gone, old) is not None:
                return True
    return False


def _place(moved: Iterable[merge.Run], start: int, end: int) -> tuple[int, int]:
    """Return the lines of the present text that stand where the lines `start` to `end` of the base stood, with what was
    put right beside them.
    """
    shift = 0
    first = last = None
    for run in moved:
        if run.old_end < start:
            shift = run.new_end - run.old_end
        # Also what only touches the lines: text typed at their edge may be a part of what became of them.
        elif run.old_start <= end:
            first = min(run.new_start, start + shift) if first is None else first
            shift = run.new_end - run.old_end
            last = max(run.new_end, end + shift)
        else:
            break
    if first is None or last is None:
        return start + shift, end + shift
    return first, max(last, end + shift)


def _index(lines: Sequence[str], part: Sequence[str]) -> int | None:
    """Return where the lines of `part` stand in a row; None if they do not. Line ends do not count."""
    if not part:
        return None
    bare, wanted = [line.rstrip("\r\n") for line in lines], [line.rstrip("\r\n") for line in part]
    size = len(wanted)
    return next((at for at in range(len(bare) - size + 1) if bare[at : at + size] == wanted), None)


def _short(lines: Sequence[str]) -> str:
    first = next((line.strip() for line in lines if line.strip()), "")
    return cut(first, SHOWN_CHARS)
