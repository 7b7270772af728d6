"""Decides when files that were noticed to change are looked at (once it is quiet), and whose a change on the disk is:
the user's, ours, git's, or that of another program. Pure; the time is passed in.

Most programs write many files in a row, which are told together. A file that never rests, such as a log, keeps no other
waiting, and is looked at when it rests at last. Not here: noticing (`watch.py`), what a file had been (`baseline.py`),
what becomes of a foreign change (`session/foreign_runs.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from codeagent_lsp.foreign.disk import FileState

FORMATTERS = 1.0  # seconds after a save in which what changes the file belongs to it
MOST_FILES = 5000
RESTS = 15  # a file that has not rested by then has to for so many times as long
GROWS = 3  # so many changes in a row that only add to the end are told at once; later ones wait longer and longer


@dataclass(frozen=True, slots=True)
class DiskChange:
    """A change of one file on the disk, by absolute path: the texts before and after, None for no file. `is_foreign` is
    False for a change of the user's own, such as a save of the editor.
    """

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
    its last save, the texts that the editor was asked for (`ours`), and the times in which commands of ours ran in the
    user's folders.

    `git_moved` says that git was at work when the file changed, `is_as_staged` that git was used since the last look
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
    """Whose a change is: up to the state `known` it is the user's, ours or git's (None: nothing of it); from there to
    the present state it is another program's if `is_foreign`.
    """

    known: FileState | None
    is_foreign: bool


def verdict(seen: Seen) -> Verdict:
    """Return whose the change of a file is, by what is known of it: git's, ours or the user's where something says so,
    else another program's. Pure.
    """
    if _by_git(seen) or _by_us(seen) or _by_save(seen):
        return Verdict(seen.now, is_foreign=False)
    saved = seen.saved
    # Saved, and then changed by somebody: what the user saved is what was there.
    if saved is not None and saved.text is not None and _alike(FileState(saved.text), seen.now):
        return Verdict(seen.now, is_foreign=False)
    if saved is not None and saved.text is not None:
        return Verdict(FileState(saved.text), is_foreign=True)
    return Verdict(None, is_foreign=seen.was != seen.now or not seen.now.known)


@dataclass(frozen=True, slots=True)
class Pace:
    """How often changes are looked at, in seconds: a `tick` between two looks at the disk. Files are looked at once
    nothing changed for `quiet`, or `longest` after the first change those that are quiet by then; no file waits longer
    than `most`.
    """

    tick: float = 2.0
    quiet: float = 2.0
    longest: float = 10.0
    most: float = 600.0


class Gathering:
    """The changed files that wait to be looked at, by absolute path, at most 5,000. Times are those of
    `time.monotonic`.
    """

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._last: dict[str, float] = {}
        self._first: float | None = None
        self._patience: dict[str, float] = {}
        self._grown: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._last)

    def __contains__(self, path: object) -> bool:
        return path in self._last

    def notice(self, paths: Iterable[str], now: float) -> None:
        """Note that these files (absolute paths) have changed at the time `now`; new ones beyond 5,000 are ignored."""
        for path in paths:
            if path not in self._last and len(self._last) >= MOST_FILES:
                continue
            self._last[path] = now
            if self._first is None and path not in self._patience:
                self._first = now

    def wait(self, now: float) -> float | None:
        """Return the seconds until some file can be looked at, 0 for now; None if nothing waits."""
        ends = [last + self._patience[path] for path, last in self._last.items() if path in self._patience]
        usual = [last for path, last in self._last.items() if path not in self._patience]
        if usual:
            ends.append(self._end(usual))
        return max(0.0, min(ends) - now) if ends else None

    def take(self, now: float) -> tuple[str, ...]:
        """Return the absolute paths of the files that can be looked at at the time `now`, and forget them; () if none
        can.
        """
        usual = {path: last for path, last in self._last.items() if path not in self._patience}
        ready = [path for path, last in self._last.items() if now >= last + self._patience.get(path, self._pace.quiet)]
        if usual and now < self._end(usual.values()):
            ready = [path for path in ready if path not in usual]
        else:
            self._first = None
            self._patience.update((path, self._pace.quiet * RESTS) for path in usual if path not in ready)
        for path in ready:
            del self._last[path]
        return tuple(ready)

    def _end(self, usual: Iterable[float]) -> float:
        """Return when files that changed last at these times are looked at."""
        quiet = max(usual) + self._pace.quiet
        return quiet if self._first is None else min(quiet, self._first + self._pace.longest)

    def told(self, path: str, *, grown: bool) -> None:
        """Note that a change of a file was reported, and whether the file had only `grown` at its end; one that keeps
        growing, such as a log, then waits longer and longer.
        """
        count = self._grown.pop(path, 0) + 1 if grown else 0
        if not grown:
            self._patience.pop(path, None)
            return
        self._grown[path] = count
        if count >= GROWS:
            self._patience[path] = min(self._patience.get(path, self._pace.quiet) * 2, self._pace.most)
        while len(self._grown) > MOST_FILES:
            oldest = next(iter(self._grown))
            del self._grown[oldest]
            self._patience.pop(oldest, None)


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
