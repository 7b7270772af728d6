"""When files that were noticed to change are looked at: once it is quiet. Pure; the time is passed in.

Most programs write many files in a row, which are told together. A file that never rests, such as a log, keeps no
other waiting, and is looked at when it rests at last. Not here: noticing (`watch.py`), what a file had
been (`baseline.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MOST_FILES = 5000
RESTS = 15  # a file that has not rested by then has to for so many times as long
GROWS = 3  # so many changes in a row that only add to the end are told at once; later ones wait longer and longer


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast changes are looked at, in seconds: a `tick` between two looks at the disk; `quiet` for so long, what was
    gathered is looked at, and what rests by then after the `longest` time; no file waits longer than `most`.
    """

    tick: float = 2.0
    quiet: float = 2.0
    longest: float = 10.0
    most: float = 600.0


class Gathering:
    """The files that wait to be looked at, by absolute path."""

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
        """Note that these files have changed."""
        for path in paths:
            if path not in self._last and len(self._last) >= MOST_FILES:
                continue
            self._last[path] = now
            if self._first is None and path not in self._patience:
                self._first = now

    def wait(self, now: float) -> float | None:
        """Return the seconds until something can be looked at; None if nothing waits."""
        ends = [last + self._patience[path] for path, last in self._last.items() if path in self._patience]
        usual = [last for path, last in self._last.items() if path not in self._patience]
        if usual:
            ends.append(self._end(usual))
        return max(0.0, min(ends) - now) if ends else None

    def take(self, now: float) -> tuple[str, ...]:
        """Return the files that can be looked at now; they wait no longer."""
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
        """Note that a change of a file was told, and whether it had only `grown` at its end."""
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
