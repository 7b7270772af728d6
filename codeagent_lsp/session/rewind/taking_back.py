"""The changes that take back others: each file gets the text it had before them, with what was typed since.

Used by undo (`../proposal.py`) and rewinds (`rewinding.py`). Not here: the texts themselves (`earlier_texts.py`), how
they reach the buffers (the editor).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from codeagent_lsp.session.rewind.earlier_texts import EarlierTexts, earlier_texts
from codeagent_lsp.workspace.changes.changeset import Changeset, HunkConflict
from codeagent_lsp.workspace.changes.editor import Applied
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileText, FileView, own_file


class FirstRead:
    """The user's files, each as it was when it was asked for first: what is typed since is merged later, as all edits
    of the user are, and never taken for a part of what is taken back.
    """

    def __init__(self, view: FileView, deleted: Mapping[str, str | None] | None = None) -> None:
        self.view = view
        self._deleted = deleted or {}
        self._files: dict[str, FileText | None] = {}

    def file(self, path: str) -> FileText | None:
        """Return a file; None if there is none that can be read."""
        if path not in self._files:
            self._files[path] = file = own_file(self.view, path)
            # An editor may go on showing a file that is deleted: its buffer goes with the window, unsaved.
            if file is not None and self._deleted.get(path) == file.text:
                self._files[path] = None
        return self._files[path]

    def text(self, path: str) -> str | None:
        """Return the text of a file; None if there is none that can be read."""
        file = self.file(path)
        return None if file is None else file.text


@dataclass(frozen=True, slots=True)
class TakingBack:
    """What has to change in the user's files; `conflicts` are places that the user rewrote since, which stay."""

    changeset: Changeset
    conflicts: tuple[HunkConflict, ...]

    @property
    def deleted(self) -> frozenset[str]:
        """Return the files that go: the agent had made them, and nothing was typed into them since."""
        return frozenset(change.path for change in self.changeset if change.kind == "delete")

    def result(self, applied: Applied) -> Applied:
        """Return what the editor says of applying these changes, with the places that stay added as conflicts: where
        there are any, the outcome is never `full`.
        """
        if not self.conflicts:
            return applied
        outcome = applied.outcome
        if outcome == "full":
            outcome = "partial" if applied.done else "none"
        return replace(applied, outcome=outcome, conflicts=(*self.conflicts, *applied.conflicts))


def names_of(files: Iterable[str], applied: Iterable[Changeset]) -> frozenset[str]:
    """Return all paths that some files have had in these changes: of one that was moved also those before and after."""
    names, moves = set(files), [(each.path, each.moved_from) for made in applied for each in made if each.moved_from]
    for _ in moves:
        names.update(path for pair in moves if not names.isdisjoint(pair) for path in pair)
    return frozenset(names)


def taking_back(
    applied: Iterable[Changeset],
    view: FileView,
    *,
    over: bool = False,
    still_shown: Callable[[str], bool] = lambda path: False,
) -> TakingBack:
    """Return what takes back changes that were applied in this order, with `over` also where the user has changed their
    lines since. `still_shown` is `Editor.still_shows`. Blocks; use a worker thread.
    """
    applied = tuple(applied)
    read = FirstRead(view, deleted_by(applied, still_shown))
    return on_present(earlier_texts(applied, read.text, over=over), read)


def deleted_by(applied: Iterable[Changeset], still_shown: Callable[[str], bool]) -> dict[str, str | None]:
    """Return the texts of the files that these changes have deleted or moved away and that the editor shows on."""
    changes = [each for made in applied for each in made]
    gone = {each.path: each.base for each in changes if each.kind == "delete"}
    gone |= {each.moved_from: each.base for each in changes if each.moved_from is not None}
    return {path: text for path, text in gone.items() if still_shown(path)}


def on_present(earlier: EarlierTexts, read: FirstRead) -> TakingBack:
    """Return what brings the files from their present texts, which were `read`, to these earlier ones."""
    changed, moves = earlier.changed(), earlier.moves()
    files = {file.path: file for path in (*changed, *moves.values()) if (file := read.file(path)) is not None}
    staging = Staging(read.file)
    staging.stage(changed, {path: files[origin] for path, origin in moves.items()}, files.values())
    return TakingBack(staging.changeset, tuple(earlier.conflicts))
