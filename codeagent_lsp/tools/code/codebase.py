"""The code of a workspace as a run sees it: the files that may contain a name, and their parsed texts.

The index only narrows the search; results come from the current text of each file. Without an index every file is
searched. Not here: what the code means.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable

from codeagent_lsp.errors import AgentError, ToolFailed
from codeagent_lsp.index.grammars import grammar_of
from codeagent_lsp.index.port import CodeIndex
from codeagent_lsp.index.symbols import Import, SymbolInfo
from codeagent_lsp.index.view import View
from codeagent_lsp.tools.code.source import SourceFile, source_of
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.files.find_tools import may_show
from codeagent_lsp.workspace.files import search

MAX_FILES = 400
"""Most files that are parsed for one question."""
MAX_WALKED = 5_000
_MAX_PLAIN = 20


class Codebase:
    """The code below `path` (absolute; None: the whole workspace) during one tool call; parsed files are kept.
    `truncated` is True once a limit left files out.
    """

    def __init__(self, context: ToolContext, path: str | None = None) -> None:
        self.truncated = False
        self._context = context
        self._path = path
        self._reach = Reach(context, path)
        self._sources: dict[str, SourceFile | None] = {}
        self._walks: dict[str, list[str]] = {}
        self._view: View | None = None
        self._asked = False

    async def defining(self, name: str) -> list[str]:
        """Return the absolute paths, at most 400, of the files that may define a name (without dots); [] for none."""
        return await self._having(name, lambda view: view.defining(name))

    async def using(self, name: str) -> list[str]:
        """Return the absolute paths, at most 400, of the files that may use or define a name (without dots); [] for
        none.
        """
        return await self._having(name, lambda view: {*view.using(name), *view.defining(name)})

    async def files(self) -> list[str]:
        """Return the absolute paths of all files of known languages, sorted, at most 5,000."""
        view = await self._index()
        if view is None:
            listed: Iterable[str] = await asyncio.to_thread(self._reach.walked)
        else:
            listed = await asyncio.to_thread(lambda: self._reach.absolute(view.files()))
        whole = await asyncio.to_thread(self._reach.over, listed)
        return self._bound(sorted(path for path in whole if grammar_of(path) is not None), MAX_WALKED)

    async def symbols(self) -> list[SymbolInfo]:
        """Return all definitions of all files, sorted by path. At most 400 files that the index does not know are
        parsed.
        """
        view = await self._index()
        known: dict[str, tuple[SymbolInfo, ...]] = {}
        if view is None:
            rest = self._bound(await self.files(), MAX_FILES)
        else:
            listed = await asyncio.to_thread(lambda: {path: found for path, found in view.definitions() if found})
            places = await asyncio.to_thread(self._reach.absolute, listed)
            over = self._context.view.over_disk()
            # Of open and staged files, the index knows only what was saved.
            known = {path: listed[name] for path, name in places.items() if path not in over}
            rest = sorted(await asyncio.to_thread(self._reach.over, ()))
        parsed = {path: source for path in rest if (source := await self.source(path)) is not None}
        known |= {path: tuple(source.parsed.outline.symbols) for path, source in parsed.items()}
        return [symbol for path in sorted(known) for symbol in known[path]]

    async def imports(self) -> list[tuple[str, tuple[Import, ...]]]:
        """Return (relative path, imports) of every file of a known language, sorted by path. At most 400 files are
        parsed.
        """
        view, paths = await self._index(), await self.files()
        over = self._context.view.over_disk()
        saved = [path for path in paths if path not in over]
        known = {} if view is None else await asyncio.to_thread(self._known_imports, view, saved)
        rest = self._bound([path for path in paths if path not in known], MAX_FILES)
        found = {path: source.imports for path in rest if (source := await self.source(path)) is not None}
        return [(self.relative(path), each) for path, each in sorted({**known, **found}.items())]

    async def source(self, path: str) -> SourceFile | None:
        """Return the present text of a file (absolute path), parsed once; None if it cannot or may not be read, or its
        language is unknown.
        """
        if path not in self._sources:
            self._sources[path] = await asyncio.to_thread(self._reach.parsed, path)
        return self._sources[path]

    async def plain(self, name: str) -> list[search.Match]:
        """Return at most 20 lines that contain the word `name`, from files of unknown languages that the user's rules
        let be read.
        """
        pattern = rf"\b{re.escape(name)}\b"
        result = await search.grep(self._context.view, pattern, path=self._path, max_results=10 * MAX_FILES)
        found = [match for match in result.matches if grammar_of(match.path) is None]
        return [match for match in found[: 10 * _MAX_PLAIN] if self._reach.may_show(match.path)][:_MAX_PLAIN]

    def relative(self, path: str) -> str:
        """Return a path relative to its workspace folder, as it is shown; one outside of all folders stays absolute."""
        return self._context.view.roots.relative(path)

    async def _index(self) -> View | None:
        index = self._context.get(CodeIndex)
        if not self._asked and index is not None:
            try:
                self._view = await index.view()
            except ToolFailed:  # not built yet: looking through all files takes longer and finds the same
                self._view = None
        self._asked = True
        return self._view

    async def _having(self, name: str, ask: Callable[[View], Iterable[str]]) -> list[str]:
        if self._path is not None and self._context.view.roots.kind(self._path) != "folder":
            return [self._path]
        view = await self._index()
        if view is None:
            return self._bound(await self._looked_through(name), MAX_FILES)

        def found() -> set[str]:
            over = self._reach.over(())
            return {*self._reach.absolute(ask(view)), *self._reach.with_word(name, over)}

        return self._bound(sorted(await asyncio.to_thread(found)), MAX_FILES)

    async def _looked_through(self, name: str) -> list[str]:
        if name not in self._walks:
            paths = self._bound(await asyncio.to_thread(self._reach.walked), MAX_WALKED)
            self._walks[name] = await asyncio.to_thread(self._reach.with_word, name, paths)
        return self._walks[name]

    def _known_imports(self, view: View, paths: Iterable[str]) -> dict[str, tuple[Import, ...]]:
        tags = {path: view.tags(self.relative(path)) for path in paths}
        return {path: each.imports for path, each in tags.items() if each is not None}

    def _bound(self, paths: list[str], limit: int) -> list[str]:
        self.truncated = self.truncated or len(paths) > limit
        return paths[:limit]


# The files of a workspace, or of a part of it, that a run may read, and their texts as the run sees them.


class Reach:
    """The files below `path` (absolute; None: the whole workspace) that the user's rules let a run read. Methods
    block.
    """

    def __init__(self, context: ToolContext, path: str | None) -> None:
        self._context = context
        self._path = path

    def walked(self) -> list[str]:
        """Return the absolute path of every file below the path, or in the whole workspace, that is not ignored, new
        and staged ones included.
        """
        view = self._context.view
        starts = (self._path,) if self._path is not None else view.roots.folders
        return [path for start in starts for path in view.walk(start)]

    def over(self, paths: Iterable[str]) -> set[str]:
        """Return these absolute paths and those of open or staged files; deleted, ignored and outside ones are left
        out.
        """
        view = self._context.view
        both = {*paths, *view.over_disk()}
        return {path for path in both if self._has(path) and not view.is_ignored(path) and view.exists(path)}

    def absolute(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the names in the index, `paths`, by the absolute paths of their files, for those that exist here and
        may be shown.
        """
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
        """Return those of the files (absolute paths), of known languages and readable, whose text, with unsaved and
        staged changes, has a name as a whole word; in the given order.
        """
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        return [
            path
            for path in paths
            if grammar_of(path) is not None and word.search(self._context.view.text(path) or "") and self.may_show(path)
        ]

    def parsed(self, path: str) -> SourceFile | None:
        """Return a file (absolute path) parsed; None if it cannot or may not be read, or its language is unknown."""
        text = self._context.view.text(path) if self.may_show(path) else None
        return source_of(self._context.view.roots.relative(path), text) if text is not None else None

    def may_show(self, path: str) -> bool:
        """Return whether the user's rules let the text of this file (absolute path) be shown to the model. Nothing is
        read.
        """
        return may_show(self._context, path, self._path)

    def _has(self, path: str) -> bool:
        return self._path is None or path == self._path or path.startswith(f"{self._path}/")
