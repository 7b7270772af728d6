"""When a text that is laid into a private view was last changed: in a second of its own for every version of it.

Python, make and others take a file for unchanged while its size and the second of its time are the same, and would go
on with what they made of the version before. Not here: copies of files on the disk, which keep the time they have.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable


class TextTimes:
    """The seconds that were given. They never go back, and run ahead of the clock only where it is too slow."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._given = 0
        self._now: int | None = None

    def begin(self) -> None:
        """The next texts are laid together: one second will do for all of them."""
        self._now = None

    def give(self, place: str, *others: os.stat_result | None) -> None:
        """Date the file at `place`, and never as `others`: that on the disk, and what a command left in its place."""
        if self._now is None:
            self._now = max(int(self._clock()), self._given + 1)
        second, taken = self._now, {int(other.st_mtime) for other in others if other is not None}
        while second in taken:
            second += 1
        self._given = max(self._given, second)
        os.utime(place, (second, second))
