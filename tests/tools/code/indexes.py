"""Indexes for the tests of the code tools: one that knows what it is told, and the real one over a folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.index.answers import Answers
from codeagent_lsp.index.parse import parse
from codeagent_lsp.index.port import CodeIndex
from codeagent_lsp.index.relevance import Chunk
from codeagent_lsp.index.service import IndexService, Status
from codeagent_lsp.index.store import Store
from codeagent_lsp.index.view import Unsaved, View
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.workspace.files.file_view import FileView
from tests.index.workspaces import service
from tests.tools.fakes import Bench


@dataclass
class FakeIndex:
    """Knows `texts` by path, whatever the workspace has; fails where that is None."""

    store: Store
    texts: Mapping[str, str] | None

    async def view(self) -> View:
        if self.texts is None:
            raise ToolFailed("The index is being built.")
        known = {path: Unsaved(path.encode(), parse(path, text), text) for path, text in self.texts.items()}
        return View(self.store, known, 1)

    async def search(self, query: str, limit: int) -> tuple[Chunk, ...]:
        return ()

    async def refresh(self) -> Status:
        return Status("ready")


@dataclass
class RealIndex(FakeIndex):
    """The index service, with what the view of a run has over the disk."""

    index: IndexService
    files: FileView

    async def view(self) -> View:
        return Answers(self.index.store, self.index.folders).view(self.files)


def with_index(bench: Bench, texts: Mapping[str, str] | None, folder: Path) -> None:
    """Give the tools an index that knows `texts`."""
    _give(bench, FakeIndex(Store(folder / "fake.sqlite"), texts))


@asynccontextmanager
async def real_index(bench: Bench, folder: Path) -> AsyncIterator[IndexService]:
    """Give the tools the real index of the workspace, which has looked at it once."""
    async with service(bench.root, store=folder / "index.sqlite") as index:
        await index.refresh()
        _give(bench, RealIndex(index.store, {}, index, bench.view))
        yield index


def _give(bench: Bench, index: FakeIndex) -> None:
    bench.context = bench.context.having((CodeIndex, index))
    bench.executor = ToolExecutor(bench.registry, bench.context, lambda: bench.mode, bench.approvals)
