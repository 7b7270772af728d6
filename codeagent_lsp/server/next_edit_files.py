"""The workspace as the next edit reads it: open buffers over the disk, what may be shown, and files by their words.

Not here: what is looked for (`inline/next_edit/proposals.py`), when (`next_edits.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from codeagent_lsp.errors import AgentError, ToolFailed
from codeagent_lsp.index import lexical

if TYPE_CHECKING:
    from codeagent_lsp.index.answers import Answers
    from codeagent_lsp.index.host import IndexHost
    from codeagent_lsp.workspace.files.file_view import FileText, FileView

INDEX_SECONDS = 1.0
MARKERS = (
    "pyproject.toml", "setup.py", "package.json", "go.mod", "Cargo.toml", "pom.xml", "build.gradle", "composer.json",
)  # fmt: skip


@dataclass(frozen=True)
class NextEditFiles:
    """One state of the workspace. Paths are absolute; `may_read` says what may be shown without asking. An index that
    is being built is waited for so many seconds.
    """

    view: FileView
    index: IndexHost
    may_read: Callable[[str], bool]
    index_seconds: float = INDEX_SECONDS

    async def files_with(self, words: Sequence[str], limit: int) -> Sequence[str]:
        """Return files that may have all words, by the index, and the open ones; without an index these alone."""
        opened = [path for path in self.view.over_disk() if Path(path).is_absolute()]
        try:
            answers = await self.index.ready(self.index_seconds)
        except ToolFailed:
            return opened
        return [*opened, *await asyncio.to_thread(self._indexed, answers, words, limit)]

    async def text(self, path: str) -> str | None:
        """Return the text of a file inside the workspace that may be shown; None for others."""
        found = await asyncio.to_thread(self.read, path)
        return found.text if found is not None else None

    def project(self, path: str) -> str:
        """Return the project that a file belongs to."""
        return project_of(path, lambda name: Path(name).is_file())

    def read(self, path: str) -> FileText | None:
        """Return a file that may be shown; None for others. Blocks."""
        try:
            return None if self.name(path) is None else self.view.read(path)
        except AgentError:
            return None

    def name(self, path: str) -> str | None:
        """Return the path of a file as a model is told; None for one that may not be shown."""
        return shown_name(self.view, self.may_read, path)

    def _indexed(self, answers: Answers, words: Sequence[str], limit: int) -> list[str]:
        found = lexical.files_with(answers.view(self.view), words, limit)
        folders = self.view.roots.folders
        places = ([str(Path(folder, name)) for folder in folders] for name in found)
        return [next((path for path in each if self.view.exists(path)), each[0]) for each in places if each]


def shown_name(view: FileView, may_read: Callable[[str], bool], path: str) -> str | None:
    """Return the path of a file inside the workspace as a model is told; None for one that is left out, or that a model
    may not read without a question.
    """
    allowed = view.roots.root_of(path) is not None and not view.is_ignored(path) and may_read(path)
    return view.roots.relative(path) if allowed else None


# To which project of a workspace a file belongs: changes in one are not due in another. Pure.


def project_of(path: str, is_file: Callable[[str], bool]) -> str:
    """Return the folder of the nearest marker above a file; '' for the workspace itself."""
    for folder in PurePosixPath(path).parents:
        if any(is_file(str(folder / marker)) for marker in MARKERS):
            return str(folder)
    return ""
