"""The port through which accepted changes are applied to the user's buffers.

The server implements it, `app` passes it in.

This is the only place where the agent waits for the editor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from codeagent_lsp.workspace.changes.changeset import Changeset, HunkConflict

ApplyOutcome = Literal["full", "partial", "none", "unknown"]


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of applying a changeset to the user's buffers.

    `done` are the changes that were applied, on the texts they were applied to; `left` are those that were not;
    `late` those of them that the editor did not refuse, so that it may make them yet; `conflicts` the hunks that met
    text changed by the user; `reason` is one English sentence unless the outcome is full.
    """

    outcome: ApplyOutcome
    done: Changeset = Changeset()
    left: Changeset = Changeset()
    conflicts: tuple[HunkConflict, ...] = ()
    reason: str = ""
    late: Changeset = Changeset()

    @property
    def refused(self) -> tuple[str, ...]:
        """Return the paths of the files that the editor did not change although nothing in them conflicts."""
        conflicting = {conflict.path for conflict in self.conflicts}
        paths = (path for change in self.left for path in (change.path, change.moved_from) if path is not None)
        return tuple(dict.fromkeys(path for path in paths if path not in conflicting))


class Editor(Protocol):
    """Applies changes to the user's buffers; one per session."""

    async def apply(self, changeset: Changeset, label: str, may_lose: frozenset[str] = frozenset()) -> Applied:
        """Apply `changeset` to the buffers as one undoable edit named `label`, as far as it still fits.

        A file with unsaved text is only deleted when its path is in `may_lose`.
        """

    async def open_unclear(self, paths: Iterable[str]) -> None:
        """Have the user's editor open those of the files of which only it can tell in which encoding they are."""

    def still_shows(self, path: str) -> bool:
        """Return whether a file that was deleted is open all the same, in an editor that cannot delete files."""

    def has_unsaved_text(self, path: str) -> bool:
        """Return whether a file is open with text that has not been saved to disk."""
