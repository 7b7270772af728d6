"""The sources of pieces in a real workspace: open buffers, files that the index finds, and its definitions.

Never of a file that may not be shown to a model. Not here: choosing pieces (`context.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.index import store
from codeagent_lsp.index.answers import Answers
from codeagent_lsp.index.view import View
from codeagent_lsp.index.words import question
from codeagent_lsp.inline.context import Material, Place
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.paths import path_of

MOST_OPEN = 12
MOST_FOUND = 8
MOST_CHARS = 200_000
"""The most characters of one text that are looked at."""
# Half of the time that all pieces have.
INDEX_SECONDS = 0.15
_LINES_ASKED = 10


class ReadyIndex(Protocol):
    """Port: the part of a server's index that completions need: `ready`, as in `index/port.py`."""

    async def ready(self, seconds: float) -> Answers: ...


class WorkspaceSource:
    """Reads through `view` (unsaved text over the disk) what `may_show` allows; `recent` returns the open files as
    absolute paths, the last changed first.
    """

    def __init__(
        self,
        view: Callable[[], FileView],
        index: ReadyIndex,
        may_show: Callable[[str], bool],
        recent: Callable[[], Sequence[str]],
    ) -> None:
        self._view = view
        self._index = index
        self._may_show = may_show
        self._recent = recent

    async def material(self, place: Place) -> Material:
        """Return what pieces for `place` can be taken from; without the index if it is not ready within 0.15 s."""
        files = self._view()
        try:
            answers: Answers | None = await self._index.ready(INDEX_SECONDS)
        except ToolFailed:
            answers = None
        return await asyncio.to_thread(self._gather, place, files, answers)

    def _gather(self, place: Place, files: FileView, answers: Answers | None) -> Material:
        view = answers.view(files) if answers is not None else None
        opened = [path for path in self._recent() if self._is_allowed(files, path)][:MOST_OPEN]
        names = {files.roots.relative(path): path for path in opened}
        for found in self._find_files(place, view) if view is not None else ():
            path = next((full for root in files.roots.folders if files.exists(full := path_of(root, found))), None)
            if path is not None and self._is_allowed(files, path):
                names.setdefault(found, path)
        # From the request, not the buffer, which may have gone on since.
        texts = [(place.path, place.text)]
        others = {name: path for name, path in names.items() if name != place.path}
        texts += [(name, text[:MOST_CHARS]) for name, path in others.items() if (text := files.text(path))]
        shown = _Shown(view, lambda name: self._shows(files, name)) if view is not None else None
        return Material(tuple(texts), shown)

    def _find_files(self, place: Place, view: View) -> list[str]:
        lines = place.text[: place.offset].splitlines()[-_LINES_ASKED:]
        asked = question(" ".join([place.path, *lines]))
        return [path for path, _ in store.matching(view, asked, MOST_FOUND)]

    def _shows(self, files: FileView, name: str) -> bool:
        return any(
            self._is_allowed(files, full) for root in files.roots.folders if files.exists(full := path_of(root, name))
        )

    def _is_allowed(self, files: FileView, path: str) -> bool:
        return self._may_show(path) and not files.is_ignored(path)


class _Shown:
    """The definitions of the index, but none of files that may not be shown."""

    def __init__(self, view: View, shows: Callable[[str], bool]) -> None:
        self._view = view
        self._shows = shows
        self.symbols = view.symbols

    def defining(self, name: str) -> tuple[str, ...]:
        return tuple(path for path in self._view.defining(name) if self._shows(path))
