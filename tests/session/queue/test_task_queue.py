"""Words for later: tasks begin one after the other, words reach the next call, nothing is lost or repeated."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError, UsageError
from codeagent_lsp.llm.learned_facts import Facts, combine
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.messages import Image
from codeagent_lsp.server.commands.run_commands import QueueCommands
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.request import RunRequest, Target
from codeagent_lsp.session.session import Session
from codeagent_lsp.texts import text
from codeagent_lsp.tools.asking import Question
from tests.examples import volume
from tests.session.fakes import World, call, calls, say, until, world

SLOW = ScriptedReply("Done.", delay=0.2)


def start(made: World, task: str) -> str:
    return made.manager.start(RunRequest("run", task, task))


def spoken(made: World) -> list[str]:
    """What the user said, as the conversation of the session has it."""
    said = made.manager.current().context.conversation
    return [message.content for message in said if message.role == "user" and not message.name]


def heard(model: ScriptedModel, words: str) -> list[int]:
    """The numbers of the requests that have these words."""
    return [
        number
        for number, request in enumerate(model.requests)
        if any(words in message.content for message in request.messages)
    ]


# --- tasks


@pytest.mark.slow
async def test_a_task_waits_for_its_session(tmp_path: Path) -> None:
    made = world(tmp_path / "w", SLOW, say("two"), say("three"))
    one, two, three = (start(made, task) for task in ("one", "two", "three"))
    waiting = made.manager.current().context.waiting
    assert list(waiting.tasks) == [two, three]
    assert made.manager.runs.active() == (one,)
    for run_id in (one, two, three):
        await until(lambda run_id=run_id: run_id not in waiting.tasks)  # type: ignore[misc]
        await made.finished(run_id)
    assert spoken(made) == ["one", "two", "three"]


@pytest.mark.slow
async def test_other_kinds_do_not_wait(tmp_path: Path) -> None:
    made = world(tmp_path / "w", SLOW, say("answer"))
    start(made, "one")
    run_id = made.manager.start(RunRequest("ask", "why?", "why?"))
    assert run_id in made.manager.runs.active()
    await made.finished(run_id)


async def test_another_session_is_free(tmp_path: Path) -> None:
    made = world(tmp_path / "w", SLOW, SLOW)
    one = start(made, "one")
    made.manager.new()
    two = start(made, "two")
    assert set(made.manager.runs.active()) == {one, two}


@pytest.mark.slow
async def test_a_task_is_taken_back(tmp_path: Path) -> None:
    made = world(tmp_path / "w", SLOW)
    one, two = start(made, "one"), start(made, "two")
    made.manager.queue.withdraw(two, made.manager.sessions())
    await made.finished(one)
    assert made.manager.runs.active() == ()
    assert spoken(made) == ["one"]
    with pytest.raises(SessionError):
        made.manager.queue.withdraw(two, made.manager.sessions())


@pytest.mark.parametrize(("says", "begins"), [("start", True), ("leave_out", False), ("later", False)])
async def test_after_a_cancelled_run_the_user_is_asked(tmp_path: Path, says: str, begins: bool) -> None:
    made = world(tmp_path / "w", SLOW, say("two"), says=[text(f"choice.{says}", "en")])
    one, two = start(made, "one"), start(made, "two")
    made.manager.runs.cancel(one)
    await until(lambda: made.user.shown and not made.inbox.open())
    await asyncio.sleep(0.01)
    assert (two in made.manager.runs.active() or "two" in spoken(made)) == begins
    assert (two in made.manager.current().context.waiting.tasks) == (says == "later")


@pytest.mark.slow
async def test_only_what_the_user_was_shown_is_left_out(tmp_path: Path) -> None:
    made = world(tmp_path / "w", SLOW, say("three"), say("four"), deadline=60.0)
    one, two = start(made, "one"), start(made, "two")
    made.manager.runs.cancel(one)
    await until(made.inbox.open)
    made.script(SLOW, say("four"))
    three = start(made, "three")
    four = start(made, "four")
    assert three in made.manager.runs.active()
    assert tuple(made.manager.current().context.waiting.tasks) == (two, four)
    (asked,) = made.inbox.open()
    made.inbox.respond(asked.request_id, (text("choice.leave_out", "en"),))
    await until(lambda: spoken(made)[-2:] == ["three", "four"] and not made.manager.runs.active())
    assert "two" not in spoken(made)


@pytest.mark.slow
async def test_a_cancelled_run_before_which_nothing_waits_holds_nothing_back(tmp_path: Path) -> None:
    made = world(tmp_path / "w", SLOW, SLOW, say("three"))
    one = start(made, "one")
    made.manager.runs.cancel(one)
    await until(lambda: not made.manager.runs.active())
    start(made, "two")
    start(made, "three")
    await until(lambda: "three" in spoken(made) and not made.manager.runs.active())
    assert made.user.shown == [], "two went well, and nobody was asked"


@pytest.mark.slow
async def test_words_that_were_written_while_the_run_ended_are_the_next_task(tmp_path: Path) -> None:
    made = world(tmp_path / "w", SLOW, say("Yes."))
    one = start(made, "one")
    work: list[Coroutine[Any, Any, None]] = []

    class Slow:
        async def ask(self, run_id: str, question: Question, emit: Any) -> tuple[str, ...]:
            await made.finished(run_id)
            return ("and be brief",)

    front = SimpleNamespace(language=lambda: "en")

    async def ready() -> None:
        """Wait for nothing."""

    hiding = SimpleNamespace(hide=str)
    backend: Any = SimpleNamespace(manager=made.manager, inbox=Slow(), front=front, redactor=hiding, ready=ready)
    commands = QueueCommands(backend, None, work.append).table()  # type: ignore[arg-type]
    await commands["codeagent.steer"]({"runId": one})
    await work[0]
    await until(lambda: not made.manager.runs.active())
    assert spoken(made) == ["one", "and be brief"]


@pytest.mark.slow
async def test_what_was_selected_is_found_again(tmp_path: Path) -> None:
    made = world(tmp_path / "w", SLOW, say("two"))
    path = made.open("a.py", "x = 1\ny = 2\n")
    start(made, "one")
    file = made.read(path)
    run_id = made.manager.start(RunRequest("run", "two", "two", Target(file, 6, 11)))
    made.open("a.py", "# above\nx = 1\ny = 2\n")
    await until(lambda: run_id in made.manager.runs.active())
    await made.finished(run_id)
    model = made.models["model"]
    assert isinstance(model, ScriptedModel)
    assert "3-3" in model.requests[-1].messages[-1].content or "line 3" in model.requests[-1].messages[-1].content


@pytest.mark.slow
@pytest.mark.parametrize("now", ["", "# y = 2\ny = 2\n", "nothing of it\n"])
async def test_what_is_not_there_any_more_is_told_as_it_was(tmp_path: Path, now: str) -> None:
    made = world(tmp_path / "w", SLOW, say("two"))
    path = made.open("a.py", "x = 1\ny = 2\n")
    start(made, "one")
    run_id = made.manager.start(RunRequest("run", "two", "two", Target(made.read(path), 6, 11)))
    made.open("a.py", now)
    await until(lambda: run_id in made.manager.runs.active())
    assert (await made.finished(run_id)).status == "completed"
    model = made.models["model"]
    assert isinstance(model, ScriptedModel)
    told = "\n".join(message.content for message in model.requests[-1].messages)
    assert "It has changed since: read the file.\ny = 2" in told


# --- words to a run at work


async def test_words_reach_the_next_call_once(tmp_path: Path) -> None:
    model = ScriptedModel([ScriptedReply("", (call("list_dir"),), delay=0.05), say("Done.")])
    made = world(tmp_path / "w")
    made.models["model"] = model
    run_id = start(made, "one")
    await until(lambda: len(model.requests) == 1)
    made.manager.queue.say(made.manager.runs.get(run_id), "and mind the gap")
    await made.finished(run_id)
    assert heard(model, "mind the gap") == [1]
    assert spoken(made) == ["one", "and mind the gap"]
    (told,) = made.of(events.SteerDelivered)
    assert (told.run_id, told.text) == (run_id, "and mind the gap")  # type: ignore[attr-defined]


@pytest.mark.slow
async def test_an_answer_that_had_not_heard_is_not_the_end(tmp_path: Path) -> None:
    model = ScriptedModel([ScriptedReply("Too early.", delay=0.1), say("Now.")])
    made = world(tmp_path / "w")
    made.models["model"] = model
    run_id = start(made, "what is this?")
    await until(lambda: len(model.requests) == 1)
    made.manager.queue.say(made.manager.runs.get(run_id), "in one word")
    done = await made.finished(run_id)
    assert (done.summary, heard(model, "in one word")) == ("Now.", [1])


async def test_words_that_come_too_late_are_a_task_of_their_own(tmp_path: Path) -> None:
    made = world(tmp_path / "w", calls(call("write_file", path="a.py", content="1\n")), say(), say(), deadline=20)
    run_id = start(made, "write it")
    await until(lambda: made.inbox.open())
    item = made.manager.queue.say(made.manager.runs.get(run_id), "what did you do?")
    made.inbox.respond(made.inbox.open()[0].request_id, (text("choice.apply", "en"),))
    await made.finished(run_id)
    await made.finished(item)
    assert spoken(made) == ["write it", "what did you do?"]


async def test_words_are_refused_in_words(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say())
    run_id = start(made, "one")
    await made.finished(run_id)
    run = made.manager.runs.get(run_id)
    with pytest.raises(SessionError, match="is over"):
        made.manager.queue.say(run, "too late")
    with pytest.raises(UsageError):
        made.manager.queue.say(run, " \n")


@pytest.mark.slow
@pytest.mark.parametrize("moments", [40, pytest.param(volume(1000), marks=pytest.mark.volume, id="many")])
async def test_words_of_any_moment_are_heard_by_the_next_call(tmp_path: Path, moments: int) -> None:
    """Whenever something is said to a run: the next call has it, and all later ones; the conversation has it once."""
    rng, seen = random.Random(7), set()
    for number in range(moments):
        looks = [ScriptedReply("", (call("list_dir", path=path),), delay=0.001) for path in (".", "./")]
        model = ScriptedModel([*looks, *[ScriptedReply("Done.", delay=0.001)] * 4])
        made = world(tmp_path / "w", state=tmp_path / f"s{number}")
        made.models["model"] = model
        run_id = start(made, "one")
        enough = rng.randrange(20)
        await until(lambda made=made, enough=enough: len(made.events) >= enough or not made.manager.runs.active())  # type: ignore[misc]
        await asyncio.sleep(rng.choice((0, 0, 0.0005, 0.0015)))
        before = len(model.requests)
        try:
            made.manager.queue.say(made.manager.runs.get(run_id), "WORD")
        except SessionError:  # it had ended
            before = -1
        await until(lambda made=made: not made.manager.runs.active())  # type: ignore[misc]
        seen.add(before)
        found = heard(model, "WORD")
        assert found == ([] if before < 0 else list(range(before, len(model.requests)))), (number, before, found)
        assert spoken(made).count("WORD") == (before >= 0)
        made.store.close()
    assert seen >= set(range(4 if moments > 500 else 3)), f"these moments do not tell: {seen}"


# --- several sessions


@pytest.mark.slow
async def test_the_queues_of_sessions_do_not_meet(tmp_path: Path) -> None:
    """One is held after a cancel and asked about, the other goes on; what waits in one is taken back there."""
    made = world(tmp_path / "w", SLOW, SLOW, say("b2"), say("b3"), says=[])
    a, b = (made.manager.new().session_id for _ in "ab")

    def run(session_id: str, task: str) -> str:
        return made.manager.start(RunRequest("run", task, task), session_id)

    a1, b1 = run(a, "a1"), run(b, "b1")
    a2, b2, b3 = run(a, "a2"), run(b, "b2"), run(b, "b3")
    made.manager.runs.cancel(a1)
    for run_id in (a1, b1, b2, b3):
        await until(lambda run_id=run_id: any(r.record.run_id == run_id for r in made.manager.runs.all()))  # type: ignore[misc]
        await made.finished(run_id)
    first, second = made.manager.session(a), made.manager.session(b)
    assert (list(first.context.waiting.tasks), list(second.context.waiting.tasks)) == ([a2], [])
    assert len(made.user.shown) == 1 and "a2" in made.user.shown[0].question.title
    made.manager.queue.withdraw(a2, made.manager.sessions())
    assert list(first.context.waiting.tasks) == []


async def test_two_sessions_of_a_process_that_died_are_asked_about_each(tmp_path: Path) -> None:
    made = world(tmp_path / "w", ScriptedReply("Slow.", delay=60), ScriptedReply("Slow.", delay=60))
    sessions = [made.manager.new().session_id for _ in "ab"]
    for session_id in sessions:
        for number in range(2):
            made.manager.start(RunRequest("run", f"{number}", f"{session_id} {number}"), session_id)
    shutil.copytree(tmp_path / "sessions", tmp_path / "later")  # as they are when the process is killed
    start_, drop = (text(f"choice.{name}", "en") for name in ("start", "leave_out"))
    other = world(tmp_path / "w", say("gone on"), says=[start_, drop], state=tmp_path / "later")
    for number, session_id in enumerate(sessions, 1):
        other.manager.resume(session_id)
        await until(lambda number=number: len(other.user.shown) == number and not other.inbox.open())  # type: ignore[misc]
        await until(lambda: not other.manager.runs.active())
    one, two = (other.manager.session(session_id) for session_id in sessions)
    assert [message.content for message in one.context.conversation if message.role == "assistant"] == ["gone on"]
    assert not one.context.waiting.tasks and not two.context.waiting.tasks
    for run_id in made.manager.runs.active():
        made.manager.runs.cancel(run_id)
        await made.finished(run_id)


async def test_a_task_taken_back_before_it_is_asked_about(tmp_path: Path) -> None:
    """It is the only one that waits, and goes in the moment before the question is shown."""
    made = world(tmp_path / "w", SLOW)
    one, two = start(made, "one"), start(made, "two")
    made.manager.runs.cancel(one)
    await until(lambda: one not in made.manager.runs.active())
    made.manager.queue.withdraw(two, made.manager.sessions())
    await asyncio.sleep(0.05)
    assert not made.inbox.open() or made.user.shown
    made.script(say("three"))
    assert (await made.run("three")).status == "completed"


async def asked_about(made: World) -> str:
    """The user is asked about a task that waits, as the run before it was cancelled: its id."""
    one, two = start(made, "one"), start(made, "two")
    made.manager.runs.cancel(one)
    await made.finished(one)
    await until(lambda: made.inbox.open())
    return two


@pytest.mark.slow
async def test_what_was_taken_back_holds_nothing(tmp_path: Path) -> None:
    """The next task begins by itself after a run that went well."""
    made = world(tmp_path / "w", SLOW)
    two = await asked_about(made)
    made.manager.queue.withdraw(two, made.manager.sessions())
    await until(lambda: not made.inbox.open())
    made.script(SLOW, say("four"))
    three, four = start(made, "three"), start(made, "four")
    assert (await made.finished(three)).status == "completed"
    await until(lambda: four in made.manager.runs.active() or made.inbox.open())
    assert not made.inbox.open()


async def test_a_question_is_about_what_waits(tmp_path: Path) -> None:
    made = world(tmp_path / "w", SLOW)
    two = await asked_about(made)
    made.script(SLOW, SLOW)
    start(made, "three")  # begins, as the session is free
    start(made, "four")  # waits
    made.manager.queue.withdraw(two, made.manager.sessions())
    await until(lambda: not made.inbox.open())


@pytest.mark.slow
async def test_a_task_that_waits_keeps_its_pictures(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    facts = combine([("server", Facts(context_window=32_768, vision=True))])
    model = ScriptedModel([SLOW, say("A screenshot.")], info=ModelInfo("m", "scripted", facts=facts))
    made.models["model"] = model
    shot = Image("image/png", "A" * 400)
    one, two = start(made, "one"), made.manager.start(RunRequest("run", "two", "two", images=(shot,)))
    session = made.manager.current()
    (queued,) = session.context.waiting.tasks.values()
    assert queued.images == (shot.to_dict(),)
    again = Session(session.session_id, made.store)
    replay(again, made.store.load(session.session_id))
    assert again.context.waiting.tasks[two].images == (shot.to_dict(),)
    for run_id in (one, two):
        await until(lambda run_id=run_id: run_id not in session.context.waiting.tasks)  # type: ignore[misc]
        assert (await made.finished(run_id)).status == "completed"
    assert model.requests[-1].messages[-1].images == (shot,)
