"""The index as this program uses it: the store with the tables of the full-text search."""

from __future__ import annotations

from pathlib import Path

from codeagent_lsp.index.lexical import Lexical
from codeagent_lsp.index.store import Store


def open_index(path: Path) -> Store:
    """Return the index at `path`; the same in every process that works on it."""
    return Store(path, (Lexical(),))


def saved_graph(path: Path) -> Path:
    """Return where the reference graph of the index at `path` is kept between processes."""
    return path.with_suffix(".graph")
