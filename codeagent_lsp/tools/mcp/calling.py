"""The state of one MCP call: the context for questions to the user, progress notes, and the time limit.

Not here: sending it (`connection.py`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codeagent_lsp.workspace.text.visible import one_line

if TYPE_CHECKING:
    from codeagent_lsp.tools.context import ToolContext

NOTE_SECONDS = 0.5
NOTE = 160


@dataclass(slots=True)
class Calling:
    """One running call. `label` is the tool's full name, `seconds` its time limit; `forms` counts the elicitations."""

    context: ToolContext
    label: str
    seconds: float
    forms: int = 0
    _told: float = field(default=-NOTE_SECONDS)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Show the server's progress as a status line, at most every NOTE_SECONDS."""
        now = time.monotonic()
        if now - self._told < NOTE_SECONDS:
            return
        self._told = now
        far = f"{progress:g}/{total:g}" if total else f"{progress:g}"
        self.context.note(one_line(f"{self.label}: {far} {message or ''}", NOTE))
