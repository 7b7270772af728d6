"""The loop: calls, results, limits, nudges, failures, and what stays behind when it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from codeagent_lsp import events
from codeagent_lsp.agent.context.history import UNFINISHED, History
from codeagent_lsp.agent.limits import LoopLimits
from codeagent_lsp.agent.loop import ANOTHER_TRY, EMPTY, AgentLoop, LoopResult
from codeagent_lsp.config import Settings
from codeagent_lsp.errors import ContextOverflow, ModelBusy, ModelReplyInvalid, ModelStreamBroken, ModelTimeout
from codeagent_lsp.llm.calls.toolcalling import ToolCallingModel
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import Model, ModelInfo, ModelRequest, Reply, StreamItem, TextChunk
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.messages import Message, ToolCall
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.context import ToolContext, tool_context
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.tools.permissions.approvals import Approvals
from codeagent_lsp.tools.registry import ToolRegistry
from codeagent_lsp.tools.tool import Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.changes.staging import Staging
from tests.session.fakes import assert_well_formed, call, calls, say
from tests.workspace.file_fakes import workspace

Told = TypeVar("Told", bound=events.Event)


class Item(Parameters):
    n: int = 0


@dataclass
class Log:
    lines: list[str] = field(default_factory=list)
    running: int = 0
    most: int = 0


def tool(name: str, effect: str, log: Log, *, ticks: int = 3, answer: str = "") -> Tool[Item]:
    class Fake(Tool[Item]):
        traits = ToolTraits(name, f"fake {name}", effect)  # type: ignore[arg-type]
        parameters = Item

        async def run(self, arguments: Item, context: ToolContext) -> ToolOutput:
            log.running += 1
            log.most = max(log.most, log.running)
            log.lines.append(f"{name}{arguments.n} begins")
            try:
                for _ in range(ticks):
                    await asyncio.sleep(0)
            finally:
                log.running -= 1
            log.lines.append(f"{name}{arguments.n} ends")
            return ToolOutput(answer or f"{name} {arguments.n} gave {len(log.lines)}")

    return Fake()


class NoUser:
    async def ask(self, question: Question) -> tuple[str, ...] | None:
        return None


@dataclass
class Bench:
    """A loop with two fake tools and everything that it told."""

    loop: AgentLoop
    history: History
    told: list[events.Event]
    log: Log
    registry: ToolRegistry

    def of(self, cls: type[Told]) -> list[Told]:
        return [event for event in self.told if isinstance(event, cls)]


def bench(
    tmp_path: Path,
    model: Model,
    limits: LoopLimits | None = None,
    *,
    answer: str = "",
    on_event: Callable[[events.Event], None] = lambda event: None,
) -> Bench:
    space, log, told = workspace(tmp_path), Log(), []
    registry = ToolRegistry([tool("look", "read", log, answer=answer), tool("write", "write", log)])
    context = tool_context(space.view, Staging(lambda path: None), Settings(), asker=NoUser())
    executor = ToolExecutor(registry, context, lambda: "ask", Approvals())
    history = History([Message("system", "rules"), Message("user", "the task")])

    def emit(event: events.Event) -> None:
        told.append(event)
        on_event(event)

    specs = registry.specs(("read", "write"), ("core",))
    loop = AgentLoop(model, executor, history, lambda: specs, emit, limits or LoopLimits())
    return Bench(loop, history, told, log, registry)


async def run(tmp_path: Path, *replies: ScriptedReply, limits: LoopLimits | None = None) -> tuple[LoopResult, Bench]:
    made = bench(tmp_path, ScriptedModel(replies), limits)
    result = await made.loop.run()
    assert_well_formed(made.history.messages)
    return result, made


async def test_an_answer_ends_it(tmp_path: Path) -> None:
    result, made = await run(tmp_path, ScriptedReply("Hello there.", chunks=3))
    assert result == LoopResult("answered", "Hello there.")
    assert "".join(event.content for event in made.told if isinstance(event, events.Token)) == "Hello there."
    assert made.history.messages[-1] == Message("assistant", "Hello there.")
    assert len(made.of(events.UsageReported)) == 1


async def test_reads_of_one_reply_run_at_once_and_answer_in_order(tmp_path: Path) -> None:
    _, made = await run(tmp_path, calls(*(call("look", n=n) for n in range(4))), say())
    assert made.log.most == 4
    results = [message for message in made.history.messages if message.role == "tool"]
    assert [message.content.split()[1] for message in results] == ["0", "1", "2", "3"]


async def test_as_soon_as_one_writes_they_run_in_order(tmp_path: Path) -> None:
    _, made = await run(tmp_path, calls(call("look", n=0), call("write", n=1), call("look", n=2)), say())
    assert made.log.most == 1
    assert made.log.lines == [f"{name} {what}" for name in ("look0", "write1", "look2") for what in ("begins", "ends")]


async def test_thirty_calls_at_once(tmp_path: Path) -> None:
    _, made = await run(tmp_path, calls(*(call("write", n=n) for n in range(30))), say())
    assert len(made.of(events.ToolFinished)) == 30
    assert made.log.most == 1


async def test_calls_are_told_before_they_run(tmp_path: Path) -> None:
    _, made = await run(tmp_path, calls(call("look", n=1)), say())
    kinds = [event.type for event in made.told]
    assert kinds.index("tool_calls") < kinds.index("tool_result")


@pytest.mark.parametrize("ids", [("", ""), ("x", "x"), ("x", "x_1"), ("x_1", "x"), ("call_1", "")])
async def test_ids_are_made_unique_over_the_whole_conversation(tmp_path: Path, ids: tuple[str, str]) -> None:
    replies = [Reply("", tuple(ToolCall("look", {"n": 2 * turn + n}, ids[n]) for n in (0, 1))) for turn in range(3)]
    made = bench(tmp_path, Replies([*replies, Reply("done")]))
    assert (await made.loop.run()).ending == "answered"
    assert_well_formed(made.history.messages)
    told = [event.call_id for event in made.told if isinstance(event, events.ToolFinished)]
    assert len(set(told)) == 6


async def test_unknown_tools_and_wrong_arguments_go_back_to_the_model(tmp_path: Path) -> None:
    result, made = await run(tmp_path, calls(call("fly"), call("look", n="many"), call("look", m=1)), say())
    texts = [message.content for message in made.history.messages if message.role == "tool"]
    assert "no tool 'fly'" in texts[0]
    assert "look, write" in texts[0]
    assert "n:" in texts[1]
    assert "m:" in texts[2]
    assert result.ending == "answered"
    assert [event.success for event in made.told if isinstance(event, events.ToolFinished)] == [False] * 3


async def test_the_limit_counts_model_calls(tmp_path: Path) -> None:
    replies = [calls(call("look", n=n)) for n in range(9)]
    result, made = await run(tmp_path, *replies, limits=LoopLimits(iterations=4))
    assert result.ending == "limit"
    assert len(made.of(events.UsageReported)) == 4


async def test_one_nudge_and_then_a_stop(tmp_path: Path) -> None:
    model = ScriptedModel([calls(call("look", n=1))], loop=True)
    made = bench(tmp_path, model, LoopLimits(iterations=20), answer="always the same")
    result = await made.loop.run()
    assert result.ending == "anomaly"
    anomalies = [event.action for event in made.told if isinstance(event, events.AnomalyDetected)]
    assert anomalies == ["nudge", "stop"]
    assert len(model.requests) == 4
    assert "repeating yourself" in model.requests[3].messages[-1].content
    assert_well_formed(made.history.messages)


async def test_a_model_that_heeds_the_nudge_may_go_on(tmp_path: Path) -> None:
    same = calls(call("look", n=1))
    made = bench(tmp_path, ScriptedModel([same, same, same, calls(call("look", n=2)), say("ok")]), answer="same")
    assert (await made.loop.run()) == LoopResult("answered", "ok")


async def test_text_that_repeats_is_cut_short_and_only_its_beginning_is_kept(tmp_path: Path) -> None:
    loop = ScriptedReply("I will look at the file once more, to be sure. " * 500, chunks=2000)
    result, made = await run(tmp_path, loop, loop)
    assert result.ending == "anomaly"
    assert max(len(message.content) for message in made.history.messages) < 1000
    assert len(made.of(events.Token)) < 400


async def test_what_the_model_thinks_is_told_and_not_part_of_its_answer(tmp_path: Path) -> None:
    result, made = await run(tmp_path, ScriptedReply("Four.", reasoning="Two and two."))
    assert result.text == "Four."
    assert [event.content for event in made.of(events.Thought)] == ["Two and two."]
    assert [event.content for event in made.of(events.Token)] == ["Four."]
    assert all("Two" not in message.content for message in made.history.messages)


async def test_reasoning_that_repeats_is_seen_too(tmp_path: Path) -> None:
    circle = ScriptedReply("x", reasoning="Wait, maybe I should check that again before. " * 60)
    result, made = await run(tmp_path, circle, say("better"))
    assert result == LoopResult("answered", "better")
    assert [event.kind for event in made.told if isinstance(event, events.AnomalyDetected)] == ["repeated_text"]


async def test_a_malformed_call_goes_back_to_the_model(tmp_path: Path) -> None:
    model = ScriptedModel([ScriptedReply("{", problem="Your call is not JSON."), say("ok")])
    made = bench(tmp_path, model)
    assert (await made.loop.run()).text == "ok"
    assert model.requests[1].messages[-1].content == "Your call is not JSON."


async def test_calls_that_do_not_fit_are_told_counted_and_stop_the_run(tmp_path: Path) -> None:
    """A call that does not fit is shown as a failed one, and repeated, it is a loop as any other."""
    unfit = ScriptedReply('{"tool": "look", "args": {"n": "many"}}')
    made = bench(tmp_path, ToolCallingModel(ScriptedModel([unfit] * 8), "text"))
    assert (await made.loop.run()).ending == "anomaly"
    assert [call["name"] for event in made.of(events.ToolCalls) for call in event.calls] == ["look"] * 4
    results = made.of(events.ToolFinished)
    assert len(results) == 4 and not any(event.success for event in results)
    assert {event.call_id for event in results} == {
        call["id"] for event in made.of(events.ToolCalls) for call in event.calls
    }
    assert [event.action for event in made.of(events.AnomalyDetected)] == ["nudge", "stop"]
    assert made.registry.circuits.state("look") == "open"


async def test_a_call_in_an_answer_is_asked_about_once(tmp_path: Path) -> None:
    example = ScriptedReply('It is called so:\n```json\n{"tool": "look", "args": {"n": 1}}\n```\nThat reads one.')
    made = bench(tmp_path, ToolCallingModel(ScriptedModel([example, example]), "text"))
    assert await made.loop.run() == LoopResult("answered", example.text)
    again = bench(tmp_path, ToolCallingModel(ScriptedModel([example, calls(call("look", n=1)), say("done")]), "native"))
    assert await again.loop.run() == LoopResult("answered", "done")
    assert [event.success for event in again.of(events.ToolFinished)] == [False, True]


async def test_a_problem_beside_good_calls_is_told_after_their_results(tmp_path: Path) -> None:
    reply = ScriptedReply("", (call("look", n=1),), problem="The second call was cut.")
    model = ScriptedModel([reply, say()])
    made = bench(tmp_path, model)
    await made.loop.run()
    assert [message.role for message in model.requests[1].messages[-3:]] == ["assistant", "tool", "user"]
    assert model.requests[1].messages[-1].content == "The second call was cut."


async def test_an_empty_reply_is_asked_again_once(tmp_path: Path) -> None:
    model = ScriptedModel([ScriptedReply(" \n"), say("here")])
    made = bench(tmp_path, model)
    assert (await made.loop.run()) == LoopResult("answered", "here")
    assert model.requests[1].messages[-1].content == EMPTY
    assert all(message.content.strip() for message in made.history.messages)


async def test_what_stands_for_a_missing_answer_is_no_answer(tmp_path: Path) -> None:
    made = bench(tmp_path, ScriptedModel([say(f" {UNFINISHED}\n"), say("here")]))
    assert (await made.loop.run()) == LoopResult("answered", "here")
    assert UNFINISHED not in [message.content.strip() for message in made.history.messages]


async def test_after_a_spoilt_reply_the_model_is_not_asked_for_the_same_again(tmp_path: Path) -> None:
    model = ScriptedModel([ScriptedReply("{", problem="Your call is not JSON."), calls(call("look", n=1)), say("ok")])
    await bench(tmp_path, model).loop.run()
    assert [request.temperature for request in model.requests] == [0.0, ANOTHER_TRY, 0.0]


async def test_a_higher_temperature_of_the_user_is_kept(tmp_path: Path) -> None:
    model = ScriptedModel([ScriptedReply("{", problem="Your call is not JSON."), say("ok")])
    await bench(tmp_path, model, LoopLimits(temperature=0.8)).loop.run()
    assert [request.temperature for request in model.requests] == [0.8, 0.8]


async def test_two_empty_replies_are_an_error(tmp_path: Path) -> None:
    made = bench(tmp_path, ScriptedModel([ScriptedReply(), ScriptedReply()]))
    with pytest.raises(ModelReplyInvalid):
        await made.loop.run()
    assert_well_formed(made.history.messages)


async def test_overflow_is_tried_once_more_with_less(tmp_path: Path) -> None:
    model = ScriptedModel([calls(call("look", n=1)), ScriptedReply(error="overflow"), say("fits")])
    made = bench(tmp_path, model, LoopLimits(window=6000, reply_tokens=500), answer="x\n" * 5000)
    assert (await made.loop.run()).text == "fits"
    sizes = [sum(len(message.content) for message in request.messages) for request in model.requests]
    assert sizes[2] < sizes[1]
    compacted = made.of(events.ContextCompacted)
    assert len(compacted) == 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("busy", ModelBusy),
        ("timeout", ModelTimeout),
        ("broken", ModelStreamBroken),
        ("overflow", ContextOverflow),
    ],
)
async def test_errors_of_the_model_pass_and_leave_a_whole_history(
    tmp_path: Path, error: str, expected: type[Exception]
) -> None:
    failing = ScriptedReply("part", error=error)
    made = bench(tmp_path, ScriptedModel([calls(call("look", n=1)), failing, failing]))
    with pytest.raises(expected):
        await made.loop.run()
    assert_well_formed(made.history.messages)


class Replies:
    """A model whose replies are given as they are."""

    def __init__(self, replies: list[Reply]) -> None:
        self.replies = replies
        self.requests: list[ModelRequest] = []
        self.info = ModelInfo("replies", "fake", facts=window_known(8192))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        self.requests.append(request)
        if not self.replies:
            yield TextChunk("half a sen")
            return
        yield self.replies.pop(0)

    async def count_tokens(self, text: str) -> int:
        return len(text)

    async def close(self) -> None:
        return None


async def test_a_stream_without_an_end_is_no_answer(tmp_path: Path) -> None:
    made = bench(tmp_path, Replies([]))
    with pytest.raises(ModelStreamBroken):
        await made.loop.run()


async def test_an_answer_that_was_cut_is_continued(tmp_path: Path) -> None:
    model = Replies([Reply("first half, ", finish_reason="length"), Reply("second half")])
    made = bench(tmp_path, model)
    assert (await made.loop.run()) == LoopResult("answered", "first half, second half")
    assert "cut at its length limit of 2,048 tokens" in model.requests[1].messages[-1].content


async def test_the_prompt_only_grows_while_it_fits(tmp_path: Path) -> None:
    model = ScriptedModel([*(calls(call("look", n=n)) for n in range(6)), say()])
    await bench(tmp_path, model, LoopLimits(window=30_000)).loop.run()
    for earlier, later in zip(model.requests, model.requests[1:], strict=False):
        assert later.messages[: len(earlier.messages)] == earlier.messages
        assert later.tools == earlier.tools


CANCELLED = (
    ScriptedReply("I look", (call("look", n=1), call("look", n=2)), chunks=2),
    ScriptedReply("", (call("write", n=3), call("look", n=4))),
    ScriptedReply("Finished.", chunks=3),
)


async def cancelled_at(tmp_path: Path, stop_at: int) -> bool:
    """Cancels a run at an event and looks at what is left; whether it came to its end before."""
    seen = 0

    def on_event(event: events.Event) -> None:
        nonlocal seen
        seen += 1
        if seen == stop_at:
            task.cancel()

    made = bench(tmp_path, ScriptedModel(CANCELLED), on_event=on_event)
    before = asyncio.all_tasks()
    task = asyncio.ensure_future(made.loop.run())
    await asyncio.wait([task])
    assert_well_formed(made.history.messages)
    assert made.history.messages[-1].role == "assistant"
    assert made.log.running == 0
    assert asyncio.all_tasks() == before
    return not task.cancelled() and task.result().ending == "answered"


async def test_cancelled_at_any_event_it_leaves_a_whole_history_and_nothing_running(tmp_path: Path) -> None:
    for stop_at in range(1, 100):
        if await cancelled_at(tmp_path, stop_at):
            break
    assert 8 < stop_at < 99


async def test_a_repeated_tool_is_taken_out_of_the_grammar_until_another_was_called(tmp_path: Path) -> None:
    same = calls(call("look", n=1))
    model = ScriptedModel([same, same, same, calls(call("write", n=1)), say()])
    made = bench(tmp_path, model, answer="the same")
    await made.loop.run()
    assert [request.allowed for request in model.requests] == [None, None, None, ("write",), None]
