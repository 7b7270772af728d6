"""When files that were noticed to change are looked at: once it is quiet. Pure; the time is passed in.

Most programs write many files in a row, which are told together. A file that never rests, such as a log, keeps no
other waiting, and is looked at when it rests at last. Not here: noticing (`stamps.py`, the client), what a file had
been (`baseline.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

QUIET = 2.0  # seconds without a change, after which what was gathered is looked at
LONGEST = 10.0  # so many seconds after the first change, whatever rests by then
RESTLESS = 30.0  # seconds of rest that are asked of a file which had none by then
MOST_PATIENCE = 600.0
MOST_FILES = 5000
GROWS = 3  # so many changes in a row that only add to the end are told at once; later ones wait longer and longer


class Gathering:
    """The files that wait to be looked at, by absolute path. `overflow` tells that there were too many of them."""

    def __init__(self) -> None:
        self.overflow = False
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
                self.overflow = True
                continue
            self._last[path] = now
            if self._first is None and path not in self._patience:
                self._first = now

    def wait(self, now: float) -> float | None:
        """Return the seconds until something can be looked at; None if nothing waits."""
        ends = [last + self._patience[path] for path, last in self._last.items() if path in self._patience]
        usual = [last for path, last in self._last.items() if path not in self._patience]
        if usual and self._first is not None:
            ends.append(min(max(usual) + QUIET, self._first + LONGEST))
        return max(0.0, min(ends) - now) if ends else None

    def take(self, now: float) -> tuple[str, ...]:
        """Return the files that can be looked at now; they wait no longer."""
        usual = {path: last for path, last in self._last.items() if path not in self._patience}
        ready = [path for path, last in self._last.items() if now >= last + self._patience.get(path, QUIET)]
        if usual and self._first is not None and now < min(max(usual.values()) + QUIET, self._first + LONGEST):
            ready = [path for path in ready if path not in usual]
        else:
            self._first = None
            self._patience.update((path, RESTLESS) for path in usual if path not in ready)
        for path in ready:
            del self._last[path]
        return tuple(ready)

    def told(self, path: str, *, grown: bool) -> None:
        """Note that a change of a file was told, and whether it had only `grown` at its end."""
        count = self._grown.pop(path, 0) + 1 if grown else 0
        if not grown:
            self._patience.pop(path, None)
            return
        self._grown[path] = count
        if count >= GROWS:
            self._patience[path] = min(max(self._patience.get(path, QUIET), QUIET) * 2, MOST_PATIENCE)
        while len(self._grown) > MOST_FILES:
            oldest = next(iter(self._grown))
            del self._grown[oldest]
            self._patience.pop(oldest, None)
