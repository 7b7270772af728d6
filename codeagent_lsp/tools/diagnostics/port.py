"""A diagnostic as a value, and the port by which the client's own are asked for.

Not here: where diagnostics come from (`linters.py`, `syntax.py`, the client), how they are shown (`showing.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Severity = Literal["error", "warning", "info", "hint"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem in a file.

    `path` is absolute; `line` and `column` count from 1, `column` in characters. `source` names who says so; `code`
    may be ''.
    """

    path: str
    line: int
    column: int
    severity: Severity
    message: str
    source: str = ""
    code: str = ""


class Diagnostics(Protocol):
    """What the client shows."""

    async def of(self, path: str) -> tuple[Diagnostic, ...] | None:
        """The diagnostics of an open file as its buffer stands; None when the client cannot say. Never raises."""
