"""File views for the runs of a server: the open documents and the workspace folders behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, NothingStaged, StagedView
from codeagent_lsp.workspace.files.paths import Roots
from codeagent_lsp.workspace.text.document import Document
from codeagent_lsp.workspace.text.encoding import is_certain

if TYPE_CHECKING:
    from codeagent_lsp.server.documents import Documents


class Views:
    """Makes file views. `folders` is called for every view, since the client may add folders."""

    def __init__(self, folders: Callable[[], list[str]], documents: Documents) -> None:
        self._folders = folders
        self._documents = documents

    def over(self, staged: StagedView) -> FileView:
        """Return the files with staged changes over them."""
        return FileView(Roots(self._folders()), _OpenBuffers(self._documents), staged)

    def plain(self) -> FileView:
        """Return the files as the user has them."""
        return self.over(NothingStaged())

    def disk_text(self, path: str) -> str | None:
        """Return the text of a file on disk; None when there is none. FileRefused for a file that is not text."""
        view = FileView(Roots(self._folders()), NoBuffers(), NothingStaged())
        return view.read(path).text if view.exists(path) else None

    def is_certain(self, path: str) -> bool:
        """Return whether every editor reads a file on disk as the same text; also of one that is missing or binary."""
        view = FileView(Roots(self._folders()), NoBuffers(), NothingStaged())
        try:
            file = view.saved(path)
        except FileRefused:
            return True
        return file is None or is_certain(file.text, file.encoding)


class _OpenBuffers:
    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def get_by_path(self, path: str) -> Document | None:
        return self._documents.by_path(path) if path.startswith("/") else self._documents.get(path)

    def open_paths(self) -> Iterable[str]:
        return self._documents.paths()
