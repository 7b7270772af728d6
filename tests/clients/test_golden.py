"""Scripted sessions whose events are kept in `golden/`, for the reducers of all clients to replay."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp import events
from codeagent_lsp.llm.learned_facts import Facts, Prices, combine
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.session.request import RunRequest
from tests.session.fakes import World, call, calls, say, until, world
from tests.session.plan import plans

GOLDEN = Path(__file__).with_name("golden")
UPDATE = bool(os.environ.get("CODEAGENT_UPDATE_GOLDEN"))

Recording = Callable[[Path], Awaitable[World]]


def _edit(old: str, new: str, text: str = "") -> ScriptedReply:
    return calls(call("edit_file", path="a.py", old_str=old, new_str=new), text=text)


SOURCE = "def one():\n    return 1\n\n\ndef two():\n    return 2\n\n\ndef three():\n    return 3\n"


def _made(folder: Path, *replies: ScriptedReply, says: Iterable[str] = ()) -> World:
    made = world(folder / "ws", *replies, says=says)
    made.open("a.py", SOURCE)
    return made


async def task(folder: Path) -> World:
    """Reading, a call that fails, two edits, applied, taken back."""
    made = _made(
        folder,
        calls(call("read_file", path="a.py"), text="I look first."),
        _edit("no such text", "x"),
        _edit("return 1", "return 10", "Now the edits."),
        _edit("return 3", "return 30"),
        say("I changed **two** functions."),
        says=["Apply"],
    )
    completed = await made.run("change it")
    await made.manager.runs.get(completed.run_id).proposal.undo()
    return made


async def hunks(folder: Path) -> World:
    """One hunk accepted and the other discarded while the question about both is open."""
    made = _made(folder, _edit("return 1", "return 10"), _edit("return 3", "return 30"), say("Changed."))
    run_id = made.manager.start(RunRequest("run", "change it", "change it"))
    await until(lambda: made.inbox.open())
    proposal, path = made.manager.runs.get(run_id).proposal, made.path("a.py")
    await proposal.apply(None, {path: frozenset({0})})
    await made.finished(run_id)
    proposal.discard(None, {path: frozenset({0})})
    return made


async def questions(folder: Path) -> World:
    """A choice, words, and a question that is still open."""
    made = _made(
        folder,
        calls(call("AskUser", questions=[{"text": "Which colour?", "options": ["Red", "Blue"]}], format="single")),
        calls(call("AskUser", questions=[{"text": "Which name?"}], format="single")),
        calls(call("AskUser", questions=[{"text": "Are you sure?", "options": ["Yes", "No"]}], format="single")),
        say("Fine."),
        says=["Blue", "Ada"],
    )
    made.manager.start(RunRequest("run", "ask me", "ask me"))
    await until(lambda: len(made.user.shown) == 3 and made.inbox.open())
    return made


async def cancelled(folder: Path) -> World:
    """A run that is stopped with an edit staged, and the next one, whose model fails."""
    made = _made(folder, _edit("return 3", "return 4"), ScriptedReply("Slow.", delay=30))
    run_id = made.manager.start(RunRequest("run", "change it", "change it"))
    await until(lambda: made.of(events.ToolFinished))
    made.manager.runs.cancel(run_id)
    await made.finished(run_id)
    made.script(*[ScriptedReply(error="timeout")] * 9)
    await made.run("again")
    return made


async def plan(folder: Path) -> World:
    """A plan of five steps, the third of which fails and is tried again."""
    made = world(folder / "ws", *plans.five(3), says=[*[plans.APPLY] * 2, plans.RETRY, *[plans.APPLY] * 3])
    await plans.run(made)
    return made


async def cost(folder: Path) -> World:
    """A run whose model has prices."""
    made = _made(folder, says=["Apply"])
    facts = combine([("server", Facts(context_window=32_768)), ("catalogue", Facts(prices=Prices(3.0, 15.0)))])
    info = ModelInfo("paid", "scripted", facts=facts, tool_calling="native")
    made.models["model"] = ScriptedModel([_edit("return 1", "return 10"), say("Changed.")], info=info)
    await made.run("change it")
    return made


RECORDINGS: dict[str, Recording] = {item.__name__: item for item in (task, hunks, questions, cancelled, plan, cost)}


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDINGS)
async def test_the_recorded_events_are_what_a_session_tells(name: str, tmp_path: Path) -> None:
    made = await RECORDINGS[name](tmp_path)
    told = [events.to_dict(event) for event in made.events if not event.internal and event.run_id]
    recorded = normal(told, made)
    await made.manager.close()
    path = GOLDEN / f"{name}.jsonl"
    if UPDATE:
        path.write_text("".join(json.dumps(event, ensure_ascii=False) + "\n" for event in recorded))
    assert recorded == [json.loads(line) for line in path.read_text().splitlines()]


def test_the_recordings_cover_the_events_that_runs_tell() -> None:
    lines = (line for name in RECORDINGS for line in (GOLDEN / f"{name}.jsonl").read_text().splitlines())
    seen = {json.loads(line)["type"] for line in lines}
    wanted = {
        "response_start", "response_end", "run_completed", "token", "tool_calls", "tool_result", "usage", "file_change",
        "changes_proposed", "changes_applied", "changes_discarded", "question_asked", "question_answered",
        "approval_requested", "approval_resolved", "plan_created", "plan_completed", "step_started", "step_completed",
        "step_error", "error",
    }  # fmt: skip
    assert wanted <= seen, wanted - seen


def normal(told: list[dict[str, Any]], made: World) -> list[dict[str, Any]]:
    """Events with the same ids, times and paths in every recording."""
    names: dict[str, str] = {str(made.root): "/ws"}
    for event in told:
        for key, letter in (("session_id", "s"), ("run_id", "r"), ("request_id", "q")):
            value = event.get(key)
            if value and value not in names:
                names[value] = f"{letter}{sum(known[0] == letter for known in names.values()) + 1}"
    pattern = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))
    text = pattern.sub(lambda found: names[found[0]], json.dumps(told))
    recorded: list[dict[str, Any]] = json.loads(text)
    for number, event in enumerate(recorded, 1):
        event.update(seq=number, ts=float(number))
        event.update((key, 1.0) for key in ("time_ms",) if key in event)
        if "context" in event:
            event["context"] = dict.fromkeys(event["context"], 10)
        for used in (event, event.get("usage") or {}, event.get("session_usage") or {}):  # prompts change
            used.update((key, 100) for key in ("prompt_tokens", "cached_tokens") if used.get(key))
            used.update((key, 0.25) for key in ("cost",) if used.get(key))
    return recorded
