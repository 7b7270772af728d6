"""What is staged once the user has decided about a part of it, or has changed the same lines. Pure.

Deciding takes time, in which the run stages more and the user decides about other files: what stays is always computed
from what is staged when the decision has been carried out. Not here: the decisions (`session/proposal.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange, HunkNumbers
from codeagent_lsp.workspace.changes.editor import Applied
from codeagent_lsp.workspace.changes.reviewed import contents
from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.edits.presence import is_in


def after_applying(present: Changeset, chosen: Changeset, applied: Applied) -> Changeset:
    """Return what is left of the present changes after the `chosen` ones were applied with this result.

    What is not staged any more was decided about meanwhile and stays out.
    """
    left = Changeset()
    for change in present:
        for rest in _rest(change, _accepted(chosen, change), applied.left):
            left = left.with_change(rest)
    return left


def after_discarding(present: Changeset, files: frozenset[str] | None, hunks: HunkNumbers | None) -> Changeset:
    """Return the present changes without the discarded part, chosen as for `Changeset.split`, on the same base."""
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


def arrived(changes: Changeset, now: Mapping[str, str]) -> Changeset:
    """Return the hunks and new files among the changes that are in the present texts `now`, by path."""
    came = Changeset()
    for change in changes:
        text = now.get(change.path)
        if text is None or change.text is None or change.moved_from is not None:
            continue
        if change.base is None:
            came = came.with_change(change) if text == change.text else came
            continue
        parts = {n: merge.select_hunks(change.base, change.text, frozenset({n})) for n in range(len(change.hunks()))}
        hunks = frozenset(number for number, part in parts.items() if is_in(change.base, part, text))
        for part in Changeset((change,)).split(None, {change.path: hunks})[0] if hunks else ():
            came = came.with_change(part)
    return came


def on_present(change: FileChange, now: str) -> tuple[FileChange, frozenset[int]]:
    """Return a change of the user's present text `now` that makes all of `change`, with its lines where both have
    changed the same ones, and the 0-based numbers of the hunks in which that is so.
    """
    text = change.text or ""
    if change.base is None:  # both have made the file
        whole = FileChange(change.path, now, text)
        return whole, frozenset(range(len(whole.hunks())))
    # Where both changed the same lines, `merge` keeps those of its last text: so each side wins once.
    agents = FileChange(change.path, now, merge.merge(change.base, now, text, beside=True).text)
    users = FileChange(change.path, now, merge.merge(change.base, text, now, beside=True).text)
    both = contents(users)
    return agents, frozenset(number for number, each in enumerate(contents(agents)) if each not in both)


def _accepted(chosen: Changeset, change: FileChange) -> FileChange | None:
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
    if any(each.path == accepted.path for each in missing):
        return missing if change == accepted else (change,)  # parts of one file are one change again
    moved_from = accepted.path if accepted.path != change.path else None
    return (FileChange(change.path, accepted.text, change.text, None, moved_from), *missing)
