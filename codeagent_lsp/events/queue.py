"""The events of words that wait: what the user says to a run at work, and tasks that begin when the session is free.

Not here: all other events (`__init__.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codeagent_lsp.events.base import Event


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
