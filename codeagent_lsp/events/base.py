"""The base class of all events. Not here: the events themselves (`__init__.py`, `plans.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class Event:
    """The fields of all events, set by the session, empty before. `type` is the name of a class.

    `internal` events are stored but never sent to a client; `transient` ones are sent but not stored.
    """

    type: ClassVar[str] = ""
    internal: ClassVar[bool] = False
    transient: ClassVar[bool] = False
    session_id: str = ""
    run_id: str = ""
    seq: int = 0
    ts: float = 0.0

    def __init_subclass__(cls, *, name: str, internal: bool = False, transient: bool = False) -> None:
        cls.type, cls.internal, cls.transient = name, internal, transient
