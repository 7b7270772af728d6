"""A diagnostic as a value, read from the form of LSP, and the port of the client's own diagnostics.

Not here: where diagnostics come from (`linters.py`, `syntax.py`, the client), how they are shown (`difference.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from codeagent_lsp.workspace.text.position import Encoding, LineIndex, offset_at, position_at

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


MAX_ITEMS = 500
MAX_MESSAGE = 2000
_SEVERITIES: dict[Any, Severity] = {1: "error", 2: "warning", 3: "info", 4: "hint"}


def read(
    items: Sequence[Any], path: str, text: str, encoding: Encoding, lines: LineIndex | None = None
) -> tuple[Diagnostic, ...]:
    """Convert LSP diagnostics of a text to `Diagnostic`s, at most `MAX_ITEMS`; invalid ones are left out."""
    lines = lines or LineIndex.of(text)
    made = (_diagnostic(item, path, text, lines, encoding) for item in items[:MAX_ITEMS])
    return tuple(item for item in made if item is not None)


def _diagnostic(item: Any, path: str, text: str, lines: LineIndex, encoding: Encoding) -> Diagnostic | None:
    message, start = _get(item, "message"), _get(_get(item, "range"), "start")
    line, character = _get(start, "line"), _get(start, "character")
    if not (isinstance(message, str) and _is_count(line) and _is_count(character)):
        return None
    place = position_at(text, lines, offset_at(text, lines, (line, character), encoding), "utf-32")
    severity = _SEVERITIES.get(_get(item, "severity"), "warning")
    source, code = _get(item, "source"), _get(item, "code")
    return Diagnostic(
        path,
        place.line + 1,
        place.character + 1,
        severity,
        message[:MAX_MESSAGE],
        source[:100] if isinstance(source, str) else "",
        str(code)[:100] if isinstance(code, str | int) else "",
    )


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
