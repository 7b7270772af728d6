"""Locations of embedded chunks in files: a small SQLite file beside the index.

Not here: their vectors (`vectors.py`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from codeagent_lsp.index.database import Database

FILE = "places.sqlite"  # beside the index
_STAMP = "places 1"
_IN_ONE_QUESTION = 500
_SCHEMA = """
CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, digest BLOB NOT NULL);
CREATE TABLE places (file INTEGER NOT NULL, key BLOB NOT NULL, line_start INTEGER NOT NULL, line_end INTEGER NOT NULL,
                     symbol TEXT NOT NULL);
CREATE INDEX places_by_key ON places (key);
CREATE INDEX places_by_file ON places (file)
"""


class ChunkPlace(NamedTuple):
    """A chunk of a file: the hexadecimal key of its content, its 1-based inclusive lines, its definition."""

    key: str
    line_start: int
    line_end: int
    symbol: str


class Places:
    """The database of locations at `path`, created if missing and cleared for another `model`, whose vectors differ.

    Any method may be called from any thread.
    """

    def __init__(self, path: Path, model: str) -> None:
        self._database = Database(path, f"{_STAMP} {model}", _create)

    def files(self) -> dict[str, bytes]:
        """Return the files whose chunks are known, with the digests of their texts."""
        return {path: bytes(digest) for path, digest in self._database.rows("SELECT path, digest FROM files")}

    def put(self, files: Mapping[str, tuple[bytes, Sequence[ChunkPlace]]]) -> None:
        """Replace the chunks of files, given by path with the digest of the text."""
        with self._database.writing() as db:
            for path, (digest, places) in files.items():
                _drop(db, path)
                ident = db.execute("INSERT INTO files (path, digest) VALUES (?, ?)", (path, digest)).lastrowid
                rows = [(ident, bytes.fromhex(key), *rest) for key, *rest in places]
                db.executemany("INSERT INTO places VALUES (?, ?, ?, ?, ?)", rows)

    def forget(self, paths: Iterable[str]) -> None:
        """Delete the chunks of files."""
        gone = list(paths)
        if gone:
            with self._database.writing() as db:
                for path in gone:
                    _drop(db, path)

    def standing(self, keys: Sequence[str]) -> list[tuple[str, ChunkPlace]]:
        """Return all locations of the contents with these keys, with their paths."""
        found: list[tuple[str, ChunkPlace]] = []
        for at in range(0, len(keys), _IN_ONE_QUESTION):
            part = [bytes.fromhex(key) for key in keys[at : at + _IN_ONE_QUESTION]]
            rows = self._database.rows(
                "SELECT path, key, line_start, line_end, symbol FROM places JOIN files ON id = file"  # noqa: S608
                f" WHERE key IN ({','.join('?' * len(part))})",
                part,
            )
            found += [(path, ChunkPlace(bytes(key).hex(), *rest)) for path, key, *rest in rows]
        return found

    def any_key(self) -> str | None:
        """Return one of the keys, None if there is none."""
        rows = self._database.rows("SELECT key FROM places LIMIT 1")
        return bytes(rows[0][0]).hex() if rows else None

    def clear(self) -> None:
        """Delete everything."""
        self._database.renew()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()


def stored_chunks(path: Path) -> tuple[str, int] | None:
    """Return the model and the number of embedded chunks in a file of `Places`, only read; None without one."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=1.0)) as db:
            ((stamp,),) = db.execute("SELECT value FROM stamp").fetchall()
            ((count,),) = db.execute("SELECT count(*) FROM places").fetchall()
    except (sqlite3.Error, ValueError):
        return None
    return str(stamp).removeprefix(f"{_STAMP} "), int(count)


def _create(db: sqlite3.Connection) -> None:
    for statement in _SCHEMA.split(";"):
        db.execute(statement)


def _drop(db: sqlite3.Connection, path: str) -> None:
    db.execute("DELETE FROM places WHERE file IN (SELECT id FROM files WHERE path = ?)", (path,))
    db.execute("DELETE FROM files WHERE path = ?", (path,))
