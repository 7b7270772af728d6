"""The user's trust in texts of a workspace: skills and agents, by a hash of their whole content.

Stored in the user's state folder, never in the workspace; changed content needs a new approval. Not here: asking.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MAX_KEPT = 500


@dataclass(frozen=True, slots=True)
class Vouched:
    """Trusted content: its hash, its name at the time, and since when, in seconds since the Unix epoch."""

    digest: str
    name: str
    since: float


class Trust:
    """The approved hashes of one workspace; read from disk each time, as several editors share them."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._kept_here: set[str] = set()

    def covers(self, digest: str) -> bool:
        """Return whether exactly this content was approved."""
        return digest in self._kept_here or digest in self._read()

    def add(self, digest: str, name: str) -> None:
        """Approve this content; if it cannot be written, for the life of this process."""
        self._kept_here.add(digest)
        known = {**self._read(), digest: {"name": name, "since": round(time.time(), 3)}}
        try:
            self._write(dict(list(known.items())[-MAX_KEPT:]))
        except OSError:
            return

    def all(self) -> tuple[Vouched, ...]:
        """Return all approvals, oldest first."""
        return tuple(_vouched(digest, row) for digest, row in self._read().items())

    def revoke(self, digest: str | None = None) -> int:
        """Revoke one approval, or all of them without a digest; return how many were revoked.
        OSError if not writable.
        """
        known = self._read()
        kept = {name: row for name, row in known.items() if digest is not None and name != digest}
        if len(kept) != len(known):
            self._write(kept)
        gone = {name for name in (*known, *self._kept_here) if digest in (None, name)}
        self._kept_here -= gone
        return len(gone)

    def _read(self) -> dict[str, object]:
        try:
            known = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return known if isinstance(known, dict) else {}

    def _write(self, known: dict[str, object]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(known, file, ensure_ascii=True, indent=1)
        draft.replace(self._file)


def _vouched(digest: str, row: object) -> Vouched:
    name, since = (row.get("name"), row.get("since")) if isinstance(row, Mapping) else ("", 0.0)
    return Vouched(digest, str(name), since if isinstance(since, int | float) else 0.0)
