"""Questions that were open when the process died: listed, told once, closed when the session is used again."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.llm.providers.scripted import ScriptedReply
from codeagent_lsp.session.left_waiting import lapsed_line, lapsed_questions
from codeagent_lsp.session.request import RunRequest
from tests.session.fakes import World, call, calls, say, until, world, write

ASK = calls(call("AskUser", questions=[{"text": "Which one?", "options": ["a", "b"]}], format="single"))


async def died(folder: Path, *replies: ScriptedReply) -> tuple[World, str]:
    """A world that comes after one whose process died while it asked."""
    made = world(folder / "w", *replies, deadline=20)
    run_id = made.manager.start(RunRequest("run", "t", "t"))
    await until(lambda: made.inbox.open())
    session_id = made.manager.current().session_id
    path = folder / "sessions" / f"{session_id}.jsonl"
    stored = path.read_bytes()
    made.manager.runs.cancel()
    await made.finished(run_id)
    made.store.close()
    path.write_bytes(stored)
    other = world(folder / "w", say("Hello."), state=folder / "sessions")
    other.manager.resume(session_id)
    return other, run_id


@pytest.mark.parametrize(
    ("reply", "kind", "title"), [(ASK, "question", "Which one?"), (write("a.py", "1\n"), "approval", "a.py")]
)
async def test_what_was_open_is_listed_and_told(tmp_path: Path, reply: ScriptedReply, kind: str, title: str) -> None:
    made, run_id = await died(tmp_path, reply, say())
    session = made.manager.current()
    (found,) = lapsed_questions(session)
    assert (found["runId"], found["kind"]) == (run_id, kind)
    assert title in found["title"]
    for language in ("en", "zh-cn"):  # a question is asked again instead
        assert (
            lapsed_line(session, language) == ""
            if kind == "question"
            else found["title"].rstrip(".") in lapsed_line(session, language)
        )
    assert made.inbox.open() == ()
    assert made.manager.runs.get(run_id).record.status == "interrupted"


async def test_staged_changes_come_back_with_it(tmp_path: Path) -> None:
    made, run_id = await died(tmp_path, write("a.py", "1\n"), say())
    await made.manager.runs.get(run_id).proposal.apply()
    assert made.text("a.py") == "1\n"


async def test_it_is_closed_once_when_the_session_is_used(tmp_path: Path) -> None:
    made, run_id = await died(tmp_path, ASK, say())
    session = made.manager.current()
    request_id = lapsed_questions(session)[0]["requestId"]
    await made.run("Hi", session.session_id)
    await made.run("Hi again", session.session_id)
    closed = [event for event in made.events if isinstance(event, events.QuestionAnswered)]
    assert [(event.request_id, event.run_id, event.answer) for event in closed] == [(request_id, run_id, None)]
    assert (lapsed_questions(session), lapsed_line(session, "en")) == ([], "")
    made.store.close()
    third = world(tmp_path / "w")
    assert lapsed_questions(third.manager.resume(session.session_id)) == []


async def test_what_was_answered_is_not_listed(tmp_path: Path) -> None:
    made = world(tmp_path / "w", ASK, say(), says=["b"])
    await made.run()
    made.store.close()
    other = world(tmp_path / "w")
    assert lapsed_questions(other.manager.resume(made.manager.current().session_id)) == []
