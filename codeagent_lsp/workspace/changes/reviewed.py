"""Finds what the user saw in a review among what is staged now. Pure.

Between the two a part may have been decided about, or the run may have staged more: then hunks have other numbers, and
files other content. Not here: what is chosen of a changeset (`changeset.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange, HunkNumbers
from codeagent_lsp.workspace.text.document import text_digest
from codeagent_lsp.workspace.text.lines import split_lines

ChosenHunks = Mapping[str, frozenset[int | str]]
"""Hunks by absolute path: ids, or 0-based numbers as they were seen."""

_Content = tuple[tuple[str, ...], tuple[str, ...]]


def review_digest(changeset: Changeset) -> str:
    """Return the digest by which a review of these changes is named."""
    return text_digest(json.dumps([change.to_dict() for change in changeset]))


def numbers_now(
    seen: Changeset | None, present: Changeset, files: Iterable[str] | None, hunks: ChosenHunks | None
) -> HunkNumbers | None:
    """Return the present numbers of the chosen `hunks`: of ids, and of numbers in what was `seen` (None: in what is
    staged now). LookupError when a chosen file or hunk is not staged any more as it was seen; with neither `files` nor
    `hunks`, all of it is chosen. For an id that is gone, the error has the path and the id.
    """
    whole = frozenset(files or ())
    if seen is not None and files is None and hunks is None:
        whole = frozenset((*seen.paths, *present.paths))
    if seen is not None and not all(_alike(seen.get(path), present.get(path)) for path in whole):
        raise LookupError
    return None if hunks is None else {path: _now(seen, present, path, chosen) for path, chosen in hunks.items()}


def shows_all(seen: Changeset, present: Changeset) -> bool:
    """Return whether nothing is staged that was not `seen`; a part of it may have been decided about since."""
    return all(_is_part(seen.get(change.path), change) for change in present)


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


def contents(change: FileChange) -> list[_Content]:
    """Return the removed and the added lines of each hunk."""
    old, new = split_lines(change.base or ""), split_lines(change.text or "")
    return [
        (tuple(old[hunk.old_start : hunk.old_end]), tuple(new[hunk.new_start : hunk.new_end]))
        for hunk in change.hunks()
    ]
