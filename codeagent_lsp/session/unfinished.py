"""Moves the staged changes of cancelled runs into the next run of their session, which goes on from them.

The conversation says that they are staged: without them the model would build on text that is not there, and what it
makes again would be in the files twice once both are accepted. Not here: telling the model of changes that stay where
they are (`decisions.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from codeagent_lsp.errors import AgentError
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.workspace.changes.changeset import Changeset, Current, FileChange
from codeagent_lsp.workspace.files.file_view import FileView


def take_over(proposal: Proposal, earlier: Iterable[Proposal]) -> dict[str, tuple[str, ...]]:
    """Stage in `proposal` what the cancelled ones among the `earlier` proposals (the oldest first) have staged, and
    return the paths by the id of their run. Changes that do not fit the user's present text stay where they are.
    """
    taken = proposal.changeset
    moved: list[tuple[Proposal, Changeset]] = []
    for other in reversed([*earlier]):  # of two runs that changed one file, the later one knew the text of the other
        if other.record.status != "cancelled" or other.applying or other.record.unsettled or other.record.attempt_of:
            continue
        fitting = [fits for change in other.changeset if (fits := _fitting(change, proposal.view, taken)) is not None]
        for change in fitting:
            taken = taken.with_change(change)
        moved += [(other, Changeset(tuple(fitting)))] if fitting else []
    if moved:
        # First here, then gone there: a process that dies in between has lost nothing.
        proposal.staging.reset(taken)
        for other, changes in moved:
            other.staging.reset(other.changeset.without(changes.paths))
    return {other.record.run_id: changes.paths for other, changes in moved}


def _fitting(change: FileChange, view: FileView, taken: Changeset) -> FileChange | None:
    """Return a change as one of the user's present text; None if it does not fit, or its file is `taken`."""
    source = change.moved_from or change.path
    if any(path in (each.path, each.moved_from) for each in taken for path in (change.path, source)):
        return None
    try:
        file = view.base(source)
    except AgentError:
        return None
    current = Current(None) if file is None else Current(file.text, file.version)
    rebased = Changeset((change,)).rebase({source: current})
    return None if rebased.conflicts else next(iter(rebased.changeset), None)
