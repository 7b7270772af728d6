"""The life cycle of a connection: which requests it accepts, and how the process ends. Pure functions.

Not here: the changes of the phase (`../server.py`).
"""

from __future__ import annotations

from enum import Enum, auto

from lsprotocol import types

from codeagent_lsp.server.wire.envelope import INVALID_REQUEST

NOT_INITIALIZED = -32002


class Phase(Enum):
    """The state of a connection in its life cycle."""

    FRESH = auto()
    STARTING = auto()
    READY = auto()
    SHUT = auto()

    def refusal(self, method: str) -> tuple[int, str] | None:
        """Return the error code and reason why a request is refused in this phase, or None."""
        if self is Phase.SHUT:
            return INVALID_REQUEST, "the server is shutting down"
        if method == types.INITIALIZE:
            return None if self is Phase.FRESH else (INVALID_REQUEST, "the server is initialized already")
        return None if self is Phase.READY else (NOT_INITIALIZED, "the server is not initialized yet")

    @property
    def exit_code(self) -> int:
        """Return the exit code of a process that ends in this phase: 0 after `shutdown`, else 1."""
        return 0 if self is Phase.SHUT else 1
