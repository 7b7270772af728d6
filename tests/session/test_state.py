"""Todos, focused files and plans belong to the session: stored when they change, back after a restart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.agent.context.history import render_focused_file
from codeagent_lsp.config import Settings
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.llm.providers.scripted import ScriptedModel
from codeagent_lsp.session.conversation.conversation import Focusing
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.rewind.rewinds import AppliedPart
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.session.store import SessionStore
from codeagent_lsp.tools.todos.todo_list import Todo
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from tests.session.fakes import call, calls, reloaded, say, world, write
from tests.session.plan.plans import create, ended, start, step

TODOS = [{"id": "1", "content": "read"}, {"id": "2", "content": "write", "status": "in_progress"}]
READ_A = calls(call("read_file", path="a.py"))


def focused(session: Session) -> list[tuple[str, bool]]:
    return [(file.path, file.editing) for file in session.context.focused.files]


async def test_todos_come_back(tmp_path: Path) -> None:
    made = world(tmp_path / "w", calls(call("todowrite", todos=TODOS)), say())
    await made.run()
    again = reloaded(made)
    assert again.context.todos.items == made.manager.current().context.todos.items == (
        Todo("1", "read"), Todo("2", "write", "in_progress"),
    )  # fmt: skip


async def test_todos_are_stored_before_the_model_hears_of_them(tmp_path: Path) -> None:
    update = calls(call("todowrite", action="update", todos=[{"id": "1", "status": "completed"}]))
    made = world(tmp_path / "w", calls(call("todowrite", todos=TODOS)), update, say())
    await made.run()
    types = [event.type for event in made.events if event.type in ("state", "tool_result")]
    assert types == ["state", "tool_result", "state", "tool_result"]
    assert reloaded(made).context.todos.items[0].status == "completed"


async def test_a_list_that_comes_back_is_not_stored_again(tmp_path: Path) -> None:
    made = world(tmp_path / "w", calls(call("todowrite", todos=TODOS)), say())
    await made.run()
    session_id = made.manager.current().session_id
    count = len(made.store.load(session_id))
    made.store.close()
    other = world(tmp_path / "w")
    other.manager.resume(session_id).claim()
    assert len(other.store.load(session_id)) == count
    other.manager.current().context.todos.add([Todo("3", "more")])
    assert len(other.store.load(session_id)) == count + 1


async def test_a_file_that_was_read_in_full_is_in_focus(tmp_path: Path) -> None:
    part = calls(call("read_file", path="b.py", start_line=1, end_line=1))
    made = world(tmp_path / "w", READ_A, part, calls(call("read_file", path="gone.py")), say())
    made.open("a.py", "x = 1\n")
    made.open("b.py", "1\n2\n3\n")
    await made.run("go")
    assert focused(made.manager.current()) == [("a.py", False)]
    assert made.manager.current().context.focused.files[0].text == "1|x = 1"
    assert focused(reloaded(made)) == [("a.py", False)]


async def test_a_file_that_the_task_names_is_in_focus(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say())
    made.open("a.py", "x = 1\n")
    (tmp_path / "w" / "a.py").write_text("x = 1\n")
    await made.run("Look at a.py")
    assert focused(made.manager.current()) == [("a.py", False)]


async def test_a_large_file_and_a_secret_one_are_not(tmp_path: Path) -> None:
    reads = [calls(call("read_file", path=name)) for name in ("large.py", ".env")]
    made = world(tmp_path / "w", *reads, say(), mode="bypass")
    made.open("large.py", "x\n" * 2001)
    made.open(".env", "A=1\n")
    await made.run("go")
    assert focused(made.manager.current()) == []


async def test_a_file_that_stands_above_is_not_shown_again_until_it_changes(tmp_path: Path) -> None:
    made = world(tmp_path / "w", *[say()] * 4)
    long, other = "x = 1\n" * 100, "y = 2\n" * 100
    shown = []
    (tmp_path / "w" / "a.py").write_text(long)
    for text in (long, long, other, long):
        made.open("a.py", text)
        await made.run("Look at a.py")
        told = [message.content for message in made.manager.current().context.conversation if message.name == "note"]
        shown.append(told[-1])
    assert ["as it is now" in text for text in shown] == [True, False, True, True]
    assert "The whole file a.py stands above, unchanged." in shown[1]
    assert focused(made.manager.current()) == [("a.py", False)]


async def test_a_file_that_is_edited_stays_longest(tmp_path: Path) -> None:
    made = world(tmp_path / "w", READ_A, write("a.py", "x = 2\n"), say(), deadline=0.01)
    made.open("a.py", "x = 1\n")
    await made.run("go")
    assert focused(made.manager.current()) == [("a.py", True)] == focused(reloaded(made))


async def test_no_more_than_the_limit(tmp_path: Path) -> None:
    def tight(value: Settings) -> Settings:
        return replace(value, context=replace(value.context, focused_files_max_chars=1000))

    names = [f"f{number}.py" for number in range(4)]
    made = world(tmp_path / "w", *(calls(call("read_file", path=name)) for name in names), say(), settings=tight)
    for name in names:
        made.open(name, "x = 1\n" * 50)
    await made.run("go")
    assert [path for path, _ in focused(made.manager.current())] == names[2:]


@pytest.mark.slow
async def test_after_a_compaction_a_file_stands_there_as_it_is_now(tmp_path: Path) -> None:
    """Also a file that was in focus before the process died, whose text is not stored."""
    made = world(tmp_path / "w", READ_A, say("Read."))
    made.open("a.py", "x = 1\n")
    await made.run("go")
    made.store.close()
    other = world(tmp_path / "w", deadline=0.01)
    other.open("a.py", "x = 'now'\n")
    for number in range(12):
        other.open(f"f{number}.py", "much = 'to read'\n" * 200)
    session = other.manager.resume(made.manager.current().session_id)
    reads = [calls(call("read_file", path=f"f{number}.py", start_line=1)) for number in range(12)]
    small = ModelInfo("s", "scripted", facts=window_known(8192), tool_calling="native")
    other.models["model"] = model = ScriptedModel([*reads, say()], info=small)
    await other.run("more", session.session_id)
    assert other.of(events.ContextCompacted)
    assert any(
        render_focused_file("a.py", "1|x = 'now'") in str(message.content) for message in model.requests[-1].messages
    )


async def test_fresh_files_without_those_that_are_gone(tmp_path: Path) -> None:
    made = world(tmp_path / "w", READ_A, calls(call("read_file", path="b.py")), say())
    made.open("a.py", "x = 1\n")
    made.open("b.py", "y = 1\n")
    run_id = (await made.run("go")).run_id
    made.open("a.py", "x = 2\n")
    del made.buffers.documents[made.path("b.py")]
    view = made.manager.runs.get(run_id).proposal.view
    session = made.manager.current()
    await Focusing(session, run_id, view, 1000, lambda text: text.replace("x", "…"), tuple).refresh()
    assert [(file.path, file.text) for file in session.context.focused.files] == [("a.py", "1|… = 2")]
    assert focused(session) == focused(reloaded(made)) == [("a.py", False)]


async def test_all_that_a_session_knows_comes_back_from_its_events(tmp_path: Path) -> None:
    todos = calls(call("todowrite", todos=TODOS))
    made = world(tmp_path / "w", create("one"), todos, READ_A, *step(1), deadline=0.01)
    made.open("a.py", "x = 1\n")
    run = await ended(made, start(made))
    known, again = made.manager.current().context, reloaded(made).context
    assert (again.conversation, again.generation, again.title) == (known.conversation, known.generation, known.title)
    assert again.todos.items == known.todos.items == (Todo("1", "read"), Todo("2", "write", "in_progress"))
    assert again.stored_focus() == known.stored_focus() == [{"path": "a.py", "editing": False}]
    assert again.runs == known.runs
    assert known.runs[run.run_id].plan is not None


async def test_a_compaction_is_told_what_the_session_knows(tmp_path: Path) -> None:
    todos = calls(call("todowrite", todos=TODOS))
    made = world(tmp_path / "w", create("one"), todos, READ_A, *step(1), deadline=0.01)
    made.open("a.py", "x = 1\n")
    run = await ended(made, start(made))
    known = made.manager.current().context
    kept = known.kept(known.runs[run.run_id], lambda path: Path(path).name)
    assert kept.plan == "Goal: the goal\n[x] 1. one"
    assert kept.todos == "[ ] 1: read (medium)\n[>] 2: write (medium)"
    assert kept.changed_files == ("f1.py",)
    assert [(file.path, file.text) for file in kept.focused.files] == [("a.py", "1|x = 1")]
    nothing = known.kept(RunRecord("other"), str)
    assert (nothing.plan, nothing.changed_files) == ("", ())


def test_changed_files_are_those_applied_and_those_that_wait(tmp_path: Path) -> None:
    def change(*names: str) -> Changeset:
        return Changeset(tuple(FileChange(name, None, "x\n") for name in names))

    record = RunRecord("r", staged=change("b", "c"), applied=[AppliedPart(change("a", "b"))])
    assert record.changed_paths == ("a", "b", "c")
    assert RunRecord("r").changed_paths == ()


async def test_an_agent_is_told_the_surroundings_of_the_session(tmp_path: Path) -> None:
    made = world(tmp_path / "w", calls(call("delegate", agent="coder", task="look")), say("Looked."), say())
    model = made.models["model"]
    assert isinstance(model, ScriptedModel)
    await made.run("go")
    environment = made.manager.current().context.environment
    assert environment.editor == "fake"
    assert environment.commands
    assert environment.commands in model.requests[1].messages[0].content


def test_state_that_makes_no_sense_is_left_out(tmp_path: Path) -> None:
    session = Session("s", SessionStore(tmp_path))
    replay(session, [{"type": "state", "todos": [{"what": 1}]}, {"type": "state", "focused": ["x"]}])
    assert (session.context.todos.items, session.context.focused.files) == ((), ())
