"""Errors of MCP servers and their classification: by exception type and protocol code, by text only at last.

The library is not imported here: its exceptions are recognised by the code that they carry, so that this module loads
without it. Not here: what is tried again (`environments/failures.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from codeagent_lsp.environments.failures import SANDBOX_CODES, code_by_type, first_error
from codeagent_lsp.errors import ErrorCode, ErrorType, ToolRetry, UserError
from codeagent_lsp.workspace.text.visible import one_line

REASON = 300

CONNECTION_CLOSED = -32000
REQUEST_TIMEOUT = -32001
TOO_LARGE = -32010  # ours, for replies that were not read
INTERNAL_ERROR = -32603

_BY_CODE = MappingProxyType(
    {
        CONNECTION_CLOSED: ErrorCode.MCP_NETWORK_ERROR,
        REQUEST_TIMEOUT: ErrorCode.MCP_TIMEOUT,
        TOO_LARGE: ErrorCode.MCP_PARSE_ERROR,
        -32002: ErrorCode.MCP_NOT_FOUND,  # a resource that is not there
        -32600: ErrorCode.MCP_PARAM_ERROR,
        -32601: ErrorCode.MCP_NOT_FOUND,
        -32602: ErrorCode.MCP_PARAM_ERROR,
        -32700: ErrorCode.MCP_PARSE_ERROR,
        -32020: ErrorCode.MCP_PARAM_ERROR,  # headers that do not match the body
        -32022: ErrorCode.MCP_PARSE_ERROR,  # no version of the protocol in common
    }
)
_BY_TYPE: tuple[tuple[str, ErrorCode], ...] = (
    # by the names of their classes, those of libraries that may not be there; the first that fits
    ("FileNotFoundError", ErrorCode.MCP_NOT_FOUND),
    ("PermissionError", ErrorCode.MCP_EXECUTION_ERROR),
    ("TimeoutError", ErrorCode.MCP_TIMEOUT),
    ("TimeoutException", ErrorCode.MCP_TIMEOUT),
    ("ValidationError", ErrorCode.MCP_PARSE_ERROR),
    ("DecodingError", ErrorCode.MCP_PARSE_ERROR),
    ("JSONDecodeError", ErrorCode.MCP_PARSE_ERROR),
    ("UnicodeError", ErrorCode.MCP_PARSE_ERROR),
    ("SSEError", ErrorCode.MCP_PARSE_ERROR),
    ("Unreadable", ErrorCode.MCP_PARSE_ERROR),
    ("TooMuch", ErrorCode.MCP_PARSE_ERROR),
    ("HTTPStatusError", ErrorCode.MCP_NETWORK_ERROR),
    ("TransportError", ErrorCode.MCP_NETWORK_ERROR),
    ("StreamError", ErrorCode.MCP_NETWORK_ERROR),
    ("InvalidHandshake", ErrorCode.MCP_NETWORK_ERROR),
    ("ConnectionClosed", ErrorCode.MCP_NETWORK_ERROR),
    ("ClosedResourceError", ErrorCode.MCP_NETWORK_ERROR),
    ("BrokenResourceError", ErrorCode.MCP_NETWORK_ERROR),
    ("EndOfStream", ErrorCode.MCP_NETWORK_ERROR),
    ("OSError", ErrorCode.MCP_NETWORK_ERROR),
)
_BY_TEXT: tuple[tuple[re.Pattern[str], ErrorCode], ...] = (
    (re.compile(r"(?i)timed? ?out"), ErrorCode.MCP_TIMEOUT),
    (re.compile(r"(?i)unknown tool|no such tool|tool .{0,80}not found"), ErrorCode.MCP_NOT_FOUND),
    (re.compile(r"(?i)session (?:terminated|not found)|connection|network|unreachable"), ErrorCode.MCP_NETWORK_ERROR),
    (re.compile(r"(?i)parse|not json|unsupported protocol version"), ErrorCode.MCP_PARSE_ERROR),
    (re.compile(r"(?i)invalid (?:arguments?|params?|request)|validation"), ErrorCode.MCP_PARAM_ERROR),
)


class McpProblem(UserError):
    """A server that cannot be used, as a sentence for the user; `str` returns it in English for the model."""

    def __init__(self, key: str, /, code: ErrorCode = ErrorCode.MCP_PARAM_ERROR, **values: object) -> None:
        super().__init__(key, **values)
        self.code = code


class McpRefused(ToolRetry):
    """A call that the server rejected, or whose result is marked as an error: the model can correct it."""

    from_server = True

    def __init__(self, message: str, code: ErrorCode = ErrorCode.MCP_EXECUTION_ERROR) -> None:
        super().__init__(message)
        self.code = code
        self.counts = code.advice.type in (ErrorType.EXECUTION, ErrorType.NETWORK, ErrorType.PARSE)


def stated_code(result: Mapping[str, Any]) -> ErrorCode:
    """Return the code of a result that is marked as an error: one of a sandbox, if the server states it in
    `structuredContent.error.code`, as ours does.
    """
    structured = result.get("structuredContent")
    error = structured.get("error") if isinstance(structured, Mapping) else None
    stated = error.get("code") if isinstance(error, Mapping) else None
    return ErrorCode(stated) if stated in SANDBOX_CODES else ErrorCode.MCP_EXECUTION_ERROR


def grade(error: BaseException) -> ErrorCode:
    """Return the error code for an error in the communication with a server, by its JSON-RPC code, else its type, else
    its text; `MCP_EXECUTION_ERROR` if none is known.
    """
    first = first_error(error)
    code = protocol_code(first)
    if code is not None and code in _BY_CODE:
        return _BY_CODE[code]
    if (graded := code_by_type(first, _BY_TYPE)) is not None:
        return graded
    text = str(first)
    return next((graded for pattern, graded in _BY_TEXT if pattern.search(text)), ErrorCode.MCP_EXECUTION_ERROR)


def protocol_code(error: BaseException) -> int | None:
    """Return the JSON-RPC error code that an error carries; None if it carries none."""
    code = getattr(getattr(first_error(error), "error", None), "code", None)
    return code if isinstance(code, int) else None


def error_message(error: BaseException) -> str:
    """Return the message of an error on one line of at most 300 characters, without invisible ones; its type if it has
    none.
    """
    first = first_error(error)
    words = str(first) or type(first).__name__
    return one_line(words, REASON)
