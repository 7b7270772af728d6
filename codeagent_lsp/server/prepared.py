"""A change as it goes to the client, which follows typing in other lines faster than one types. Pure.

Comparing long texts takes longer than there is between two keys: a change that is computed anew each time would always
come too late. Not here: merging where the lines meet (`workspace/edits/merge.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lsprotocol import types

from codeagent_lsp.workspace.changes.changeset import Current, FileChange
from codeagent_lsp.workspace.text.lines import shared_ends, split_lines


@dataclass(frozen=True, slots=True)
class Prepared:
    """A change of an open file with its edits, in ascending order, as ranges in the change's base."""

    change: FileChange
    edits: Sequence[types.TextEdit]

    def onto(self, now: Current) -> Prepared | None:
        """Return the same for a text that differs from the change's base in one span of other lines; None for any
        other text.
        """
        if now.text is None or self.change.base is None or self.change.text is None:
            return None
        before, present, after = map(split_lines, (self.change.base, now.text, self.change.text))
        head, tail = shared_ends(before, present)
        start, end, new_end = head, len(before) - tail, len(present) - tail
        if any(edit.range.start.line <= end and start <= edit.range.end.line + 1 for edit in self.edits):
            return None
        moved = start + sum(map(_added_lines, self._before(start)))
        place = slice(moved, moved + end - start)
        if after[place] != before[start:end]:
            return None
        after[place] = present[start:new_end]
        shift = new_end - end
        edits = [edit if edit.range.start.line < start else _shifted(edit, shift) for edit in self.edits]
        change = replace(self.change, base=now.text, text="".join(after), version=now.version)
        return Prepared(change, edits)

    def _before(self, line: int) -> list[types.TextEdit]:
        return [edit for edit in self.edits if edit.range.start.line < line]


def _added_lines(edit: types.TextEdit) -> int:
    """Return how many lines an edit adds; its text is counted with something behind it, so that its last end counts."""
    return len(split_lines(f"{edit.new_text}.")) - 1 - (edit.range.end.line - edit.range.start.line)


def _shifted(edit: types.TextEdit, lines: int) -> types.TextEdit:
    start, end = edit.range.start, edit.range.end
    places = types.Range(
        types.Position(start.line + lines, start.character), types.Position(end.line + lines, end.character)
    )
    return types.TextEdit(places, edit.new_text)
