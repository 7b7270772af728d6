"""Finds what the user saw in a review among what is staged now. Pure.

Between the two a part may have been decided about, or the run may have staged more: then hunks have other numbers, and
files other content. Not here: what is chosen of a changeset (`changeset.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange, HunkNumbers
from codeagent_lsp.workspace.text.document import text_digest
from codeagent_lsp.workspace.text.lines import split_lines

_Content = tuple[tuple[str, ...], tuple[str, ...]]


def review_digest(changeset: Changeset) -> str:
    """Return the digest by which a review of these changes is named."""
    return text_digest(json.dumps([change.to_dict() for change in changeset]))


def numbers_now(
    seen: Changeset, present: Changeset, files: Iterable[str] | None, hunks: HunkNumbers | None
) -> HunkNumbers | None:
    """Return the present numbers of the chosen `hunks` of what was `seen`. LookupError when a chosen file or hunk is
    not staged any more as it was seen; with neither `files` nor `hunks`, all of it is chosen.
    """
    whole = frozenset(files or ()) if (files, hunks) != (None, None) else {*seen.paths, *present.paths}
    if not all(_alike(seen.get(path), present.get(path)) for path in whole):
        raise LookupError
    if hunks is None:
        return None
    return {path: _same_hunks(seen.get(path), present.get(path), chosen) for path, chosen in hunks.items()}


def shows_all(seen: Changeset, present: Changeset) -> bool:
    """Return whether nothing is staged that was not `seen`; a part of it may have been decided about since."""
    return all(_is_part(seen.get(change.path), change) for change in present)


def _is_part(seen: FileChange | None, present: FileChange) -> bool:
    if seen is None or seen.text != present.text or (present.moved_from and not seen.moved_from):
        return _alike(seen, present)
    known = _contents(seen)
    return all(content in known for content in _contents(present))


def _alike(seen: FileChange | None, present: FileChange | None) -> bool:
    """Return whether a review shows the same of both; the text around the hunks may be another since."""
    if seen is None or present is None:
        return seen is present
    same_file = (seen.kind, seen.moved_from) == (present.kind, present.moved_from)
    return same_file and _contents(seen) == _contents(present)


def _same_hunks(seen: FileChange | None, present: FileChange | None, chosen: frozenset[int]) -> frozenset[int]:
    if _alike(seen, present):
        return chosen
    if seen is None or present is None or seen.kind != present.kind:
        raise LookupError
    before, now = _contents(seen), _contents(present)
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


def _contents(change: FileChange) -> list[_Content]:
    """Return the removed and the added lines of each hunk."""
    old, new = split_lines(change.base or ""), split_lines(change.text or "")
    return [
        (
            tuple(line for run in hunk for line in old[run.old_start : run.old_end]),
            tuple(line for run in hunk for line in new[run.new_start : run.new_end]),
        )
        for hunk in change.hunks()
    ]
