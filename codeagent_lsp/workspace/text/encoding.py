"""Lossless decoding of files: UTF-8 with or without a byte-order mark, UTF-16 with one, otherwise Latin-1.

The byte-order mark belongs to the encoding, never to the text. Line ends are not converted. Not here: reading files
(`files/paths.py`).
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
_CONTROLS_ALLOWED = 0.02  # share of control bytes above which data that is not UTF-8 counts as binary


class Decoded(NamedTuple):
    """A decoded text, the encoding that reproduces its bytes, and a remark for the reader of the file (or '')."""

    text: str
    encoding: Encoding
    note: str = ""


def decode(data: bytes) -> Decoded:
    """Decode the bytes of a text file; `encode` with the returned encoding gives the same bytes.

    Raises FileRefused if the bytes are binary: NUL, or more than 2 % control characters in what is not UTF-8.
    """
    for mark, encoding, codec in _MARKS:
        if data.startswith(mark) and (text := _strict(data[len(mark) :], codec)) is not None:
            return Decoded(_without_nul(text), encoding)
    if (text := _strict(data, "utf-8")) is not None:
        return Decoded(_without_nul(text), "utf-8")
    if b"\0" in data or _controls(data) > _CONTROLS_ALLOWED * len(data):
        raise FileRefused(_BINARY)
    return Decoded(data.decode("latin-1"), "latin-1", _LATIN_NOTE)


def encode(text: str, encoding: Encoding) -> bytes:
    """Encode `text`, with the byte-order mark of the encoding.

    Raises FileRefused for a character that it cannot encode.
    """
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
