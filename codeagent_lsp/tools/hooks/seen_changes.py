"""What hooks were told of, or have written themselves: a change is given to the guards once, as it is.

Not here: telling them (`hooks.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange

_NEVER = object()


class SeenChanges:
    """The text of each file, None for a deleted one, as hooks of one run have seen it."""

    def __init__(self) -> None:
        self._texts: dict[str, str | None] = {}

    def add(self, path: str, text: str | None) -> None:
        """Note what hooks were told of a file."""
        self._texts[path] = text

    def forget(self, path: str) -> None:
        """Note that a file is to be told again."""
        self._texts.pop(path, None)

    def add_written(self, paths: Iterable[str], before: Changeset, after: Changeset) -> None:
        """Note what a hook has written, unless it is a change of something that none has seen."""
        for path in paths:
            earlier, now = before.get(path), after.get(path)
            if earlier is None or self._is_seen(earlier):
                self._texts[path] = None if now is None else now.text

    def unseen(self, changes: Changeset) -> list[FileChange]:
        """Return the changes that no hook has seen as they are."""
        return [change for change in changes if not self._is_seen(change)]

    def _is_seen(self, change: FileChange) -> bool:
        return self._texts.get(change.path, _NEVER) == change.text
