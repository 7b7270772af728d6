"""The baselines of a search: BM25 over the words of path and text of sources, or of their pieces; no weights."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from codeagent_lsp.index.grammars import is_source
from codeagent_lsp.index.relevance import Chunk
from codeagent_lsp.index.store import Tables
from codeagent_lsp.index.symbols import FileTags
from codeagent_lsp.index.words import words_of


class PlainWords:
    """Its table, beside those of the real search."""

    version = "plain 1"

    def create(self, db: sqlite3.Connection) -> None:
        """One column for all."""
        db.execute("CREATE VIRTUAL TABLE plain USING fts5(words)")

    def prepare(self, path: str, tags: FileTags, text: str) -> object:
        """Only of sources: the baseline is not to be burdened with prose and data."""
        return " ".join((*words_of(path), *words_of(text))) if is_source(path) else ""

    def put(self, db: sqlite3.Connection, ident: int, prepared: object) -> None:
        """Replace a file."""
        db.execute("REPLACE INTO plain (rowid, words) VALUES (?, ?)", (ident, prepared))

    def drop(self, db: sqlite3.Connection, ident: int) -> None:
        """Forget a file."""
        db.execute("DELETE FROM plain WHERE rowid = ?", (ident,))

    @staticmethod
    def search(tables: Tables, text: str, most: int = 50) -> list[str]:
        """Paths, best first."""
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(words_of(text)))
        rows = tables.query(
            "SELECT files.path FROM plain JOIN files ON files.id = plain.rowid WHERE plain MATCH ?"
            " ORDER BY bm25(plain), files.path LIMIT ?",
            (match, most),
        )
        return [path for (path,) in rows]


class PlainPieces:
    """The same over pieces, in a database of its own."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute(
            "CREATE VIRTUAL TABLE pieces USING fts5(words, path UNINDEXED, first UNINDEXED, last UNINDEXED)"
        )
        self._rows: dict[str, list[int]] = {}

    def put(self, path: str, pieces: Iterable[Chunk]) -> None:
        """Replace the pieces of a file; none forgets it."""
        self._db.executemany("DELETE FROM pieces WHERE rowid = ?", [(row,) for row in self._rows.pop(path, ())])
        for piece in pieces if is_source(path) else ():
            words = " ".join((*words_of(path), *words_of(piece.text)))
            row = self._db.execute(
                "INSERT INTO pieces VALUES (?, ?, ?, ?)", (words, path, piece.line_start, piece.line_end)
            ).lastrowid
            self._rows.setdefault(path, []).append(row or 0)

    def search(self, text: str, most: int) -> list[tuple[str, int, int]]:
        """Path, first and last line of the best pieces."""
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(words_of(text)))
        return self._db.execute(
            "SELECT path, first, last FROM pieces WHERE pieces MATCH ? ORDER BY bm25(pieces), path, first LIMIT ?",
            (match, most),
        ).fetchall()
