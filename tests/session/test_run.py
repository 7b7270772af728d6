"""A whole run: what it tells, what becomes of its changes, and what is left when it is interrupted."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from codeagent_lsp import events
from codeagent_lsp.agent.context.history import NOTE
from codeagent_lsp.errors import EditorError, ErrorCode, ModelReplyInvalid, SessionError, UsageError
from codeagent_lsp.llm.providers.scripted import ScriptedReply
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.request import RunRequest, Target
from codeagent_lsp.session.session import Session
from codeagent_lsp.texts import text
from tests.session.fakes import World, assert_well_formed, call, calls, names, say, until, world, write

APPLY, DISCARD, REVIEW = (text(f"choice.{name}", "en") for name in ("apply", "discard", "review"))


def reloaded(made: World, session_id: str) -> Session:
    """The session as another process would see it."""
    session = Session(session_id, made.store)
    replay(session, made.store.load(session_id))
    return session


def staged(made: World) -> tuple[str, ...]:
    return made.manager.runs.all()[-1].proposal.changeset.paths


# --- the order of things


async def test_response_start_is_first_and_run_completed_last(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("Hello."))
    done = await made.run()
    assert (done.status, done.summary, done.outcome, done.error) == ("completed", "Hello.", None, None)
    told = [event for event in made.events if not event.internal]
    assert told[0].type == "response_start"
    assert told[-1].type == "run_completed"
    assert [event.seq for event in made.events] == list(range(1, len(made.events) + 1))


async def test_a_request_is_stored_before_it_is_acknowledged(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say())
    run_id = made.manager.start(RunRequest("run", "the task", "title"))
    stored = made.store.load(made.manager.current().session_id)
    assert [(item["type"], item["task"], item["run_id"]) for item in stored] == [("run_started", "the task", run_id)]
    await made.finished(run_id)


async def test_a_listener_that_fails_stops_nothing(tmp_path: Path) -> None:
    def broken(event: events.Event) -> None:
        raise RuntimeError("no window")

    made = world(tmp_path / "w", say("fine"), on_event=broken)
    assert (await made.run()).status == "completed"


# --- what becomes of the changes


async def test_apply(tmp_path: Path) -> None:
    made = world(tmp_path / "w", write("a.py", "x = 1\n"), say(), says=[APPLY])
    done = await made.run()
    assert (done.status, done.outcome) == ("completed", "full")
    assert done.files_changed == (made.path("a.py"),)
    assert made.text("a.py") == "x = 1\n"
    assert not (tmp_path / "w" / "a.py").exists()
    assert made.user.shown[0].question.choices == (REVIEW, APPLY, DISCARD)
    assert staged(made) == ()


async def test_discard_is_a_rejection_that_the_model_hears_of(tmp_path: Path) -> None:
    made = world(tmp_path / "w", write("a.py", "x = 1\n"), say(), says=[DISCARD])
    done = await made.run()
    assert (done.status, done.outcome, done.files_changed) == ("rejected", None, ())
    assert made.text("a.py") is None
    model = made.script(say())
    await made.run()
    assert "- a.py: discarded by the user" in model.requests[0].messages[-2].content


async def test_review_comes_back_with_the_question(tmp_path: Path) -> None:
    made = world(tmp_path / "w", write("a.py", "x = 1\n"), say(), says=[REVIEW, APPLY])
    assert (await made.run()).outcome == "full"
    assert made.user.shown[1].question.choices == (APPLY, DISCARD)
    assert any(event.message.startswith("review") for event in made.events if isinstance(event, events.StatusChanged))


async def test_no_answer_leaves_it_staged(tmp_path: Path) -> None:
    made = world(tmp_path / "w", write("a.py", "x = 1\n"), say(), deadline=0.01)
    done = await made.run()
    assert (done.status, done.outcome) == ("completed", "none")
    assert staged(made) == (made.path("a.py"),)
    assert reloaded(made, made.manager.current().session_id).context.runs[done.run_id].staged.paths == staged(made)


async def decided_outside(made: World, how: str) -> events.RunCompleted:
    run_id = made.manager.start(RunRequest("run", "t", "t"))
    await until(lambda: made.inbox.open())
    proposal = made.manager.runs.get(run_id).proposal
    if how == "apply":
        await proposal.apply()
    elif how == "one file":
        await proposal.apply(frozenset((made.path("a.py"),)))
    else:
        proposal.discard()
    return await made.finished(run_id)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "status", "outcome"),
    [("apply", "completed", "full"), ("discard", "rejected", "none"), ("one file", "completed", "partial")],
)
async def test_a_decision_from_outside_settles_the_question(
    tmp_path: Path, how: str, status: str, outcome: str
) -> None:
    made = world(tmp_path / "w", write("a.py", "a\n"), write("b.py", "b\n"), say())
    done = await decided_outside(made, how)
    assert (done.status, done.outcome) == (status, outcome)
    assert made.inbox.open() == ()
    assert made.text("a.py") == (None if how == "discard" else "a\n")
    assert staged(made) == ((made.path("b.py"),) if how == "one file" else ())


async def test_applying_meanwhile_does_not_answer_the_models_own_question(tmp_path: Path) -> None:
    question = call("AskUser", questions=[{"text": "Which?", "options": ["a", "b"]}], format="single")
    made = world(tmp_path / "w", write("a.py", "a\n"), calls(question), say(), deadline=5)
    run_id = made.manager.start(RunRequest("run", "t", "t"))
    await until(lambda: made.inbox.open())
    await made.manager.runs.get(run_id).proposal.apply()
    asked = made.inbox.open()[0]
    made.inbox.respond(asked.request_id, ("b",))
    await made.finished(run_id)
    assert [event.answer for event in made.events if isinstance(event, events.QuestionAnswered)] == ["b"]


async def test_hunks_are_applied_and_discarded_one_by_one(tmp_path: Path) -> None:
    lines = [f"line {number}\n" for number in range(30)]
    changed = ["first\n", *lines[1:15], "middle\n", *lines[16:29], "last\n"]
    made = world(tmp_path / "w", write("a.py", "".join(changed)), say(), deadline=0.01)
    path = made.open("a.py", "".join(lines))
    run_id = (await made.run()).run_id
    proposal = made.manager.runs.get(run_id).proposal
    await proposal.apply(None, {path: frozenset((1,))})
    assert made.text("a.py") == "".join([*lines[:15], "middle\n", *lines[16:]])
    proposal.discard(None, {path: frozenset((0,))})
    assert reloaded(made, made.manager.current().session_id).context.runs[run_id].staged == proposal.changeset
    await proposal.apply()
    assert made.text("a.py") == "".join([*lines[:15], "middle\n", *lines[16:29], "last\n"])
    with pytest.raises(SessionError):
        await proposal.apply()
    with pytest.raises(SessionError):
        proposal.discard()


@pytest.mark.parametrize("style", ["auto", "live"])
async def test_unasked(tmp_path: Path, style: Literal["auto", "live"]) -> None:
    made = world(tmp_path / "w", write("a.py", "1\n"), write("a.py", "2\n"), say(), apply=style)
    assert (await made.run()).outcome == "full"
    assert made.text("a.py") == "2\n"
    assert made.user.shown == []
    assert len(made.editor.applied) == (2 if style == "live" else 1)
    await made.manager.runs.last_applied().proposal.undo()
    assert made.text("a.py") is None


@pytest.mark.parametrize("mode", ["acceptEdits", "bypass"])
async def test_modes_that_do_not_ask(tmp_path: Path, mode: str) -> None:
    made = world(tmp_path / "w", write("a.py", "1\n"), say(), mode=mode)  # type: ignore[arg-type]
    assert (await made.run()).outcome == "full"


async def test_undo_keeps_what_was_typed_since(tmp_path: Path) -> None:
    made = world(tmp_path / "w", write("a.py", "one\nTWO\nthree\nfour\nfive\n"), say(), says=[APPLY])
    path = made.open("a.py", "one\ntwo\nthree\nfour\nfive\n")
    done = await made.run()
    made.buffers.open(path, "one\nTWO\nthree\nfour\nfive, typed\n", 9)
    await made.manager.runs.get(done.run_id).proposal.undo()
    assert made.text("a.py") == "one\ntwo\nthree\nfour\nfive, typed\n"
    with pytest.raises(SessionError):
        await made.manager.runs.get(done.run_id).proposal.undo()


@pytest.mark.slow
@pytest.mark.parametrize("outcome", ["none", "unknown"])
async def test_what_the_editor_did_is_told(tmp_path: Path, outcome: str) -> None:
    made = world(tmp_path / "w", write("a.py", "1\n"), say(), says=[APPLY])
    made.editor.forced = outcome  # type: ignore[assignment]
    done = await made.run()
    assert done.outcome == outcome
    assert staged(made) == (made.path("a.py"),)
    model = made.script(say())
    await made.run()
    assert "- a.py: waiting for the user's decision" in model.requests[0].messages[-2].content


async def test_a_conflict_is_partial_and_stays_staged(tmp_path: Path) -> None:
    made = world(tmp_path / "w", write("a.py", "X\nb\n"), write("c.py", "c\n"), say())
    path = made.open("a.py", "a\nb\n")
    run_id = made.manager.start(RunRequest("run", "t", "t"))
    await until(lambda: made.inbox.open())
    made.buffers.open(path, "Y\nb\n", 2)
    made.inbox.respond(made.inbox.open()[0].request_id, (APPLY,))
    done = await made.finished(run_id)
    assert done.outcome == "partial"
    assert made.text("a.py") == "Y\nb\n"
    assert made.text("c.py") == "c\n"
    assert staged(made) == (path,)


async def test_an_editor_that_fails_is_an_unknown_outcome(tmp_path: Path) -> None:
    made = world(tmp_path / "w", write("a.py", "1\n"), say(), says=[APPLY])
    made.editor.failure = EditorError("session.unknown", session="x")
    done = await made.run()
    assert (done.status, done.outcome) == ("failed", "unknown")
    assert staged(made) == (made.path("a.py"),)


async def test_unsaved_text_is_deleted_only_with_its_own_consent(tmp_path: Path) -> None:
    keep = text("choice.keep", "en")
    made = world(tmp_path / "w", calls(call("delete_file", path="a.py")), say(), says=[APPLY, keep])
    made.editor.unsaved.add(made.open("a.py", "text\n"))
    await made.run()
    assert made.editor.may_lose == [frozenset()]


# --- kinds of runs


@pytest.mark.parametrize("kind", ["ask", "explain"])
async def test_a_run_that_answers_never_writes_whatever_its_model_tries(tmp_path: Path, kind: str) -> None:
    made = world(tmp_path / "w", write("a.py", "x\n"), say("So it is."), mode="bypass")
    run_id = made.manager.start(RunRequest(kind, "why?", "why?"))  # type: ignore[arg-type]
    assert (await made.finished(run_id)).summary == "So it is."
    assert staged(made) == ()
    assert made.text("a.py") is None


async def test_a_rewrite(tmp_path: Path) -> None:
    made = world(tmp_path / "w", ScriptedReply("```\n    return 2\n```"), says=[APPLY])
    path = made.open("a.py", "def f():\n    return 1\n")
    run_id = made.manager.start(RunRequest("edit", "make it 2", "edit", Target(made.read(path), 9, 22)))
    assert (await made.finished(run_id)).outcome == "full"
    assert made.text("a.py") == "def f():\n    return 2\n"


@pytest.mark.parametrize("kind", ["edit", "fix", "refactor", "document", "nextEdit.apply", "finishChange"])
async def test_nothing_is_rewritten_in_the_mode_read_only(tmp_path: Path, kind: str) -> None:
    made = world(tmp_path / "w", ScriptedReply("```\n    return 2\n```"), mode="readOnly")
    path = made.open("a.py", "def f():\n    return 1\n")
    request = RunRequest(kind, "make it 2", "edit", Target(made.read(path), 9, 22))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="readOnly"):
        made.manager.start(request)
    assert not made.events


async def test_what_is_typed_before_a_rewrite_begins_is_kept(tmp_path: Path) -> None:
    made = world(tmp_path / "w", ScriptedReply("```\n    return 2\n```"), says=[APPLY])
    file = made.read(made.open("a.py", "def f():\n    return 1\n\n\nx = 1\n"))
    made.open("a.py", "# typed meanwhile\n\n\ndef f():\n    return 1\n\n\nx = 1\n")
    done = await made.finished(made.manager.start(RunRequest("edit", "make it 2", "edit", Target(file, 9, 22))))
    assert done.outcome == "full"
    assert made.text("a.py") == "# typed meanwhile\n\n\ndef f():\n    return 2\n\n\nx = 1\n"


async def test_an_edit_without_words_is_asked_for_them(tmp_path: Path) -> None:
    made = world(tmp_path / "w", ScriptedReply("```\nx = 2\n```", expect="double it"), says=["double it", APPLY])
    file = made.read(made.open("a.py", "x = 1\n"))
    done = await made.finished(made.manager.start(RunRequest("edit", "", "edit", Target(file, 0, 6))))
    assert done.outcome == "full"
    assert made.text("a.py") == "x = 2\n"


async def test_a_question_nobody_asks_does_nothing(tmp_path: Path) -> None:
    made = world(tmp_path / "w", says=[])
    run_id = made.manager.start(RunRequest("ask", "", "ask"))
    await until(lambda: bool(made.inbox.open()))
    made.inbox.respond(made.inbox.open()[0].request_id, None)
    assert (await made.finished(run_id)).error == text("ask.nothing")


@pytest.mark.parametrize("language", ["en", "zh-cn"])
@pytest.mark.parametrize(("error", "key"), [("busy", "model.busy"), ("overflow", "model.overflow")])
async def test_errors_of_the_model_are_a_sentence_in_the_users_language(
    tmp_path: Path, language: str, error: str, key: str
) -> None:
    made = world(tmp_path / "w", *[ScriptedReply(error=error)] * 2, language=language)
    done = await made.run()
    assert done.status == "failed"
    assert done.error
    assert any(char > "\u4e00" for char in done.error) == (language == "zh-cn")
    assert text(key, language, url="scripted", reason="429" if error == "busy" else "scripted") == done.error
    (told,) = [event for event in made.events if isinstance(event, events.Failure)]
    assert (told.error, told.seq) == (done.error, done.seq - 1)
    assert told.code in set(ErrorCode)


async def test_a_rewrite_that_is_cut_changes_nothing(tmp_path: Path) -> None:
    made = world(tmp_path / "w", ScriptedReply("```python\nreturn"))
    path = made.open("a.py", "x = 1\n")
    done = await made.finished(made.manager.start(RunRequest("fix", "", "fix", Target(made.read(path), 0, 6))))
    assert done.status == "stopped"
    assert staged(made) == ()


async def test_a_rewrite_that_is_cut_every_time_says_what_to_do(tmp_path: Path) -> None:
    made = world(tmp_path / "w", *[ScriptedReply("```python\nreturn")] * 3)
    path = made.open("a.py", "x = 1\n")
    done = await made.finished(made.manager.start(RunRequest("fix", "", "fix", Target(made.read(path), 0, 6))))
    assert done.status == "stopped"
    assert str(ModelReplyInvalid("rewrite.cut")) in done.summary


async def test_the_limit_and_circles_are_no_success(tmp_path: Path) -> None:
    few = world(
        tmp_path / "w",
        *[calls(call("list_dir", path="."))] * 3,
        settings=lambda value: replace(value, agent=replace(value.agent, max_iterations=2)),
    )
    assert (await few.run()).status == "stopped"
    circle = world(tmp_path / "v", *[calls(call("list_dir", path="."))] * 9)
    assert (await circle.run()).status == "stopped"
    assert names(circle.events, circle.manager.runs.all()[0].record.run_id).count("anomaly_detected") == 2


async def test_an_unexpected_error_is_a_sentence_too(tmp_path: Path) -> None:
    made = world(tmp_path / "w", write("a.py", "1\n"), say(), says=[APPLY])
    made.editor.failure = RuntimeError("bug")
    done = await made.run()
    assert (done.status, done.error) == ("failed", text("run.internal", "en"))


# --- cancelling


SCRIPT = (
    ScriptedReply("I write.", (call("write_file", path="a.py", content="1\n"),), chunks=2),
    calls(call("list_dir", path="."), call("read_file", path="a.py")),
    ScriptedReply("Done.", chunks=2),
)


async def cancelled_at(folder: Path, style: Literal["review", "live"], stop_at: int) -> bool:
    """Cancels a run at an event and looks at what is left; whether it came to its end before."""
    seen = 0

    def on_event(event: events.Event) -> None:
        nonlocal seen
        seen += event.type != "run_started"
        if seen == stop_at:
            made.manager.runs.cancel()

    made = world(folder, *SCRIPT, says=[APPLY], apply=style, on_event=on_event)
    run_id = made.manager.start(RunRequest("run", "t", "t"))
    if stop_at == 0:
        made.manager.runs.cancel(run_id)
    done = await made.finished(run_id)
    await asyncio.sleep(0)
    assert [event.type for event in made.events][-1] == "run_completed"
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert made.inbox.open() == ()
    session = made.manager.current()
    assert_well_formed(session.context.conversation)
    written = any(isinstance(event, events.FileChanged) and event.change for event in made.events)
    assert not written or bool(staged(made)) != (made.text("a.py") is not None)
    back = reloaded(made, session.session_id)
    assert back.context.conversation == session.context.conversation
    assert back.context.runs[run_id].status == done.status
    assert back.context.runs[run_id].staged == made.manager.runs.get(run_id).proposal.changeset
    assert back.context.runs[run_id].applied == made.manager.runs.get(run_id).record.applied
    made.script(say("again"))
    assert (await made.run()).summary == "again"
    assert_well_formed(session.context.conversation)
    return done.status == "completed"


@pytest.mark.slow
@pytest.mark.parametrize("style", ["review", "live"])
async def test_cancelled_at_any_event(tmp_path: Path, style: Literal["review", "live"]) -> None:
    for stop_at in range(60):
        if await cancelled_at(tmp_path / f"w{stop_at}", style, stop_at):
            break
    assert 10 < stop_at < 59


@pytest.mark.slow
@pytest.mark.parametrize(("delay", "outcome"), [(0.05, "full"), (30.0, "unknown")])
async def test_cancelled_while_the_editor_works(tmp_path: Path, delay: float, outcome: str) -> None:
    made = world(tmp_path / "w", write("a.py", "1\n"), say(), says=[APPLY])
    made.editor.delay = delay
    run_id = made.manager.start(RunRequest("run", "t", "t"))
    await until(lambda: made.editor.may_lose)
    made.manager.runs.cancel(run_id)
    done = await made.finished(run_id)
    assert (done.status, done.outcome) == ("cancelled", outcome)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_close_leaves_nothing(tmp_path: Path) -> None:
    made = world(tmp_path / "w", write("a.py", "1\n"), say())
    run_id = made.manager.start(RunRequest("run", "t", "t"))
    await until(lambda: made.inbox.open())
    await made.manager.close()
    assert made.completed(run_id).status == "cancelled"
    assert made.manager.runs.active() == ()


# --- several at once


async def test_runs_and_sessions_at_once_do_not_mix(tmp_path: Path) -> None:
    made = world(tmp_path / "w", *[ScriptedReply(f"answer {n}", chunks=4) for n in range(8)])
    first, second = made.manager.new().session_id, made.manager.new().session_id
    ids = [made.manager.start(RunRequest("run", f"task {n}", f"task {n}"), (first, second)[n % 2]) for n in range(8)]
    for run_id in ids:
        await made.finished(run_id)
    for number, run_id in enumerate(ids):
        own = [event for event in made.events if event.run_id == run_id]
        assert {event.session_id for event in own} == {(first, second)[number % 2]}
        assert [event.type for event in own][-1] == "run_completed"
        record = made.manager.runs.get(run_id).record
        assert f"task {number}" in record.messages[1].content
        assert len(record.messages) == 3
    for session_id in (first, second):
        session = made.manager.session(session_id)
        talk = [message for message in session.context.conversation if message.name != NOTE]
        assert [message.role for message in talk] == ["user", "assistant"] * 4
        seqs = [event.seq for event in made.events if event.session_id == session_id]
        assert seqs == list(range(1, len(seqs) + 1))


# --- the manager


async def test_unknown_and_deleted_sessions(tmp_path: Path) -> None:
    made = world(tmp_path / "w", ScriptedReply("slow", delay=5.0))
    run_id = made.manager.start(RunRequest("run", "t", "title"))
    session_id = made.manager.current().session_id
    assert [row["title"] for row in await made.manager.list()] == ["title"]
    made.manager.delete(session_id)
    await until(lambda: not made.manager.runs.active())
    assert await made.manager.list() == []
    assert made.manager.current().session_id != session_id
    for use in (made.manager.session, made.manager.delete, made.manager.resume):
        with pytest.raises(SessionError):
            use(session_id)
    with pytest.raises(SessionError):
        made.manager.runs.cancel(run_id)


async def test_a_session_that_another_process_has_is_not_resumed_there(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say(), state=tmp_path / "sessions")
    await made.run()
    session_id = made.manager.current().session_id
    other = world(tmp_path / "v", say(), state=tmp_path / "sessions")
    for use in (other.manager.resume, lambda name: other.manager.start(RunRequest("run", "t", "t"), name)):
        with pytest.raises(SessionError) as caught:
            use(session_id)
        assert caught.value.key == "session.busy"
    assert other.events == []
    assert other.manager.current().session_id != session_id
    await made.manager.close()
    assert other.manager.resume(session_id).session_id == session_id


async def test_resuming_what_is_not_there_makes_nothing(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say(), state=tmp_path / "sessions")
    with pytest.raises(SessionError):
        made.manager.resume("0123456789abcdef")
    assert not list((tmp_path / "sessions").rglob("0123456789abcdef*"))


async def test_nothing_can_be_stored_and_all_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    made = world(tmp_path / "w", write("a.py", "1\n"), say(), says=[APPLY], state=tmp_path / "file" / "s")
    assert (await made.run()).outcome == "full"
    assert len(made.problems) == 1
