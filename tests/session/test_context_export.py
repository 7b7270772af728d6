"""The state of a session as programs get it."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.config import Settings
from codeagent_lsp.events import from_dict
from codeagent_lsp.llm.providers.scripted import ScriptedReply
from codeagent_lsp.session.context_export import SessionSurroundings, to_dict
from codeagent_lsp.session.memory.remembering import MemoryEntry
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.session import Session
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView
from tests.session.fakes import World, call, calls, say, world
from tests.session.plan import plans

MEMORY = (
    MemoryEntry("1", "convention", "Tabs.", "", "s", "2026-01-01"),
    MemoryEntry("2", "decision", "SQLite.", "It is there.", "s", "2026-01-01"),
)
FIELDS = {
    "session_id", "project_id", "task", "plan", "todos", "code_context", "execution_context", "memory", "environment",
    "safety", "conversation",
}  # fmt: skip
LONG = "x = 1  # a line that is long enough to be referred to\n" * 20


def plain_view(made: World) -> FileView:
    return made.manager._services.workspace.view(Staging(lambda path: None, lambda path, change: None))


def exported(made: World, session: Session | None = None) -> dict[str, Any]:
    known = session or made.manager.current()
    stored = [from_dict(record) for record in made.store.load(known.session_id)] if known.context.runs else []
    around = SessionSurroundings(known.session_id, "ws-1", Settings(), plain_view(made), MEMORY)
    data = to_dict(known.context, stored, around)
    assert json.loads(json.dumps(data)) == data  # plain JSON values all through
    return data


async def test_all_that_a_session_knows(tmp_path: Path) -> None:
    read = calls(call("read_file", path="a.py"))
    made = world(tmp_path / "ws", read, read, say("Read."), says=[])
    made.open("a.py", LONG)
    await made.run("read it")
    data = exported(made)
    assert set(data) == FIELDS
    assert (data["project_id"], data["task"]["description"]) == ("ws-1", "read it")
    assert data["code_context"]["focused_files"][0]["path"] == "a.py" and data["plan"] is None
    assert data["memory"] == {
        "project_conventions": ["Tabs."], "recent_decisions": [{"decision": "SQLite.", "reason": "It is there."}]
    }  # fmt: skip
    assert data["safety"]["mode"] == "ask" and data["environment"]["os"]
    [first, _] = data["execution_context"]["results"]
    assert (first["tool"], first["success"], first["length"] > len("x")) == ("read_file", True, True)
    [ran] = data["execution_context"]["runs"]
    assert (ran["status"], ran["files_changed"]) == ("completed", [])


async def test_files_in_focus_have_their_text_as_it_is_now(tmp_path: Path) -> None:
    edit = call("edit_file", path="a.py", old_string="x = 1\n", new_string="x = 2\n")
    read = calls(call("read_file", path="a.py"), call("read_file", path="b.py"), call("read_file", path="c.py"))
    made = world(tmp_path / "ws", read, calls(edit), say("Done."), says=[plans.APPLY])
    made.open("a.py", "x = 1\n")
    for name in ("b.py", "c.py"):
        (made.root / name).write_text("y = 1\n")
    await made.run("change it")
    (made.root / "b.py").write_text("y = 3\n")
    (made.root / "c.py").unlink()
    files = exported(made)["code_context"]["focused_files"]
    assert {file["path"]: file["content"] for file in files} == {"a.py": "x = 2\n", "b.py": "y = 3\n"}


async def test_messages_have_their_time_and_say_where_their_full_text_is(tmp_path: Path) -> None:
    read = calls(call("read_file", path="a.py"))
    made = world(tmp_path / "ws", read, read, say("Read."), says=[])
    made.open("a.py", LONG)
    await made.run("read it")
    messages = exported(made)["conversation"]["messages"]
    assert all(datetime.fromisoformat(message["timestamp"]) for message in messages)
    whole, short = (message for message in messages if message["role"] == "tool")
    assert (whole["tool_name"], whole["is_abbreviated"]) == ("read_file", False)
    assert (short["is_abbreviated"], short["full_content_ref"]) == (True, "focused_files[a.py]")
    assert messages[-1]["content"] == "Read." and "full_content_ref" not in messages[-1]


@pytest.mark.slow
async def test_the_plan_of_a_session_that_was_stored(tmp_path: Path) -> None:
    made = world(tmp_path / "ws", *plans.five(0), says=[plans.APPLY] * 6)
    await plans.run(made)
    data = exported(made)
    assert (data["plan"]["status"], [step["index"] for step in data["plan"]["steps"]]) == ("completed", [1, 2, 3, 4, 5])
    again = Session(made.manager.current().session_id, made.store)
    replay(again, made.store.load(again.session_id))
    assert exported(made, again)["plan"] == data["plan"]
    assert exported(made, made.manager.viewed(again.session_id))["plan"] == data["plan"]


async def test_before_anything(tmp_path: Path) -> None:
    made = world(tmp_path / "ws", ScriptedReply("never asked"))
    data = exported(made, Session("s", made.store))
    assert set(data) == FIELDS and data["task"] is None and data["conversation"]["messages"] == []
