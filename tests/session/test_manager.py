"""Sessions are listed and forked beside the event loop."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.session.store import SessionStore
from tests.session.fakes import say, world


async def test_stored_sessions_are_listed_without_blocking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = world(tmp_path / "w", say("one"))
    await made.run("a task")
    made.store.close()
    later = world(tmp_path / "w")
    readers: list[threading.Thread] = []
    load = SessionStore.load

    def watched(store: SessionStore, session_id: str) -> list[dict[str, Any]]:
        readers.append(threading.current_thread())
        return load(store, session_id)

    monkeypatch.setattr(SessionStore, "load", watched)
    (row,) = await later.manager.list()
    assert row["title"]
    forked = await later.manager.fork(row["sessionId"], None)
    assert forked.context.conversation
    run_id = next(iter(later.manager.session(row["sessionId"]).context.runs))
    del readers[1:]
    await later.manager.fork(row["sessionId"], run_id)
    assert readers and threading.main_thread() not in readers


async def test_what_rests_in_one_session_works_in_another(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("Done."), say("Done."))
    await made.run()
    first, circuits = made.manager.current().session_id, made.manager._services.registry.circuits

    def rest() -> None:
        for _ in range(3):
            circuits.settle(circuits.admit("grep"), "failure", "no")
        assert circuits.state("grep") == "open"

    rest()
    made.manager.new()
    assert circuits.state("grep") == "closed"
    rest()
    made.manager.resume(made.manager.current().session_id)
    assert circuits.state("grep") == "open", "it is the same session"
    made.manager.resume(first)
    assert circuits.state("grep") == "closed"
