"""Failures of environments and of MCP servers: which error code each has, and how often the work is tried again, with
exponential backoff: at most three times after a failed connection, twice after a timeout.

An error is graded by its exception type and HTTP status, by its text only as a last resort; libraries are not imported,
their exceptions are recognized by their class names. Only work without side effects on failure is tried again, such as
connecting and listing: a call is never sent twice. Not here: errors that only MCP servers have (`tools/mcp/errors.py`).
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from codeagent_lsp.errors import CodeAgentError, ErrorCode

if TYPE_CHECKING:
    from tenacity import RetryCallState

SANDBOX_CODES = frozenset(
    {
        ErrorCode.CONNECTION_ERROR,
        ErrorCode.TIMEOUT_ERROR,
        ErrorCode.PARAMETER_ERROR,
        ErrorCode.VALIDATION_ERROR,
        ErrorCode.PERMISSION_ERROR,
        ErrorCode.EXECUTION_ERROR,
        ErrorCode.SANDBOX_NOT_FOUND,
        ErrorCode.SANDBOX_TERMINATED,
    }
)

_BY_TYPE: tuple[tuple[str, ErrorCode], ...] = (
    # the first that fits; class names, as some are in libraries that may not be imported
    ("PermissionError", ErrorCode.PERMISSION_ERROR),
    ("FileNotFoundError", ErrorCode.PARAMETER_ERROR),
    ("ProcessLookupError", ErrorCode.SANDBOX_TERMINATED),
    ("TimeoutError", ErrorCode.TIMEOUT_ERROR),
    ("TimeoutException", ErrorCode.TIMEOUT_ERROR),
    ("LookupError", ErrorCode.SANDBOX_NOT_FOUND),
    ("ValueError", ErrorCode.VALIDATION_ERROR),
    ("TransportError", ErrorCode.CONNECTION_ERROR),
    ("EOFError", ErrorCode.CONNECTION_ERROR),
    ("OSError", ErrorCode.CONNECTION_ERROR),
)
_BY_STATUS: Mapping[int, ErrorCode] = MappingProxyType(
    {
        400: ErrorCode.PARAMETER_ERROR,
        401: ErrorCode.PERMISSION_ERROR,
        403: ErrorCode.PERMISSION_ERROR,
        404: ErrorCode.SANDBOX_NOT_FOUND,
        408: ErrorCode.TIMEOUT_ERROR,
        409: ErrorCode.SANDBOX_TERMINATED,
        410: ErrorCode.SANDBOX_TERMINATED,
        502: ErrorCode.CONNECTION_ERROR,
        503: ErrorCode.CONNECTION_ERROR,
        504: ErrorCode.TIMEOUT_ERROR,
    }
)
_BY_TEXT: tuple[tuple[re.Pattern[str], ErrorCode], ...] = (
    (re.compile(r"(?i)no such container|no such exec|does not exist"), ErrorCode.SANDBOX_NOT_FOUND),
    (re.compile(r"(?i)state improper|is not running|was terminated|has stopped"), ErrorCode.SANDBOX_TERMINATED),
    (re.compile(r"(?i)timed? ?out|deadline exceeded"), ErrorCode.TIMEOUT_ERROR),
    (re.compile(r"(?i)permission denied|not permitted|unauthorized|\beperm\b"), ErrorCode.PERMISSION_ERROR),
    (re.compile(r"(?i)file not found|no such file|\benoent\b"), ErrorCode.PARAMETER_ERROR),
    (re.compile(r"(?i)(?:invalid|missing) parameter"), ErrorCode.PARAMETER_ERROR),
    (re.compile(r"(?i)connection refused|websocket|cannot connect"), ErrorCode.CONNECTION_ERROR),
)


def grade(error: BaseException) -> ErrorCode:
    """Return the error code for an error in the communication with an environment, by its type, and by its text only if
    the type says nothing.
    """
    first = first_error(error)
    if isinstance(first, CodeAgentError):
        return first.code if first.code in SANDBOX_CODES else ErrorCode.EXECUTION_ERROR
    return code_by_type(first, _BY_TYPE) or _by_text(str(first))


def grade_status(status: int, said: str) -> ErrorCode:
    """Return the error code for the HTTP error `status` of a container engine; by the message `said` if the status is
    not known.
    """
    return _BY_STATUS.get(status) or _by_text(said)


def first_error(error: BaseException) -> BaseException:
    """Return the first leaf of nested exception groups, or the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def code_by_type(error: BaseException, known: Iterable[tuple[str, ErrorCode]]) -> ErrorCode | None:
    """Return the code of the first name in `known`, pairs of class name and code, among the names of the error's class
    and those it derives from; None if there is none.
    """
    names = {cls.__name__ for cls in type(error).__mro__}
    return next((code for name, code in known if name in names), None)


def _by_text(said: str) -> ErrorCode:
    return next((code for pattern, code in _BY_TEXT if pattern.search(said)), ErrorCode.EXECUTION_ERROR)


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
    """Return the result of `work`, called again after a failed connection (3 times) or a timeout (2 times) by the code
    that `graded` returns, with growing pauses of 1 to 4 s. Raises the last error. `chance` returns a number in 0 … 1
    for jitter.
    """
    from tenacity import AsyncRetrying  # late: an idle server retries nothing

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
    """Return the seconds before the `retry`-th retry (1-based): 1, 2, 4 and so on up to 30, a quarter less to a quarter
    more by `chance` in 0 … 1.
    """
    wait = min(LONGEST_WAIT, FIRST_WAIT * FACTOR ** (retry - 1))
    return wait * (1 + JITTER * (2 * chance - 1))
