"""Bytes to text and back without losing one: UTF-8 with or without mark, UTF-16 by its mark, else Latin-1.

The byte-order mark belongs to the encoding and never to the text. Not here: line ends, which stay in the text
as they are, and reading files (`paths.py`).
"""

from __future__ import annotations

import codecs
from typing import Literal, NamedTuple

from codeagent_lsp.errors import FileRefused

Encoding = Literal["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "latin-1"]

_MARKS: tuple[tuple[bytes, Encoding, str], ...] = (
    (codecs.BOM_UTF8, "utf-8-sig", "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16-be"),
)
_LATIN_NOTE = "The file is not UTF-8; it was read as Latin-1 and will be written so."
_TEXT_CONTROLS = frozenset(b"\t\n\v\f\r\b\x1b")
_CONTROLS_ALLOWED = 0.02  # share of control bytes above which bytes that are no UTF-8 are taken for binary


class Decoded(NamedTuple):
    """A text, the encoding that gives its bytes back, and what the reader should know of it (or '')."""

    text: str
    encoding: Encoding
    note: str = ""


def decode(data: bytes) -> Decoded:
    """The text of `data`; `encode` makes the same bytes of it. FileRefused if they are no text."""
    for mark, encoding, codec in _MARKS:
        if data.startswith(mark) and (text := _strict(data[len(mark) :], codec)) is not None:
            return Decoded(_without_nul(text), encoding)
    if (text := _strict(data, "utf-8")) is not None:
        return Decoded(_without_nul(text), "utf-8")
    if b"\0" in data or _controls(data) > _CONTROLS_ALLOWED * len(data):
        raise FileRefused(_BINARY)
    return Decoded(data.decode("latin-1"), "latin-1", _LATIN_NOTE)


def encode(text: str, encoding: Encoding) -> bytes:
    """The bytes of `text`, mark included. FileRefused if a character has no bytes in this encoding."""
    mark, codec = next(((mark, codec) for mark, name, codec in _MARKS if name == encoding), (b"", encoding))
    try:
        return mark + text.encode(codec)
    except UnicodeEncodeError as error:
        char = text[error.start]
        raise FileRefused(
            f"The character U+{ord(char):04X} cannot be written in the encoding of the file, {encoding}."
        ) from None


_BINARY = "The file is binary, not text."


def _strict(data: bytes, codec: str) -> str | None:
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        return None


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise FileRefused(_BINARY)
    return text


def _controls(data: bytes) -> int:
    return sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in data)
