"""The events of going back: a rewind to before a run, its undoing, and a session that begins from another.

Not here: all other events (`__init__.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from codeagent_lsp.events.base import Event

What = Literal["changes", "talk", "both"]


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
