"""Retries of a model call, only while nothing of its answer was shown.

Two layers: `patient` waits and repeats a call whose first item never came (connect errors, resets, 429, 5xx);
`answered` repeats a call once whose reply was empty. Not here: classifying errors (`failures.py`).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

from tenacity import AsyncRetrying, RetryCallState, stop_after_attempt, stop_after_delay, stop_any

from codeagent_lsp.errors import (
    ModelBusy,
    ModelReplyInvalid,
    ModelStreamBroken,
    ModelTimeout,
    ModelUnreachable,
)
from codeagent_lsp.llm.model import Reply, StreamItem
from codeagent_lsp.network import PROXY_AWAY

ReplySource = Callable[[], AsyncGenerator[StreamItem, None]]
Sleep = Callable[[float], Awaitable[None]]

_PERMANENT = ("model.dns", "model.tls", "model.stream_garbled", "network.")
"""Beginnings of the keys of failures that stay: a name, a certificate, a setting of the network."""


@dataclass(frozen=True)
class RetryPolicy:
    """Limits of retrying: attempts, and seconds. A server that asks for more than `longest_asked` is not retried; what
    counts by the minute is renewed by then.
    """

    attempts: int = 3
    first_wait: float = 0.5
    longest_wait: float = 30.0
    longest_asked: float = 65.0
    jitter: float = 0.5
    total: float = 150.0


async def patient(
    source: ReplySource, policy: RetryPolicy, sleep: Sleep = asyncio.sleep
) -> AsyncGenerator[StreamItem, None]:
    """Yield the items of `source`, which is opened again after a transient failure before the first item.

    Exponential backoff with jitter, or as the server asks; `sleep` waits the given seconds.
    """
    waits = _Waits(policy)
    attempts = AsyncRetrying(
        retry=waits.passes,
        wait=waits.wait,
        stop=stop_any(stop_after_attempt(policy.attempts), stop_after_delay(policy.total)),
        sleep=sleep,
        reraise=True,
    )
    async for attempt in attempts:
        with attempt:
            items = source()
            # Only up to the first item: what was shown cannot be taken back by another attempt.
            first = await _first(items)
    async with aclosing(items):
        if first is not None:
            yield first
            async for item in items:
                yield item


async def answered(source: ReplySource, name: str) -> AsyncGenerator[StreamItem, None]:
    """Yield the items of `source`, called again once when the reply is empty; then raises ModelReplyInvalid."""
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
    """Return whether a reply holds no text, no call and no problem."""
    return not (reply.text.strip() or reply.tool_calls or reply.problem)


async def _first(items: AsyncGenerator[StreamItem, None]) -> StreamItem | None:
    try:
        return await anext(items, None)
    except BaseException:
        await items.aclose()
        raise


class _Waits:
    """The decision to retry, and the wait: as the server asks, else exponential backoff, with jitter."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy

    def passes(self, state: RetryCallState) -> bool:
        """Return whether the last failure is transient.

        Raises ModelBusy when the server asks for a longer wait than the policy allows.
        """
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, ModelBusy):
            self._refuse_too_long(error)
            return True
        if not isinstance(error, ModelUnreachable | ModelStreamBroken | ModelTimeout):
            return False
        # A proxy that is away may come back, unlike all other failures of the network's settings.
        return error.key == PROXY_AWAY or not error.key.startswith(_PERMANENT)

    def wait(self, state: RetryCallState) -> float:
        """Return the seconds before the next attempt."""
        policy, error = self._policy, state.outcome.exception() if state.outcome else None
        # Several runs that were refused at once must not come back at once.
        chance = random.uniform(0, policy.jitter)
        if isinstance(error, ModelBusy) and error.retry_after is not None:
            return error.retry_after + chance
        return min(policy.longest_wait, policy.first_wait * 2.0 ** (state.attempt_number - 1) + chance)

    def _refuse_too_long(self, error: ModelBusy) -> None:
        if error.retry_after is not None and error.retry_after > self._policy.longest_asked:
            raise ModelBusy(
                "model.busy_wait",
                retry_after=error.retry_after,
                url=error.values.get("url", "?"),
                seconds=f"{error.retry_after:.0f}",
                reason=error.values.get("reason", "?"),
            ) from error
