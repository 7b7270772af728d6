"""A diagnostic as a value, and the port of the client's own diagnostics.

Not here: where diagnostics come from (`linters.py`, `syntax.py`, the client), how they are shown (`difference.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Severity = Literal["error", "warning", "info", "hint"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem in a file.

    `path` is absolute; `line` and `column` are 1-based, `column` in characters. `source` names the linter; `code` may
    be ''.
    """

    path: str
    line: int
    column: int
    severity: Severity
    message: str
    source: str = ""
    code: str = ""


class Diagnostics(Protocol):
    """Port: the diagnostics that the client shows."""

    async def of(self, path: str) -> tuple[Diagnostic, ...] | None:
        """Return the diagnostics of an open file for its current buffer; None if the client has none to give. Never
        raises.
        """
