"""An append-only file of lines with rotation when it is full: `trace.jsonl`, `trace.jsonl.1`, `trace.jsonl.2`, …

Readable by its owner only. Several processes may write the same file: each line is one write, and a rotation by
another process is noticed. Not here: the content of the lines, and threads (`trace.py`).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codeagent_lsp.state import json_object, make_private
from codeagent_lsp.system import lock, open_appending, read_at


class RotatingFile:
    """Appends lines to a file that its owner alone may read. Files have at most `max_bytes` (one line may be longer);
    `keep` older ones are kept as `.1`, `.2`, … With `restores`, a file that is removed while it is open is written
    again with its content.
    """

    def __init__(self, path: Path, *, max_bytes: int, keep: int, restores: bool = False) -> None:
        self._path = path
        self._restores = restores
        self._max_bytes = max_bytes
        self._keep = keep
        self._handle: int | None = None
        self._torn = False

    def append(self, line: bytes) -> None:
        """Write one line, given without its newline; rotate the file first if the line does not fit. OSError if the
        disk is full or the folder is not writable; that line is lost.
        """
        handle = self._current()
        if os.fstat(handle).st_size + len(line) > self._max_bytes:
            self._rotate(handle)
            handle = self._current()
        # The last write stopped amid its line, on a full disk or by a kill: that line is lost, this one must not be.
        data = (b"\n" if self._torn else b"") + line + b"\n"
        self._torn = True  # until all of it is there
        if os.write(handle, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._torn = False

    def sync(self) -> None:
        """Block until all data is on disk (fdatasync); OSError if that fails. Does nothing before the first line."""
        if self._handle is not None:
            getattr(os, "fdatasync", os.fsync)(self._handle)  # macOS has no fdatasync

    def close(self) -> None:
        """Close the file; twice does no harm. Another `append` opens it again, and until then `sync` does nothing."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _current(self) -> int:
        """Return the open descriptor of the file at our path; reopened after a rotation by another process."""
        if self._handle is not None and same_file(self._handle, self._path):
            return self._handle
        lost = self._removed_content()
        self.close()
        make_private(self._path.parent)
        if lost:
            self._restore(lost)
        self._handle = open_appending(self._path, readable=True)
        self._torn = _ends_within_a_line(self._handle)
        return self._handle

    def _removed_content(self) -> bytes:
        """Return the content of the open file if it was removed, with its folder perhaps, and not only rotated."""
        if self._handle is None or not self._restores or self._path.exists():
            return b""
        info = os.fstat(self._handle)
        return read_at(self._handle, min(info.st_size, self._max_bytes), 0) if not info.st_nlink else b""

    def _restore(self, content: bytes) -> None:
        handle = open_appending(self._path)
        try:
            lock(handle, wait=True)
            # Another process may have done the same meanwhile.
            if os.fstat(handle).st_size == 0 and os.write(handle, content) != len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(handle)  # this releases the lock

    def _rotate(self, handle: int) -> None:
        lock(handle, wait=True)
        try:
            # Another process may have rotated while this one waited for the lock.
            if not same_file(handle, self._path) or os.fstat(handle).st_size == 0:
                return
            # From the oldest on, or each would overwrite the next.
            for number in range(self._keep, 0, -1):
                older = rotated_path(self._path, number)
                newer = rotated_path(self._path, number - 1)
                if newer.exists():
                    newer.replace(older)
            if self._keep == 0:
                self._path.unlink(missing_ok=True)
        finally:
            self.close()  # this releases the lock


def rotated_path(path: Path, number: int) -> Path:
    """Return the path of the file rotated `number` times, such as `trace.jsonl.1`; 0 is the one being written. It need
    not exist.
    """
    return path if number == 0 else path.with_name(f"{path.name}.{number}")


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield all complete records, JSON objects, of a file and its rotated predecessors, the oldest first; nothing if
    there is none. Invalid lines are skipped.
    """
    numbers = [int(other.suffix[1:]) for other in path.parent.glob(f"{path.name}.*") if other.suffix[1:].isdecimal()]
    for number in (*sorted(numbers, reverse=True), 0):
        try:
            with rotated_path(path, number).open("rb") as lines:
                yield from filter(None, map(parse_line, lines))
        except OSError:  # rotated or removed meanwhile
            continue


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Return the record of one line of JSON in bytes, with its newline; None if the line is incomplete or not a JSON
    object.
    """
    if not line.endswith(b"\n"):
        return None
    # A power cut may leave zero bytes at the end of a file.
    return json_object(line.strip(b"\0\r\n "))


def same_file(handle: int, path: Path) -> bool:
    """Return whether an open file (a descriptor) is still the one at a path, and was not removed or moved. OSError if
    the path cannot be looked at.
    """
    try:
        there, here = path.stat(follow_symlinks=False), os.fstat(handle)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _ends_within_a_line(handle: int) -> bool:
    """Return whether an open file has a last line without its end."""
    # By the descriptor: another process may have rotated the file since it was opened.
    size = os.fstat(handle).st_size
    return size > 0 and read_at(handle, 1, size - 1) != b"\n"
