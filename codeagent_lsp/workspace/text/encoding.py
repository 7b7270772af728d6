"""Lossless decoding of files: UTF-8 with or without a byte-order mark, UTF-16 with one, otherwise Latin-1.

The byte-order mark belongs to the encoding, never to the text. Line ends are not converted. An editor may know better
in which encoding a file is: the same bytes have two readings then, and `as_read_in` brings a change from one into the
other. Not here: reading files (`files/paths.py`), having the editor open one (`server/editor.py`).
"""

from __future__ import annotations

import codecs
import re
from typing import Literal, NamedTuple

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.workspace.text.position import content_of, split_lines

Encoding = Literal["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "latin-1"]

_MARKS: tuple[tuple[bytes, Encoding, str], ...] = (
    (codecs.BOM_UTF8, "utf-8-sig", "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16-be"),
)
_LATIN_NOTE = (
    "The file is not UTF-8 and is shown as Latin-1; the user's editor may read it in another encoding. Copy characters "
    "that are not ASCII as they are shown, and add none."
)
_SHIFTS = re.compile(r"\x1b\$[@AB(]")  # to the double-byte characters of ISO-2022, in a text of seven bits
_LATIN = re.compile("[\x80-\xff]")
_READINGS = (
    *("latin-1", "cp1252", "gb18030", "big5hkscs", "cp950", "cp932", "shift_jis", "euc_jp", "cp949", "euc_kr"),
    *("iso2022_jp_2", "iso2022_kr", "cp1250", "cp1251", "koi8-r", "iso8859-2", "iso8859-15", "utf-8"),
)
# Also what logs have: form feeds, backspaces, the escapes of colours.
_TEXT_CONTROLS = frozenset(b"\t\n\v\f\r\b\x1b")
_CONTROLS_ALLOWED = 0.02  # share of control bytes above which data that is not UTF-8 counts as binary


class Decoded(NamedTuple):
    """A decoded text, the encoding that reproduces its bytes, and an English remark for the reader of the file, such as
    that the encoding was guessed ('' for none).
    """

    text: str
    encoding: Encoding
    note: str = ""


def decode(data: bytes) -> Decoded:
    """Decode the bytes of a text file; `encode` with the returned encoding gives the same bytes.

    Raises FileRefused if the bytes are binary: NUL, or more than 2 % control characters in what is not UTF-8.
    """
    for mark, encoding, codec in _MARKS:
        # Bytes of another encoding may begin like a mark, so the rest has to fit it too.
        if data.startswith(mark) and (text := _strict(data[len(mark) :], codec)) is not None:
            return Decoded(_without_nul(text), encoding)
    if (text := _strict(data, "utf-8")) is not None:
        return Decoded(_without_nul(text), "utf-8")
    if b"\0" in data or _controls(data) > _CONTROLS_ALLOWED * len(data):
        raise FileRefused(_BINARY)
    return Decoded(data.decode("latin-1"), "latin-1", _LATIN_NOTE)


def encode(text: str, encoding: Encoding) -> bytes:
    """Return `text` as bytes, with the byte-order mark of the encoding. Raises FileRefused for a character that it
    cannot encode.
    """
    mark, codec = next(((mark, codec) for mark, name, codec in _MARKS if name == encoding), (b"", encoding))
    try:
        return mark + text.encode(codec)
    except UnicodeEncodeError as error:
        char = text[error.start]
        raise FileRefused(
            f"The character U+{ord(char):04X} cannot be written in the encoding of the file, {encoding}."
        ) from None


def is_certain(text: str, encoding: Encoding) -> bool:
    """Return whether every program reads the bytes that were decoded to this text in the same way: only for UTF-8, and
    not with the escape sequences of ISO-2022.
    """
    return encoding in ("utf-8", "utf-8-sig") and not _SHIFTS.search(text)


def as_read_in(now: str, base: str, text: str) -> tuple[str, str] | None:
    """Return `base` and `text`, a change of it, in the reading of a program that reads the same file in another
    encoding; `now` is its present text of the file. Both are returned as they are if its reading is the same; None if
    it is not certain how it reads a line of them.
    """
    as_bytes = _is_bytes(base)
    telling = [content_of(line) for line in split_lines(base) if not _is_plain(line)]
    if as_bytes == _is_bytes(now) or not telling:
        return base, text
    present = set(map(content_of, split_lines(now)))
    # The encoding in which most of these lines are as the editor shows them.
    alike = {codec: sum(_reread(line, codec, as_bytes) in present for line in telling) for codec in _READINGS}
    codec = max(alike, key=lambda each: alike[each])
    # The editor reads it as it was decoded here.
    if codec == "latin-1" and alike[codec]:
        return base, text
    was = [_reread(line, codec, as_bytes) for line in split_lines(base)]
    known = frozenset("".join(filter(None, was))) if as_bytes else None
    new = [_new_line(line, codec, known) for line in split_lines(text)]
    return None if None in was or None in new or not alike[codec] else ("".join(map(str, was)), "".join(map(str, new)))


def _is_bytes(text: str) -> bool:
    """Return whether a text may be the Latin-1 reading of bytes that are in another encoding."""
    if _is_plain(text):
        return False
    try:
        return bool(text.encode("latin-1"))
    except UnicodeEncodeError:
        return False


def _is_plain(text: str) -> bool:
    return text.isascii() and not _SHIFTS.search(text)


def _reread(line: str, codec: str, as_bytes: bool) -> str | None:
    """Return a line that is shown as bytes as it is in an encoding, or the other way round; None if it has no such."""
    if _is_plain(line):
        return line
    try:
        return line.encode("latin-1").decode(codec) if as_bytes else line.encode(codec).decode("latin-1")
    except UnicodeError:
        return None


def _new_line(line: str, codec: str, known: frozenset[str] | None) -> str | None:
    """Return a line of a change as `_reread`. Where bytes are shown, `known` are the characters of the file: others
    than these may have been meant as they are shown, or not.
    """
    if known is None:
        return _reread(line, codec, as_bytes=False)
    if not _is_bytes(line):
        return line if not _LATIN.search(line) else None
    read = _reread(line, codec, as_bytes=True)
    return read if read is not None and all(char.isascii() or char in known for char in read) else None


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
