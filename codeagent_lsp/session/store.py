"""Stores sessions on disk, as one append-only JSON-lines file each; a record is written before its effect is shown.

A line counts once its newline is there. An incomplete last line is cut off before the first append; lines that are no
JSON (a block of NULs after a power cut) are skipped. A full disk or a read-only folder is reported once and never stops
a run; a file that was removed meanwhile is made anew from what is still open. Not here: what the events mean
(`replay.py`).
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeagent_lsp.errors import SessionError
from codeagent_lsp.records.rotation import same_file
from codeagent_lsp.state import make_private
from codeagent_lsp.system import lock, open_appending, open_reading, read_at

SUFFIX = ".jsonl"

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
LATER = ("usage", "message", "tool_result", "state", "step_output")
"""Events that come several times a step. What is meant to happen (`tool_calls`), what changes and what the user decides
waits for the disk; a loss of power may take from these what came after it.
"""

_sync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session on disk: its id, the time of its last write (seconds since the epoch), its size in bytes."""

    session_id: str
    modified: float
    size: int


class SessionStore:
    """The session files of one workspace; methods block. `on_problem` receives the error when writing fails, once per
    session, after which nothing of the session is stored; `on_restored` is called when a deleted file was made anew;
    `clean` returns a record as it may be stored.
    """

    def __init__(
        self,
        folder: Path,
        on_problem: Callable[[OSError], None] = lambda error: None,
        clean: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
        on_restored: Callable[[], None] = lambda: None,
    ) -> None:
        self._folder = folder
        self._on_restored = on_restored
        self._clean = clean
        self._on_problem = on_problem
        self._files: dict[str, int] = {}
        self._silent: set[str] = set()

    def claim(self, session_id: str) -> None:
        """Lock a session's file for writing by this process. An error of the disk goes to `on_problem`. SessionError if
        another process has it, or for an invalid id.
        """
        if session_id not in self._silent:
            with self._reporting(session_id):
                self._open(session_id)

    def append(self, session_id: str, record: Mapping[str, Any]) -> None:
        """Write one record, and block until it and all before it are on the disk; records of frequent types, such as
        messages and output, are written, but not waited for. After a failed write, which `on_problem` gets, nothing is
        written any more. SessionError if another process has the session.
        """
        if session_id in self._silent:
            return
        # ASCII: a name of a file may have bytes that are no UTF-8, which escapes keep as lone surrogates.
        line = json.dumps(self._clean(record), ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        with self._reporting(session_id):
            handle = self._restore(session_id, self._open(session_id))
            written = os.write(handle, line)
            if written != len(line):
                # A full disk may take a part of a line; it is cut off when the file is opened next.
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if record.get("type") not in LATER:
                _sync(handle)

    def keeps(self, session_id: str) -> bool:
        """Return whether the session's file is complete: False once a record could not be written."""
        return session_id not in self._silent

    def load(self, session_id: str) -> list[dict[str, Any]]:
        """Return all complete records (events as plain data) of a session, in order, without locking it. SessionError
        if there is no such session.
        """
        try:
            data = self._path(session_id).read_bytes()
        except OSError:
            raise SessionError("session.unknown", session=session_id) from None
        return parse(data)

    def reopen(self, session_id: str) -> list[dict[str, Any]]:
        """Lock an existing session for writing and return its records as `load` does. SessionError if there is none, or
        another process has it.
        """
        if not self._path(session_id).exists():  # claiming would make it
            raise SessionError("session.unknown", session=session_id)
        self.claim(session_id)
        return self.load(session_id)

    def list(self) -> list[StoredSession]:
        """Return the stored sessions without reading them, the last written first; [] if the folder cannot be read."""
        found = []
        for path in self._folder.glob(f"*{SUFFIX}"):
            try:
                stat = self._path(path.stem).stat()
            except (OSError, SessionError):  # removed meanwhile, or a file that is not ours
                continue
            found.append(StoredSession(path.stem, stat.st_mtime, stat.st_size))
        return sorted(found, key=lambda session: session.modified, reverse=True)

    def delete(self, session_id: str) -> None:
        """Delete a session's file; later appends to it are ignored, in this process. SessionError if there is none, or
        another process has it.
        """
        if not self._path(session_id).exists():
            raise SessionError("session.unknown", session=session_id)
        self.claim(session_id)
        self._silent.add(session_id)
        self.release(session_id)
        try:
            self._path(session_id).unlink()
        except FileNotFoundError:
            raise SessionError("session.unknown", session=session_id) from None

    def release(self, session_id: str) -> None:
        """Close a session's file, so that another process may write it; nothing if it is not open here."""
        handle = self._files.pop(session_id, None)
        if handle is not None:
            os.close(handle)

    def is_used_elsewhere(self, session_id: str) -> bool:
        """Return whether another process has locked a session; False also if the file cannot be opened. SessionError
        for an invalid id.
        """
        if session_id in self._files:
            return False
        try:
            handle = open_reading(self._path(session_id))
        except OSError:
            return False
        try:
            # Shared, and dropped at once by closing: looking must not make the session busy for others.
            lock(handle, shared=True)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(handle)
        return False

    def close(self) -> None:
        """Close all files and give up their locks, so that other processes may use the sessions. A later write opens
        its file again.
        """
        for session_id in tuple(self._files):
            self.release(session_id)

    def _open(self, session_id: str) -> int:
        handle = self._files.get(session_id)
        if handle is None:
            make_private(self._folder)
            # No write can land inside a record, and a planted link leads to no other file.
            handle = open_appending(self._path(session_id), readable=True)
            try:
                lock(handle)
                _cut_torn_tail(handle)
            except OSError as error:
                os.close(handle)
                if isinstance(error, BlockingIOError):
                    raise SessionError("session.busy", session=session_id) from None
                raise
            self._files[session_id] = handle
        return handle

    def _restore(self, session_id: str, handle: int) -> int:
        """Return the handle of a session's file; of a new one with the same content if it was removed or moved."""
        # With its folder, as by a clean-up of caches: the open handle still has all of it.
        if same_file(handle, self._path(session_id)):
            return handle
        content = read_at(handle, os.fstat(handle).st_size, 0)
        self.release(session_id)
        handle = self._open(session_id)
        # Another process may have made the same file meanwhile, with content of its own.
        if os.fstat(handle).st_size == 0 and os.write(handle, content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._on_restored()
        return handle

    @contextmanager
    def _reporting(self, session_id: str) -> Iterator[None]:
        """Report an OSError on a session's file once; the session is not written any more."""
        try:
            yield
        except OSError as error:
            # Given up for good: a file with a gap would replay to a state that never was.
            self._silent.add(session_id)
            self._on_problem(error)

    def _path(self, session_id: str) -> Path:
        if not _ID.fullmatch(session_id):
            raise SessionError("session.unknown", session=session_id)
        return self._folder / f"{session_id}{SUFFIX}"


def parse(data: bytes) -> list[dict[str, Any]]:
    """Return the complete records of a file, which may be cut at any byte; lines that are no JSON object are skipped,
    and so is a last line without its newline.
    """
    records: list[dict[str, Any]] = []
    complete = data[: data.rfind(b"\n") + 1]
    for line in complete.split(b"\n"):
        try:
            record = json.loads(line.strip(b"\0"))
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            records.append(record)
    return records


def _cut_torn_tail(handle: int) -> None:
    """Remove the bytes after the last newline: an incomplete record was never acknowledged."""
    size = os.fstat(handle).st_size
    end = size
    while end > 0:
        # From the end, in blocks: files may have hundreds of megabytes, and a torn record is one line.
        start = max(0, end - 65536)
        block = read_at(handle, end - start, start)
        position = block.rfind(b"\n")
        if position >= 0:
            end = start + position + 1
            break
        end = start
    if end != size:
        os.ftruncate(handle, end)
