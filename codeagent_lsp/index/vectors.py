"""The stored data of semantic search: vectors of chunks by the key of their content, and where in files the chunks are.

Vectors are in LanceDB, the extra `semantic`, which is imported on first use: a folder on disk, or an object store that
a team shares. Rows are only ever added, so any number of writers may share one database. The locations are in a small
SQLite file beside the index. Both block; use them in a thread. Not here: which texts are embedded (`semantic.py`).
"""

from __future__ import annotations

import importlib.util
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from codeagent_lsp.index.database import Database

_IN_ONE_QUESTION = 500

PLACES_FILE = "places.sqlite"  # beside the index
_STAMP = "places 1"
_SCHEMA = """
CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, digest BLOB NOT NULL);
CREATE TABLE places (file INTEGER NOT NULL, key BLOB NOT NULL, line_start INTEGER NOT NULL, line_end INTEGER NOT NULL,
                     symbol TEXT NOT NULL);
CREATE INDEX places_by_key ON places (key);
CREATE INDEX places_by_file ON places (file)
"""


class Nearby(Protocol):
    """Port: the vector database that semantic search needs. All methods block and raise VectorsUnusable."""

    def known(self, keys: Iterable[str], size: int) -> set[str]:
        """Return which of the keys (hexadecimal) have a vector of dimension `size`."""

    def add(self, vectors: Mapping[str, Sequence[float]]) -> None:
        """Store vectors by key (hexadecimal), all of one dimension."""

    def nearest(self, vector: Sequence[float], limit: int) -> list[tuple[str, float]]:
        """Return pairs of key and cosine similarity (-1 to 1) for at most `limit` closest keys, best
        first, each once.
        """

    def tidy(self, size: int) -> None:
        """Merge the many small files that adding vectors of dimension `size` leaves."""


class VectorsUnusable(Exception):
    """Raised when the database cannot be read or written; the message is the reason."""


def is_installed() -> bool:
    """Return whether the extra `semantic` (LanceDB) is installed; it is not imported for that."""
    return importlib.util.find_spec("lancedb") is not None


class Vectors:
    """The vectors of one model at `uri`: a path, or a URI that LanceDB understands. All methods block and raise
    VectorsUnusable. Nothing has to be closed.
    """

    def __init__(self, uri: str, model: str) -> None:
        self._uri = uri
        self._model = model
        self._tables: dict[int, Any] = {}
        self._place: Any = None

    def known(self, keys: Iterable[str], size: int) -> set[str]:
        """Return which of the keys (hexadecimal) have a vector of dimension `size`."""
        wanted = list(keys)
        found: set[str] = set()
        with _Told():
            table = self._table(size)
            for at in range(0, len(wanted), _IN_ONE_QUESTION):
                part = wanted[at : at + _IN_ONE_QUESTION]
                listed = ", ".join(f"'{bytes.fromhex(key).hex()}'" for key in part)
                # Two writers may both have added a key.
                rows = table.search().where(f"key IN ({listed})").select(["key"]).limit(2 * len(part)).to_list()
                found.update(row["key"] for row in rows)
        return found

    def add(self, vectors: Mapping[str, Sequence[float]]) -> None:
        """Store vectors by key (hexadecimal), all of one dimension; rows are only added, never replaced."""
        rows = [{"key": key, "vector": list(vector)} for key, vector in vectors.items()]
        if rows:
            with _Told():
                self._table(len(rows[0]["vector"])).add(rows)

    def nearest(self, vector: Sequence[float], limit: int) -> list[tuple[str, float]]:
        """Return pairs of key and cosine similarity (-1 to 1) for at most `limit` closest keys, best
        first, each once.
        """
        with _Told():
            question = self._table(len(vector)).search(list(vector)).distance_type("cosine")
            rows = question.select(["key", "_distance"]).limit(limit).to_list()
        best: dict[str, float] = {}
        for row in rows:
            best.setdefault(row["key"], 1.0 - float(row["_distance"]))
        return list(best.items())

    def tidy(self, size: int) -> None:
        """Merge the many small files that adding vectors of dimension `size` leaves."""
        with _Told():
            self._table(size).optimize()

    def _table(self, size: int) -> Any:
        """Return the table of one dimension, created if missing; models and dimensions have tables of their own."""
        if size not in self._tables:
            arrow = import_module("pyarrow")  # comes with LanceDB, which is an extra, and heavy
            if self._place is None:
                self._place = import_module("lancedb").connect(self._uri)
            name = "chunks_" + blake2b(f"{self._model}\0{size}".encode(), digest_size=8).hexdigest()
            columns = arrow.schema([("key", arrow.string()), ("vector", arrow.list_(arrow.float32(), size))])
            self._tables[size] = self._place.create_table(name, schema=columns, exist_ok=True)
        return self._tables[size]


class _Told:
    """A context that turns the exceptions of LanceDB into VectorsUnusable."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (RuntimeError, OSError, ValueError, ImportError, LookupError)):
            raise VectorsUnusable(f"{type(error).__name__}: {error}"[:300]) from error


class ChunkPlace(NamedTuple):
    """The place of a chunk in a file: the hexadecimal key of its content, its 1-based inclusive lines, the dotted name
    of its definition ('' for none).
    """

    key: str
    line_start: int
    line_end: int
    symbol: str


class Places:
    """The database of locations at `path`, created if missing and cleared for another `model`, whose vectors differ.
    Files are given by index path. Methods block and may be called from any thread.
    """

    def __init__(self, path: Path, model: str) -> None:
        self._database = Database(path, f"{_STAMP} {model}", _create)

    def files(self) -> dict[str, bytes]:
        """Return the digests of the texts whose chunks are known, by index path; {} if the file was damaged, which is
        then replaced.
        """
        return {path: bytes(digest) for path, digest in self._database.rows("SELECT path, digest FROM files")}

    def put(self, files: Mapping[str, tuple[bytes, Sequence[ChunkPlace]]]) -> None:
        """Replace the chunks of files, given by index path with the digest of the text and the chunks; all or none.
        Raises sqlite3.Error or OSError if the disk is full.
        """
        with self._database.writing() as db:
            for path, (digest, places) in files.items():
                _drop(db, path)
                ident = db.execute("INSERT INTO files (path, digest) VALUES (?, ?)", (path, digest)).lastrowid
                rows = [(ident, bytes.fromhex(key), *rest) for key, *rest in places]
                db.executemany("INSERT INTO places VALUES (?, ?, ?, ?, ?)", rows)

    def forget(self, paths: Iterable[str]) -> None:
        """Delete the chunks of files, by index path, in one transaction; unknown ones are ignored."""
        gone = list(paths)
        if gone:
            with self._database.writing() as db:
                for path in gone:
                    _drop(db, path)

    def standing(self, keys: Sequence[str]) -> list[tuple[str, ChunkPlace]]:
        """Return pairs of index path and location for all locations of the contents with these keys (hexadecimal);
        unknown keys are ignored.
        """
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
        """Return one of the keys (hexadecimal), no matter which, by which a database of vectors can be tried; None if
        there is none.
        """
        rows = self._database.rows("SELECT key FROM places LIMIT 1")
        return bytes(rows[0][0]).hex() if rows else None

    def clear(self) -> None:
        """Replace the file by an empty one, so that no location is known. OSError if that fails."""
        self._database.renew()

    def close(self) -> None:
        """Close the connections to the file; the next use opens it again, so closing twice does no harm."""
        self._database.close()


def stored_chunks(path: Path) -> tuple[str, int] | None:
    """Return the model and the number of embedded chunks in a file of `Places`, without changing it; None if it cannot
    be read.
    """
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
