"""A change and the user's text that have changed the same lines in different ways, laid on each other. Pure.

Not here: merging (`edits/merge.py`), what is decided about it (`session/proposal.py`).
"""

from __future__ import annotations

from codeagent_lsp.workspace.changes.changeset import FileChange
from codeagent_lsp.workspace.changes.reviewed import contents
from codeagent_lsp.workspace.edits import merge


def on_present(change: FileChange, now: str) -> tuple[FileChange, frozenset[int]]:
    """Return a change of the user's present text `now` that makes all of `change`, with its lines where both have
    changed the same ones, and the 0-based numbers of the hunks in which that is so.
    """
    text = change.text or ""
    if change.base is None:  # both have made the file
        whole = FileChange(change.path, now, text)
        return whole, frozenset(range(len(whole.hunks())))
    agents = FileChange(change.path, now, merge.merge(change.base, now, text, beside=True).text)
    users = FileChange(change.path, now, merge.merge(change.base, text, now, beside=True).text)
    both = contents(users)
    return agents, frozenset(number for number, each in enumerate(contents(agents)) if each not in both)
