"""One text at one moment: an immutable snapshot with its uri, version, language and digest.

`apply` gives the next snapshot and leaves this one alone, so a handler may keep what it looked at while the
user types on. Not here: which documents are open (`server/documents.py`) and files on disk (`files/file_view.py`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property

from codeagent_lsp.workspace.text.position import (
    Encoding,
    LineIndex,
    Position,
    offset_at,
    offsets_of_range,
    position_at,
)


@dataclass(frozen=True, slots=True)
class Change:
    """`text` replaces the range from `start` to `end`, or everything when they are None."""

    text: str
    start: tuple[int, int] | None = None
    end: tuple[int, int] | None = None


@dataclass(frozen=True)
class Document:
    """A text under a uri. `version` is the client's number (0 is one) or None for a text that has none."""

    uri: str
    text: str
    version: int | None = None
    language_id: str = ""
    _lines: LineIndex | None = field(default=None, repr=False, compare=False)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the text in UTF-8, hexadecimal; the same for every document with this text."""
        return text_digest(self.text)

    @cached_property
    def lines(self) -> LineIndex:
        """Where the lines start."""
        return self._lines or LineIndex.of(self.text)

    def apply(self, change: Change, encoding: Encoding, *, version: int | None = None) -> Document:
        """The document after `change`, at `version`, or at this version when None.

        Raises ValueError for a range whose end stands before its start.
        """
        version = self.version if version is None else version
        if change.start is None or change.end is None:
            return replace(self, text=change.text, version=version, _lines=None)
        if change.end < change.start:
            raise ValueError("the range ends before it starts")
        start, end = offsets_of_range(self.text, self.lines, change.start, change.end, encoding)
        text = self.text[:start] + change.text + self.text[end:]
        lines = self.lines.spliced(text, start, end - start, len(change.text))
        return replace(self, text=text, version=version, _lines=lines)

    def offset(self, line: int, character: int, encoding: Encoding) -> int:
        """The offset in code points of a position, clamped to the text."""
        return offset_at(self.text, self.lines, (line, character), encoding)

    def position(self, offset: int, encoding: Encoding) -> Position:
        """The position of an offset in code points, clamped to the text."""
        return position_at(self.text, self.lines, offset, encoding)


def text_digest(text: str) -> str:
    """SHA-256 of a text, hexadecimal. Lone surrogates are allowed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
