"""Limits that follow the model's window, and how the loop keeps them: calls, messages, length of replies, thoughts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.agent.context.compaction import SUMMARISE
from codeagent_lsp.agent.context.history import History, note
from codeagent_lsp.agent.context.window import ConversationWindow
from codeagent_lsp.agent.limits import LoopLimits, limits_for
from codeagent_lsp.config import AgentSettings, ContextSettings, ModelSettings, Settings
from codeagent_lsp.llm.learned_facts import Facts, combine
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, ReasoningChunk, Reply, StreamItem, TextChunk
from codeagent_lsp.messages import Message, Usage
from tests.agent.test_loop import Bench, bench
from tests.session.fakes import call

WIDE = LoopLimits(iterations=200, messages=None, window=200_000, reply_tokens=20_000, longest_reply=100_000)


def info(window: int | None, reply: int | None = None, *, local: bool = False) -> ModelInfo:
    facts = combine([("server", Facts(context_window=window, longest_reply=reply))])
    return ModelInfo("m", "openai", facts=facts, tool_calling="native", local=local)


@pytest.mark.parametrize(
    ("window", "reply", "calls", "messages", "tokens", "longest"),
    [
        (None, None, 20, 30, 2048, 2048),
        (8_192, None, 20, 30, 2048, 2048),
        (16_000, None, 20, 30, 4000, 4000),
        (16_384, None, 200, None, 4096, 8192),
        (32_768, None, 200, None, 8192, 16_384),
        (200_000, None, 200, None, 32_000, 100_000),
        (200_000, 64_000, 200, None, 64_000, 64_000),
        (200_000, 8_192, 200, None, 8_192, 8_192),
        (128_000, 128_000, 200, None, 64_000, 64_000),
    ],
)
def test_what_auto_means(
    window: int | None, reply: int | None, calls: int, messages: int | None, tokens: int, longest: int
) -> None:
    limits = limits_for(Settings(), info(window, reply))
    assert (limits.iterations, limits.messages) == (calls, messages)
    assert (limits.reply_tokens, limits.longest_reply) == (tokens, longest)


def test_the_users_own_numbers_hold_in_every_window() -> None:
    settings = Settings(
        model=ModelSettings(max_tokens=1000),
        agent=AgentSettings(max_iterations=7),
        context=ContextSettings(max_messages=12),
    )
    for window in (8_192, 200_000):
        limits = limits_for(settings, info(window))
        assert (limits.iterations, limits.messages, limits.reply_tokens, limits.longest_reply) == (7, 12, 1000, 1000)


def test_long_replies_do_not_have_a_large_window_compacted_early() -> None:
    limits = limits_for(Settings(), info(200_000, 64_000))
    assert limits.window - limits.reserved - limits.window // 32 >= limits.compact_at * limits.window
    assert limits_for(Settings(), info(8_192)).reserved == 2048


@dataclass
class Talk:
    """A model that gives these items, a list for each request, and keeps the requests."""

    replies: list[Sequence[StreamItem]]
    window: int = 200_000
    requests: list[ModelRequest] = field(default_factory=list)

    @property
    def info(self) -> ModelInfo:
        return info(self.window)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        self.requests.append(request)
        for item in self.replies.pop(0):
            yield item

    async def count_tokens(self, text: str) -> int:
        return len(text)

    async def close(self) -> None:
        return None


def said(text: str) -> list[StreamItem]:
    return [TextChunk(text), Reply(text)]


def looks(number: int) -> list[StreamItem]:
    return [Reply("", (replace(call("look", n=number), id=f"c{number}"),))]


def made(tmp_path: Path, model: Talk, limits: LoopLimits, *, answer: str = "") -> Bench:
    return bench(tmp_path, model, limits, answer=answer)


@pytest.mark.slow
async def test_150_calls_are_one_conversation_that_only_grows(tmp_path: Path) -> None:
    model = Talk([*(looks(number) for number in range(150)), said("Done.")])
    result = await made(tmp_path, model, WIDE, answer="x" * 2_000).loop.run()
    assert (result.ending, len(model.requests)) == ("answered", 151)
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        assert after.messages[: len(before.messages)] == before.messages


async def test_the_last_calls_are_told(tmp_path: Path) -> None:
    model = Talk([*(looks(number) for number in range(5)), said("As far as I came.")])
    result = await made(tmp_path, model, replace(WIDE, iterations=6, closes=True)).loop.run()
    assert result.ending == "answered"
    told = [request.messages[-1].content for request in model.requests]
    assert told[3].startswith("3 model calls are left") and told[5].startswith("This is your last reply")
    assert [index for index, text in enumerate(told) if "left" in text or "last reply" in text] == [3, 5]


async def test_a_reply_of_20000_tokens_fits_and_is_asked_for(tmp_path: Path) -> None:
    long = " ".join(f"word{number}" for number in range(10_000))
    model = Talk([said(long)])
    result = await made(tmp_path, model, limits_for(Settings(), info(200_000))).loop.run()
    assert result.text == long and model.requests[0].max_tokens == 32_000


async def test_after_a_cut_the_next_reply_may_be_twice_as_long_and_the_model_is_told(tmp_path: Path) -> None:
    cut: list[StreamItem] = [TextChunk("half "), Reply("half ", finish_reason="length")]
    model = Talk([cut, cut, cut, said("end")])
    result = await made(tmp_path, model, replace(WIDE, longest_reply=50_000)).loop.run()
    assert result.text == "half half half end"
    assert [request.max_tokens for request in model.requests] == [20_000, 40_000, 50_000, 50_000]
    assert "limit of 20,000 tokens" in model.requests[1].messages[-1].content
    assert "may have 40,000" in model.requests[1].messages[-1].content
    assert "may have" not in model.requests[3].messages[-1].content


async def test_a_call_that_was_cut_names_the_limit(tmp_path: Path) -> None:
    cut: list[StreamItem] = [Reply("", finish_reason="length", problem="The call of write was cut.")]
    model = Talk([cut, said("end")])
    await made(tmp_path, model, WIDE).loop.run()
    told = model.requests[1].messages[-1].content
    assert told == "The call of write was cut. The limit was 20,000 tokens. Your next reply may have 40,000."


async def test_prompt_and_reply_share_the_window(tmp_path: Path) -> None:
    model = Talk([looks(1), looks(2), said("end")])
    limits = limits_for(Settings(), info(40_000))
    long = " ".join(map(str, range(20_000)))
    await made(tmp_path, model, replace(limits, reply_tokens=30_000), answer=long).loop.run()
    first, *_, last = (request.max_tokens for request in model.requests)
    assert first == 30_000 and last is not None and limits.reserved <= last < 30_000


async def test_thoughts_without_an_end_are_cut_and_asked_for_without(tmp_path: Path) -> None:
    thoughts: list[StreamItem] = [ReasoningChunk(f"thought {number}, ") for number in range(3_000)]
    model = Talk([thoughts, said("The answer.")])
    limits = limits_for(Settings(), info(32_768, local=True))
    assert limits.thought_tokens == 8192
    result = await made(tmp_path, model, limits).loop.run()
    assert result.text == "The answer." and [request.thinks for request in model.requests] == [True, False]
    assert "without thinking" in model.requests[1].messages[-1].content


async def test_a_reply_that_is_all_thoughts_is_asked_for_without(tmp_path: Path) -> None:
    thought: list[StreamItem] = [ReasoningChunk("hm"), Reply("", finish_reason="length", reasoning="hm", problem="cut")]
    model = Talk([thought, said("The answer.")])
    result = await made(tmp_path, model, WIDE).loop.run()
    assert result.text == "The answer." and not model.requests[1].thinks


@pytest.mark.slow
async def test_hosted_models_think_as_long_as_they_want(tmp_path: Path) -> None:
    model = Talk([[*(ReasoningChunk(f"thought {number}, ") for number in range(20_000)), *said("The answer.")]])
    result = await made(tmp_path, model, limits_for(Settings(), info(200_000))).loop.run()
    assert result.text == "The answer." and len(model.requests) == 1


async def test_nobody_is_asked_to_summarise_what_is_not_there() -> None:
    """The first request is larger than the window's share, and the model has done nothing yet."""
    asked: list[tuple[Message, ...]] = []

    async def summarise(messages: tuple[Message, ...], tokens: int) -> str:
        asked.append(messages)
        return "(no conversation was shown to me)"

    history = History([Message("system", "rules"), note("a file: " + "z" * 300_000), Message("user", "the task")])
    told: list[events.Event] = []
    limits = replace(WIDE, window=60_000, reply_tokens=4_000)
    window = ConversationWindow(history, limits, told.append, summarise=summarise)
    await window.fit(())
    assert not asked and all("no conversation" not in message.content for message in history.messages)
    assert history.messages[-1].content == "the task"


async def test_a_summary_is_asked_for_once_there_is_work_to_tell_of(tmp_path: Path) -> None:
    usage = Usage(prompt_tokens=1)
    replies: list[Sequence[StreamItem]] = [looks(number) for number in range(40)]
    model = Talk([*replies, [Reply("What I found.", usage=usage)], said("Done.")], window=40_000)
    limits = replace(limits_for(Settings(), info(40_000)), reply_tokens=4_000)
    test = made(tmp_path, model, limits, answer="w " * 1_600)
    result = await test.loop.run()
    assert result.ending in ("answered", "limit")
    words = SUMMARISE.partition("{")[0]
    assert any(request.messages[-1].content.startswith(words) for request in model.requests)
