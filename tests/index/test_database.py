"""A database that one thread closes while others use it."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import pytest

from codeagent_lsp.index.database import Database


@pytest.mark.slow
def test_closing_waits_for_nobody_and_breaks_no_statement(tmp_path: Path) -> None:
    """A connection that is closed under a statement of another thread ends the process by a signal."""

    def create(db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE t (a, b)")

    database = Database(tmp_path / "x.db", "1", create)
    with database.writing() as db:
        db.executemany("INSERT INTO t VALUES (?, ?)", ((number, str(number) * 20) for number in range(20_000)))
    over = threading.Event()
    failed: list[BaseException] = []

    def use(work: str) -> None:
        while not over.is_set():
            try:
                if work == "read":
                    assert database.rows("SELECT a, b FROM t WHERE b LIKE '%9%'")
                else:
                    with database.writing() as db:
                        db.executemany("INSERT INTO t VALUES (?, 'x')", ((number,) for number in range(200)))
            except (sqlite3.Error, AssertionError) as error:
                failed.append(error)

    threads = [threading.Thread(target=use, args=(work,)) for work in ("read", "read", "write")]
    for thread in threads:
        thread.start()
    for number in range(100):
        time.sleep(0.001 * (number % 10))
        database.close()
    over.set()
    for thread in threads:
        thread.join()
    database.close()
    assert failed == []
    assert not (tmp_path / "x.db-wal").exists(), "the last connection is closed"
