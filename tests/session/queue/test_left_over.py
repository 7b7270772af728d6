"""Words and tasks that are left when a run ends badly: nothing begins unasked, nothing is lost, nobody is asked for
nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.server.commands.run_commands import waiting_words
from codeagent_lsp.session.request import RunRequest
from tests.session.fakes import call, say, until, world
from tests.session.queue.test_task_queue import SLOW, heard, start


async def test_words_to_a_question_that_was_stopped_begin_nothing_unasked(tmp_path: Path) -> None:
    made = world(tmp_path / "w", ScriptedReply("x", delay=5), say("I work"))
    run_id = made.manager.start(RunRequest("ask", "why?", "why?"))
    await until(lambda: bool(made.models["model"].requests))  # type: ignore[attr-defined]
    made.manager.queue.say(made.manager.runs.get(run_id), "delete all files")
    made.manager.runs.cancel(run_id)
    await until(made.inbox.open)
    assert not made.manager.runs.active()


async def test_a_run_that_was_stopped_holds_the_next_task(tmp_path: Path) -> None:
    made = world(
        tmp_path / "w",
        ScriptedReply("", (call("list_dir"),), delay=0.1),
        settings=lambda given: replace(given, agent=replace(given.agent, max_iterations=1)),
    )
    one = made.manager.start(RunRequest("run", "what is this?", "one"))
    start(made, "two")
    assert (await made.finished(one)).status == "stopped"
    await until(made.inbox.open)
    assert not made.manager.runs.active()


async def test_the_question_closes_when_nothing_waits_any_more(tmp_path: Path) -> None:
    made = world(tmp_path / "w", SLOW, SLOW)
    for forget in ("withdraw", "delete"):
        one, two = start(made, "one"), start(made, "two")
        made.manager.runs.cancel(one)
        await until(made.inbox.open)
        if forget == "withdraw":
            made.manager.queue.withdraw(two, made.manager.sessions())
        else:
            await made.manager.delete(made.manager.current().session_id)
        await until(lambda: not made.inbox.open())


@pytest.mark.slow
@pytest.mark.parametrize("calls", [1, 2])
async def test_words_during_the_last_call_are_the_next_task(tmp_path: Path, calls: int) -> None:
    looks = [ScriptedReply("", (call("list_dir"),), delay=0.05)] * (calls - 1)
    model = ScriptedModel([*looks, ScriptedReply("The answer.", delay=0.2), say("And more.")])
    made = world(
        tmp_path / "w", settings=lambda given: replace(given, agent=replace(given.agent, max_iterations=calls))
    )
    made.models["model"] = model
    run_id = made.manager.start(RunRequest("run", "what is this?", "t"))
    await until(lambda: len(model.requests) == calls)
    made.manager.queue.say(made.manager.runs.get(run_id), "WORD")
    assert (await made.finished(run_id)).status == "completed"
    await until(lambda: bool(heard(model, "WORD")))


@pytest.mark.slow
async def test_words_of_the_tool_loop_are_known_on_the_direct_path(tmp_path: Path) -> None:
    first = ScriptedReply("", (call("list_dir"),), delay=0.1)
    model = ScriptedModel([first, say("I think nothing is to be done"), *[say("no code")] * 4])
    made = world(tmp_path / "w")
    made.open("a.py", "x = 1\n")
    made.models["model"] = model
    run_id = made.manager.start(RunRequest("run", "Change x in a.py to 2", "t"))
    await until(lambda: len(model.requests) == 1)
    made.manager.queue.say(made.manager.runs.get(run_id), "WORD")
    await made.finished(run_id)
    assert heard(model, "WORD") == list(range(1, len(model.requests)))


async def test_what_attempts_were_told_waits_once_and_not_when_one_has_heard(tmp_path: Path) -> None:
    quick, slow = (ScriptedReply("", (call("list_dir"),), delay=delay) for delay in (0.02, 3))
    made = world(tmp_path / "w", *[quick] * 3, *[slow] * 3)
    run_id = made.manager.start(RunRequest("run", "what is here?", "what", attempts=3))
    await until(lambda: len(made.manager.runs.active()) == 4)
    item = made.manager.queue.say(made.manager.runs.get(run_id), "words")
    assert [each["runId"] for each in waiting_words(made.manager.sessions())] == [run_id]
    await until(lambda: bool(made.of(events.SteerDelivered)))
    with pytest.raises(SessionError):
        made.manager.queue.withdraw(item, made.manager.sessions())
    made.manager.runs.cancel()
    await asyncio.sleep(0)
