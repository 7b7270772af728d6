"""Decides whose a change on the disk is: the user's, ours, git's, or that of another program. Pure.

Not here: what was noticed (`gathering.py`), what becomes of a foreign change (`session/foreign_runs.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from codeagent_lsp.foreign.disk import FileState

FORMATTERS = 1.0  # seconds after a save in which what changes the file belongs to it


@dataclass(frozen=True, slots=True)
class DiskChange:
    """A change of one file on the disk, by absolute path: the texts before and after, None for no file."""

    path: str
    was: str | None
    now: str | None
    is_foreign: bool


@dataclass(frozen=True, slots=True)
class Saved:
    """A save of the editor: when (seconds since the epoch), and the text if the document is open."""

    at: float
    text: str | None


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of one changed file: `was` and `now`, when it `changed` (seconds since the epoch, None: not known),
    the last save of it, the states that we have asked the editor for, the times in which commands of ours ran in the
    user's folders, and git: whether it was at work when the file changed, and whether it was used since the last look
    and the file is now as its index has it.
    """

    was: FileState
    now: FileState
    changed: float | None
    saved: Saved | None = None
    ours: frozenset[str | None] = frozenset()
    commands: Sequence[tuple[float, float]] = field(default=())
    git_moved: bool = False
    is_as_staged: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a change is made of: up to `known` it is the user's, ours or git's; from there to the present state it is
    `foreign`.
    """

    known: FileState | None
    is_foreign: bool


def verdict(seen: Seen) -> Verdict:
    """Return whose the change of a file is."""
    if _by_git(seen) or _by_us(seen) or _by_save(seen):
        return Verdict(seen.now, is_foreign=False)
    saved = seen.saved
    # Saved, and then changed by somebody: what the user saved is what was there.
    if saved is not None and saved.text is not None and _alike(FileState(saved.text), seen.now):
        return Verdict(seen.now, is_foreign=False)
    if saved is not None and saved.text is not None:
        return Verdict(FileState(saved.text), is_foreign=True)
    return Verdict(None, is_foreign=seen.was != seen.now or not seen.now.known)


def _by_git(seen: Seen) -> bool:
    return seen.git_moved or seen.is_as_staged


def _by_us(seen: Seen) -> bool:
    if seen.now.known and seen.now.text in seen.ours:
        return True
    return seen.changed is not None and any(begin <= seen.changed <= end + FORMATTERS for begin, end in seen.commands)


def _by_save(seen: Seen) -> bool:
    return seen.saved is not None and (seen.changed is None or seen.changed <= seen.saved.at + FORMATTERS)


def _alike(one: FileState, other: FileState) -> bool:
    """Return whether two texts are the same but for their line ends, which editors write as they think."""
    if one.text is None or other.text is None:
        return one == other
    return one.text.replace("\r\n", "\n") == other.text.replace("\r\n", "\n")
