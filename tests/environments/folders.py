"""A workspace folder with a view over it and what is staged over that, as one run has them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileText, FileView, NoBuffers, StagedFile
from codeagent_lsp.workspace.files.paths import Roots


class Folder:
    """Made when it is missing; its text files are those of `texts()`."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root.resolve()
        late = _Late()
        self.view = FileView(Roots([str(self.root)]), NoBuffers(), late)
        self.staging = late.staging = Staging(self._base)

    def texts(self) -> dict[str, str]:
        """What is on the disk."""
        return {str(path.relative_to(self.root)): path.read_text() for path in self.root.rglob("*") if path.is_file()}

    def staged(self) -> dict[str, str | None]:
        """What is staged, by relative path."""
        found = {path: self.staging.lookup(path) for path in self.staging.paths()}
        return {self.view.roots.relative(path): file.text for path, file in found.items() if file is not None}

    def _base(self, path: str) -> FileText | None:
        try:
            return self.view.base(path)
        except FileRefused:
            return None


class _Late:
    staging: Staging

    def lookup(self, path: str) -> StagedFile | None:
        return self.staging.lookup(path)

    def paths(self) -> Iterable[str]:
        return self.staging.paths()
