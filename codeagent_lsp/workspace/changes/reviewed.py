"""The decisions about a review: the changes that the user saw, found among those that are staged now, and those that
stay staged once the user has decided about a part of them, or has changed the same lines; and the locations of their
hunks and files, in a review's diff and in the code that they change. Pure.

Deciding takes time, in which other parts are decided about and the run stages more: then hunks have other numbers, and
files other content, so what stays is always computed from what is staged when the decision has been carried out. Not
here: what is chosen of a changeset (`changeset.py`), the decisions (`session/proposal.py`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from codeagent_lsp.workspace.changes.changeset import Applied, Changeset, FileChange, HunkNumbers
from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.edits.presence import is_in, runs_in
from codeagent_lsp.workspace.text.document import text_digest
from codeagent_lsp.workspace.text.position import split_lines

ChosenHunks = Mapping[str, frozenset[int | str]]
"""Hunks by absolute path: ids, or 0-based numbers as they were seen."""

_Content = tuple[tuple[str, ...], tuple[str, ...]]

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@(?: (.+#[0-9a-f]+))?\s*")
_NOTHING = "/dev/null"


def review_digest(changeset: Changeset) -> str:
    """Return the digest (SHA-256 in hexadecimal) that names a review of these changes; equal changes in the same order
    have equal digests.
    """
    return text_digest(json.dumps([change.to_dict() for change in changeset]))


def numbers_now(
    seen: Changeset | None, present: Changeset, files: Iterable[str] | None, hunks: ChosenHunks | None
) -> HunkNumbers | None:
    """Return the present numbers of the chosen `hunks`: of ids, and of numbers in what was `seen` (None: in what is
    staged now); None if `hunks` is None. With neither `files` nor `hunks`, all of it is chosen. LookupError if a chosen
    file or hunk is no longer staged as it was seen; for an id that is gone, the error has the path and the id.
    """
    whole = frozenset(files or ())
    if seen is not None and files is None and hunks is None:
        whole = frozenset((*seen.paths, *present.paths))
    if seen is not None and not all(_alike(seen.get(path), present.get(path)) for path in whole):
        raise LookupError
    return None if hunks is None else {path: _now(seen, present, path, chosen) for path, chosen in hunks.items()}


def shows_all(seen: Changeset, present: Changeset) -> bool:
    """Return whether `seen` shows everything that is staged now, possibly with parts that were decided about since."""
    return all(_is_part(seen.get(change.path), change) for change in present)


def contents(change: FileChange) -> list[_Content]:
    """Return for each hunk of a change, in order, a pair: the tuple of its removed lines and that of its added ones,
    with their line ends.
    """
    old, new = split_lines(change.base or ""), split_lines(change.text or "")
    return [
        (tuple(old[hunk.old_start : hunk.old_end]), tuple(new[hunk.new_start : hunk.new_end]))
        for hunk in change.hunks()
    ]


def after_applying(present: Changeset, chosen: Changeset, applied: Applied) -> Changeset:
    """Return what is left of the present changes after the `chosen` ones were applied with this result.

    What is not staged any more was decided about meanwhile and stays out.
    """
    left = Changeset()
    for change in present:
        for rest in _rest(change, _accepted_change(chosen, change), applied.left):
            left = left.with_change(rest)
    return left


def after_discarding(present: Changeset, files: frozenset[str] | None, hunks: HunkNumbers | None) -> Changeset:
    """Return the present changes without the discarded part, chosen as for `Changeset.split`, on the same base. With
    `files` None and no hunks, nothing is left.
    """
    if files is None and not hunks:
        return Changeset()
    kept = present.without(files or ())
    for path, chosen in (hunks or {}).items():
        change = present.get(path)
        # It has no parts: where any is chosen, all of it goes.
        if change is None or change.base is None or change.text is None:
            kept = kept.without([path]) if chosen else kept
            continue
        others = frozenset(range(len(change.hunks()))) - chosen
        part, _ = Changeset((change,)).split(None, {path: others})
        kept = kept.without([path]).with_change(part.files[0]) if part else kept.without([path])
    return kept


def may_have_arrived(change: FileChange, now: str) -> bool:
    """Return whether a part of an edit may be in the present text of its file, by a quick look at its lines. False is
    nearly certain (a formatter may have written the lines in another way), True is not.
    """
    if change.base is None or change.text is None:
        return False
    base, text, present = (Counter(map(str.strip, split_lines(each))) for each in (change.base, change.text, now))
    return any(present[line] > base[line] for line in text - base) or any(
        present[line] < base[line] for line in base - text
    )


def arrived_hunks(changes: Changeset, now: Mapping[str, str | None]) -> tuple[Changeset, Changeset]:
    """Return those hunks, new, deleted and moved files of the changes that are already in the present texts `now` (by
    absolute path; None: no such file), as changes of their own, and the rest, based on them. Of files that are not in
    `now` nothing has arrived, of moved ones only all.
    """
    made, came = set[str](), dict[str, frozenset[int]]()
    for change in changes:
        if change.path not in now:
            continue
        text = now[change.path]
        if change.kind != "edit":
            made.update((change.path,) if _has_arrived(change, text, now) else ())
            continue
        if text is None or change.base is None or change.text is None:
            continue
        hunks = frozenset(runs_in(change.base, change.text, text))
        came.update({change.path: hunks} if hunks else {})
    return changes.split(made, came)


def on_present(change: FileChange, now: str | None) -> tuple[FileChange, frozenset[int]]:
    """Return the change from the user's present text `now` (None: no such file) to one with all of `change`, and the
    0-based numbers of its hunks on lines that the user has changed as well, which are replaced. For a file that can
    only be decided about as a whole, the number 0 means all of it.
    """
    text = change.text
    if now is None:  # the user has deleted it, so it would be made anew
        return replace(change, base=None, version=None, moved_from=None), frozenset((0,))
    if text is None:  # it was to go, and has other text by now
        return replace(change, base=now, version=None), frozenset((0,))
    if change.base is None:  # both have made the file
        whole = FileChange(change.path, now, text)
        return whole, frozenset(range(len(whole.hunks())))
    # Where both changed the same lines, `merge` keeps those of its last text: so each side wins once.
    laid = replace(change, base=now, version=None)
    agents = replace(laid, text=merge.merge(change.base, now, text, beside=True).text)
    users = replace(laid, text=merge.merge(change.base, text, now, beside=True).text)
    both = contents(users)
    return agents, frozenset(number for number, each in enumerate(contents(agents)) if each not in both)


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


def _now(seen: Changeset | None, present: Changeset, path: str, chosen: frozenset[int | str]) -> frozenset[int]:
    change = present.get(path)
    known = () if change is None else change.hunk_ids()
    named = [each for each in chosen if isinstance(each, str)]
    for each in named:
        if each not in known:
            raise LookupError(path, each)
    numbers = frozenset(each for each in chosen if isinstance(each, int))
    if numbers and seen is not None:
        numbers = _same_hunks(seen.get(path), change, numbers)
    return numbers.union(map(known.index, named))


def _is_part(seen: FileChange | None, present: FileChange) -> bool:
    if seen is None or seen.text != present.text or (present.moved_from and not seen.moved_from):
        return _alike(seen, present)
    known = contents(seen)
    return all(content in known for content in contents(present))


def _alike(seen: FileChange | None, present: FileChange | None) -> bool:
    """Return whether a review shows the same of both; the text around the hunks may be another since."""
    if seen is None or present is None:
        return seen is present
    same_file = (seen.kind, seen.moved_from) == (present.kind, present.moved_from)
    return same_file and contents(seen) == contents(present)


def _same_hunks(seen: FileChange | None, present: FileChange | None, chosen: frozenset[int]) -> frozenset[int]:
    if _alike(seen, present):
        return chosen
    if seen is None or present is None or seen.kind != present.kind:
        raise LookupError
    before, now = contents(seen), contents(present)
    return frozenset(_same(before, now, number) for number in chosen)


def _same(before: list[_Content], now: list[_Content], number: int) -> int:
    """Return where a hunk is now: of several with one content the one at the same place among them, if none is gone."""
    if number >= len(before):
        raise LookupError
    content = before[number]
    alike = [place for place, each in enumerate(now) if each == content]
    if len(alike) != before.count(content):
        raise LookupError
    return alike[before[:number].count(content)]


def _has_arrived(change: FileChange, text: str | None, now: Mapping[str, str | None]) -> bool:
    """Return whether a file has been made, moved or deleted; the user may have written more in it since."""
    if text is None or change.text is None:
        return text is change.text
    if change.moved_from is not None and now.get(change.moved_from, "") is not None:
        return False
    return text == change.text or (bool(change.text.strip()) and is_in(change.base or "", change.text, text))


def _accepted_change(chosen: Changeset, change: FileChange) -> FileChange | None:
    """Return the accepted change of the file that `change` is about; the run may have moved it since."""
    known = chosen.get(change.path)
    if known is not None or change.moved_from is None:
        return known
    return next((each for each in chosen if change.moved_from in (each.path, each.moved_from)), None)


def _rest(change: FileChange, accepted: FileChange | None, undone: Changeset) -> tuple[FileChange, ...]:
    """Return what is left of one present change. `undone` has what did not arrive of the accepted one."""
    if accepted is None:
        return (change,)
    missing = tuple(each for each in undone if each.path in (accepted.path, accepted.moved_from))
    if there := [each for each in missing if each.path == accepted.path]:
        if change == accepted:
            return missing
        has_moved = accepted.moved_from is not None and there[0].moved_from is None
        return (replace(change, moved_from=None) if has_moved else change,)  # parts of one file are one change again
    moved_from = accepted.path if accepted.path != change.path else None
    return (FileChange(change.path, accepted.text, change.text, None, moved_from), *missing)


def _longer(file: FilePlace, last: int) -> FilePlace:
    hunks = (*file.hunks[:-1], replace(file.hunks[-1], last=last)) if file.hunks else ()
    return replace(file, last=last, hunks=hunks)
