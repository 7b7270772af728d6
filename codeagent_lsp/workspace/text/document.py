"""Immutable snapshots of a text with its URI, version, language and digest.

`Document.apply` returns the next snapshot and does not change this one, so a request handler may keep a snapshot while
the user types. Not here: which documents are open (`server/documents.py`) and files on disk (`files/file_view.py`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property

from codeagent_lsp.workspace.text.position import (
    Encoding,
    LineIndex,
    Position,
    is_in_text,
    offset_at,
    offsets_of_range,
    position_at,
)


@dataclass(frozen=True, slots=True)
class Change:
    """One content change: `text` replaces the range from `start` to `end`, or the whole text when both are None.

    `start` and `end` are (line, character), 0-based, as in `TextDocumentContentChangeEvent` of LSP.
    """

    text: str
    start: tuple[int, int] | None = None
    end: tuple[int, int] | None = None


@dataclass(frozen=True)
class Document:
    """The text of one URI at one version, an immutable value. `version` is the LSP client's number (may be 0), None for
    a text without one; `language_id` is that of LSP, such as `python`, '' if it is not known.
    """

    uri: str
    text: str
    version: int | None = None
    language_id: str = ""
    _lines: LineIndex | None = field(default=None, repr=False, compare=False)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the text in UTF-8, in hexadecimal; equal texts have equal digests."""
        return text_digest(self.text)

    @cached_property
    def lines(self) -> LineIndex:
        """The offsets, in code points, at which the lines start, computed once."""
        return self._lines or LineIndex.of(self.text)

    def apply(self, change: Change, encoding: Encoding, *, version: int | None = None) -> Document:
        """Return the document after `change`, with `version`, or with this document's version when None.

        Raises ValueError for a range whose end is before its start.
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

    def has_range(self, change: Change, encoding: Encoding) -> bool:
        """Return whether the range of a change lies in this text, as `is_in_text` judges; True for a change of the
        whole text.
        """
        if change.start is None or change.end is None:
            return True
        return is_in_text(self.text, self.lines, change.start, change.end, encoding)

    def offset(self, line: int, character: int, encoding: Encoding) -> int:
        """Return the offset, in code points, of a 0-based line and a 0-based character in code units of `encoding`.
        Out-of-range positions are clamped to the text.
        """
        return offset_at(self.text, self.lines, (line, character), encoding)

    def position(self, offset: int, encoding: Encoding) -> Position:
        """Return the position (0-based, in code units of `encoding`) of an offset given in code points; offsets outside
        the text are clamped.
        """
        return position_at(self.text, self.lines, offset, encoding)


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8, hexadecimal. Lone surrogates are allowed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
