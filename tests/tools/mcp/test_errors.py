"""Grades of errors: by type and protocol code first, by text last; and what a retry may do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import anyio
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    REQUEST_TIMEOUT,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from websockets.exceptions import ConnectionClosedError

from codeagent_lsp.environments.failures import JITTER, LONGEST_WAIT, RETRIES, patient, wait_before
from codeagent_lsp.errors import ErrorCode, ErrorType
from codeagent_lsp.tools.mcp import errors
from codeagent_lsp.tools.mcp.errors import McpProblem, error_message, grade, protocol_code
from codeagent_lsp.tools.mcp.server import grade_of
from codeagent_lsp.tools.mcp.stdio import Unreadable
from codeagent_lsp.tools.mcp.transports import TooMuch


def unreadable_json() -> Exception:
    try:
        json.loads("{")
    except ValueError as error:
        return error
    raise AssertionError


CASES: list[tuple[BaseException, str]] = [
    (MCPError(-32000, "Connection closed"), "MCP_NETWORK_ERROR"),
    (MCPError(-32001, "Request timed out"), "MCP_TIMEOUT"),
    (MCPError(-32010, "too large"), "MCP_PARSE_ERROR"),
    (MCPError(-32600, "Invalid request"), "MCP_PARAM_ERROR"),
    (MCPError(-32601, "Method not found"), "MCP_NOT_FOUND"),
    (MCPError(-32602, "a time-out in the parameters"), "MCP_PARAM_ERROR"),
    (MCPError(-32700, "Parse error"), "MCP_PARSE_ERROR"),
    (MCPError(-32022, "no version"), "MCP_PARSE_ERROR"),
    (MCPError(-32603, "Internal error"), "MCP_EXECUTION_ERROR"),
    (MCPError(-32603, "Unknown tool: x"), "MCP_NOT_FOUND"),
    (MCPError(0, "it timed out"), "MCP_TIMEOUT"),
    (MCPError(7, "invalid arguments for x"), "MCP_PARAM_ERROR"),
    (MCPError(7, "out of coffee"), "MCP_EXECUTION_ERROR"),
    (FileNotFoundError("no such program"), "MCP_NOT_FOUND"),
    (PermissionError("connection"), "MCP_EXECUTION_ERROR"),
    (TimeoutError(), "MCP_TIMEOUT"),
    (ConnectionRefusedError("timed out"), "MCP_NETWORK_ERROR"),
    (BrokenPipeError(), "MCP_NETWORK_ERROR"),
    (httpx2.ConnectError("x"), "MCP_NETWORK_ERROR"),
    (httpx2.ConnectTimeout("x"), "MCP_TIMEOUT"),
    (httpx2.ReadTimeout("x"), "MCP_TIMEOUT"),
    (httpx2.RemoteProtocolError("x"), "MCP_NETWORK_ERROR"),
    (TooMuch("x"), "MCP_PARSE_ERROR"),
    (Unreadable("connection"), "MCP_PARSE_ERROR"),
    (unreadable_json(), "MCP_PARSE_ERROR"),
    (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), "MCP_PARSE_ERROR"),
    (ConnectionClosedError(None, None), "MCP_NETWORK_ERROR"),
    (anyio.ClosedResourceError(), "MCP_NETWORK_ERROR"),
    (RuntimeError("Session terminated"), "MCP_NETWORK_ERROR"),
    (RuntimeError("Unsupported protocol version from the server: 1"), "MCP_PARSE_ERROR"),
    (RuntimeError("whatever"), "MCP_EXECUTION_ERROR"),
    (ExceptionGroup("a", [ExceptionGroup("b", [TimeoutError()])]), "MCP_TIMEOUT"),
]


@pytest.mark.parametrize(("error", "code"), CASES)
def test_grades(error: BaseException, code: str) -> None:
    assert grade(error) == code


def test_our_numbers_are_those_of_the_library() -> None:
    assert (errors.CONNECTION_CLOSED, errors.REQUEST_TIMEOUT) == (CONNECTION_CLOSED, REQUEST_TIMEOUT)
    assert (errors.INTERNAL_ERROR, INVALID_PARAMS) == (INTERNAL_ERROR, -32602)
    assert (HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION) == (-32020, -32022)


def test_types_of_the_codes() -> None:
    types = {code: code.advice.type for code in ErrorCode if code.startswith("MCP_")}
    assert types == {
        ErrorCode.MCP_PARAM_ERROR: ErrorType.PARAM,
        ErrorCode.MCP_PARSE_ERROR: ErrorType.PARSE,
        ErrorCode.MCP_EXECUTION_ERROR: ErrorType.EXECUTION,
        ErrorCode.MCP_NETWORK_ERROR: ErrorType.NETWORK,
        ErrorCode.MCP_TIMEOUT: ErrorType.NETWORK,
        ErrorCode.MCP_NOT_FOUND: ErrorType.EXECUTION,
    }


def test_what_is_said_is_one_bounded_line_with_nothing_unseen() -> None:
    words = error_message(MCPError(1, "first\nsecond \u202e\x1b[31mred" + "x" * 1000))
    assert words.startswith("first second \\u202ered") and len(words) <= 300
    assert error_message(TimeoutError()) == "TimeoutError"
    assert protocol_code(ValueError("x")) is None
    assert protocol_code(ExceptionGroup("a", [MCPError(-32000, "x")])) == -32000


class Work:
    """Fails with these, then works; keeps the waits."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.tries = 0
        self.waits: list[float] = []

    async def __call__(self) -> str:
        self.tries += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def tried(self, chance: Callable[[], float] = lambda: 0.5) -> str:
        return await patient(self, grade_of, self.sleep, chance)


