"""Tells the other servers of this user which files an editor has just saved, as they see only that the disk changed.

For each file there is an empty note in a folder of our state, named by a hash of its path; the note's time is that of
the save. So nothing has to be read, locked or sent. Not here: whose a change is (`whose.py`).
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from codeagent_lsp.state import make_private

FOLDER = "saves"
KEPT_SECONDS = 3600.0
"""How old a note gets: changes are looked at some seconds, at most minutes after they were made."""


class Saves:
    """The notes of saves by all servers of one user, in a folder below `root`. Methods block and never raise; without
    notes, a save in another editor looks like a change by another program.
    """

    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER

    def note(self, path: str) -> None:
        """Note that the file with this absolute real path was saved now."""
        place = self._place(path)
        with suppress(OSError):
            make_private(self._folder)
            place.touch(mode=0o600)

    def last(self, path: str) -> float | None:
        """Return when any server noted a save of a file (absolute path), in seconds since the epoch; None if that is
        not known.
        """
        try:
            return self._place(path).stat().st_mtime
        except OSError:
            return None

    def clear(self) -> None:
        """Remove the notes of all servers that are older than an hour."""
        for entry in self._entries():
            with suppress(OSError):  # another server does the same
                if time.time() - entry.stat().st_mtime > KEPT_SECONDS:
                    Path(entry).unlink()

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        with suppress(OSError), os.scandir(self._folder) as entries:
            yield from entries

    def _place(self, path: str) -> Path:
        return self._folder / hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:32]
