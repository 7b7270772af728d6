"""Splits a byte stream into message bodies (LSP base protocol), resynchronises after damage, parses each body into a
checked JSON-RPC 2.0 message, and its parameters strictly into the LSP types. Pure, without I/O.

It accepts more than most servers: any case of the header names, no space after the colon, bare line feeds, headers
before and after `Content-Length`, of which the last one counts. After damage everything is skipped up to the next
`Content-Length` header. Such a header never occurs inside valid JSON, where a string has no raw line end, so a body
that contains one was announced too long and is cut there. Parameters that are no LSP type are refused with the name of
the wrong key. Not here: answering (`protocol_guard.py`).
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, NoReturn

import cattrs
from cattrs.errors import AttributeValidationNote, IterableValidationNote
from lsprotocol import converters, types
from pygls.exceptions import JsonRpcInvalidParams

MAX_BODY = 64 * 1024 * 1024
MAX_LINE = 8 * 1024
MAX_HEADERS = 32

# `Content-Length: 52`: a name of visible ASCII without the colon, then a value that has no control characters but tabs.
_HEADER = re.compile(rb"([!-9;-~]+)[ \t]*:[ \t]*([^\x00-\x08\x0a-\x1f]*)")
_LENGTH = re.compile(rb"content-length[ \t]*:[ \t]*[0-9]{1,10}[ \t]*\r?\n", re.IGNORECASE)
# Ten digits are more than MAX_BODY needs; int() refuses thousands of them with an error of its own.
_NUMBER = re.compile(rb"[0-9]{1,10}")
_SPELLINGS = (b"Content-Length", b"content-length")
_OVERLAP = 64  # longer than any header the pattern accepts
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
_WORDS = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class Body:
    """The bytes of one message, complete by its header; not parsed yet."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Damage:
    """An error in the stream, with its reason in English; the framer continues at the next message after it."""

    reason: str


