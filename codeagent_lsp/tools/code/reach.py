"""The files of a workspace, or of a part of it, that a run may read, and their texts as the run sees them.

All methods block; call them in a thread. Not here: what is in the texts (`codebase.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from codeagent_lsp.errors import AgentError
from codeagent_lsp.index.grammars import grammar_of
from codeagent_lsp.tools.code.source import SourceFile, source_of
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.files.find_tools import may_show


class Reach:
    """The readable files below `path` (absolute; None: the whole workspace)."""

    def __init__(self, context: ToolContext, path: str | None) -> None:
        self._context = context
        self._path = path

    def walked(self) -> list[str]:
        """Return the absolute path of every file that is not ignored."""
        view = self._context.view
        starts = (self._path,) if self._path is not None else view.roots.folders
        return [path for start in starts for path in view.walk(start)]

    def over(self, paths: Iterable[str]) -> set[str]:
        """Return these paths and those of open or staged files; deleted, ignored and outside ones are left out."""
        view = self._context.view
        both = {*paths, *view.over_disk()}
        return {path for path in both if self._has(path) and not view.is_ignored(path) and view.exists(path)}

    def absolute(self, paths: Iterable[str]) -> dict[str, str]:
        """Map absolute paths to the names in the index, for those files that exist here and may be shown."""
        found = {}
        for path in paths:
            try:
                absolute = self._context.view.roots.resolve(path)
            except AgentError:  # gone since, or a link now
                continue
            if self._has(absolute) and self.may_show(absolute):
                found[absolute] = path
        return found

    def with_word(self, name: str, paths: Iterable[str]) -> list[str]:
        """Return those of the files whose text has a name as a whole word."""
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        return [
            path
            for path in paths
            if grammar_of(path) is not None and word.search(self._context.view.text(path) or "") and self.may_show(path)
        ]

    def parsed(self, path: str) -> SourceFile | None:
        """Return a file parsed; None if it cannot or may not be read, or its language is unknown."""
        text = self._context.view.text(path) if self.may_show(path) else None
        return source_of(self._context.view.roots.relative(path), text) if text is not None else None

    def may_show(self, path: str) -> bool:
        """Return whether the user's rules let a file be shown."""
        return may_show(self._context, path, self._path)

    def _has(self, path: str) -> bool:
        return self._path is None or path == self._path or path.startswith(f"{self._path}/")