async def test_a_connection_is_tried_three_times_more() -> None:
    work = Work(*[ConnectionRefusedError()] * 3)
    assert (await work.tried(), work.tries, work.waits) == ("done", 4, [1.0, 2.0, 4.0])
    hopeless = Work(*[ConnectionRefusedError("again")] * 9)
    with pytest.raises(ConnectionRefusedError, match="again"):
        await hopeless.tried()
    assert hopeless.tries == 4


async def test_a_timeout_is_tried_twice_more_and_nothing_else_is() -> None:
    slow = Work(*[TimeoutError()] * 9)
    with pytest.raises(TimeoutError):
        await slow.tried()
    assert (slow.tries, slow.waits) == (3, [1.0, 2.0])
    for error in (MCPError(-32602, "x"), FileNotFoundError(), ValueError("x"), McpProblem("mcp.no_target", name="x")):
        work = Work(error)
        with pytest.raises(type(error)):
            await work.tried()
        assert work.tries == 1
    named = Work(McpProblem("mcp.silent", ErrorCode.MCP_TIMEOUT, name="x", seconds=1))
    assert (await named.tried(), named.tries) == ("done", 2)


async def test_cancelling_is_never_tried_again() -> None:
    work = Work(asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        await work.tried()
    assert work.tries == 1


@given(st.integers(1, 60), st.floats(0, 1))
def test_waits_grow_by_two_up_to_the_cap_within_a_quarter(retry: int, chance: float) -> None:
    plain = min(LONGEST_WAIT, 2.0 ** (retry - 1))
    assert plain * (1 - JITTER) <= wait_before(retry, chance) <= plain * (1 + JITTER)
    assert wait_before(retry, 0) == plain * 0.75 and wait_before(retry, 1) == plain * 1.25


def test_the_numbers_of_retries() -> None:
    assert {code.value: count for code, count in RETRIES.items()} == {
        "CONNECTION_ERROR": 3,
        "MCP_NETWORK_ERROR": 3,
        "TIMEOUT_ERROR": 2,
        "MCP_TIMEOUT": 2,
    }