class Framer:
    """A parser of frames: put bytes in with `feed`, take frames out with `next` until it returns None. A body longer
    than `max_body` bytes is damage. Not thread-safe.
    """

    def __init__(self, max_body: int = MAX_BODY) -> None:
        self.skipped = 0  # bytes thrown away since the last good header
        self._max_body = max_body
        self._buffer = bytearray()
        self._searching = False
        self._need: int | None = None  # length of the body being read
        self._searched = 0  # how much of that body was looked through for a header
        self._count = 0  # headers of the message being read
        self._length: int | None = None  # the last Content-Length among them, -1 for a bad one
        self._refused = False

    def feed(self, data: bytes) -> None:
        """Add received bytes, any number, in order; b"" changes nothing."""
        self._buffer += data

    def unread(self, tail: bytes) -> None:
        """Put back the end of the last body, which belongs to the next message; call it before the next `next`."""
        self._buffer[:0] = tail

    def next(self) -> Body | Damage | None:
        """Return the next frame, a body or the damage before it, or None until more bytes are fed. Never raises."""
        while True:
            if self._searching and not self._search():
                return None
            if self._need is not None:
                return self._body(self._need)
            line = self._line()
            if not isinstance(line, bytes):
                return line
            if line:
                self._header(line)
            elif (damage := self._end_of_headers()) is not None:
                return damage

    def _line(self) -> bytes | Damage | None:
        end = self._buffer.find(b"\n", 0, MAX_LINE + 1)
        if end < 0:
            return self._damage("a header line is too long") if len(self._buffer) > MAX_LINE else None
        line = bytes(self._buffer[: end + 1])
        match = _HEADER.fullmatch(line.rstrip(b"\r\n"))
        length = _LENGTH.search(line)
        # A length that begins inside of a line follows the rest of a broken body.
        if line.strip(b"\r\n") and (match is None or (length is not None and length.start() > 0)):
            return self._damage("not a header")  # the line stays in the buffer: it may end with a header
        del self._buffer[: end + 1]
        return line.rstrip(b"\r\n")

    def _header(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        self._count += 1
        if name.strip().lower() == b"content-length":
            self._length = int(value) if _NUMBER.fullmatch(value.strip()) else -1

    def _end_of_headers(self) -> Damage | None:
        count, length = self._count, self._length
        self._reset_headers()
        if count == 0 or (length == 0 and count <= MAX_HEADERS):
            return None  # an empty line between messages, or an empty message
        if length is None or length < 0:
            return self._damage("Content-Length is missing or not a number")
        if length > self._max_body:
            return self._damage(f"a message is larger than {self._max_body} bytes")
        # With too many headers the body is still read, and refused then: so the stream stays in step.
        self._need, self._searched, self._refused = length, 0, count > MAX_HEADERS
        return None

    def _body(self, need: int) -> Body | Damage | None:
        if len(self._buffer) >= need:
            return self._take(need)
        # Each byte is looked through once, but for a header that two chunks share: else a long body costs quadratic
        # time.
        start = max(self._searched - _OVERLAP, 0)
        self._searched = len(self._buffer)
        if (place := find_header(self._buffer, start)) >= 0:
            return self._take(place)
        return None

    def _take(self, size: int) -> Body | Damage:
        # A slice of the bytearray itself would copy the body a second time.
        data = bytes(memoryview(self._buffer)[:size])
        del self._buffer[:size]
        self._need = None
        self.skipped = 0
        return Damage(f"more than {MAX_HEADERS} headers") if self._refused else Body(data)

    def _damage(self, reason: str) -> Damage:
        self._reset_headers()
        self._searching = True
        return Damage(reason)

    def _search(self) -> bool:
        match = _LENGTH.search(self._buffer)
        # Without a match the end stays, as it may be the beginning of a header.
        drop = match.start() if match else max(len(self._buffer) - _OVERLAP, 0)
        del self._buffer[:drop]
        self.skipped += drop
        self._searching = match is None
        return match is not None

    def _reset_headers(self) -> None:
        self._count = 0
        self._length = None
        self._refused = False


def find_header(data: bytes | bytearray, start: int = 0) -> int:
    """Return the offset of the first complete `Content-Length` line in `data`, from `start` on, or -1. Fast, for the
    usual spellings only.
    """
    places = []
    for spelling in _SPELLINGS:
        place = data.find(spelling, start)
        while place >= 0 and not _LENGTH.match(data, place):
            place = data.find(spelling, place + 1)
        if place >= 0:
            places.append(place)
    return min(places, default=-1)


@dataclass(frozen=True, slots=True)
class Request:
    """A message that must be answered exactly once; `raw` is the whole message as a dict."""

    id: MessageId
    method: str
    raw: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Notification:
    """A message of the client that must not be answered; `raw` is the whole message as a dict."""

    method: str
    raw: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Response:
    """The client's answer to a request of ours, whose `id` it has; `raw` is the whole message as a dict."""

    id: Any
    raw: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Malformed:
    """An invalid message, which is answered with an error of this JSON-RPC `code`; `id` is None when none could be
    read, `reason` is a sentence in English.
    """

    id: MessageId | None
    code: int
    reason: str


Message = Request | Notification | Response | Malformed


def read(body: bytes) -> tuple[Message, bytes]:
    """Parse the body of a JSON-RPC 2.0 message and return (message, rest): the message, `Malformed` for all that is
    none, and the bytes after it that belong to the next message (usually b""). Never raises.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return Malformed(None, PARSE_ERROR, "the message is not UTF-8"), _skip_long(body)
    try:
        value, tail = _decode(text)
    except RecursionError:
        return Malformed(None, PARSE_ERROR, "the message is nested too deeply"), b""
    except ValueError:
        return Malformed(None, PARSE_ERROR, "the message is not JSON"), _skip_long(body)
    if not tail:
        return classify(value), b""
    if _begins_header(rest := tail.encode("utf-8")):
        return classify(value), rest
    return Malformed(None, PARSE_ERROR, "the message is not JSON"), _skip_long(body)


def classify(value: Any) -> Message:
    """Return the kind of message that a JSON value is: a request, notification, response, or a malformed one with its
    reason.
    """
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
    """Return whether a JSON value can be the id of a request: a string or a finite number (JSON-RPC 2.0), but
    not null.
    """
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


def _skip_long(body: bytes) -> bytes:
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


def make_converter() -> cattrs.Converter:
    """Return a cattrs converter for the types of lsprotocol that refuses wrong types instead of coercing them, e.g. a
    number to a string.
    """
    converter = cattrs.Converter()
    for kind in (str, int, float, bool):
        converter.register_structure_hook(kind, _strict)
    made = converters.get_converter(converter)
    # Clients of LSP 3.15 and older may change a document without a version; left out, all later edits would be for
    # another text than theirs.
    made.register_structure_hook(
        types.VersionedTextDocumentIdentifier,
        lambda value, _: made.structure(value, types.OptionalVersionedTextDocumentIdentifier),
    )
    # Not under its name: there, it is a union of two names, which is not equal to that of two types.
    change = types.TextDocumentContentChangePartial | types.TextDocumentContentChangeWholeDocument
    made.register_structure_hook(change, lambda value, _: _content_change(made, value))
    return made


def _content_change(converter: cattrs.Converter, value: Any) -> types.TextDocumentContentChangeEvent:
    """Convert a change of a text; a range of null says, as one that is left out does, that the whole text is meant."""
    has_range = isinstance(value, dict) and value.get("range") is not None
    if has_range:
        return converter.structure(value, types.TextDocumentContentChangePartial)
    return converter.structure(value, types.TextDocumentContentChangeWholeDocument)


def structure_params(converter: cattrs.Converter, method: str, raw: dict[str, Any]) -> Any:
    """Convert the `params` of a message to their LSP type; plain JSON for methods that LSP does not define.
    JsonRpcInvalidParams, which names the wrong key and never the value, if they do not fit.
    """
    known = types.METHOD_TO_TYPES.get(method)
    if known is None:
        return raw.get("params")
    try:
        # The types of requests demand an id, which one that came as a notification has not.
        return converter.structure({"id": 0, **raw}, known[0]).params
    except RecursionError:
        raise JsonRpcInvalidParams("Invalid params: nested too deeply") from None
    except Exception as error:  # noqa: BLE001 (cattrs raises what the constructors raise)
        # Without its cause, whose text quotes the value.
        raise JsonRpcInvalidParams(f"Invalid params: {wrong_key(error)}") from None


def structure_result(converter: cattrs.Converter, method: str, result: Any) -> Any:
    """Convert a client's result, plain JSON, to the LSP type of the request `method`; that of an unknown method is
    returned as it is. ValueError, with the wrong key, when it does not fit.
    """
    known = types.METHOD_TO_TYPES.get(method)
    if known is None or known[1] is None:
        return result
    try:
        return converter.structure({"id": 0, "jsonrpc": "2.0", "result": result}, known[1]).result
    except Exception as error:  # noqa: BLE001 (as above)
        raise ValueError(wrong_key(error)) from None


def wrong_key(error: BaseException) -> str:
    """Return a clause in English with the path of the first wrong key in a cattrs error, such as `textDocument.uri`,
    and what is wrong with it; never the value.
    """
    path = ""
    while True:
        path += _step(error)
        inner = getattr(error, "exceptions", ())
        if not inner:
            return f"{path.lstrip('.') or 'params'} {_complaint(error)}"
        error = inner[0]


def _step(error: BaseException) -> str:
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            return f".{_camel(note.name)}"
        if isinstance(note, IterableValidationNote):
            return f"[{note.index}]"
    return ""


def _complaint(error: BaseException) -> str:
    if isinstance(error, KeyError):
        return "is missing"
    if isinstance(error, _WrongType):
        return f"must be {error}"
    return "has a value of the wrong kind"


def _camel(name: str) -> str:
    head, *tail = name.strip("_").split("_")
    return head + "".join(word.capitalize() for word in tail)


class _WrongType(TypeError):
    pass


def _strict(value: Any, kind: type) -> Any:
    # Not isinstance: True is an int.
    if type(value) is kind:
        return value
    if issubclass(kind, Enum):  # the string and number enums of LSP come here as subclasses
        return kind(value)
    if kind is float and type(value) is int:
        return float(value)
    if kind is int and type(value) is float and value.is_integer():
        return int(value)  # some JSON libraries know only floats
    raise _WrongType(_WORDS[kind])
