"""The user's last edits: of each open file the text it began with, and the text of now. Immutable.

What is undone leaves no trace, and keys that are typed one after the other are one edit. Not here: what the edits have
in common (`proposals.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from codeagent_lsp.inline.next_edit.examples import Example, examples
from codeagent_lsp.inline.next_edit.parsed_text import LARGEST, parsed_text

MOST_FILES = 8
MOST_OTHERS = 24


@dataclass(frozen=True, slots=True)
class Edited:
    """A file: the text before the edits, the text of now, and what was changed last, the characters `at` to `end`."""

    path: str
    base: str
    text: str
    at: int = 0
    end: int = 0


@dataclass(frozen=True)
class History:
    """The files, those edited last first."""

    files: tuple[Edited, ...] = ()

    def opened(self, path: str, text: str) -> History:
        """Return the history with a file whose text is a beginning: what comes later is compared with it."""
        # Behind those that were edited: opening a file is no edit.
        return self._with(Edited(path, text, text), first=False)

    def noted(self, path: str, text: str) -> History:
        """Return the history after an edit."""
        known = self.of(path)
        if known is None:
            return self.opened(path, text)
        if known.text == text:
            return self
        at = _first_difference(text, known.text)
        end = len(text) - _common_end(text[at:], known.text[at:])
        return self._with(replace(known, text=text, at=at, end=end), first=True)

    def closed(self, path: str) -> History:
        """Return the history without a file."""
        return History(tuple(each for each in self.files if each.path != path))

    def of(self, path: str) -> Edited | None:
        """Return what is known of a file."""
        return next((each for each in self.files if each.path == path), None)

    def last(self) -> tuple[Example, list[Example]] | None:
        """Return the newest edit and the others, the nearest first; None where there are not two. Parses: slow."""
        newest: Example | None = None
        others: list[Example] = []
        for each in self.files:
            found = list(_examples(each))
            if newest is None:
                if not found:
                    return None
                # The change nearest to the last key is the newest one: the texts have no times.
                found.sort(key=lambda example: _distance(example, example.after.byte(each.at)))
                newest, *found = found
            others += found
        return (newest, others[:MOST_OTHERS]) if newest is not None and others else None

    def _with(self, edited: Edited, *, first: bool) -> History:
        if len(edited.text) > LARGEST or len(edited.base) > LARGEST:
            return self.closed(edited.path)
        others = tuple(each for each in self.files if each.path != edited.path)
        files = (edited, *others) if first else (*others, edited)
        # Files that were only opened go first: they have no examples.
        unchanged = [each for each in files if each.base == each.text]
        while len(files) > MOST_FILES and unchanged:
            files = tuple(each for each in files if each is not unchanged[0])
            unchanged.pop(0)
        return History(files[:MOST_FILES])


def _examples(edited: Edited) -> Iterator[Example]:
    if edited.base == edited.text:
        return
    before, after = parsed_text(edited.path, edited.base), parsed_text(edited.path, edited.text)
    if before is not None and after is not None:
        yield from examples(before, after)


def _first_difference(one: str, other: str) -> int:
    """Return the length of the common beginning, by comparing slices: this runs with every key."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(one: str, other: str) -> int:
    """Return the length of the common end, as above."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle :] == other[len(other) - middle :]:
            low = middle
        else:
            high = middle - 1
    return low


def _distance(example: Example, at: int) -> int:
    start, end = example.new_range
    return 0 if start <= at <= end else min(abs(at - start), abs(at - end))
