"""The place of a completion: one version of one text, and the cursor in it. A value.

Not here: how much of the text is sent (`context.py`), whether the file may be sent at all (`server/inline.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

LONGEST_TEXT = 2_000_000
LONGEST_LINE = 2_000
"""Most characters of a text, and of the cursor's line, that are completed: what is longer was not written by hand."""

DRAFT_CHARS, DRAFT_LINES, DRAFT_REST = 10, 3, 3
"""A line begun with so many characters, and in so many other places, is taken to go on as they all do; by so many
characters at least. On lines of six public histories that held for 88 to 98 of 100."""
_BEGUN = re.compile(r"\w\W+\w*$")

_HASH = ".py .pyi .rb .sh .bash .yaml .yml .toml .r .pl .ex .exs .mk .cmake .dockerfile .tf .nim .jl"
_DASHES = ".lua .sql .hs .elm .ada"
_MARKS = {
    **dict.fromkeys(_HASH.split(), "#"),
    **dict.fromkeys(_DASHES.split(), "--"),
    **dict.fromkeys((".lisp", ".clj", ".el", ".scm"), ";;"),
    **dict.fromkeys((".tex", ".erl"), "%"),
}


@dataclass(frozen=True)
class Place:
    """A cursor at `offset` characters into `text`, the text of a file at one version. `path` is as the model is
    told, `file` where it is on the disk, None for a text that has no file.
    """

    path: str
    text: str
    offset: int
    version: int | None = None
    file: str | None = None

    @cached_property
    def line_start(self) -> int:
        """The offset of the first character of the cursor's line."""
        return self.text.rfind("\n", 0, self.offset) + 1

    @cached_property
    def line_end(self) -> int:
        """The offset of the end of the cursor's line, before its line break."""
        end = self.text.find("\n", self.offset)
        end = len(self.text) if end < 0 else end
        return end - 1 if end > self.offset and self.text[end - 1] == "\r" else end

    @property
    def line_before(self) -> str:
        """The cursor's line up to the cursor."""
        return self.text[self.line_start : self.offset]

    @property
    def line_after(self) -> str:
        """The rest of the cursor's line."""
        return self.text[self.offset : self.line_end]

    @property
    def after(self) -> str:
        """All text after the cursor."""
        return self.text[self.offset :]

    @property
    def indentation(self) -> str:
        """The white space that the cursor's line begins with, no further than the cursor."""
        before = self.line_before
        return before[: len(before) - len(before.lstrip(" \t"))]

    @property
    def comment(self) -> str:
        """What begins a line of comment in this file, by its name."""
        return _MARKS.get(PurePosixPath(self.path).suffix.lower(), "//")

    @property
    def line_break(self) -> str:
        """The line break of this text: that of its first line."""
        first = self.text.find("\n")
        return "\r\n" if first > 0 and self.text[first - 1] == "\r" else "\n"


def draft_of(place: Place) -> str:
    """Return how a line goes on that is begun at the cursor, where the text itself says so: all other lines that begin
    like it go on alike. '' where they do not, or are too few.
    """
    begun = place.line_before.strip()
    # Inside a first word anything may follow.
    if place.line_after.strip() or len(begun) < DRAFT_CHARS or not _BEGUN.search(begun):
        return ""
    # A blank at the end is part of what is typed.
    begun = place.line_before.lstrip()
    found, count, at = "", 0, -1
    while (at := place.text.find(begun, at + 1)) >= 0:
        start, end = place.text.rfind("\n", 0, at) + 1, place.text.find("\n", at)
        if start == place.line_start or place.text[start:at].strip():
            continue
        rest = place.text[at + len(begun) : end if end >= 0 else None].rstrip()
        if count and rest != found:
            return ""
        found, count = rest, count + 1
    return found if count >= DRAFT_LINES and len(found) >= DRAFT_REST else ""


def worth_asking(place: Place, *, invoked: bool) -> bool:
    """Return whether a completion can be of use here: not inside a word, unless the user asks for it."""
    if len(place.text) > LONGEST_TEXT or place.line_end - place.line_start > LONGEST_LINE:
        return False
    follows = place.line_after[:1]
    inside_word = follows.isalnum() or follows == "_"
    return invoked or not inside_word
