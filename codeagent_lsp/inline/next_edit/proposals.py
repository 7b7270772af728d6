"""The places at which a learned change should also be made: in one text, and across the files of a workspace, within a
time and without any model.

Places are ranges in characters with their new texts, none twice, none overlapping. Not here: learning the change
(`renamings.py`, `rewrites.py`), reading files and the index (`Source`).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol

from codeagent_lsp.index import parse
from codeagent_lsp.inline.next_edit.history import Example, History
from codeagent_lsp.inline.next_edit.parsed_text import ParsedText, function_of, parsed_text
from codeagent_lsp.inline.next_edit.renamings import Renaming, renamings
from codeagent_lsp.inline.next_edit.rewrites import Rewrite, learn_rewrite

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_CHANGES = 4
"""The number of learned changes at which no further example is looked at."""

MOST_LEFT_OUT = 1
"""The most places before the first example that may be left as they are."""

Change = Rewrite | Renaming

MOST_FILES = 200
MOST_PROPOSALS = 200
SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Learned:
    """A change learned from two examples, with the places of both: path, and offset in bytes of UTF-8 of the text of
    now.
    """

    change: Change
    newest: tuple[str, int]
    other: tuple[str, int]

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the files to look in; () for all. A change with both examples in one file need not be meant
        elsewhere, unless it renames something.
        """
        named = isinstance(self.change, Renaming)
        return () if named or self.newest[0] != self.other[0] else (self.newest[0],)


@dataclass(frozen=True, slots=True)
class Proposed:
    """A proposed edit: `old`, the characters from `start` to `end` of the text of `path`, becomes `new`. `title` is for
    the user.
    """

    path: str
    start: int
    end: int
    old: str
    new: str
    title: str


def changes_of(newest: Example, others: Sequence[Example]) -> list[Learned]:
    """Return the changes that the newest example has in common with others, each once; [] if there are none. After 4 no
    further example is looked at.
    """
    found: list[Learned] = []
    here = (newest.after.path, newest.new_range[0])
    for other in others:
        names = renamings(newest, other)
        # A renaming says more: it knows which uses are of the same thing.
        rewrite = None if names else learn_rewrite(newest, other)
        for change in (*names, *((rewrite,) if rewrite else ())):
            if all(change != known.change for known in found):
                found.append(Learned(change, here, (other.after.path, other.new_range[0])))
        if len(found) >= MOST_CHANGES:
            break
    return found


def proposals(text: ParsedText, learned: Learned) -> list[Proposed] | None:
    """Return the edits to propose in a text, in its order, [] if there are none; None if the user left out such places
    before or between the examples, so that it is not clear which are meant.
    """
    found: list[Proposed] = []
    edited = sorted(at for path, at in (learned.newest, learned.other) if path == text.path)
    # A name that is defined no longer is due at all of its uses; a rewrite may be meant for some places only.
    selective = isinstance(learned.change, Rewrite) and bool(edited)
    scope = _function_around(text, edited) if selective and len(edited) > 1 else None
    left_out = 0
    for node, new in learned.change.places(text):
        # What was done twice in one function need not be meant in another one.
        if scope is not None and not scope.start_byte <= node.start_byte < scope.end_byte:
            continue
        if selective and node.start_byte < edited[-1]:
            left_out += 1
            if left_out > MOST_LEFT_OUT or node.start_byte > edited[0]:
                return None
            continue
        old = text.of(node)
        start = text.char(node.start_byte)
        if old != new:
            found.append(Proposed(text.path, start, start + len(old), old, new, learned.change.title))
    return apart(found)


def _function_around(text: ParsedText, places: Sequence[int]) -> Node | None:
    """Return the innermost function that has all of these bytes in it; None if none has."""
    node = text.root.descendant_for_byte_range(places[0], places[-1])
    return function_of(node) if node is not None else None


