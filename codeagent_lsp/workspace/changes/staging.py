"""The staged changes of a run while it works: the only mutable state between the tools and the editor.

Tools read through it and write to it; every step can be undone until a part is applied or discarded. It never touches
the disk or the client. Not here: the rules of editing (`edits/match.py`) and of applying (`server/editor.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from codeagent_lsp.errors import ErrorCode, FileRefused, ToolFailed
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.files.file_view import FileText, StagedFile

Check = Callable[[str, str | None, str], str]
"""Returns the text to stage for a path, by the text before it (None: a new file) and the new one. EditRefused for one
that must not be staged.
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One staged step: its id (`c1`, `c2` and so on), the absolute paths that it changed, and the
    changeset before it.
    """

    change_id: str
    paths: tuple[str, ...]
    before: Changeset


class Staging:
    """The changes that a run has staged so far, from `changeset` on (None: nothing). `base` returns the user's version
    of a path without anything staged (None: no such file). `on_change` is called with the path of every file whose
    staged state has changed, and its change, None if nothing of it is staged any more. `check`, which callers may set,
    is given every new text and returns the one to stage, or raises EditRefused.
    """

    def __init__(
        self,
        base: Callable[[str], FileText | None],
        on_change: Callable[[str, FileChange | None], None] = lambda path, change: None,
        changeset: Changeset | None = None,
    ) -> None:
        self._base = base
        self._on_change = on_change
        self._changeset = changeset or Changeset()
        self._steps: list[Step] = []
        self._decided: set[str] = set()
        self._ids = itertools.count(1)
        self.check: Check = lambda path, before, text: text

    @property
    def changeset(self) -> Changeset:
        """All staged changes, as an immutable value."""
        return self._changeset

    def lookup(self, path: str) -> StagedFile | None:
        """Return the staged state of an absolute path; one whose text is None for a deleted file and for the old path
        of a moved one; None when nothing is staged for it.
        """
        change = self._changeset.get(path)
        if change is not None:
            return StagedFile(change.text)
        return StagedFile(None) if path in _sources(self._changeset) else None

    def paths(self) -> Iterable[str]:
        """Return the absolute paths of all files with staged changes, each once, deleted ones and the old paths of
        moved ones included.
        """
        return dict.fromkeys((*self._changeset.paths, *_sources(self._changeset)))

    def write(self, texts: Mapping[str, str | None], read: Iterable[FileText] = ()) -> Step:
        """Stage new texts by absolute path (None deletes) as one step that can be undone. `read` holds the files from
        which the new texts were derived, so that text which the user typed meanwhile is not taken for text that the
        change removes. EditRefused if `check` refuses a text.
        """
        return self._commit(tuple(texts), self._write(self._changeset, texts, read))

    def move(self, target: str, read: FileText) -> Step:
        """Stage a move of the file that was `read` to the absolute path `target`, as one step that can be undone.
        FileRefused if `target` itself was moved away.
        """
        return self._commit((read.path, target), self._move(self._changeset, target, read))

    def stage(
        self,
        texts: Mapping[str, str | None],
        moves: Mapping[str, FileText],
        read: Iterable[FileText],
        runs: Mapping[str, bool] | None = None,
    ) -> Step:
        """Stage the changes made by a program as one step: `moves` (file read, by its new path), new texts (None:
        deleted), and which files `runs` says can or cannot be executed any more, by the paths they have then. `read`
        are the files as the program saw them; for others the user's present text is the base.

        If a new file took the old path of a moved one, that move is staged as a creation and an edit. FileRefused for a
        path whose file was moved away.
        """
        taken = {path for path, text in texts.items() if text is not None}
        staged = _settle_moves(self._changeset, taken.union(moves), frozenset(file.path for file in moves.values()))
        for target, file in moves.items():
            staged = self._move(staged, target, file)
        files = tuple(read)
        staged = self._write(staged, texts, files)
        for path, bit in (runs or {}).items():
            known = next((file for file in files if file.path == path), None)
            change = staged.get(path) or self._unchanged_file(staged, path, known)
            if change.text is not None:
                ran = change.ran if change.runs is not None else (None if change.base is None else not bit)
                staged = staged.with_change(replace(change, runs=bit, ran=ran))
        paths = (*(path for target, file in moves.items() for path in (file.path, target)), *texts, *(runs or {}))
        return self._commit(paths, staged)

    def undo(self, change_id: str | None = None) -> Step:
        """Undo the last step, or the one with this id (such as `c3`) and all after it, and return it with all paths
        that were undone. ToolFailed (NOT_FOUND), with the ids that can be undone, if there is no such step.
        """
        if not self._steps:
            raise ToolFailed("Nothing is staged, so there is nothing to undo.", ErrorCode.NOT_FOUND)
        ids = [step.change_id for step in self._steps]
        if change_id is not None and change_id not in ids:
            known = ", ".join(ids)
            raise ToolFailed(f"No change {change_id!r}. Changes that can be undone: {known}.", ErrorCode.NOT_FOUND)
        position = len(ids) - 1 if change_id is None else ids.index(change_id)
        undone, self._steps = self._steps[position:], self._steps[:position]
        paths = tuple(dict.fromkeys(path for step in undone for path in step.paths))
        self._replace(undone[0].before)
        return replace(undone[0], paths=paths)

    def reset(self, changeset: Changeset) -> None:
        """Replace the staged changes, after a part was applied or discarded, and forget the steps, which cannot be
        undone any more. Files whose state this changes count as decided about (see `restore`).
        """
        self._steps.clear()
        self._decided |= self._replace(changeset)

    def restore(self, earlier: Changeset) -> None:
        """Stage an earlier state again, and forget the steps. Files that were decided about and not staged again since
        stay as they are.
        """
        self._steps.clear()
        stay = (change for change in self._changeset if change.path in self._decided)
        self._replace(Changeset((*earlier.without(self._decided), *stay)))

    def _move(self, staged: Changeset, target: str, read: FileText) -> Changeset:
        source = read.path
        known = staged.get(source)
        base, origin = known or self._unchanged_file(staged, source, read), source
        if known is not None:
            # Of a file that was moved before, the path that the user knows.
            origin = known.moved_from or source
        # Its own old path is free for it.
        if origin != target and _moved_away(staged, target):
            raise FileRefused(_MOVED_AWAY.format(path=target))
        staged = staged.without([source])
        replaced = staged.get(target)
        if replaced is not None:  # deleted before in this run: only its path is reused
            staged = staged.with_change(replace(replaced, text=read.text))
            # The target keeps its own base, so the source is gone by a change of its own.
            if base.base is not None:
                staged = staged.with_change(FileChange(origin, base.base, None, base.version))
        # Made in this run: it is only made at another path.
        elif base.base is None:
            staged = staged.with_change(FileChange(target, None, read.text, runs=base.runs, ran=base.ran))
        else:
            moved = replace(base, path=target, text=read.text, moved_from=None if origin == target else origin)
            staged = staged.with_change(moved)
        return staged

    def _write(self, staged: Changeset, texts: Mapping[str, str | None], read: Iterable[FileText]) -> Changeset:
        files = {file.path: file for file in read}
        for path, text in texts.items():
            known = staged.get(path) or self._unchanged_file(staged, path, files.get(path))
            change = replace(known, text=None if text is None else self.check(path, known.text, text))
            # Moved and then deleted, it is a deletion at the path that the user knows.
            if change.moved_from is not None and text is None:
                staged = staged.without([path])
                change = FileChange(change.moved_from, change.base, None, change.version)
            staged = staged.with_change(change)
        return staged

    def _commit(self, paths: tuple[str, ...], staged: Changeset) -> Step:
        step = Step(f"c{next(self._ids)}", paths, self._changeset)
        self._steps.append(step)
        self._decided.difference_update(paths)
        self._replace(staged)
        return step

    def _replace(self, staged: Changeset) -> set[str]:
        """Set what is staged, tell of each file whose state differs, and return these."""
        before, self._changeset = self._changeset, staged
        changed: set[str] = set()
        for path in dict.fromkeys((*_sources(before), *before.paths, *_sources(staged), *staged.paths)):
            moved = (path in _sources(before)) != (path in _sources(staged))
            if moved or before.get(path) != staged.get(path):
                changed.add(path)
                self._on_change(path, staged.get(path))
        return changed

    def _unchanged_file(self, staged: Changeset, path: str, read: FileText | None) -> FileChange:
        """Return the user's version of the file as a change that changes nothing yet."""
        if _moved_away(staged, path):
            raise FileRefused(_MOVED_AWAY.format(path=path))
        # A staged text is no base, as the user never had it.
        known = read if read is not None and read.source != "staged" else self._base(path)
        if known is None:
            return FileChange(path, None, None)
        return FileChange(path, known.text, known.text, known.version)


_MOVED_AWAY = "{path} was moved away in this change; give the new file another name."


def _sources(changeset: Changeset) -> tuple[str, ...]:
    return tuple(item.moved_from for item in changeset if item.moved_from is not None)


def _moved_away(changeset: Changeset, path: str) -> bool:
    return changeset.get(path) is None and path in _sources(changeset)


def _settle_moves(changeset: Changeset, taken: Iterable[str], going: frozenset[str]) -> Changeset:
    """Replace each move away from a path in `taken` by a deletion and a creation.

    Files whose path is in `going` are left alone: they move on, perhaps back to where they came from.
    """
    for path in taken:
        away = next((item for item in changeset if item.moved_from == path and item.path not in going), None)
        if away is not None and changeset.get(path) is None:
            changeset = changeset.with_change(FileChange(away.path, None, away.text))
            changeset = changeset.with_change(FileChange(path, away.base, None, away.version))
    return changeset
