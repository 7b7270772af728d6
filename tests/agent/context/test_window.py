"""Two hundred calls in a small window: every prompt fits, grows from the one before, and keeps the user's words."""

from __future__ import annotations

import asyncio
import json
import random
from itertools import pairwise
from typing import Any

import pytest

from codeagent_lsp import events
from codeagent_lsp.agent.context.compaction import KeptFacts
from codeagent_lsp.agent.context.history import SUMMARY, UNCHANGED, FocusedFiles, History, is_request, size
from codeagent_lsp.agent.context.window import SHORTENED, ConversationWindow
from codeagent_lsp.agent.limits import LoopLimits
from codeagent_lsp.errors import ContextOverflow
from codeagent_lsp.llm import wire
from codeagent_lsp.messages import Message, ToolCall, ToolSpec
from tests.session.fakes import assert_well_formed

WINDOW = 8192
REPLY = 2048
TOOLS = tuple(
    ToolSpec(name=name, description=f"{name} does what its name says. " * 8, parameters={"type": "object"})
    for name in ("read_file", "edit_file", "run_cmd", "grep", "list_dir", "write_file", "todowrite", "AskUser") * 2
)


def real_tokens(messages: tuple[Message, ...], tools: tuple[ToolSpec, ...], per_token: float) -> int:
    """What a server would count: all bytes that go over the wire."""
    body = json.dumps([wire.chat_messages(messages), wire.tool_list(tools)], ensure_ascii=False)
    return int(len(body.encode()) / per_token)


def random_text(chance: random.Random) -> str:
    kind = chance.choice(["short", "code", "long", "huge", "chinese", "line"])
    words = ["alpha", "def", "return", "error", "value", "x_1", "==", "  "]
    match kind:
        case "short":
            return "ok"
        case "line":
            return chance.choice(words) * chance.randint(100, 20_000)
        case "chinese":
            return "\n".join("这是一行中文结果" * chance.randint(1, 9) for _ in range(chance.randint(1, 300)))
        case _:
            count = {"code": 60, "long": 400, "huge": 4000}[kind]
            return "\n".join(" ".join(chance.choices(words, k=6)) for _ in range(chance.randint(1, count)))


