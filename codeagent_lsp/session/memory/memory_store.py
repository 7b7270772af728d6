"""Stores the memory of one workspace in `memory.json`: the entries, the sessions read for them, and those still to
read.

The file is small, private to the user, and read anew at every access, since editors share it. Not here: what is worth
remembering (`agent/memory.py`), when sessions are read (`remembering.py`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

from codeagent_lsp.agent.memory import MemoryEntry, entry_of, merged

MAX_BYTES = 1 << 20
MAX_SESSIONS = 200
# Each costs a call of the model at the next start, before anybody has asked for anything.
MAX_WAITING = 5


class MemoryStore:
    """Reads and writes the memory in `file`. `enabled` returns whether memory is on; callers check it before they add.

    All methods block. Write errors (OSError) are ignored, since no run may fail because of memory.
    """

    def __init__(self, file: Path, enabled: Callable[[], bool] = lambda: True) -> None:
        self._file = file
        self.enabled = enabled
        self._lock = Lock()

    def entries(self) -> tuple[MemoryEntry, ...]:
        """Return all entries, the oldest first."""
        rows = self._read().get("entries")
        return tuple(entry for row in rows if (entry := entry_of(row))) if isinstance(rows, list) else ()

    def offered(self) -> tuple[MemoryEntry, ...]:
        """Return the entries for the prompts of later sessions; none while memory is off."""
        return self.entries() if self.enabled() else ()

    def add(self, entries: Iterable[MemoryEntry]) -> None:
        """Merge new entries into the stored ones."""
        new = tuple(entries)
        if not new:
            return
        with self._lock:
            self._write(entries=[asdict(entry) for entry in merged(self.entries(), new)])

    def forget(self, entry_id: str | None = None) -> int:
        """Remove one entry, or all for None; return how many were removed."""
        with self._lock:
            known = self.entries()
            kept = [asdict(entry) for entry in known if entry_id is not None and entry.entry_id != entry_id]
            if len(kept) != len(known):
                self._write(entries=kept)
        return len(known) - len(kept)

    def read_up_to(self, session_id: str) -> int:
        """Return the `seq` of the last event of a session that was read; 0 for none."""
        seen = self._read().get("seen")
        found = seen.get(session_id) if isinstance(seen, dict) else 0
        return found if isinstance(found, int) else 0

    def waiting(self) -> tuple[str, ...]:
        """Return the ids of sessions that ended before they could be read, the oldest first."""
        found = self._read().get("waiting")
        return tuple(item for item in found if isinstance(item, str)) if isinstance(found, list) else ()

    def wait(self, session_ids: Iterable[str]) -> None:
        """Add sessions to those to be read later; only the newest 5 are kept."""
        with self._lock:
            known = dict.fromkeys((*self.waiting(), *session_ids))
            self._write(waiting=list(known)[-MAX_WAITING:])

    def done(self, session_id: str, seq: int) -> None:
        """Record that a session was read up to `seq`, and remove it from those that wait."""
        with self._lock:
            seen = self._read().get("seen")
            known = {**(seen if isinstance(seen, dict) else {}), session_id: seq}
            left = [item for item in self.waiting() if item != session_id]
            self._write(seen=dict(list(known.items())[-MAX_SESSIONS:]), waiting=left)

    def _read(self) -> Mapping[str, Any]:
        try:
            with self._file.open("rb") as file:
                found = json.loads(file.read(MAX_BYTES + 1))
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def _write(self, **changes: object) -> None:
        # A draft for each process, renamed: another editor's server may write at the same moment, and readers see
        # either whole.
        draft = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
                json.dump({**self._read(), **changes}, out, ensure_ascii=True, indent=1)
            draft.replace(self._file)
        except OSError:  # read-only or full
            with suppress(OSError):
                draft.unlink()
