"""The events of a session rather than of one run: words that wait, and going back.

Words that wait are what the user says to a run at work, and tasks that begin when the session is free. Going back is a
rewind to before a run, its undoing, and a session that begins from another. Not here: all other events (`__init__.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from codeagent_lsp.events.base import Event

What = Literal["changes", "talk", "both"]


@dataclass(frozen=True, kw_only=True)
class Steered(Event, name="steered", internal=True):
    """The user said something to a run at work; it waits for the run's next model call as the item `item_id`."""

    item_id: str = ""
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class SteerDelivered(Event, name="steer_delivered"):
    """The model has been given what the user said to the run."""

    item_id: str = ""
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class TaskQueued(Event, name="task_queued", internal=True):
    """A task waits until its session is free; it then begins as the run `run_id`. `place` is what the user had
    selected: `{path, start, end, selected}`, offsets in the text of that time; `images` are `{media_type, data}`.
    """

    task: str = ""
    title: str = ""
    planning: str | None = None
    attempts: int = 1
    until_proven: bool = False
    place: Mapping[str, Any] | None = None
    images: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class ItemWithdrawn(Event, name="item_withdrawn", internal=True):
    """The user took back words that waited."""

    item_id: str = ""


@dataclass(frozen=True, kw_only=True)
class SessionRewound(Event, name="session_rewound"):
    """The run of this event took back what the runs `gone` changed, said, or both. `staged` is what of their changes
    was still undecided, by run, `attempts` what attempts at them had applied; `conflicts` name places as `name:line`
    that were changed since and stay, `refused` files that the editor did not change: what was changed there can be
    undone later.
    """

    what: What = "both"
    gone: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    staged: Mapping[str, Any] = field(default_factory=dict)
    attempts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SessionRestored(Event, name="session_restored"):
    """The rewind by the run of this event was undone."""


@dataclass(frozen=True, kw_only=True)
class SessionForked(Event, name="session_forked", internal=True):
    """The session began with the conversation that another had: `source` is that session."""

    source: str = ""
    title: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()