def random_calls(chance: random.Random, number: int) -> tuple[ToolCall, ...]:
    """What one reply can hold: its arguments are bounded by the tokens of a reply."""
    made, count = [], chance.choice([1, 1, 1, 2, 5])
    for position in range(count):
        name = chance.choice(["read_file", "edit_file", "run_cmd", "grep", "write_file"])
        arguments: dict[str, object] = {"path": f"src/file{chance.randint(0, 5)}.py"}
        if name == "write_file":
            arguments["content"] = "y = 1\n" * chance.randint(1, 900 // count)
        made.append(ToolCall(name, arguments, f"c{number}_{position}"))
    return tuple(made)


class Script:
    """A run without a model: asks, answers with random calls and results, and checks every prompt."""

    def __init__(self, seed: int, per_token: float, *, summarises: bool, reports: bool = True) -> None:
        self.chance = random.Random(seed)
        self.per_token = per_token
        self.reports = reports
        self.compactions: list[events.ContextCompacted] = []
        self.todos = "[>] 1: the first (high)"
        self.files = FocusedFiles(limit=20_000).seen("src/file0.py", "1|x = 1\n" * 40)
        self.history = History([Message("system", "rules " * 300), Message("user", "Fix src/file3.py 请修复")])
        self.window = ConversationWindow(
            self.history,
            LoopLimits(window=WINDOW, reply_tokens=REPLY),
            self._emit,
            self._kept,
            self._summarise if summarises else None,
        )
        self.asked = 0

    def _emit(self, event: events.Event) -> None:
        assert isinstance(event, events.ContextCompacted)
        self.compactions.append(event)

    async def _kept(self) -> KeptFacts:
        return KeptFacts(self.todos, "", ("src/file3.py",), self.files)

    async def _summarise(self, messages: tuple[Message, ...], tokens: int) -> str:
        assert real_tokens(messages, TOOLS, self.per_token) + tokens <= WINDOW
        assert_well_formed(messages)
        self.asked += 1
        return self.chance.choice(["", "I read files and fixed one.", "too many words " * 2000])

    async def prompt(self) -> tuple[Message, ...]:
        await self.window.fit(TOOLS)
        messages = self.history.messages
        counted = real_tokens(messages, TOOLS, self.per_token)
        assert counted + REPLY <= WINDOW
        assert_well_formed(messages)
        told = [message.role for message in wire.tidy(messages) if message.role != "tool"]
        assert told[:2] == ["system", "user"]
        assert all(earlier == "assistant" or later == "assistant" for earlier, later in pairwise(told[1:]))
        self.window.told(TOOLS, counted if self.reports else 0)
        return messages

    def work(self, number: int) -> None:
        calls = random_calls(self.chance, number)
        self.history.append(Message("assistant", self.chance.choice(["", "I go on."]), calls))
        results = self.window.admit(calls, [random_text(self.chance) for _ in calls], TOOLS)
        for call, text in zip(calls, results, strict=True):
            self.history.append(Message("tool", text, tool_call_id=call.id, name=call.name))


@pytest.mark.slow
@pytest.mark.parametrize("summarises", [True, False])
@pytest.mark.parametrize(("seed", "per_token"), [(1, 3.9), (2, 3.3), (3, 4.5)])
async def test_two_hundred_calls_in_a_small_window(seed: int, per_token: float, summarises: bool) -> None:
    await long_run(Script(seed, per_token, summarises=summarises), 200)


@pytest.mark.slow
async def test_two_hundred_calls_with_a_server_that_does_not_count() -> None:
    await long_run(Script(4, 3.6, summarises=True, reports=False), 200)


@pytest.mark.slow
async def test_forty_calls_in_a_small_window() -> None:
    await long_run(Script(5, 3.6, summarises=True), 40)


async def long_run(script: Script, calls: int) -> None:
    said = [message for message in script.history.messages if is_request(message)]
    previous, seen = await script.prompt(), 0
    kept_prefix = 0
    for number in range(calls):
        script.work(number)
        if number % 37 == 36:
            script.history.append(Message("assistant", "Done."))
            said.append(Message("user", f"Next task {number}: 继续"))
            script.history.append(said[-1])
        messages = await script.prompt()
        if len(script.compactions) == seen:
            assert messages[: len(previous)] == previous
            kept_prefix += 1
        else:
            assert [message.name for message in messages].count(SUMMARY) == 1
            assert script.todos in next(message.content for message in messages if message.name == SUMMARY)
        assert [message for message in messages if is_request(message)] == said
        previous, seen = messages, len(script.compactions)
    assert seen > 0
    assert all(event.after < event.before for event in script.compactions)
    print(f"\n{calls} calls: {seen} compactions, {script.asked} asked, {kept_prefix} prompts grew from the last")
    assert kept_prefix > calls / 2


def window(history: History, told: list[events.Event] | None = None, **limits: Any) -> ConversationWindow:
    emitted: list[events.Event] = [] if told is None else told
    return ConversationWindow(history, LoopLimits(**{"window": 4000, "reply_tokens": 500, **limits}), emitted.append)


def read(number: int, text: str, tool: str = "read_file") -> list[Message]:
    call = ToolCall(tool, {"path": "a.py"}, f"c{number}")
    return [Message("assistant", "", (call,)), Message("tool", text, tool_call_id=call.id, name=call.name)]


async def test_what_fits_is_left_alone() -> None:
    history = History([Message("system", "s"), Message("user", "t"), *read(1, "x" * 3000)])
    before = history.messages
    await window(history).fit(())
    assert history.messages is not before
    assert history.messages == before


async def test_many_messages_go_at_the_border_of_a_request() -> None:
    turns = [[Message("user", f"t{n}"), Message("assistant", "an answer of some length " * 8)] for n in range(12)]
    history = History(
        [Message("system", "s"), *(message for turn in turns for message in turn), Message("user", "now")]
    )
    told: list[events.Event] = []
    await window(history, told, messages=10).fit(())
    assert len(told) == 1
    assert history.messages[-1] == Message("user", "now")
    assert history.messages[-2].name == SUMMARY
    assert len([m for m in history.messages if is_request(m)]) == 13


async def test_one_long_turn_is_no_reason_to_trim() -> None:
    history = History([Message("system", "s"), Message("user", "t")])
    for number in range(40):
        for message in read(number, "ok"):
            history.append(message)
    told: list[events.Event] = []
    await window(history, told, messages=10, window=100_000).fit(())
    assert not told


@pytest.mark.slow
async def test_what_can_never_fit_is_a_clear_error_after_three_tries() -> None:
    calls = tuple(ToolCall("write_file", {"path": "a", "content": "x"}, f"c{number}") for number in range(200))
    results = [Message("tool", "ok", (), call.id) for call in calls]
    history = History([Message("user", "t"), Message("assistant", "", calls), *results])
    with pytest.raises(ContextOverflow) as caught:
        await window(history).fit(())
    assert "4000" in str(caught.value)


async def test_a_request_larger_than_the_window_is_cut_as_the_last_resort() -> None:
    history = History([Message("system", "s"), Message("user", "word " * 9000 + "\nthe end")])
    await window(history).fit(())
    assert size(history.messages) <= 3500
    assert history.messages[-1].content.endswith("the end")


async def test_a_server_that_overflows_is_believed() -> None:
    history = History([Message("system", "s"), Message("user", "t"), *read(1, "x\n" * 1500), *read(2, "y\n" * 1500)])
    small = window(history)
    await small.fit(())
    before = size(history.messages)
    assert await small.shrink(())
    assert size(history.messages) < before
    attempts = 0
    while await small.shrink(()):
        attempts += 1
    assert attempts <= 2


def test_results_share_the_room_and_say_when_they_are_cut() -> None:
    history = History([Message("system", "s"), Message("user", "find needle_42")])
    calls = tuple(ToolCall("grep", {"pattern": str(n)}, f"c{n}") for n in range(3))
    text = "\n".join(f"nothing {n}" for n in range(4000))
    long = text.replace("nothing 2000", "needle_42 is here")
    first, second, third = window(history).admit(calls, ["short", long, text], ())
    assert first == "short"
    assert second.endswith(SHORTENED)
    assert "needle_42 is here" in second
    assert size([Message("tool", second), Message("tool", third)]) < 1000


def test_a_file_that_stands_above_is_referred_to() -> None:
    text = "line\n" * 200
    history = History([Message("user", "t"), *read(1, text)])
    again = ToolCall("read_file", {"path": "a.py"}, "c2")
    assert window(history, window=50_000).admit((again,), [text], ())[0].startswith(UNCHANGED)


async def test_cancelled_while_it_is_summarised_nothing_has_changed() -> None:
    async def never(messages: tuple[Message, ...], tokens: int) -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    begun = asyncio.Event()
    history = History([Message("user", "t"), *(message for n in range(6) for message in read(n, "x\n" * 830, "grep"))])
    before = history.messages
    small = ConversationWindow(history, LoopLimits(window=4000, reply_tokens=500), lambda event: None, summarise=never)
    task = asyncio.ensure_future(small.fit(()))
    await asyncio.wait_for(begun.wait(), 5)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert history.messages == before


async def test_when_little_can_be_taken_away_it_is_not_tried_at_every_call() -> None:
    history = History([Message("system", "s" * 9000), Message("user", "t")])
    told: list[events.Event] = []
    small = window(history, told, window=4096, reply_tokens=512)
    for number in range(12):
        for message in read(number, "ok " * 20):
            history.append(message)
        await small.fit(())
        small.told((), 0)
    assert len(told) <= 5
