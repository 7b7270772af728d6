"""The port through which accepted changes reach the user's buffers; implemented by the server, handed in by
`app`. The one place where the agent waits for the editor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from codeagent_lsp.workspace.changes.changeset import Changeset, HunkConflict

Outcome = Literal["full", "partial", "none", "unknown"]


@dataclass(frozen=True, slots=True)
class Applied:
    """What the buffers really hold afterwards.

    `done` are the changes that arrived, on the texts they were applied to; `left` are those that did not;
    `conflicts` the hunks that met text the user has changed; `reason` one English sentence when not full.
    """

    outcome: Outcome
    done: Changeset = Changeset()
    left: Changeset = Changeset()
    conflicts: tuple[HunkConflict, ...] = ()
    reason: str = ""


class Editor(Protocol):
    """Whoever can change the user's buffers."""

    async def apply(self, changeset: Changeset, label: str, may_lose: frozenset[str] = frozenset()) -> Applied:
        """Bring `changeset` into the buffers as an undoable edit named `label`, as far as it still fits.

        A file with unsaved text is only deleted when its path is in `may_lose`.
        """

    def has_unsaved_text(self, path: str) -> bool:
        """Whether a file is open with text that is not on the disk."""
