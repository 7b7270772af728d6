"""The text edits that are sent for a change, as small as possible, and what became of them. Pure functions.

Equal lines are not touched, nor are the common beginning and end of a changed run of lines, so that marks and cursors
stay where they are. The outcome is judged by the text that is there afterwards, never by the client's answer. The user
may type meanwhile, so it is asked of each changed place whether the new lines are there
(`workspace/edits/presence.py`). Not here: sending edits and waiting for them (`editor.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

from lsprotocol import types

from codeagent_lsp.workspace.changes.changeset import Applied, ApplyOutcome, Changeset, FileChange, HunkConflict
from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.edits.presence import is_in, run_states
from codeagent_lsp.workspace.text.document import Change, Document
from codeagent_lsp.workspace.text.position import Encoding, LineIndex, position_at, split_lines, with_newlines


def minimal_edits(old: str, new: str, encoding: Encoding, *, ended_lines: bool = False) -> list[types.TextEdit]:
    """Return the edits that turn `old` into `new`, in ascending order, none overlapping another, with ranges in `old`
    counted in `encoding`; [] if they are equal. `ended_lines` is for editors whose buffers are lines that all end: a
    range beyond the text then means that the newline at the end of the new text is the one that the buffer has anyway.
    """
    index = LineIndex.of(old)
    edits = []
    for start, end, text in _changes(old, new):
        stop = _position(old, index, end, encoding)
        # `len(index)` is one line past the last, which Neovim takes for the end of the buffer.
        if ended_lines and end == len(old) and text.endswith(("\n", "\r")):
            stop = types.Position(len(index), 0)
        edits.append(types.TextEdit(types.Range(_position(old, index, start, encoding), stop), text))
    return edits


Said = Literal["yes", "no", "nothing"]


@dataclass(frozen=True, slots=True)
class Try:
    """One attempted change. `before` and `now` are the file's texts before and after it, None if there is no file.
    `arrived` says that all of the change is in `now`; `said` is the client's answer, `reason` its explanation; `sent`
    whether the client was asked for it at all.
    """

    change: FileChange
    arrived: bool
    before: str | None
    now: str | None
    said: Said = "yes"
    reason: str = ""
    sent: bool = True

    @property
    def unclear(self) -> bool:
        """Whether the change may have been applied in part, or may still be applied."""
        return not self.arrived and (self.said == "nothing" or not nothing_of(self))


def nothing_of(item: Try) -> bool:
    """Return whether nothing of an attempted change is in its file, whatever the user typed meanwhile."""
    if same_text(item.before, item.now):
        return not item.arrived
    change = item.change
    if item.arrived or change.kind != "edit" or item.now is None:
        return False
    # A client that said yes may have applied a part, so changed lines may be its work.
    allowed = ("out", "changed") if item.said == "no" else ("out",)  # the user may have typed in these lines
    return all(state in allowed for state in run_states(change.base or "", change.text or "", item.now).values())


def same_text(one: str | None, other: str | None) -> bool:
    """Return whether two texts are equal apart from line ends and a newline at the very end.

    Editors store a buffer with the line ends of its file and some always end a file with one.
    """
    if one is None or other is None:
        return one is other
    return _plain(one) == _plain(other)


def holds(base: str | None, text: str, now: str) -> bool:
    """Return whether the text `now` contains all changes from `base` (None: a new file) to `text`, whatever else was
    typed, and however a formatter has written them.
    """
    if base is not None and same_text(base, text):
        # Nothing but line ends changes, so they count: their kinds, or whether the last line has one.
        only_kinds = with_newlines(base, "\n") == with_newlines(text, "\n")
        return now == text if only_kinds else with_newlines(now, "\n") == with_newlines(text, "\n")
    if same_text(text, now):
        return True
    return base is not None and is_in(base, text, now)


def without_stray_returns(change: FileChange, now: str) -> str | None:
    """Return `now` without stray CRs that an edit left in a buffer whose editor (eglot) shows CRLF as LF and inserts
    CRs as text; saved, they would become CR CR LF. None if `now` is not exactly what such an editor makes of the
    change.
    """
    base, text = change.base or "", change.text or ""
    if "\r\n" not in now or not (_is_crlf(base) and _is_crlf(text)):
        return None
    shown = Document("", with_newlines(base, "\n"))
    # From the end, so that the places before an edit stay valid.
    for edit in reversed(minimal_edits(base, text, "utf-32")):
        start, end = edit.range.start, edit.range.end
        inserted = Change(edit.new_text, (start.line, start.character), (end.line, end.character))
        shown = shown.apply(inserted, "utf-32")
    # Only if `now` is exactly what such an editor makes of it.
    return with_newlines(now, "\n") if now == shown.text != text else None


def report(wanted: Changeset, tries: Sequence[Try], conflicts: Sequence[HunkConflict]) -> Applied:
    """Return the attempts at the changes in `wanted` combined into one result. Changes with a conflict are in `left` as
    requested, but for the hunks that are there: none is lost, and none waits that has come.
    """
    done, left, late, denied = Changeset(), Changeset(), Changeset(), Changeset()
    unclear = tuple(item.change.path for item in tries if item.unclear)
    for item in tries:
        first, second = _parts(item)
        done, left = _with(done, first), _with(left, second)
        if item.said == "no" and item.sent:
            denied = _with(denied, second)
        elif item.said != "no":
            late = _with(late, second)
    texts = {item.change.path: item.now for item in tries}
    for path in dict.fromkeys(conflict.path for conflict in conflicts):
        change, came = wanted.get(path), done.get(path)
        if change is not None and came is not None and came.moved_from is not None:
            change = replace(change, moved_from=None)  # the file has moved; some of its lines are in question
        left = left if change is None else left.with_change(_not_in(change, texts.get(path)))
    reason = next((item.reason for item in tries if item.reason and not item.arrived), "")
    outcome = _outcome(done, left, unclear=bool(unclear))
    return Applied(outcome, done, left, tuple(conflicts), reason, late, unclear, denied=denied)


def _changes(old: str, new: str) -> list[tuple[int, int, str]]:
    """Return start, end and new text of each change, as offsets in `old`; no two are adjacent."""
    before, after = split_lines(old), split_lines(new)
    starts = [0, *accumulate(map(len, before))]
    changes: list[tuple[int, int, str]] = []
    for run in merge.runs(old, new):
        removed = "".join(before[run.old_start : run.old_end])
        added = "".join(after[run.new_start : run.new_end])
        lead, trail = _common(removed, added)
        start, end = starts[run.old_start] + lead, starts[run.old_end] - trail
        start, end, text = _before_last_newline(old, start, end, added[lead : len(added) - trail])
        if changes and changes[-1][1] == start:  # moved before the last line end, it meets the one before it
            first, _, earlier = changes.pop()
            start, text = first, earlier + text
        changes.append((start, end, text))
    return changes


def _before_last_newline(old: str, start: int, end: int, text: str) -> tuple[int, int, str]:
    """Return new last lines as an insertion before the last line end: some editors add a line for one after it."""
    newline = "\r\n" if old.endswith("\r\n") else old[-1:]
    if start < len(old) or newline not in ("\n", "\r\n", "\r") or not text.endswith(newline):
        return start, end, text
    if newline == "\n" and text.endswith("\r\n"):  # some editors make two ends of a CR before it
        return start, end, text
    place = len(old) - len(newline)
    return place, place, newline + text.removesuffix(newline)


def _position(text: str, index: LineIndex, offset: int, encoding: Encoding) -> types.Position:
    found = position_at(text, index, offset, encoding)
    return types.Position(found.line, found.character)


def _common(removed: str, added: str) -> tuple[int, int]:
    """Return the lengths of the common beginning and end; never inside a CRLF or a combined character."""
    # The two ends share this limit, so that they never overlap: of "aa" to "aaa", one "a" is new.
    limit = min(len(removed), len(added))
    lead = 0
    while lead < limit and removed[lead] == added[lead]:
        lead += 1
    while lead and (removed[lead - 1] == "\r" or _combines(removed, lead) or _combines(added, lead)):
        lead -= 1
    trail = 0
    while trail < limit - lead and removed[-1 - trail] == added[-1 - trail]:
        trail += 1
    while trail and (_parts_line_end(removed, trail) or _parts_line_end(added, trail)):
        trail -= 1
    return lead, trail


def _parts_line_end(text: str, trail: int) -> bool:
    """Return whether the common end would begin inside a CRLF or a combined character."""
    place = len(text) - trail
    return (place > 0 and text[place - 1 : place + 1] == "\r\n") or _combines(text, place)


def _combines(text: str, place: int) -> bool:
    """Return whether a cut at `place` would separate a character from the one that modifies it."""
    # Combining accents, the joiner of emoji sequences, and the selectors of text or emoji form.
    return place < len(text) and (0x300 <= ord(text[place]) <= 0x36F or text[place] in "\u200d\ufe0e\ufe0f")


def _outcome(done: Changeset, left: Changeset, *, unclear: bool) -> ApplyOutcome:
    if not left:
        return "full"
    if done:
        return "partial"
    return "unknown" if unclear else "none"


def _parts(item: Try) -> tuple[FileChange | None, FileChange | None]:
    """Return what of a change is there and what is not. Line ends are the editor's choice."""
    change = item.change
    if item.arrived:
        exact = item.now if same_text(item.now, change.text) else change.text
        return replace(change, base=_base_beside(change, exact), text=exact), None
    if change.kind != "edit" or item.now is None or same_text(item.before, item.now):
        return None, replace(change, version=None)
    came = frozenset(number for number in range(len(change.hunks())) if _hunk_came(change, number, item.now))
    whole = Changeset((change,))
    first, second = whole.split(None, {change.path: came}) if came else (Changeset(), whole)
    return first.get(change.path), replace(second.get(change.path) or change, version=None)


