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
    """Port: semantic search over the chunks of the index, whose results are merged with those of lexical search. Never
    raises: on failure it finds nothing (see `Finder`).
    """

    async def refresh(self) -> object:
        """Update the vectors after the index has changed, which may take minutes. May be cancelled; the next call
        continues.
        """

    async def search(self, query: str, limit: int) -> Sequence[Chunk]:
        """Return at most `limit` chunks for a query, best first; () while that does not work."""

    async def close(self) -> None:
        """Release files and processes; searches after this find nothing."""


class CodeIndex(Protocol):
    """Port: the index as one run sees it, with the run's staged texts over unsaved texts over the disk. Paths are
    relative to the workspace, as `Roots.relative` returns them.
    """

    async def view(self) -> View:
        """Return the present state. Waits at most 20 s for an update. ToolFailed if there is no index, or its first
        build is not finished.
        """

    async def search(self, query: str, limit: int) -> tuple[Chunk, ...]:
        """Return at most `limit` chunks of code that answer best, best first; none of a file that the user does not
        allow to be read. ToolFailed as `view`.
        """

    async def refresh(self) -> Status:
        """Update the index to the present state of the disk, wait for the end, without a time limit, and return the
        status; failures are `failed` in it. ToolFailed if there is no index.
        """


class Indexing(Protocol):
    """Port: the one index of a server, created on first use."""

    async def ready(self, seconds: float) -> Answers:
        """Wait at most `seconds` for an update of the index, and return the answers, which may then be of an older
        state. ToolFailed during the first build, and if there is no index.
        """

    async def refresh(self) -> Status:
        """Update the index to the present state of the disk, wait for the end, without a time limit, and return the
        status; failures are `failed` in it. ToolFailed if there is no index.
        """

    def finders(self) -> Sequence[Finder]:
        """Return the searches besides the lexical one; () if there are none, or the index is not open. Never blocks."""

    @property
    def whole(self) -> bool:
        """Whether the whole workspace was scanned since the server started."""
