"""A SQLite file that repairs itself: a damaged file or one of another version is replaced by an empty one.

One connection per thread and write-ahead logging, so that readers never wait for a writer. Not here: the tables.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codeagent_lsp.state import lock_file, make_private

_BUSY = 30.0  # seconds that one writer waits for another
_DAMAGE = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_IOERR))


@dataclass(slots=True)
class _Opened:
    """One thread's connection to the file that had this inode. `in_use` is held by that thread while it uses it,
    `depth` times; others only try it.
    """

    connection: sqlite3.Connection
    inode: int
    in_use: threading.RLock = field(default_factory=threading.RLock)
    depth: int = 0

    def close_if_unused(self) -> None:
        """Close it, unless a thread is using it: under a statement that runs, that would end the process by a
        signal.
        """
        if self.in_use.acquire(blocking=False):
            if not self.depth:
                self.connection.close()
            self.in_use.release()


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
        self._open: dict[int, _Opened] = {}

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT; [] if the file was damaged, which is then replaced. Blocks."""
        try:
            with self._in_use() as db:
                return db.execute(sql, values).fetchall()
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
        try:
            opened = self._begin()
        except sqlite3.DatabaseError as error:
            self._heal(error)
            opened = self._begin()
        db, failed = opened.connection, None
        try:
            yield db
            db.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            _roll_back(db)
            failed = error
        except BaseException:
            _roll_back(db)
            raise
        finally:
            self._release(opened)
        if failed is not None:
            self._heal(failed)

    def renew(self) -> None:
        """Replace the file by an empty one, for all processes that use it; blocks until no other does the same. OSError
        if that fails.
        """
        with lock_file(self._lock_path()):
            self.close()
            self._remove()
            self._make()

    def close(self) -> None:
        """Close the connections of all threads; the next use opens new ones. One that another thread is using, that
        closes when it has what it asked for.
        """
        with self._lock:
            all_opened, self._open = list(self._open.values()), {}
        self._local = threading.local()
        for opened in all_opened:
            opened.close_if_unused()

    def _begin(self) -> _Opened:
        """Return this thread's connection, in use and with a transaction begun."""
        opened = self._acquired()
        try:
            # With the write lock at once: a transaction that begins as a reader may not get it later.
            opened.connection.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._release(opened)
            raise
        return opened

    @contextmanager
    def _in_use(self) -> Iterator[sqlite3.Connection]:
        opened = self._acquired()
        try:
            yield opened.connection
        finally:
            self._release(opened)

    def _acquired(self) -> _Opened:
        """Return this thread's connection, in use and reopened if another process has replaced the file."""
        while True:
            known: _Opened | None = getattr(self._local, "opened", None)
            # Another process renews a damaged file by a new one, of which this connection knows nothing.
            if known is not None and known.inode != _inode(self.path):
                self._forget(known)
                known = None
            if known is None:
                connection = self._connected()
                known = self._local.opened = _Opened(connection, _inode(self.path))
                with self._lock:
                    self._open[id(connection)] = known
            known.in_use.acquire()
            if self._is_current(known):
                known.depth += 1
                return known
            known.in_use.release()  # closed by another thread just before

    def _release(self, opened: _Opened) -> None:
        opened.depth -= 1
        opened.in_use.release()
        # Afterwards, so that either `close` has seen it unused or this sees that it is to be closed.
        if not self._is_current(opened):
            opened.close_if_unused()

    def _is_current(self, opened: _Opened) -> bool:
        return self._open.get(id(opened.connection)) is opened

    def _connected(self) -> sqlite3.Connection:
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

    def _forget(self, opened: _Opened) -> None:
        with self._lock:
            self._open.pop(id(opened.connection), None)
        opened.connection.close()

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
