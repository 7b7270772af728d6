"""A SQLite file that repairs itself: a damaged file or one of another version is replaced by an empty one.

One connection per thread and write-ahead logging, so that readers never wait for a writer. Not here: the tables.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codeagent_lsp.state import lock_file, make_private

_BUSY = 30.0  # seconds that one writer waits for another
_DAMAGE = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_IOERR))


class Database:
    """The SQLite file at `path`, created on first use; a damaged one or one of another `stamp` is replaced by an empty
    one. `create` makes the tables of a new one. Each thread has its own connection. sqlite3.Error or OSError if the
    disk is full or read-only.
    """

    def __init__(self, path: Path, stamp: str, create: Callable[[sqlite3.Connection], None]) -> None:
        self.path = path
        self._stamp = stamp
        self._create = create
        self._local = threading.local()
        self._lock = threading.Lock()
        self._open: dict[int, sqlite3.Connection] = {}

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT; [] if the file was damaged, which is then replaced. Blocks."""
        try:
            return self._connection().execute(sql, values).fetchall()
        except sqlite3.DatabaseError as error:
            self._heal(error)
            return []

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open a write transaction, committed at the end, rolled back on any exception. Waits up to 30 s for another
        writer.

        If the file is damaged at the beginning, the transaction begins on a new, empty file; if that is found later,
        what it wrote is lost without an error.
        """
        db = self._begin()
        try:
            yield db
            db.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            _roll_back(db)
            self._heal(error)
        except BaseException:
            _roll_back(db)
            raise

    def renew(self) -> None:
        """Replace the file by an empty one, for all processes that use it."""
        with lock_file(self._lock_path()):
            self.close()
            self._remove()
            self._make()

    def close(self) -> None:
        """Close the connections of all threads; the next use opens new ones."""
        with self._lock:
            connections, self._open = list(self._open.values()), {}
        for connection in connections:
            connection.close()
        self._local = threading.local()

    def _begin(self) -> sqlite3.Connection:
        db = self._connection()
        try:
            # With the write lock at once: a transaction that begins as a reader may not get it later.
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.DatabaseError as error:
            self._heal(error)
            db = self._connection()
            db.execute("BEGIN IMMEDIATE")
        return db

    def _connection(self) -> sqlite3.Connection:
        """Return this thread's connection, reopened if another process has replaced the file."""
        known: tuple[int, sqlite3.Connection] | None = getattr(self._local, "connection", None)
        inode = _inode(self.path)
        # Another process renews a damaged file by a new one, of which this connection knows nothing.
        if known is not None and known[0] == inode:
            return known[1]
        if known is not None:
            self._forget(known[1])
        connection = self._opened()
        self._local.connection = (_inode(self.path), connection)
        with self._lock:
            self._open[id(connection)] = connection
        return connection

    def _opened(self) -> sqlite3.Connection:
        """Return a new connection to a file that has our tables."""
        if self.path.exists():
            try:
                connection = _connect(self.path)
                if _stamp_of(connection) == self._stamp:
                    return connection
                connection.close()
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
        with lock_file(self._lock_path()):
            return self._make()

    def _make(self) -> sqlite3.Connection:
        """Create the file if necessary and connect to it.

        The caller holds the lock, but another process may have been first.
        """
        make_private(self.path.parent)
        try:
            connection = _connect(self.path)
            found = _stamp_of(connection)
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            found = "damaged"
        if found == self._stamp:
            return connection
        if found is not None:
            self._remove()
            connection = _connect(self.path)
        with connection:
            # No reader may see a part of the tables.
            connection.execute("BEGIN EXCLUSIVE")
            self._create(connection)
            connection.execute("CREATE TABLE stamp (value TEXT NOT NULL)")
            connection.execute("INSERT INTO stamp VALUES (?)", (self._stamp,))
        return connection

    def _heal(self, error: sqlite3.DatabaseError) -> None:
        if not _is_damage(error):
            raise error
        self.renew()

    def _remove(self) -> None:
        # The write-ahead log goes first: replayed on a new file it would damage that as well.
        for suffix in ("-wal", "-shm", ""):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def _forget(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            self._open.pop(id(connection), None)
        connection.close()

    def _lock_path(self) -> Path:
        return self.path.with_name(self.path.name + ".lock")


def _connect(path: Path) -> sqlite3.Connection:
    # `close` is called in one thread and closes the connections of all.
    connection = sqlite3.connect(path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        # In WAL mode only a crash of the machine can lose the last commits, and an index is made again.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA cache_size = -8000")
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _stamp_of(connection: sqlite3.Connection) -> str | None:
    """Return the stamp in the file: ours, '' if there are only other tables, None for an empty file."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if "stamp" not in tables:
        return "" if tables else None
    row = connection.execute("SELECT value FROM stamp").fetchone()
    return str(row[0]) if row else ""


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    # An extended code has the primary one in its low byte.
    return (code is not None and code & 0xFF in _DAMAGE) or "no such table" in str(error)


def _inode(path: Path) -> int:
    try:
        return os.stat(path).st_ino  # noqa: PTH116 - asked before every statement
    except OSError:
        return 0


def _roll_back(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("ROLLBACK")
    except sqlite3.DatabaseError:
        pass  # no transaction is open: the failure itself has ended it
