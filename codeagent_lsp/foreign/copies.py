"""Copies of files as they were, in the state folder, for this user alone; bounded in number and size.

Blocks. Not here: which files are copied (`baseline.py`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
import uuid
from pathlib import Path

from codeagent_lsp.foreign.disk import ABSENT, UNKNOWN, FileState

MOST_COPIES = 4000
MOST_BYTES = 64 << 20
_OLD_SECONDS = 7 * 86400


class Copies:
    """The copies of one server, in a folder of its own below `place`; `remove` deletes it."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._folder = place / uuid.uuid4().hex
        self._sizes: dict[str, int | None] = {}
        self._total = 0

    def state(self, path: str) -> FileState | None:
        """Return a file as it was when it was kept; None if it was never kept."""
        if path not in self._sizes:
            return None
        size = self._sizes[path]
        if size is None:
            return UNKNOWN
        if size < 0:
            return ABSENT
        try:
            return FileState(self._file(path).read_bytes().decode("utf-8", "surrogatepass"))
        except (OSError, UnicodeDecodeError):  # somebody cleans the state folder
            return UNKNOWN

    def keep(self, path: str, state: FileState) -> None:
        """Keep a file as it is now; that it is not known, where it is not, or there is no more room."""
        self._total -= max(self._sizes.pop(path, 0) or 0, 0)
        if not state.known or state.text is None:
            self._sizes[path] = None if not state.known else -1
            self._forget(path)
            return
        data = state.text.encode("utf-8", "surrogatepass")
        full = len(self._sizes) >= MOST_COPIES or self._total + len(data) > MOST_BYTES
        if full or not self._write(path, data):
            self._sizes[path] = None
            self._forget(path)
            return
        self._sizes[path] = len(data)
        self._total += len(data)

    def drop(self, path: str) -> None:
        """Forget a file: what it was is known otherwise."""
        self._total -= max(self._sizes.pop(path, 0) or 0, 0)
        self._forget(path)

    def paths(self) -> tuple[str, ...]:
        """Return the paths of what was kept."""
        return tuple(self._sizes)

    def remove(self) -> None:
        """Delete the folder, and those that killed servers have left."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._sizes.clear()
        self._total = 0
        oldest = time.time() - _OLD_SECONDS
        with contextlib.suppress(OSError):
            for other in self._place.iterdir():
                if other.stat().st_mtime < oldest:
                    shutil.rmtree(other, ignore_errors=True)
            self._place.rmdir()  # only where no other server has copies

    def _write(self, path: str, data: bytes) -> bool:
        file = self._file(path)
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600)
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(data)
        except OSError:  # the disk is full: what the file was is not known then
            return False
        return True

    def _forget(self, path: str) -> None:
        with contextlib.suppress(OSError):
            self._file(path).unlink(missing_ok=True)

    def _file(self, path: str) -> Path:
        return self._folder / hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:32]
