"""The ports through which tools and prompts use the code index of a workspace, so that tests can do without one.

Not here: the index itself (`service.py`), and what is computed from it (`relevance.py`, `answers.py`, `rank.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # the parts of an index are heavy, and for type checking only
    from codeagent_lsp.index.answers import Answers
    from codeagent_lsp.index.relevance import Chunk
    from codeagent_lsp.index.service import Status
    from codeagent_lsp.index.view import View

Finder = Callable[[str, int], Awaitable["Sequence[Chunk]"]]
"""A search besides the lexical one, such as by vectors: given a query and a limit, it returns chunks, best first.

It never raises: where it cannot answer, it finds nothing."""


class VectorSearch(Protocol):
    """Semantic search over the chunks of the index, fused with lexical search. It never fails (see `Finder`)."""

    async def refresh(self) -> object:
        """Update the vectors after the index has changed. May be cancelled."""

    async def search(self, query: str, limit: int) -> Sequence[Chunk]:
        """Return the chunks for a query, best first."""

    async def close(self) -> None:
        """Release files and processes."""


class CodeIndex(Protocol):
    """The index as one run sees it: the run's staged texts over unsaved texts over the disk.

    Paths are relative to the workspace, as `Roots.relative` returns them.
    """

    async def view(self) -> View:
        """Return the present state. Waits a bounded time for the first build.

        Raises ToolFailed where there is no index.
        """

    async def search(self, query: str, limit: int) -> tuple[Chunk, ...]:
        """Return the chunks of code that answer best, best first.

        None of a file that the user does not allow to be read.
        """

    async def refresh(self) -> Status:
        """Update the index to the present state of the disk and wait until that is done."""


class Indexing(Protocol):
    """The one index of a server, created on first use."""

    async def ready(self, seconds: float) -> Answers:
        """Return the answers for the disk as it is, or for an older state if updating takes over `seconds`.

        Raises ToolFailed during the first build, and where there is no index.
        """

    async def refresh(self) -> Status:
        """Update the index to the present state of the disk and wait. Raises ToolFailed where there is no index."""

    def finders(self) -> Sequence[Finder]:
        """Return the searches besides the lexical one."""

    @property
    def whole(self) -> bool:
        """Return whether the whole workspace was scanned since the server started."""
