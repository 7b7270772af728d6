"""The texts that files had before some applied changes, with what was typed since kept. Pure.

Not here: which changes are taken back (`rewinding.py`), how texts reach the buffers (`../proposal.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from codeagent_lsp.workspace.changes.changeset import Changeset, Current, FileChange, HunkConflict
from codeagent_lsp.workspace.changes.remaining import on_present

Read = Callable[[str], str | None]


@dataclass(slots=True)
class EarlierTexts:
    """Files by path as they will be: `texts` (None: no such file), and where moved ones come from. `conflicts` are
    places that were changed since in the same lines: the user's text stays, unless the earlier one goes `over` it.
    """

    read: Read
    over: bool = False
    texts: dict[str, str | None] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    conflicts: list[HunkConflict] = field(default_factory=list)

    def text(self, path: str) -> str | None:
        """Return the text that a file will have."""
        # Read once and kept, None included: later changes are taken back on what earlier ones have left.
        if path not in self.texts:
            self.texts[path] = self.read(path)
        return self.texts[path]

    def take_back(self, applied: Changeset) -> None:
        """Take back changes that were applied, newest first."""
        for change in applied.inverse():
            taken = self.text(change.path) if change.moved_from is not None else None
            if change.moved_from is not None and self.text(change.moved_from) is None:
                continue  # it was never moved, as where the process died before
            if taken is not None:  # by a file of the user's own, where the moved one was
                self.conflicts.append(HunkConflict(change.path, 1, change.text or "", taken))
                continue
            source = change.moved_from or change.path
            now = self.text(source)
            # `beside`: lines typed right next to a hunk are no conflict; `formatted`: nor is what a formatter did to
            # it on save.
            rebased = Changeset((change,)).rebase({source: Current(now)}, beside=True, formatted=True)
            if self.over and rebased.conflicts and now is not None and change.kind == "edit":
                self._make(on_present(change, now)[0])
                continue
            self.conflicts.extend(rebased.conflicts)
            for made in rebased.changeset:
                self._make(made)

    def moves(self) -> dict[str, str]:
        """Return the path that each file has now which will be at another one, by that other path."""
        return {
            path: origin
            for path, origin in self.origins.items()
            if self.texts.get(path) is not None
            and self.texts.get(origin) is None
            and self.read(origin) is not None
            and self.read(path) is None
        }

    def changed(self) -> dict[str, str | None]:
        """Return the new texts of all files that will be different; of moved ones only those that change as well."""
        moved = self.moves()
        # Their texts are None because the move takes them away; a deletion besides would be done twice.
        left = set(moved.values())
        return {
            path: text
            for path, text in self.texts.items()
            if path not in left and text != self.read(moved.get(path, path))
        }

    def _make(self, change: FileChange) -> None:
        if change.moved_from is not None:
            self.texts[change.moved_from] = None
            # A file that was moved twice comes from where it is now, not from the place between.
            origin = self.origins.pop(change.moved_from, change.moved_from)
            if origin != change.path:
                self.origins[change.path] = origin
        self.texts[change.path] = change.text


def earlier_texts(applied: Iterable[Changeset], read: Read, *, over: bool = False) -> EarlierTexts:
    """Return the texts before these changes, which were applied in this order; `read` returns the present ones."""
    result = EarlierTexts(read, over)
    for changeset in reversed(tuple(applied)):
        result.take_back(changeset)
    return result
