"""Finds where the last change is due across the files of a workspace, within a time, and without any model.

Not here: learning the change (`proposals.py`), reading files and the index (`Source`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from codeagent_lsp.index import parse
from codeagent_lsp.inline.next_edit.history import History
from codeagent_lsp.inline.next_edit.parsed_text import parsed_text
from codeagent_lsp.inline.next_edit.proposals import Change, Learned, Proposed, apart, changes_of, proposals
from codeagent_lsp.inline.next_edit.renamings import Renaming

MOST_FILES = 200
MOST_PROPOSALS = 200
SECONDS = 3.0


class Source(Protocol):
    """The workspace: unsaved text over the disk. Paths are as in the history."""

    async def files_with(self, words: Sequence[str], limit: int) -> Sequence[str]:
        """Return files that may have all of these names; a few more do no harm."""

    async def text(self, path: str) -> str | None:
        """Return the text of a file that may be shown and changed; None for others."""

    def project(self, path: str) -> str:
        """Return the project that a file belongs to."""


@dataclass(frozen=True, slots=True)
class Due:
    """Where the last change is due, those in the file of the last edit first; `whole` is whether all was looked at."""

    proposed: tuple[Proposed, ...] = ()
    whole: bool = True


async def search(history: History, source: Source, seconds: float = SECONDS) -> Due:
    """Return where the last change is due. May be cancelled."""
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
        if _needs_gone(change) and await asyncio.to_thread(_defined, change, texts, end):
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
    return [here, *await source.files_with(change.words, MOST_FILES)]


def _due(path: str, text: str, learned: Learned) -> list[Proposed] | None:
    parsed = parsed_text(path, text)
    return [] if parsed is None else proposals(parsed, learned)


def _needs_gone(change: Change) -> bool:
    return isinstance(change, Renaming) and change.needs_gone


def _defined(change: Change, texts: dict[str, str], end: float) -> bool:
    """Return whether the old name is still defined somewhere, so that its uses may be of another; also out of time."""
    assert isinstance(change, Renaming)
    for path, text in texts.items():
        if time.monotonic() > end:
            return True
        if any(symbol.name == change.old for symbol in parse.parse(path, text, seconds=1.0).symbols):
            return True
    return False
