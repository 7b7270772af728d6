"""A session comes back from its file, whatever killed the process that wrote it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.agent.context.history import UNFINISHED
from codeagent_lsp.messages import Message, ToolCall
from codeagent_lsp.session.replay import message_from_dict, message_to_dict, replay
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.store import SessionStore
from codeagent_lsp.workspace.changes.changeset import FileChange
from tests.examples import volume
from tests.session.fakes import assert_well_formed, say, world, write
from tests.session.killing import lines_until_killed

MESSAGES = (
    Message("user", "hello 🎉"),
    Message("user", "a note", name="note"),
    Message("assistant", "", (ToolCall("t", {"a": [1, {"b": None}]}, "c1"),)),
    Message("tool", "result", tool_call_id="c1", name="t"),
)


@pytest.mark.parametrize("message", MESSAGES)
def test_messages_come_back_as_they_were(message: Message) -> None:
    assert message_from_dict(message_to_dict(message)) == message


def session_of(*stream: events.Event, folder: Path) -> Session:
    session = Session("s", SessionStore(folder))
    replay(session, [events.to_dict(event) for event in stream])
    return session


def test_an_interrupted_run_is_marked_and_its_conversation_whole(tmp_path: Path) -> None:
    call = message_to_dict(MESSAGES[2])
    session = session_of(
        events.RunStarted(run_id="r", task="t", title="t", seq=1),
        events.MessageAdded(run_id="r", message={"role": "user", "content": "t"}, seq=2),
        events.MessageAdded(run_id="r", message=call, seq=3),
        folder=tmp_path,
    )
    assert session.context.runs["r"].status == "interrupted"
    assert session.next_seq == 4
    assert_well_formed(session.context.conversation)
    assert session.context.conversation[-1].content == UNFINISHED


def test_an_undo_that_did_nothing_can_be_tried_again(tmp_path: Path) -> None:
    change = FileChange("/w/a", None, "x\n").to_dict()
    base = (
        events.RunStarted(run_id="r"),
        events.ChangesApplied(run_id="r", outcome="full", applied=(change,)),
    )
    for outcome, left in (("none", 1), ("unknown", 1), ("full", 0), ("partial", 0)):
        undone = events.ChangesApplied(run_id="r", outcome=outcome, undo=True)  # type: ignore[arg-type]
        assert len(session_of(*base, undone, folder=tmp_path).context.runs["r"].applied) == left


@pytest.mark.parametrize(
    "junk",
    [
        {},
        {"type": "unheard_of"},
        {"type": ["x"]},
        {"type": "message", "run_id": "r", "message": []},
        {"type": "message", "run_id": "r", "message": {"role": "assistant", "content": "", "tool_calls": ["x"]}},
        {"type": "file_change", "run_id": "r", "path": "a", "change": {"nothing": 1}},
        {"type": "changes_applied", "run_id": "r", "applied": [None]},
        {"type": "run_completed", "run_id": "r", "seq": "many"},
        {"type": "message", "run_id": "unknown", "message": {}},
    ],
)
def test_records_that_make_no_sense_are_skipped(junk: dict[str, object], tmp_path: Path) -> None:
    session = Session("s", SessionStore(tmp_path))
    good = events.to_dict(events.RunStarted(run_id="r", title="title", seq=5))
    replay(session, [junk, good, junk, events.to_dict(events.RunCompleted(run_id="r", seq=6))])
    assert (session.context.title, session.context.runs["r"].status, session.next_seq) == ("title", "completed", 7)


async def test_a_resumed_session_goes_on(tmp_path: Path) -> None:
    one = world(tmp_path / "w", write("a.py", "1\n"), say("first"), deadline=0.001)
    run_id = (await one.run()).run_id
    session_id = one.manager.current().session_id
    await one.manager.close()
    two = world(tmp_path / "w", say("second"), state=tmp_path / "sessions")
    session = two.manager.resume(session_id)
    assert two.manager.resume(session_id) is session
    await two.manager.runs.get(run_id).proposal.apply()
    assert two.text("a.py") == "1\n"
    await two.manager.runs.last_applied().proposal.undo()
    assert two.text("a.py") is None
    assert (await two.run("more")).summary == "second"
    assert [message.content for message in session.context.conversation if message.role == "assistant"][-1] == "second"
    assert_well_formed(session.context.conversation)
    seqs = [record["seq"] for record in two.store.load(session_id)]
    assert seqs == sorted(set(seqs))


def killed(folder: Path, wait: float, said: int) -> list[list[str]]:
    """What a worker said until it was killed, `wait` seconds after so many lines; the first turn begins with one."""
    lines = lines_until_killed("tests.session.worker:work", folder, wait, said)
    return [line.split() for line in lines if line.endswith(tuple(_ENDS))]


_ENDS = ("full", "partial", "none", "unknown", *"0123456789")


async def check_after_a_kill(folder: Path, wait: float, lines: int = 1) -> int:
    """Everything that was acknowledged is there; returns how many turns had finished."""
    said = killed(folder, wait, lines)
    session_id = said[0][1]
    made = world(folder / "w", say("after"), state=folder / "sessions")
    session = made.manager.resume(session_id)
    for kind, _, run_id, number, *outcome in said:
        run = made.manager.runs.get(run_id)
        assert run.record.title == f"task {number}"
        if kind == "finished":
            assert run.record.status == "completed"
            assert run.record.messages[-1].content == f"turn {number}" or run.record.messages[-1].name == "note"
            applied = outcome == ["full"] and int(number) % 6 != 5
            assert bool(run.record.applied) == applied
            path = made.path(f"f{number}.py")
            assert (run.proposal.changeset.paths == (path,)) == (outcome == ["none"])
    assert {run.record.status for run in made.manager.runs.all()} <= {"completed", "interrupted"}
    assert sum(run.record.status == "interrupted" for run in made.manager.runs.all()) <= 1
    assert_well_formed(session.context.conversation)
    assert made.manager.runs.active() == ()
    assert (await made.run("again", session_id)).summary == "after"
    assert len(made.editor.applied) == 0
    return sum(line[0] == "finished" for line in said)


@pytest.mark.slow
async def test_killed_once(tmp_path: Path) -> None:
    assert await check_after_a_kill(tmp_path, 0.0, lines=5) > 0


@pytest.mark.slow
async def test_killed_at_fifteen_points(tmp_path: Path) -> None:
    chance = random.Random(5)
    for number in range(15):
        await check_after_a_kill(tmp_path / str(number), chance.random() * 0.2)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_killed_at_many_points(tmp_path: Path) -> None:
    chance = random.Random(7)
    for number in range(volume(150)):
        await check_after_a_kill(tmp_path / str(number), chance.random() * 0.3)
