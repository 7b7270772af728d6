"""What tools and prompts ask of the code index of a workspace: a port, so that they can be tried without one.

Not here: the index itself (`service.py`), and what is computed from its answers (`chunks.py`, `mapper.py`, `graph.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # the parts of an index are heavy, and who only names the port does without them
    from codeagent_lsp.index.chunks import Chunk
    from codeagent_lsp.index.service import Status
    from codeagent_lsp.index.view import View


class CodeIndex(Protocol):
    """The index as one run sees it: what the run has staged lies over unsaved texts, those over the disk.

    Paths are relative to the workspace, as `Roots.relative` gives them.
    """

    async def view(self) -> View:
        """What is known now. Waits a bounded time for the first build; ToolFailed where there is no index."""

    async def search(self, query: str, limit: int) -> tuple[Chunk, ...]:
        """The pieces of code that answer best, best first."""

    async def refresh(self) -> Status:
        """Bring the index up to the disk; returns when that is done."""
