"""The changeset of a run while the run works on it: the only mutable thing between tools and the editor.

Tools read through it and write into it; every step can be taken back. It never touches the disk or the client.
Not here: the rules of editing (`match.py`) and of applying (`editor.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from codeagent_lsp.errors import FileRefused, ToolFailed
from codeagent_lsp.workspace.changeset import Changeset, FileChange
from codeagent_lsp.workspace.files import FileText, StagedFile


@dataclass(frozen=True, slots=True)
class Step:
    """One staged step: its id, what it touched, and the changeset before it."""

    change_id: str
    paths: tuple[str, ...]
    before: Changeset


class Staging:
    """What a run has staged so far.

    `base` gives what the user has of a path without anything staged (None: no such file).
    `on_change` is told the path of every file whose staged state has changed.
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
        self._ids = itertools.count(1)

    @property
    def changeset(self) -> Changeset:
        """Everything staged, as a value."""
        return self._changeset

    def lookup(self, path: str) -> StagedFile | None:
        """The staged state of `path`; None when nothing is staged for it."""
        change = self._changeset.get(path)
        if change is not None:
            return StagedFile(change.text)
        moved = any(item.moved_from == path for item in self._changeset)
        return StagedFile(None) if moved else None

    def paths(self) -> Iterable[str]:
        """All paths whose state differs from what the user has."""
        sources = (item.moved_from for item in self._changeset if item.moved_from is not None)
        return (*self._changeset.paths, *sources)

    def write(self, texts: dict[str, str | None]) -> Step:
        """Stage new texts (None deletes) as one step that can be taken back."""
        return self._commit(tuple(texts), self._written(texts))

    def move(self, source: str, target: str, text: str) -> Step:
        """Stage that `source`, whose text is `text`, is now `target`."""
        known = self._changeset.get(source)
        if known is not None and known.base is None and known.moved_from is None:
            staged = self._changeset.without([source]).with_change(replace(known, path=target))
        else:
            origin = known.moved_from if known is not None and known.moved_from else source
            base = known.base if known is not None else self._base_text(source)
            version = known.version if known is not None else self._base_version(source)
            moved = FileChange(target, base, text, version, None if origin == target else origin)
            staged = self._changeset.without([source]).with_change(moved)
        return self._commit((source, target), staged)

    def undo(self, change_id: str | None = None) -> Step:
        """Take back the last step, or the one named and all after it."""
        if not self._steps:
            raise ToolFailed("Nothing is staged, so there is nothing to undo.")
        ids = [step.change_id for step in self._steps]
        if change_id is not None and change_id not in ids:
            raise ToolFailed(f"No change {change_id!r}. Changes that can be undone: {', '.join(ids)}.")
        position = len(ids) - 1 if change_id is None else ids.index(change_id)
        undone, self._steps = self._steps[position:], self._steps[:position]
        paths = tuple(dict.fromkeys(path for step in undone for path in step.paths))
        self._replace(undone[0].before, paths)
        return replace(undone[0], paths=paths)

    def reset(self, changeset: Changeset) -> None:
        """Continue from another changeset: what is left after a part was applied or discarded."""
        paths = tuple(dict.fromkeys((*self._changeset.paths, *changeset.paths)))
        self._steps.clear()
        self._replace(changeset, paths)

    def _written(self, texts: dict[str, str | None]) -> Changeset:
        staged = self._changeset
        for path, text in texts.items():
            known = staged.get(path)
            if known is not None:
                change = replace(known, text=text)
            else:
                change = FileChange(path, self._base_text(path), text, self._base_version(path))
            if change.moved_from is not None and text is None:
                staged = staged.without([path])
                change = FileChange(change.moved_from, change.base, None, change.version)
            staged = staged.with_change(change)
        return staged

    def _commit(self, paths: tuple[str, ...], staged: Changeset) -> Step:
        step = Step(f"c{next(self._ids)}", paths, self._changeset)
        self._steps.append(step)
        self._replace(staged, paths)
        return step

    def _replace(self, staged: Changeset, paths: tuple[str, ...]) -> None:
        self._changeset = staged
        for path in paths:
            self._on_change(path, staged.get(path))

    def _base_text(self, path: str) -> str | None:
        known = self._read(path)
        return None if known is None else known.text

    def _base_version(self, path: str) -> int | None:
        known = self._read(path)
        return None if known is None else known.version

    def _read(self, path: str) -> FileText | None:
        if self._changeset.get(path) is None and any(item.moved_from == path for item in self._changeset):
            raise FileRefused(f"{path} was moved away in this change; give the new file another name.")
        return self._base(path)
