"""Trying again: what is, what is not, how long is waited, and that cancelling is never swallowed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from codeagent_lsp.errors import (
    ContextOverflow,
    ModelBusy,
    ModelError,
    ModelNotFound,
    ModelRejected,
    ModelReplyInvalid,
    ModelStreamBroken,
    ModelTimeout,
    ModelUnreachable,
)
from codeagent_lsp.llm.endpoint import endpoint
from codeagent_lsp.llm.failures import from_response, retry_after, server_message
from codeagent_lsp.llm.model import ReasoningChunk, Reply, StreamItem, TextChunk
from codeagent_lsp.llm.providers.http_model import ReplySource, RetryPolicy, is_empty, patient, retry_if_empty
from codeagent_lsp.messages import ToolCall

QUICK = RetryPolicy(first_wait=0.01, longest_wait=0.5, longest_asked=0.5, jitter=0.01, total=5)
DOWN = ModelUnreachable("model.unreachable", url="u", reason="r")
CUT = ModelStreamBroken("model.stream_cut", url="u")
DNS = ModelUnreachable("model.dns", url="u", reason="r")
NO = ModelRejected("model.rejected", url="u", status=400, reason="r")
NOW = datetime(2030, 1, 1, tzinfo=UTC)
ANTHROPIC = {
    "anthropic-ratelimit-input-tokens-remaining": "0",
    "anthropic-ratelimit-input-tokens-reset": "2030-01-01T00:00:07Z",
    "anthropic-ratelimit-requests-remaining": "0",
    "anthropic-ratelimit-requests-reset": "2030-01-01T00:00:02Z",
}


class Takes:
    """A source whose n-th opening plays the n-th take: items, and an error at the end or none."""

    def __init__(self, *takes: list[StreamItem | Exception]) -> None:
        self.opened = 0
        self.closed = 0
        self._takes = takes

    async def __call__(self) -> AsyncGenerator[StreamItem, None]:
        take = self._takes[min(self.opened, len(self._takes) - 1)]
        self.opened += 1
        try:
            for item in take:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.closed += 1


class Slept:
    """Waits no time, and keeps how long it should have."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


async def play(source: ReplySource) -> list[StreamItem]:
    return [item async for item in source()]


OK: list[StreamItem | Exception] = [TextChunk("a"), Reply("a")]


@pytest.mark.slow
@pytest.mark.parametrize("error", [DOWN, CUT, ModelBusy("model.busy", url="u", reason="r")])
async def test_passing_failures_are_tried_three_times(error: ModelError) -> None:
    takes = Takes([error], [error], OK)
    assert await play(lambda: patient(takes, QUICK)) == OK
    assert (takes.opened, takes.closed) == (3, 3)
    takes = Takes([error])
    with pytest.raises(type(error)):
        await play(lambda: patient(takes, QUICK))
    assert takes.opened == 3


@pytest.mark.parametrize("error", [DNS, NO, ValueError("a bug")])
async def test_other_failures_are_not_tried_again(error: Exception) -> None:
    takes = Takes([error], OK)
    with pytest.raises(type(error)):
        await play(lambda: patient(takes, QUICK))
    assert takes.opened == 1


async def test_nothing_is_tried_again_once_something_was_shown() -> None:
    takes = Takes([TextChunk("a"), CUT], OK)
    with pytest.raises(ModelStreamBroken):
        await play(lambda: patient(takes, QUICK))
    assert (takes.opened, takes.closed) == (1, 1)


async def test_the_servers_wait_is_kept_to_and_a_long_one_told() -> None:
    takes = Takes([ModelBusy("model.busy", url="u", reason="r", retry_after=0.2)], OK)
    slept = Slept()
    await play(lambda: patient(takes, QUICK, slept))
    assert len(slept.seconds) == 1 and 0.2 <= slept.seconds[0] <= 0.2 + QUICK.jitter
    takes = Takes([ModelBusy("model.busy", url="u", reason="r", retry_after=60)], OK)
    with pytest.raises(ModelBusy, match="60 s"):
        await play(lambda: patient(takes, QUICK))
    assert takes.opened == 1


