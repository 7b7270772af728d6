"""Clients to impersonate: what each announces, and what it must get. Not here: real editors (`neovim/`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lsprotocol.converters import get_converter
from pytest_lsp import client_capabilities

FOLDER = Path(__file__).with_name("capabilities")


@dataclass(frozen=True)
class Profile:
    """One client. `creates` tells whether it is asked to create files; else it finds an empty one to fill."""

    name: str
    client: dict[str, Any]
    capabilities: dict[str, Any]
    encoding: str = "utf-16"
    shape: Literal["documentChanges", "changes"] = "documentChanges"
    creates: bool = True
    literals: bool = True
    tags: bool = False
    progress: bool = True


def _recorded(spec: str, name: str, **expected: Any) -> Profile:
    """A client whose capabilities pytest-lsp has recorded."""
    capabilities = get_converter().unstructure(client_capabilities(spec))
    return Profile(spec, {"name": name}, capabilities, **expected)


def _own(file: str, **expected: Any) -> Profile:
    data = json.loads((FOLDER / f"{file}.json").read_text())
    return Profile(file, data["clientInfo"], data["capabilities"], **expected)


PROFILES = (
    _recorded("visual-studio-code@v1.65.2", "Visual Studio Code"),
    _recorded("neovim@v0.11.0", "Neovim", encoding="utf-8"),
    _recorded("emacs@v29.1", "Emacs (eglot)", encoding="utf-32", creates=False),
    _own("vscode", tags=True),
    _own("helix", encoding="utf-8"),
    _own("eglot", encoding="utf-32", creates=False),
    _own("zed"),
    Profile(
        "edits-only",
        {},
        {"workspace": {"applyEdit": True}},
        shape="changes",
        creates=False,
        literals=False,
        progress=False,
    ),
)
