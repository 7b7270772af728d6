"""Filling in by the embedded model, in a slot of its own, so that the agent's prompt stays in the cache of the other.

Not here: the child process (`providers/embedded.py`), the requests (`http_filler.py`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from codeagent_lsp.llm.fill.filler import FillRequest
from codeagent_lsp.llm.fill.http_filler import HttpFiller
from codeagent_lsp.llm.fill.ways import infill
from codeagent_lsp.llm.providers.embedded import FILL_SLOT, EmbeddedHost


class EmbeddedFiller:
    """A `Filler` over a child process, started with the first request; `host` is taken for it, and released by it."""

    slow = True

    def __init__(self, host: EmbeddedHost) -> None:
        self.name = host.weights.stem
        self._host = host
        self._http: HttpFiller | None = None

    async def stream(self, request: FillRequest) -> AsyncGenerator[str, None]:
        """See `Filler`."""
        http = await self._ready()
        async with aclosing(http.stream(request)) as texts:
            async for text in texts:
                yield text

    async def close(self) -> None:
        """Close the connections and release the child."""
        await self._drop()
        await self._host.release()

    async def _ready(self) -> HttpFiller:
        where = await self._host.ready()
        if self._http is None or self._http.where is not where:
            await self._drop()
            self._http = HttpFiller(where, self.name, [infill(FILL_SLOT if self._host.fills else None)], slow=True)
        return self._http

    async def _drop(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.close()
