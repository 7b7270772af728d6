"""Retries with exponential backoff: at most three for a failed connection, two for a timeout.

Only for work without side effects on failure, such as connecting and listing: a call is never sent twice. Not here:
what counts as which failure.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState

from codeagent_lsp.errors import ErrorCode

FIRST_WAIT = 1.0
FACTOR = 2.0
LONGEST_WAIT = 30.0
JITTER = 0.25

RETRIES: Mapping[ErrorCode, int] = MappingProxyType(
    {
        ErrorCode.CONNECTION_ERROR: 3,
        ErrorCode.MCP_NETWORK_ERROR: 3,
        ErrorCode.TIMEOUT_ERROR: 2,
        ErrorCode.MCP_TIMEOUT: 2,
    }
)

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


async def patient(
    work: Callable[[], Awaitable[T]],
    graded: Callable[[BaseException], ErrorCode],
    sleep: Sleep = asyncio.sleep,
    chance: Callable[[], float] = random.random,
) -> T:
    """Return the result of `work`, retrying by its error's code; the last error if it keeps failing. `chance` gives
    jitter.
    """

    def hopeless(state: RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome else None
        return error is None or not isinstance(error, Exception) or state.attempt_number > RETRIES.get(graded(error), 0)

    async def once() -> T:  # the library only awaits what it can see to be a coroutine
        return await work()

    retrying = AsyncRetrying(
        stop=hopeless,
        wait=lambda state: wait_before(state.attempt_number, chance()),
        sleep=sleep,
        reraise=True,
    )
    return await retrying(once)


def wait_before(retry: int, chance: float) -> float:
    """Return the seconds before the `retry`-th retry (1-based); `chance` in 0 … 1 adds jitter."""
    wait = min(LONGEST_WAIT, FIRST_WAIT * FACTOR ** (retry - 1))
    return wait * (1 + JITTER * (2 * chance - 1))
