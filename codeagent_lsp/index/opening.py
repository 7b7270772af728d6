"""Opening of the index with the tables that this program uses, and the path of its graph."""

from __future__ import annotations

from pathlib import Path

from codeagent_lsp.index.lexical import Lexical
from codeagent_lsp.index.store import Store


def open_index(path: Path) -> Store:
    """Return the index at `path`; the same in every process that works on it."""
    return Store(path, (Lexical(),))


def saved_graph(path: Path) -> Path:
    """Return the path of the reference graph of the index at `path`."""
    return path.with_suffix(".graph")
