"""The user's trust in what a workspace brings (skills, commands, agents, hooks, own tools), by a hash of its content.

Stored in the user's state folder, never in the workspace; changed content needs a new approval. Not here: asking
(`desk.py`), finding what a workspace brings (`session/memory/knowledge.py`).
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from codeagent_lsp.state import changing, make_private

MAX_KEPT = 500

ItemKind = Literal["skills", "commands", "agents", "hooks", "tools"]


@dataclass(frozen=True, slots=True)
class WorkspaceItem:
    """One thing that a workspace brings and that is used only if the user trusts it as it is: this content has this
    `digest`. `path` is as it is shown; `line` says what it does, `detail` is all of it.
    """

    kind: ItemKind
    name: str
    path: str
    digest: str
    line: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Vouched:
    """Trusted content: its hash, its name at the time, and since when, in seconds since the Unix epoch."""

    digest: str
    name: str
    since: float


class Trust:
    """The approved hashes of one workspace; read from disk each time, as several editors share them.

    `asking` is held while the user is asked about all that the workspace brings. What was declined then, in this
    process, is in `declined`; what is to be asked about one by one, in `singly`.
    """

    def __init__(self, file: Path) -> None:
        self.asking = asyncio.Lock()
        self.declined: set[str] = set()
        self.singly: set[str] = set()
        self._file = file
        self._kept_here: set[str] = set()

    def covers(self, digest: str) -> bool:
        """Return whether exactly this content was approved."""
        return digest in self._kept_here or digest in self._read()

    def add(self, digest: str, name: str) -> None:
        """Approve this content; if it cannot be written, for the life of this process."""
        # first, so that the consent holds even where nothing can be written
        self._kept_here.add(digest)
        try:
            with changing(self._file):
                known = {**self._read(), digest: {"name": name, "since": round(time.time(), 3)}}
                self._write(dict(list(known.items())[-MAX_KEPT:]))
        except OSError:
            return

    def reconsider(self, items: Iterable[WorkspaceItem]) -> None:
        """Forget what the user has said of these in this process, so that they are asked again."""
        digests = {item.digest for item in items}
        self.declined -= digests
        self.singly -= digests

    def all(self) -> tuple[Vouched, ...]:
        """Return all approvals, oldest first."""
        return tuple(_vouched(digest, row) for digest, row in self._read().items())

    def revoke(self, digest: str | None = None) -> int:
        """Revoke one approval, or all of them without a digest; return how many were revoked.
        OSError if not writable.
        """
        with changing(self._file):
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
        make_private(self._file.parent)
        draft = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(known, file, ensure_ascii=True, indent=1)
        draft.replace(self._file)


def _vouched(digest: str, row: object) -> Vouched:
    name, since = (row.get("name"), row.get("since")) if isinstance(row, Mapping) else ("", 0.0)
    return Vouched(digest, str(name), since if isinstance(since, int | float) else 0.0)
