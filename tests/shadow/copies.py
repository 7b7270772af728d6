"""A workspace folder with a private copy of it, for the tests of the level `copy` without a sandbox."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from codeagent_lsp.shadow.copying import CopyLayer
from codeagent_lsp.shadow.folder import LayerFolder
from codeagent_lsp.shadow.shell import Command
from tests.shadow.fakes import ran


class Bench:
    """A workspace folder, its layer without a sandbox, and commands run in it."""

    def __init__(self, root: Path, state: Path, *more: Path) -> None:
        self.root = root
        self.folder = LayerFolder(str(state))
        self.layer = CopyLayer([str(root), *map(str, more)], self.folder, None)
        self.copy = Path(self.folder.path, "copies", "0")

    def write(self, name: str, content: str | bytes = "text\n") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def prepare(self, wanted: Mapping[str, str | None] | None = None) -> None:
        named = (wanted or {}).items()
        self.layer.prepare({f"{self.root}/{name}": None if text is None else text.encode() for name, text in named})

    def run(self, script: str) -> str:
        return ran(self.layer.launch(Command(script, str(self.root))))

    @property
    def writings(self) -> dict[str, str]:
        """By relative path: the text, or the kind of what is no text."""
        found = self.layer.writings()
        assert found.more == 0
        return {
            os.path.relpath(file.path, self.root): file.data.decode() if file.kind == "text" else file.kind.upper()
            for file in found.files
        }

    @property
    def files(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.copy)): path.read_bytes().decode("latin-1")
            for path in sorted(self.copy.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }
