"""Parses the bytes of one body into a checked JSON-RPC 2.0 message. Pure functions.

Only the outermost object is checked; `params` stay plain JSON, whatever keys they have. Not here: LSP types
(`params.py`) and answering (`protocol_guard.py`).
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from codeagent_lsp.server.wire.framing import find_header

PARSE_ERROR = -32700
INVALID_REQUEST = -32600

MessageId = str | int | float

_SALVAGE_LIMIT = 1024 * 1024  # a longer broken body is not searched for further messages in it
_SPACE = " \t\r\n"
_HEADER_NAME = b"content-length:"
_LONGEST_HEADER = 40
# `{…}Content-Le`: a length that was too large by ten has taken the beginning of the next message.
_CUT_HEADER = re.compile(  # a header, or the beginning of one, at the very end
    b"(?:%s|content-length[ \t]*:?[ \t]*[0-9]*[ \t]*\r?)\\Z"
    % b"|".join(_HEADER_NAME[:size] for size in range(1, len(_HEADER_NAME) - 1)),
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Request:
    """A message that must be answered exactly once."""

    id: MessageId
    method: str
    raw: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Notification:
    """A message that must not be answered."""

    method: str
    raw: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Response:
    """The client's answer to a request of ours."""

    id: Any
    raw: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Malformed:
    """An invalid message, which is answered with an error; `id` is None when none could be read."""

    id: MessageId | None
    code: int
    reason: str


Message = Request | Notification | Response | Malformed


def read(body: bytes) -> tuple[Message, bytes]:
    """Parse the message in a body. Also return the bytes after it that belong to the next message (usually none)."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return Malformed(None, PARSE_ERROR, "the message is not UTF-8"), _swallowed(body)
    try:
        value, tail = _decode(text)
    except RecursionError:
        return Malformed(None, PARSE_ERROR, "the message is nested too deeply"), b""
    except ValueError:
        return Malformed(None, PARSE_ERROR, "the message is not JSON"), _swallowed(body)
    if not tail:
        return classify(value), b""
    if _begins_header(rest := tail.encode("utf-8")):
        return classify(value), rest
    return Malformed(None, PARSE_ERROR, "the message is not JSON"), _swallowed(body)


def classify(value: Any) -> Message:
    """Return the kind of message that a JSON value is."""
    if not isinstance(value, dict):
        return Malformed(None, INVALID_REQUEST, "a message is one JSON object; there are no batches")
    identity = value["id"] if is_id(value.get("id")) else None
    if value.get("jsonrpc") != "2.0":
        return Malformed(identity, INVALID_REQUEST, "the member jsonrpc must be 2.0")
    if "method" not in value:
        return _answer(value)
    method = value["method"]
    if not isinstance(method, str):
        return Malformed(identity, INVALID_REQUEST, "the member method must be a string")
    if "id" not in value:
        return Notification(method, value)
    if identity is None:
        return Malformed(None, INVALID_REQUEST, "the member id must be a string or a number")
    return Request(identity, method, value)


def is_id(value: Any) -> bool:
    """Return whether a JSON value can be the id of a request."""
    # `1e999` is read as infinity, with which no JSON answer could be made.
    if isinstance(value, float):
        return math.isfinite(value)
    # True is an int, and as a key the same as 1.
    return isinstance(value, str | int) and not isinstance(value, bool)


def _answer(value: dict[str, Any]) -> Message:
    if "id" in value and ("result" in value or "error" in value):
        return Response(value["id"], value)
    identity = value["id"] if is_id(value.get("id")) else None
    return Malformed(identity, INVALID_REQUEST, "a message has a method, or an id with a result or an error")


def _decode(text: str) -> tuple[Any, str]:
    """Return the first JSON value of `text` and the rest of it, "" when that is white space only."""
    start = len(text) - len(text.lstrip(_SPACE))
    value, end = _DECODER.raw_decode(text, start)
    return value, text[end:].lstrip(_SPACE)


def _swallowed(body: bytes) -> bytes:
    """Return the messages after a broken one whose length was announced too long."""
    if len(body) <= _SALVAGE_LIMIT and (place := find_header(body)) >= 0:
        return body[place:]
    # Only at the very end: a header in the middle was found above or lies in a body that is too long to search.
    cut = _CUT_HEADER.search(body[-_LONGEST_HEADER:])
    return cut[0] if cut else b""


def _begins_header(tail: bytes) -> bool:
    """Return whether `tail` is the start of the next message's header, cut off by a length that was too long."""
    return _CUT_HEADER.match(tail) is not None or find_header(tail) == 0


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
