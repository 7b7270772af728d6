"""Tries a model call again, only while nothing of its answer was shown.

Two layers: `patient` waits and repeats a call whose first item never came (connect errors, resets, 429, 5xx);
`answered` repeats once a reply that ended empty. Not here: which error is which (`failures`).
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

import stamina

from codeagent_lsp.errors import (
    ModelBusy,
    ModelReplyInvalid,
    ModelStreamBroken,
    ModelTimeout,
    ModelUnreachable,
)
from codeagent_lsp.llm.base import Reply, StreamItem

Source = Callable[[], AsyncGenerator[StreamItem, None]]

_PERMANENT = ("model.dns", "model.tls", "model.stream_garbled")


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long: seconds; a server that asks for more than `longest_wait` is not waited for."""

    attempts: int = 3
    first_wait: float = 0.5
    longest_wait: float = 30.0
    jitter: float = 0.5
    total: float = 90.0


async def patient(source: Source, policy: RetryPolicy) -> AsyncGenerator[StreamItem, None]:
    """The items of `source`, opened again after a passing failure that came before the first item."""
    contexts = stamina.retry_context(
        on=lambda error: _verdict(error, policy),
        attempts=policy.attempts,
        timeout=policy.total,
        wait_initial=policy.first_wait,
        wait_max=policy.longest_wait,
        wait_jitter=policy.jitter,
    )
    async for attempt in contexts:
        with attempt:
            items = source()
            first = await _first(items)
    async with aclosing(items):
        if first is not None:
            yield first
            async for item in items:
                yield item


async def answered(source: Source, name: str) -> AsyncGenerator[StreamItem, None]:
    """The items of `source`, asked again once when the reply holds nothing; then ModelReplyInvalid."""
    for _ in range(2):
        async with aclosing(source()) as items:
            async for item in items:
                if isinstance(item, Reply) and is_empty(item):
                    break
                yield item
            else:
                return
    raise ModelReplyInvalid("model.empty", name=name)


def is_empty(reply: Reply) -> bool:
    """Whether a reply holds no text, no call and no complaint."""
    return not (reply.text.strip() or reply.tool_calls or reply.problem)


async def _first(items: AsyncGenerator[StreamItem, None]) -> StreamItem | None:
    try:
        return await anext(items, None)
    except BaseException:
        await items.aclose()
        raise


def _verdict(error: Exception, policy: RetryPolicy) -> bool | float:
    """Whether to try again; a number is the wait in seconds that the server asked for."""
    if isinstance(error, ModelBusy):
        return _wait(error, policy)
    passing = isinstance(error, ModelUnreachable | ModelStreamBroken | ModelTimeout)
    return passing and getattr(error, "key", "") not in _PERMANENT


def _wait(error: ModelBusy, policy: RetryPolicy) -> bool | float:
    if error.retry_after is None:
        return True
    if error.retry_after > policy.longest_wait:
        raise ModelBusy(
            "model.busy_wait",
            retry_after=error.retry_after,
            url=error.values.get("url", "?"),
            seconds=f"{error.retry_after:.0f}",
            reason=error.values.get("reason", "?"),
        ) from error
    return error.retry_after + random.uniform(0, policy.jitter)