def apart(found: Iterable[Proposed]) -> list[Proposed]:
    """Return the edits of one text in its order; of equal edits one, of edits that overlap and differ, none."""
    taken: list[Proposed] = []
    for each in sorted(found, key=lambda each: (each.start, each.end)):
        if taken and each.start < taken[-1].end:
            if (each.start, each.end, each.new) != (taken[-1].start, taken[-1].end, taken[-1].new):
                taken.pop()
            continue
        taken.append(each)
    return taken


class Source(Protocol):
    """Port: the files of the workspace, unsaved text over the disk. Paths are as in the history."""

    async def files_with(self, words: Sequence[str], limit: int) -> Sequence[str]:
        """Return the paths of at most `limit` files that may contain all of these words; some that do not are
        allowed.
        """

    async def text(self, path: str) -> str | None:
        """Return the text of a file (absolute path) that may be shown and changed; None for others, and if it cannot be
        read.
        """

    def project(self, path: str) -> str:
        """Return the path of the project that a file (absolute path) belongs to; edits are proposed only in the same
        project.
        """


@dataclass(frozen=True, slots=True)
class Due:
    """The edits to propose, those in the file of the last edit first; `whole` is False if the time was up before all
    files were searched.
    """

    proposed: tuple[Proposed, ...] = ()
    whole: bool = True


async def search(history: History, source: Source, seconds: float = SECONDS) -> Due:
    """Return the edits by which the change that the last edits have in common should also be made, after at most about
    `seconds`; an empty `Due` if they have none. May be cancelled.
    """
    end = time.monotonic() + seconds
    last = await asyncio.to_thread(history.last)
    if last is None:
        return Due()
    newest, others = last
    here = newest.after.path
    project = source.project(here)
    # What was done in another project, such as another package of a repository, follows other rules.
    mine = [each for each in others if source.project(each.after.path) == project]
    changes = await asyncio.to_thread(changes_of, newest, mine)
    found: dict[str, list[Proposed]] = {}
    whole = True
    for each in changes:
        change = each.change
        paths = await _paths(each, source, here)
        texts = {}
        for path in dict.fromkeys(paths):
            text = await source.text(path) if source.project(path) == project else None
            # Looked for as plain text before anything is parsed, which is far slower.
            if text is not None and all(word in text for word in change.words):
                texts[path] = text
        if (
            isinstance(change, Renaming)
            and change.needs_gone
            and await asyncio.to_thread(_is_defined, change, texts, end)
        ):
            continue
        for path, text in texts.items():
            if time.monotonic() > end or sum(map(len, found.values())) > MOST_PROPOSALS:
                whole = False
                break
            due = await asyncio.to_thread(_due, path, text, each)
            # The user was selective in this file, so nobody knows what is meant in the others either.
            if due is None:
                break
            found[path] = [*found.get(path, ()), *due]
    order = sorted(found, key=lambda path: (path != here, path))
    return Due(tuple(each for path in order for each in apart(found[path]))[:MOST_PROPOSALS], whole)


async def _paths(learned: Learned, source: Source, here: str) -> list[str]:
    change = learned.change
    if isinstance(change, Renaming) and change.function is not None:
        return [change.path]
    if learned.files:
        return [*learned.files]
    found = [here, *await source.files_with(change.words, MOST_FILES)]
    if isinstance(change, Renaming):
        return found
    # What was done in two files of one folder need not be meant in another one.
    folder = os.path.commonpath([os.path.dirname(path) for path, _ in (learned.newest, learned.other)])  # noqa: PTH120
    return [path for path in found if PurePath(path).is_relative_to(folder)]


def _due(path: str, text: str, learned: Learned) -> list[Proposed] | None:
    parsed = parsed_text(path, text)
    return [] if parsed is None else proposals(parsed, learned)


def _is_defined(change: Renaming, texts: dict[str, str], end: float) -> bool:
    """Return whether the old name is still defined somewhere, so that its uses may be of another; also out of time."""
    for path, text in texts.items():
        if time.monotonic() > end:
            return True
        if any(symbol.name == change.old for symbol in parse.parse(path, text, seconds=1.0).symbols):
            return True
    return False
