"""Vectors by the key of their content, in LanceDB: a folder on disk, or an object store that a team shares.

Rows are only ever added, so any number of writers may share one database. Blocking; use it in a thread. LanceDB is
the extra `semantic` and is imported on first use. Not here: the embedded texts and their locations (`semantic.py`).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from importlib import import_module
from typing import Any, Protocol

_IN_ONE_QUESTION = 500


class Nearby(Protocol):
    """The vector database that semantic search needs; all methods block and raise VectorsUnusable."""

    def known(self, keys: Iterable[str], size: int) -> set[str]: ...

    def add(self, vectors: Mapping[str, Sequence[float]]) -> None: ...

    def nearest(self, vector: Sequence[float], limit: int) -> list[tuple[str, float]]: ...

    def tidy(self, size: int) -> None: ...


class VectorsUnusable(Exception):
    """Raised when the database cannot be read or written; the message is the reason."""


def installed() -> bool:
    """Return whether the extra `semantic` is installed."""
    return importlib.util.find_spec("lancedb") is not None


class Vectors:
    """The vectors of one model at `uri`: a path, or a URI that LanceDB understands."""

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
        """Store vectors by key, all of one dimension."""
        rows = [{"key": key, "vector": list(vector)} for key, vector in vectors.items()]
        if rows:
            with _Told():
                self._table(len(rows[0]["vector"])).add(rows)

    def nearest(self, vector: Sequence[float], limit: int) -> list[tuple[str, float]]:
        """Return the closest keys with their cosine similarity, best first, each once."""
        with _Told():
            question = self._table(len(vector)).search(list(vector)).distance_type("cosine")
            rows = question.select(["key", "_distance"]).limit(limit).to_list()
        best: dict[str, float] = {}
        for row in rows:
            best.setdefault(row["key"], 1.0 - float(row["_distance"]))
        return list(best.items())

    def tidy(self, size: int) -> None:
        """Merge the many small files that adding leaves."""
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
