"""Modification times of texts in a private view: a different second for every version of a file.

Python, make and others take a file for unchanged if its size and the second of its modification time are equal, and
would use stale results of the previous version. Not here: copies of files on the disk, which keep the time they have.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable


class TextTimes:
    """The seconds given so far; they never decrease, and are ahead of the clock only if that is too slow."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._given = 0
        self._now: int | None = None

    def begin(self) -> None:
        """Begin a batch of texts, which share one second."""
        self._now = None

    def give(self, place: str, *others: os.stat_result | None) -> None:
        """Set the modification time of the file at `place`, different from that of `others`, its earlier versions."""
        if self._now is None:
            self._now = max(int(self._clock()), self._given + 1)
        second, taken = self._now, {int(other.st_mtime) for other in others if other is not None}
        while second in taken:
            second += 1
        self._given = max(self._given, second)
        os.utime(place, (second, second))
