"""What tools and prompts ask of the code index of a workspace: a port, so that they can be tried without one.

Not here: the index itself (`service.py`), and what is computed from its answers (`chunks.py`, `mapper.py`, `graph.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # the parts of an index are heavy, and who only names the port does without them
    from codeagent_lsp.index.answers import Answers
    from codeagent_lsp.index.chunks import Chunk
    from codeagent_lsp.index.service import Status
    from codeagent_lsp.index.view import View

Finder = Callable[[str, int], Awaitable["Sequence[Chunk]"]]
"""Another search besides the one by words, for instance by vectors: the pieces for a query, at most so many, best
first. It never fails: where it cannot answer now, it finds nothing."""


class VectorSearch(Protocol):
    """Search by meaning over the pieces of the index, joined with that by words. It never fails (see `Finder`)."""

    async def refresh(self) -> object:
        """Return the index has changed: come up to it. May be cancelled."""

    async def search(self, query: str, limit: int) -> Sequence[Chunk]:
        """Return the pieces for a query, best first."""

    def close(self) -> None:
        """Close what is open."""


class CodeIndex(Protocol):
    """The index as one run sees it: what the run has staged lies over unsaved texts, those over the disk.

    Paths are relative to the workspace, as `Roots.relative` gives them.
    """

    async def view(self) -> View:
        """What is known now. Waits a bounded time for the first build; ToolFailed where there is no index."""

    async def search(self, query: str, limit: int) -> tuple[Chunk, ...]:
        """Return the pieces of code that answer best, best first; none of a file that the user does not let be read."""

    async def refresh(self) -> Status:
        """Bring the index up to the disk; returns when that is done."""


class Indexing(Protocol):
    """The one index of a server, made when it is first asked for."""

    async def ready(self, seconds: float) -> Answers:
        """Answers on the disk as it is now, or as it was lately where bringing it up to date takes longer than
        `seconds`. ToolFailed while the first build goes on, and where there is no index.
        """

    async def refresh(self) -> Status:
        """Bring the index up to the disk; returns when that is done. ToolFailed where there is no index."""

    def finders(self) -> Sequence[Finder]:
        """Return the searches besides the one by words."""

    @property
    def whole(self) -> bool:
        """Return whether everything in the workspace was looked at since the server began."""