def _base_beside(change: FileChange, exact: str | None) -> str | None:
    """Return the base with LF where the editor shows the CRLF of all lines as LF: an undo would bring CRs there."""
    shown = exact is not None and "\n" in exact and "\r" not in exact
    if change.base is not None and shown and _is_crlf(change.base) and _is_crlf(change.text or ""):
        return with_newlines(change.base, "\n")
    return change.base


def _not_in(change: FileChange, now: str | None) -> FileChange:
    """Return what of an edit is not in the text `now` (None: no such file), on the base with what is."""
    if change.kind != "edit" or now is None:
        return change
    came = frozenset(number for number in range(len(change.hunks())) if _hunk_came(change, number, now))
    return Changeset((change,)).split(None, {change.path: came})[1].get(change.path) or change


def _hunk_came(change: FileChange, number: int, now: str) -> bool:
    part = merge.select_hunks(change.base or "", change.text or "", frozenset({number}))
    return holds(change.base, part, now)


def _with(changeset: Changeset, change: FileChange | None) -> Changeset:
    return changeset if change is None else changeset.with_change(change)


def _is_crlf(text: str) -> bool:
    """Return whether there are line ends and all are CRLF."""
    return text.count("\r\n") == text.count("\n") == text.count("\r") > 0


def _plain(text: str) -> str:
    return with_newlines(text, "\n").removesuffix("\n")
