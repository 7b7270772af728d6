"""The permission decision about a tool call as a value, and the user's approvals beyond a single call: for the rest of
a session, or always in this workspace.

An approval is bound to the exact call and to how commands are isolated (`CommandEnvironment.terms`). Standing ones are
in a file of the user's state folder, never in the workspace, and can be revoked. Not here: asking (`executor.py`),
deciding (`policy.py`).
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from codeagent_lsp.messages import ToolCall
from codeagent_lsp.state import changing, replace_text

MAX_STANDING = 1000
Verdict = Literal["allow", "ask", "deny"]
Mode = Literal["ask", "acceptEdits", "readOnly", "bypass"]


@dataclass(frozen=True, slots=True)
class StandingApproval:
    """A call that is always allowed. `approval_id` is its fingerprint; `since` is in seconds since the Unix epoch."""

    approval_id: str
    tool: str
    shown: str
    since: float


class StandingApprovals:
    """The approvals of one workspace that outlive sessions; read from disk each time, as several editors share them."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def all(self) -> tuple[StandingApproval, ...]:
        """Return every approval, oldest first; none if the file cannot be read."""
        try:
            rows = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return ()
        return tuple(item for row in rows if (item := _approval(row))) if isinstance(rows, list) else ()

    def covers(self, approval_id: str) -> bool:
        """Return whether this exact call is always allowed."""
        return any(item.approval_id == approval_id for item in self.all())

    def add(self, call: ToolCall, approval_id: str, shown: str) -> None:
        """Allow this exact call from now on. OSError if it cannot be written."""
        with changing(self._file):
            others = [item for item in self.all() if item.approval_id != approval_id]
            added = StandingApproval(approval_id, call.name, shown, round(time.time(), 3))
            self._write([*others, added][-MAX_STANDING:])

    def revoke(self, approval_id: str | None = None) -> int:
        """Revoke one approval, or all of them without an id; return how many were revoked."""
        with changing(self._file):
            known = self.all()
            kept = [item for item in known if approval_id is not None and item.approval_id != approval_id]
            if len(kept) != len(known):
                self._write(kept)
        return len(known) - len(kept)

    def _write(self, approvals: list[StandingApproval]) -> None:
        # In ASCII: what a call names may have bytes of a path that are no UTF-8.
        replace_text(self._file, json.dumps([asdict(item) for item in approvals], ensure_ascii=True, indent=1))


class Approvals:
    """The approvals of one session; `standing` holds those that outlive it."""

    def __init__(self, standing: StandingApprovals | None = None) -> None:
        self._allowed: set[str] = set()
        self.standing = standing

    def allow_for_session(self, approval_id: str) -> None:
        """Allow this exact call until the session ends."""
        self._allowed.add(approval_id)

    def covers(self, approval_id: str) -> bool:
        """Return whether this exact call was allowed."""
        return approval_id in self._allowed or (self.standing is not None and self.standing.covers(approval_id))


def fingerprint(call: ToolCall, scope: str = "") -> str:
    """Return the SHA-256 hash, in hex, of the call's name, arguments and `scope`, the conditions
    under which it runs.
    """
    canonical = json.dumps([call.name, dict(call.arguments), scope], sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict about one call with its reason in English. `remember`: an approval may be kept for later calls;
    `firm`: the verdict holds whatever the isolation; `guarded`: a deny rule may cover the call unseen, so that it asks
    in every mode.
    """

    verdict: Verdict
    reason: str
    remember: bool = True
    firm: bool = False
    guarded: bool = False


def _approval(row: Any) -> StandingApproval | None:
    if not isinstance(row, Mapping):
        return None
    approval_id, tool, shown, since = (row.get(name) for name in ("approval_id", "tool", "shown", "since"))
    if not (isinstance(approval_id, str) and isinstance(tool, str) and isinstance(shown, str)):
        return None
    return StandingApproval(approval_id, tool, shown, since if isinstance(since, int | float) else 0.0)
