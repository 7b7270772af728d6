"""Locations of the hunks and files of staged changes: in a review's diff, and in the code that they change. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from codeagent_lsp.workspace.changes.changeset import FileChange
from codeagent_lsp.workspace.edits import merge

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@(?: (.+#[0-9a-f]+))?\s*")
_NOTHING = "/dev/null"


@dataclass(frozen=True, slots=True)
class HunkPlace:
    """The lines of a hunk in a document, 0-based, `last` included. `hunk` is `path#id` in a diff and the id alone in
    code; None for a hunk of a file that can only be decided about as a whole.
    """

    hunk: str | None
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class FilePlace:
    """The lines of a file in a diff, 0-based, `last` included, and its hunks. `name` is the path as the diff shortens
    it, for a deleted file the old one.
    """

    name: str
    first: int
    last: int
    hunks: tuple[HunkPlace, ...] = ()


def places_in_diff(lines: Sequence[str]) -> tuple[FilePlace, ...]:
    """Return the files and hunks of a unified diff as `Changeset.diff` writes it, given by its lines without their
    ends, perhaps with lines before it; () if it names no file.
    """
    files: list[FilePlace] = []
    left_old = left_new = 0
    moved = ""
    for number, line in enumerate(lines):
        if left_old > 0 or left_new > 0:  # within a hunk; its header has told how many lines follow
            left_old -= line[:1] not in ("+", "\\")
            left_new -= line[:1] not in ("-", "\\")
            files[-1] = _longer(files[-1], number)
        elif files and line.startswith("\\"):  # no newline at the end of a file
            files[-1] = _longer(files[-1], number)
        # A move may have no hunks, so that its place is known by these lines only; three of them head it.
        elif line.startswith("rename to "):
            moved = line.removeprefix("rename to ")
            files.append(FilePlace(moved, number - 2, number))
        elif line.startswith("+++ ") and number and lines[number - 1].startswith("--- "):
            old, new = lines[number - 1].removeprefix("--- "), line.removeprefix("+++ ")
            # The texts of a move that also changes the file belong to the same place.
            if moved and new == f"b/{moved}":
                files[-1] = _longer(files[-1], number)
            else:
                files.append(FilePlace((old if new == _NOTHING else new)[2:], number - 1, number))
            moved = ""
        elif files and (match := _HUNK.fullmatch(line)):
            left_old, left_new = (1 if count is None else int(count) for count in match.groups()[:2])
            hunk = HunkPlace(match[3], number, number)
            files[-1] = replace(files[-1], last=number, hunks=(*files[-1].hunks, hunk))
    return tuple(files)


def _longer(file: FilePlace, last: int) -> FilePlace:
    hunks = (*file.hunks[:-1], replace(file.hunks[-1], last=last)) if file.hunks else ()
    return replace(file, last=last, hunks=hunks)


def places_in_code(change: FileChange, now: str) -> tuple[HunkPlace, ...]:
    """Return the places of the hunks of `change`, an edit, in the user's present text `now`, in which lines may have
    been added or removed since. ValueError for a change of another kind that has hunks. The place of added lines is the
    line that they come before.
    """
    moved = merge.runs(change.base or "", now)

    def present(line: int) -> int:
        """Return the line of `now` for one of the base, or for lines that are gone the one that is there instead."""
        shift = 0
        for run in moved:
            if run.old_start > line:
                break
            if line < run.old_end:
                return run.new_start
            shift = run.new_end - run.old_end
        return line + shift

    places = []
    for hunk, name in zip(change.hunks(), change.hunk_ids(), strict=True):
        first, last = hunk.old_start, max(hunk.old_start, hunk.old_end - 1)
        places.append(HunkPlace(name, present(first), max(present(first), present(last))))
    return tuple(places)
