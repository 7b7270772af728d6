"""What a compaction leaves is the session's conversation: in the next run, after a kill, and with runs side by side."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.config import Settings
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.messages import Message
from codeagent_lsp.session.replay import message_to_dict, replay
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.state import Compacted, RunRecord
from codeagent_lsp.session.store import SessionStore
from tests.session.fakes import World, assert_well_formed, call, calls, reloaded, say, until, world

SMALL = ModelInfo("s", "scripted", facts=window_known(8192), tool_calling="native")
BIG = "".join(f"line {number} of a file with much to read in it\n" for number in range(120))


def reading(name: str) -> ScriptedReply:
    return calls(call("read_file", path=name), text=f"I read {name}.")


def compacting(folder: Path) -> World:
    """A world whose model's window is too small for all of its ten files."""

    def early(value: Settings) -> Settings:
        return replace(value, context=replace(value.context, compact_at=0.6))

    made = world(folder / "w", state=folder / "sessions", settings=early, deadline=0.01)
    for number in range(10):
        made.open(f"f{number}.py", f"{number}\n{BIG}")
    return made


def script(made: World, count: int, last: str = "All read.") -> ScriptedModel:
    replies = [reading(f"f{number}.py") for number in range(count)]
    model = ScriptedModel([*replies, say(last)], info=SMALL)
    made.models["model"] = model
    return model


def length(messages: Iterable[Message]) -> int:
    return sum(len(message.content) for message in messages)


async def test_the_next_run_begins_with_the_short_conversation(tmp_path: Path) -> None:
    made = compacting(tmp_path)
    script(made, 8)
    run = await made.run("Read all")
    session = made.manager.current()
    assert made.of(events.ContextCompacted)
    assert length(session.context.conversation) < length(session.context.runs[run.run_id].messages)
    assert session.context.conversation[-1].content == "All read."
    model = script(made, 0, "Yes.")
    await made.run("Done?")
    sent = model.requests[-1].messages
    assert [message.content for message in sent[1:3]] == ["Read all", session.context.conversation[1].content]
    assert length(sent[1:]) < length(session.context.runs[run.run_id].messages)
    assert_well_formed(session.context.conversation)


@pytest.mark.slow
async def test_after_a_restart_it_is_the_same(tmp_path: Path) -> None:
    made = compacting(tmp_path)
    script(made, 8)
    await made.run("Read all")
    script(made, 6)
    await made.run("Read some again")
    again = reloaded(made)
    assert again.context.conversation == made.manager.current().context.conversation
    assert again.context.generation == made.manager.current().context.generation > 0
    assert_well_formed(again.context.conversation)


async def test_nothing_that_was_said_is_lost_to_the_user(tmp_path: Path) -> None:
    made = compacting(tmp_path)
    script(made, 8)
    run = await made.run("Read all")
    for session in (made.manager.current(), reloaded(made)):
        said = [message.content for message in session.context.runs[run.run_id].messages if message.role == "assistant"]
        assert said == [*(f"I read f{number}.py." for number in range(8)), "All read."]


@pytest.mark.slow
async def test_killed_at_any_record_it_comes_back_and_goes_on(tmp_path: Path) -> None:
    made = compacting(tmp_path)
    script(made, 8)
    await made.run("Read all")
    session_id = made.manager.current().session_id
    lines = [json.dumps(record) for record in made.store.load(session_id)]
    at = [number for number, line in enumerate(lines) if '"type": "conversation"' in line]
    assert at
    for count in sorted({*range(at[0] - 2, at[0] + 6), *range(1, len(lines), 9)}):
        folder = tmp_path / f"k{count}"
        (folder / "sessions").mkdir(parents=True)
        torn = lines[count][: len(lines[count]) // 2] if count < len(lines) else ""
        (folder / "sessions" / f"{session_id}.jsonl").write_text("\n".join([*lines[:count], torn]))
        other = compacting(folder)
        session = other.manager.resume(session_id)
        whole = next(iter(session.context.runs.values())).messages if session.context.runs else []
        assert (length(session.context.conversation) < length(whole)) == (count > at[0])
        assert_well_formed(session.context.conversation)
        model = script(other, 1, "Went on.")
        assert (await other.run("Go on", session_id)).summary == "Went on."
        assert_well_formed(model.requests[-1].messages)
        assert reloaded(other).context.conversation == session.context.conversation
        other.store.close()


@pytest.mark.slow
async def test_runs_side_by_side_lose_nothing_to_each_other(tmp_path: Path) -> None:
    """The one that ends first has its say; what the other made shorter was of a conversation that is no more."""
    made = compacting(tmp_path)
    session_id = made.manager.new().session_id
    replies = [reading(f"f{number}.py") for number in range(10)]
    made.models["model"] = ScriptedModel([*replies, ScriptedReply("first", delay=0.6)], info=SMALL)
    one = made.manager.start(RunRequest("run", "ONE", "ONE"), session_id)
    await until(lambda: made.of(events.ContextCompacted))
    made.models["model"] = ScriptedModel([*replies, say("second")], info=SMALL)
    two = made.manager.start(RunRequest("ask", "TWO", "TWO"), session_id)
    answers = {(await made.finished(run_id)).summary for run_id in (one, two)}
    session = made.manager.current()
    asked = [message.content for message in session.context.conversation if message.role == "user" and not message.name]
    assert sorted(asked) == ["ONE", "TWO"]
    assert answers <= {message.content for message in session.context.conversation}
    assert reloaded(made).context.conversation == session.context.conversation
    await asyncio.sleep(0)


# --- joining, by itself


def said(*words: str) -> list[Message]:
    return [Message("user", word) for word in words]


def joined(folder: Path, base: int, generation: int) -> Session:
    session = Session("s", SessionStore(folder))
    session.context.conversation = said("old 1", "old 2")
    record = RunRecord("r", messages=said("a", "b", "c"))
    record.compacted = Compacted(tuple(said("short")), 2, base, generation)
    session.context.conversation.extend(said("meanwhile"))
    session.context.join(record)
    assert record.joined == 3
    session.context.join(record)
    return session


def test_what_was_compacted_takes_the_place_of_what_it_tells_of(tmp_path: Path) -> None:
    session = joined(tmp_path, base=2, generation=0)
    assert session.context.conversation == said("short", "c", "meanwhile")
    assert session.context.generation == 1


def test_a_compaction_of_what_is_no_more_is_left_out(tmp_path: Path) -> None:
    session = joined(tmp_path, base=2, generation=5)
    assert session.context.conversation == said("old 1", "old 2", "meanwhile", "a", "b", "c")
    assert session.context.generation == 0


@pytest.mark.parametrize("junk", [({"role": "user"},), ("x",), ({"content": "c"},)])
def test_a_record_that_makes_no_sense_leaves_the_whole_conversation(junk: tuple[object, ...], tmp_path: Path) -> None:
    stream: list[events.Event] = [
        events.RunStarted(run_id="r"),
        events.MessageAdded(run_id="r", message=message_to_dict(Message("user", "hello"))),
        events.ConversationCompacted(run_id="r", messages=junk),  # type: ignore[arg-type]
        events.MessageAdded(run_id="r", message=message_to_dict(Message("assistant", "hi"))),
        events.RunCompleted(run_id="r"),
    ]
    session = Session("s", SessionStore(tmp_path))
    replay(session, [events.to_dict(event) for event in stream])
    assert [message.content for message in session.context.conversation] == ["hello", "hi"]
