"""Stand-ins for the open buffers and the staged changes, as plain dictionaries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from codeagent_lsp.workspace.files.file_view import FileView, StagedFile
from codeagent_lsp.workspace.files.paths import Roots
from codeagent_lsp.workspace.text.document import Document


@dataclass
class FakeBuffers:
    documents: dict[str, Document] = field(default_factory=dict)

    def get_by_path(self, path: str) -> Document | None:
        return self.documents.get(path)

    def open_paths(self) -> Iterable[str]:
        return list(self.documents)

    def open(self, path: Path | str, text: str, version: int = 1) -> None:
        self.documents[str(path)] = Document(f"file://{path}", text, version)


@dataclass
class FakeStaged:
    texts: dict[str, str | None] = field(default_factory=dict)

    def lookup(self, path: str) -> StagedFile | None:
        return StagedFile(self.texts[path]) if path in self.texts else None

    def paths(self) -> Iterable[str]:
        return list(self.texts)


@dataclass
class Workspace:
    """A folder with a view over it."""

    root: Path
    buffers: FakeBuffers
    staged: FakeStaged
    view: FileView

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def path(self, name: str) -> str:
        return str(self.root / name)

    def stage(self, name: str, text: str | None) -> None:
        self.staged.texts[self.path(name)] = text

    def open(self, name: str, text: str, version: int = 1) -> None:
        self.buffers.open(self.path(name), text, version)


def workspace(folder: Path, *more: Path, max_bytes: int = 1 << 20) -> Workspace:
    folder.mkdir(parents=True, exist_ok=True)
    buffers, staged = FakeBuffers(), FakeStaged()
    roots = Roots([str(folder), *map(str, more)])
    return Workspace(folder.resolve(), buffers, staged, FileView(roots, buffers, staged, max_bytes=max_bytes))
