"""Looking at a run of an earlier session, or taking a task of it back, leaves the user in their session."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from codeagent_lsp.llm.providers.scripted import ScriptedReply
from codeagent_lsp.server.commands.run_commands import QueueCommands
from codeagent_lsp.server.commands.session_commands import RewindCommands
from codeagent_lsp.server.documents import Documents
from codeagent_lsp.server.reviews import Reviews
from codeagent_lsp.session.history.run_history import RunHistory
from tests.session.fakes import World, world
from tests.session.queue.test_task_queue import start
from tests.session.rewind.test_rewinding import did, edit, files, rewound


def backend_of(made: World, folder: Path) -> Any:
    async def ready() -> None:
        """Wait for nothing."""

    view = made.manager.runs.all()[-1].proposal.view
    return SimpleNamespace(
        ready=ready,
        views=SimpleNamespace(plain=lambda: view),
        manager=made.manager,
        inbox=made.inbox,
        kept=SimpleNamespace(history=RunHistory(folder / "sessions", folder / "history.db")),
        front=SimpleNamespace(language=lambda: "en"),
    )


async def test_a_task_is_taken_back(tmp_path: Path) -> None:
    made = world(tmp_path / "w", ScriptedReply("slow", delay=60))
    _, waiting = start(made, "old"), start(made, "queued")
    await made.manager.close()
    other = world(tmp_path / "w", ScriptedReply("Hi."), state=tmp_path / "sessions")
    await other.run("mine")
    mine = other.manager.current().session_id
    commands = QueueCommands(backend_of(other, tmp_path), cast("Any", None), cast("Any", None))
    await commands.table()["codeagent.withdraw"]({"itemId": waiting})
    assert other.manager.current().session_id == mine


async def test_a_rewind_is_looked_at(tmp_path: Path) -> None:
    """What can be undone last is still the user's own last change."""
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "one\n")
    old = await did(made, "old", edit("a.py", "one", "ONE"))
    await made.manager.close()
    other = world(tmp_path / "w", apply="auto", state=tmp_path / "sessions")
    other.open("a.py", "ONE\n")
    other.open("b.py", "two\n")
    mine = await did(other, "mine", edit("b.py", "two", "TWO"))
    session_id = other.manager.current().session_id
    commands = RewindCommands(backend_of(other, tmp_path))
    answer = await commands.table()["codeagent.session.rewind"]({"runId": old, "preview": True})
    assert answer["files"] == ["a.py"]
    assert other.manager.current().session_id == session_id
    assert other.manager.runs.last_applied().record.run_id == mine


@pytest.mark.parametrize("outcome", ["none", "unknown"])
async def test_a_refused_undo_of_a_rewind_is_told_as_refused(tmp_path: Path, outcome: str) -> None:
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "one\n")
    back = await rewound(made, await did(made, "first", edit("a.py", "one", "ONE")))
    told: list[str] = []
    announcer = SimpleNamespace(
        tell_restored=lambda title: told.append("restored"),
        tell_outcome=lambda applied, words: told.append(applied.outcome),
    )
    reviews = Reviews(cast("Any", None), cast("Any", announcer), lambda: made.manager, Documents())
    made.editor.forced = outcome  # type: ignore[assignment]
    await reviews.undo(made.manager.runs.get(back))
    assert (files(made), told) == ({"a.py": "one\n"}, [outcome])
    assert back in made.manager.current().context.rewinds.standing