async def test_closing_early_closes_the_source() -> None:
    takes = Takes([TextChunk("a"), TextChunk("b"), Reply("ab")])
    items = retry_if_empty(lambda: patient(takes, QUICK), "m")
    assert await anext(items) == TextChunk("a")
    await items.aclose()
    assert takes.closed == 1


async def test_cancelling_while_waiting_is_not_swallowed() -> None:
    takes = Takes([ModelBusy("model.busy", url="u", reason="r", retry_after=0.4)])
    task = asyncio.create_task(play(lambda: patient(takes, QUICK)))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert takes.opened == takes.closed == 1


async def test_cancelling_while_the_source_opens_is_not_swallowed() -> None:
    async def slow() -> AsyncGenerator[StreamItem, None]:
        await asyncio.sleep(30)
        yield Reply("late")

    task = asyncio.create_task(play(lambda: patient(slow, QUICK)))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Tue, 01 Jan 2030 00:00:05 GMT"}, 5.0),
        ({"retry-after": "Tue, 01 Jan 2020 00:00:05 GMT"}, 0.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m2.5s"}, 62.5),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20ms"}, 0.02),
        ({"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "9s"}, None),
        (ANTHROPIC | {"anthropic-ratelimit-requests-remaining": "1"}, 7.0),
        (ANTHROPIC | {"retry-after": "3"}, 3.0),
        (ANTHROPIC | {"anthropic-ratelimit-requests-reset": "some day"}, 7.0),
        ({"x-ratelimit-remaining": "0"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1.2.3s"}, 0.0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (b'{"error": {"message": "m", "type": "t"}}', "application/json", "m"),
        (b'{"error": "m"}', "application/json", "m"),
        (b'{"message": "m"}', "application/json", "m"),
        (b'{"detail": [{"msg": "m"}]}', "application/json", "m"),
        (b'[{"error": {"message": "m"}}]', "application/json", "m"),
        (b"plain", "text/plain", "plain"),
        (b"<html><title>Bad Gateway</title>", "text/html", "HTML (Bad Gateway)"),
        (b"", "", ""),
        (b"[" * 100_000, "application/json", "[" * 100_000),
    ],
)
def test_the_servers_own_words(body: bytes, kind: str, message: str) -> None:
    assert server_message(body, kind) == message


# --- how long is waited, by a clock that is measured


def busy(seconds: float | None) -> ModelBusy:
    return ModelBusy("model.busy", url="u", reason="r", retry_after=seconds)


@pytest.mark.parametrize("form", ["seconds", "milliseconds", "date"])
async def test_the_three_forms_of_retry_after_are_waited_for(form: str) -> None:
    headers = {
        "seconds": {"retry-after": "0.3"},
        "milliseconds": {"retry-after-ms": "300"},
        "date": {"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=1.3), usegmt=True)},
    }[form]
    error = from_response(429, headers, b"", endpoint("http://h"))
    assert isinstance(error, ModelBusy) and error.retry_after is not None
    takes = Takes([error], OK)
    slept = Slept()
    await play(lambda: patient(takes, RetryPolicy(first_wait=0.01, longest_wait=2.0, jitter=0.05, total=9), slept))
    assert error.retry_after <= sum(slept.seconds) <= error.retry_after + 0.05
    assert takes.opened == 2


async def test_without_retry_after_the_waits_grow_and_stay_below_the_longest() -> None:
    policy = RetryPolicy(attempts=5, first_wait=0.02, longest_wait=0.06, jitter=0.0, total=9)
    takes, slept = Takes([busy(None)]), Slept()
    with pytest.raises(ModelBusy):
        await play(lambda: patient(takes, policy, slept))
    assert takes.opened == policy.attempts
    assert slept.seconds == [0.02, 0.04, 0.06, 0.06]


@pytest.mark.slow
async def test_the_total_time_ends_the_trying() -> None:
    takes = Takes([busy(0.2)])
    with pytest.raises(ModelBusy):
        await play(lambda: patient(takes, RetryPolicy(attempts=50, longest_wait=1.0, jitter=0.0, total=0.5)))
    assert 2 <= takes.opened <= 5


@pytest.mark.parametrize("attempts", [1, 2, 4])
async def test_there_are_as_many_attempts_as_told(attempts: int) -> None:
    takes = Takes([CUT])
    policy = RetryPolicy(attempts=attempts, first_wait=0.001, longest_wait=0.002, jitter=0.0)
    with pytest.raises(ModelStreamBroken):
        await play(lambda: patient(takes, policy))
    assert takes.opened == takes.closed == attempts


async def test_a_limit_by_the_minute_is_waited_for() -> None:
    takes, slept = Takes([busy(58)], OK), Slept()
    await play(lambda: patient(takes, RetryPolicy(), slept))
    assert takes.opened == 2
    assert 58 <= sum(slept.seconds) < 59


@pytest.mark.parametrize("seconds", [0.6, 1, 60, 86_400])
async def test_a_wait_that_is_too_long_is_told_with_its_length(seconds: float) -> None:
    takes = Takes([busy(seconds)], OK)
    with pytest.raises(ModelBusy) as caught:
        await play(lambda: patient(takes, QUICK))
    assert caught.value.key == "model.busy_wait"
    assert caught.value.retry_after == seconds
    assert f"{seconds:.0f}" in caught.value.localized("zh-cn")
    assert takes.opened == takes.closed == 1


SHOWN: list[StreamItem] = [TextChunk("a"), ReasoningChunk("hm"), Reply("a")]
LATER = [DOWN, CUT, busy(None), busy(0.01), ModelTimeout("model.timeout_silence", url="u", seconds="1")]


@pytest.mark.parametrize("shown", SHOWN)
@pytest.mark.parametrize("error", LATER)
async def test_after_any_output_no_failure_is_tried_again(shown: StreamItem, error: ModelError) -> None:
    takes = Takes([shown, error], OK)
    with pytest.raises(type(error)):
        await play(lambda: retry_if_empty(lambda: patient(takes, QUICK), "m"))
    assert takes.opened == takes.closed == 1


@pytest.mark.parametrize(
    "error",
    [
        ModelUnreachable("model.tls", url="u", reason="r"),
        ModelStreamBroken("model.stream_garbled", url="u", reason="r"),
        ModelNotFound("model.no_endpoint", url="u"),
        ModelRejected("model.quota", url="u", reason="r"),
        ModelRejected("model.unauthorized", url="u", status=401, reason="r"),
        ModelReplyInvalid("model.reply_too_long", url="u", limit="4 MiB"),
        ContextOverflow("model.overflow", reason="r"),
    ],
)
async def test_what_will_not_pass_is_not_tried_again(error: ModelError) -> None:
    takes = Takes([error], OK)
    with pytest.raises(type(error)):
        await play(lambda: patient(takes, QUICK))
    assert takes.opened == takes.closed == 1


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.02, 0.1, 0.3])
async def test_cancelling_at_any_moment_of_a_wait(after: float) -> None:
    takes = Takes([busy(0.45)])
    before = asyncio.all_tasks()
    task = asyncio.create_task(play(lambda: retry_if_empty(lambda: patient(takes, QUICK), "m")))
    await asyncio.sleep(after)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert takes.opened == takes.closed == 1
    assert asyncio.all_tasks() == before


# --- empty answers


@pytest.mark.parametrize(
    ("reply", "empty"),
    [
        (Reply(""), True),
        (Reply(" \n"), True),
        (Reply("", reasoning="long thoughts"), True),
        (Reply("a"), False),
        (Reply("", tool_calls=(ToolCall("f", {}),)), False),
        (Reply("", problem="It was cut."), False),
    ],
)
async def test_what_counts_as_empty(reply: Reply, empty: bool) -> None:
    assert is_empty(reply) == empty
    takes = Takes([reply], OK)
    items = await play(lambda: retry_if_empty(takes, "m"))
    assert items == (OK if empty else [reply])
    assert takes.opened == takes.closed == (2 if empty else 1)


async def test_two_empty_answers_are_told() -> None:
    takes = Takes([Reply("")])
    with pytest.raises(ModelReplyInvalid, match="coder"):
        await play(lambda: retry_if_empty(takes, "coder"))
    assert takes.opened == takes.closed == 2
