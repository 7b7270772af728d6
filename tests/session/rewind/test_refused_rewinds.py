"""Rewinds that meet an editor that refuses, a process that dies, and other work of the session."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.llm.providers.scripted import ScriptedReply
from codeagent_lsp.session.own_runs import going_back
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.rewind.rewinding import check, undo_rewind
from codeagent_lsp.session.session import Session
from codeagent_lsp.workspace.changes.changeset import Applied, Changeset
from tests.session.fakes import World, call, calls, world
from tests.session.rewind.test_rewinding import again, did, edit, files, rewound, talk


class HalfEditor:
    """Refuses one file, as an editor does in which it is read-only, until it is told to make all changes."""

    def __init__(self, made: World, name: str) -> None:
        self._whole, self._name, self.all = made.editor.apply, name, False
        made.editor.apply = self.apply  # type: ignore[method-assign]

    async def apply(self, changeset: Changeset, label: str, may_lose: frozenset[str] = frozenset()) -> Applied:
        refused = Changeset(tuple(each for each in changeset if each.path.endswith(self._name) and not self.all))
        applied = await self._whole(changeset.without(refused.paths), label, may_lose)
        return replace(applied, outcome="partial", left=refused, reason="read-only") if refused else applied


@pytest.mark.parametrize("rewinds", [True, False])
async def test_what_the_editor_refused_of_an_undo_can_be_had_later(tmp_path: Path, rewinds: bool) -> None:
    made = world(tmp_path / "w", apply="auto")
    for name in ("a.py", "b.py"):
        made.open(name, "one\n")
    first = await did(made, "first", edit("a.py", "one", "ONE"), edit("b.py", "one", "ONE"))
    run = made.manager.runs.get(await rewound(made, first) if rewinds else first)
    before, after = ("one\n", "ONE\n") if rewinds else ("ONE\n", "one\n")
    editor = HalfEditor(made, "b.py")

    async def undo(runs: World) -> None:
        again = runs.manager.runs.get(run.record.run_id)
        if rewinds:
            await undo_rewind(again, runs.manager.runs)
        else:
            await again.proposal.undo()

    await undo(made)
    assert files(made) == {"a.py": after, "b.py": before}
    stored = Session("again", made.store)
    replay(stored, made.store.load(made.manager.current().session_id))
    assert stored.context.runs[run.record.run_id].applied == run.record.applied
    editor.all = True
    await undo(made)
    assert files(made) == {"a.py": after, "b.py": after}
    assert not run.record.applied and not run.session.context.rewinds.standing


async def test_what_the_editor_refused_of_a_rewind_can_be_taken_back_later(tmp_path: Path) -> None:
    made = world(tmp_path / "w", apply="auto")
    for name in ("a.py", "b.py"):
        made.open(name, "one\n")
    await did(made, "first", edit("b.py", "one", "ONE"))
    second = await did(made, "second", edit("a.py", "one", "TWO"), edit("b.py", "ONE", "TWO"))
    editor = HalfEditor(made, "b.py")
    back = await rewound(made, second, "changes")
    assert files(made) == {"a.py": "one\n", "b.py": "TWO\n"}
    assert "The editor did not change b.py" in str(made.completed(back).summary)
    assert not made.manager.runs.get(back).proposal.changeset
    editor.all = True
    made = again(made, tmp_path)
    run = made.manager.runs.get(second)
    await run.proposal.undo()
    assert (files(made), run.record.applied) == ({"a.py": "one\n", "b.py": "ONE\n"}, [])
    await undo_rewind(made.manager.runs.get(back), made.manager.runs)
    assert files(made) == {"a.py": "TWO\n", "b.py": "ONE\n"}


async def test_where_nothing_can_be_stored_a_rewind_is_whole(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("no folder")
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "one\n")
    await did(made, "first")
    second = await did(made, "second", edit("a.py", "one", "ONE"))
    await rewound(made, second)
    assert (files(made), talk(made)) == ({"a.py": "one\n"}, ["first"])


async def test_a_fork_from_before_a_run_that_was_taken_back_has_the_talk_of_then(tmp_path: Path) -> None:
    made = world(tmp_path / "w", apply="auto")
    _, second, third = [await did(made, name) for name in ("first", "second", "third")]
    await rewound(made, second, "talk")
    await made.manager.fork(None, third)
    assert talk(made) == ["first", "second"]


@pytest.mark.parametrize("outcome", ["none", "unknown"])
async def test_an_editor_that_refuses_leaves_all_as_it_was(tmp_path: Path, outcome: str) -> None:
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "one\n")
    first = await did(made, "first", edit("a.py", "one", "ONE"))
    made.editor.forced = outcome  # type: ignore[assignment]
    session = made.manager.current()
    work = going_back(check(session, first, made.manager.runs), "both", made.manager.runs)
    back = made.manager.start(RunRequest("session.rewind", "back", "back"), session.session_id, work)
    assert (await made.finished(back)).status == "failed"
    made.editor.forced = None
    assert "Nothing was taken back" in str(made.completed(back).error)
    assert (files(made), talk(made), made.of(events.SessionRewound)) == ({"a.py": "ONE\n"}, ["first"], [])
    assert not made.manager.runs.get(back).proposal.changeset
    await made.manager.runs.get(first).proposal.undo()
    assert files(made) == {"a.py": "one\n"}


async def test_places_that_stay_are_named_in_the_summary(tmp_path: Path) -> None:
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "one\n")
    first = await did(made, "first", edit("a.py", "one", "ONE"))
    made.open("a.py", "mine\n")
    back = await rewound(made, first)
    assert "What you rewrote since stays: a.py:1" in made.completed(back).summary


@pytest.mark.slow
async def test_a_question_beside_it_is_in_the_talk_once(tmp_path: Path) -> None:
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "one\n")
    first = await did(made, "first", edit("a.py", "one", "ONE"))
    made.editor.delay = 0.3
    session = made.manager.current()
    made.script(calls(call("list_dir")), ScriptedReply("Answer.", delay=0.6))
    work = going_back(check(session, first, made.manager.runs), "both", made.manager.runs)
    back = made.manager.start(RunRequest("session.rewind", "back", "back"), session.session_id, work)
    await asyncio.sleep(0.05)
    asked = made.manager.start(RunRequest("ask", "why?", "why?"))
    await made.finished(back)
    await made.finished(asked)
    assert talk(made) == ["why?"]
    made.store.close()
    assert talk(again(made, tmp_path)) == ["why?"]


async def test_a_process_that_dies_within_it_loses_nothing_undecided(tmp_path: Path) -> None:
    made = world(tmp_path / "w", deadline=0.001)
    for name in ("a.py", "b.py"):
        made.open(name, "one\n")
    first = await did(made, "first", edit("a.py", "one", "ONE"), edit("b.py", "one", "ONE"))
    session_id = made.manager.current().session_id
    path = tmp_path / "sessions" / f"{session_id}.jsonl"
    before = path.read_bytes().count(b"\n")
    back = await rewound(made, first)
    await undo_rewind(made.manager.runs.get(back), made.manager.runs)
    lines = path.read_bytes().splitlines()
    assert len(lines) > before
    for end in range(before, len(lines) + 1):
        told = Session(session_id, made.store)
        replay(told, [json.loads(line) for line in lines[:end]])
        kept = [each for rewind in told.context.rewinds.standing.values() for each in rewind.event.staged.values()]
        left = len(told.context.runs[first].staged.files)
        assert max(left, *map(len, kept), 0) == 2, json.loads(lines[end - 1])["type"]


async def test_the_list_of_what_is_to_be_done_goes_with_the_talk(tmp_path: Path) -> None:
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "one\n")
    await did(made, "zero", calls(call("todo_write", todos=[{"id": "1", "content": "Kept", "status": "pending"}])))
    first = await did(
        made, "first", calls(call("todo_write", todos=[{"id": "1", "content": "Gone", "status": "pending"}]))
    )
    back = await rewound(made, first)
    assert [todo.content for todo in made.manager.current().context.todos.items] == ["Kept"]
    await undo_rewind(made.manager.runs.get(back), made.manager.runs)
    assert [todo.content for todo in made.manager.current().context.todos.items] == ["Gone"]


async def test_the_last_thing_to_undo_may_be_a_rewind(tmp_path: Path) -> None:
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "one\n")
    first = await did(made, "first", edit("a.py", "one", "ONE"))
    back = await rewound(made, first, "talk")
    assert made.manager.runs.last_applied().record.run_id == back
    with pytest.raises(SessionError):
        check(made.manager.current(), first, made.manager.runs)
