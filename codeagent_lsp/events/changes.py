"""The events of a run's changes: staged, proposed, applied, discarded. Not here: all other events (`__init__.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from codeagent_lsp.events.base import Event

Outcome = Literal["full", "partial", "none", "unknown"]
Verdict = Literal["kept", "reverted"]


@dataclass(frozen=True, kw_only=True)
class FileChanged(Event, name="file_change"):
    """A file of the run's changeset has changed; `change` is the staged state, None when it was taken back."""

    path: str = ""
    change: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class ChangesProposed(Event, name="changes_proposed"):
    """A changeset is ready for the user's decision. `proof` is what was tried on it: `tests`, `diagnostics`, `minimal`,
    each with the `digest` of the state it ran on, and whether it is `outdated`; `words` are sentences for the user.
    """

    summary: str = ""
    files_changed: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0
    proof: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class ChangesIntended(Event, name="changes_intended", internal=True):
    """The editor is about to be asked for these changes, or with `undo` to take changes back. Where no
    `changes_applied` follows, each of these files may have been changed or not.
    """

    files_changed: tuple[str, ...] = ()
    undo: bool = False
    changes: tuple[Mapping[str, Any], ...] = ()
    step_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class ChangesApplied(Event, name="changes_applied"):
    """What the buffers now hold; `conflicts` name the hunks that were left out as `name:line`.

    `reason` is what the editor said to a change that it did not make; `step_id` is the step that changed it, and
    `steps` those that an undo took back (none: all of the run). `refused` are the files that the editor did not change:
    an undo of these can be tried again. `since` (seconds since the epoch) is when this was applied first, where an undo
    of a rewind brings it back. `renamed` has the new names of files that the user has renamed since, by the old ones.
    `only` are the files that alone an undo was to take back (none: all). `verdict` is what was decided about changes of
    other programs, which were in the files already: that they stay, or that they are taken back there.
    """

    outcome: Outcome = "full"
    files_changed: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    reason: str | None = None
    undo: bool = False
    applied: tuple[Mapping[str, Any], ...] = ()
    step_id: str | None = None
    steps: tuple[str, ...] = ()
    refused: tuple[str, ...] | None = None
    since: float | None = None
    renamed: Mapping[str, str] | None = None
    only: tuple[str, ...] | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, kw_only=True)
class ChangesDiscarded(Event, name="changes_discarded"):
    """The user did not want these changes."""

    files_changed: tuple[str, ...] = ()
