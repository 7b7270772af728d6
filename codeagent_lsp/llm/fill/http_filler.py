"""Filling in by a server over HTTP: tries the ways of the server in order, and stays with the first that it takes.

Not here: the ways (`ways.py`), choosing them (`open_filler.py`), the connections (`llm/exchange.py`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from codeagent_lsp.errors import ModelError, ModelNotFound, ModelRejected, ModelStreamBroken, ModelUnreachable
from codeagent_lsp.llm.endpoint import Endpoint, TimeLimits
from codeagent_lsp.llm.exchange import DONE, Exchange, json_object
from codeagent_lsp.llm.fill.filler import FillRequest
from codeagent_lsp.llm.fill.ways import Body, Way
from codeagent_lsp.llm.providers.ollama import KEEP_ALIVE, loaded_window
from codeagent_lsp.llm.sse import Clock

LIMITS = TimeLimits(connect=5.0, first=30.0, silence=10.0)
LONGEST = 8192
"""Most characters of an answer; a server that ignores `max_tokens` is cut there."""


class HttpFiller:
    """A `Filler` at `where`. `ways` are tried in order: one that the server refuses is never asked again."""

    def __init__(
        self, where: Endpoint, name: str, ways: Sequence[Way], *, slow: bool = False, limits: TimeLimits = LIMITS
    ) -> None:
        self.where = where
        self.name = name
        self.slow = slow
        self._ways = tuple(ways)
        self._limits = limits
        self._http = Exchange(where, limits, {})

    @property
    def way(self) -> str:
        """The name of the way that is used, for people."""
        return self._ways[0].name

    async def stream(self, request: FillRequest) -> AsyncGenerator[str, None]:
        """See `Filler`."""
        fresh = False
        while True:
            way, begun = self._ways[0], False
            try:
                async with aclosing(self._asked(way, request)) as texts:
                    async for text in texts:
                        begun = True
                        yield text
                return
            except ModelUnreachable as error:
                if begun or fresh or error.key != "model.reset":
                    raise
                fresh = True  # the server closed a kept connection just when it was used
            except (ModelRejected, ModelNotFound, ModelStreamBroken) as error:
                if begun or not self._another(way, error):
                    raise

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    def _another(self, refused: Way, error: ModelError) -> bool:
        """Return whether to ask again in another way: this one was refused, by this request or another at once."""
        if self._ways[0] is not refused:
            return True
        if len(self._ways) > 1 and _is_refusal(error):
            self._ways = self._ways[1:]
            return True
        return False

    async def _asked(self, way: Way, request: FillRequest) -> AsyncGenerator[str, None]:
        body = await self._body(way, request)
        clock, length = Clock.start(self._limits), 0
        async with (
            self._http.post(way.url(self.where), body, clock) as response,
            aclosing(self._http.objects(response, clock)) as objects,
        ):
            async for data in objects:
                if data.strip() == DONE:
                    return
                text, ended = way.text(self._object(data))
                length += len(text)
                if text:
                    yield text
                if ended or length > LONGEST:
                    await self._http.drain(objects)
                    return

    async def _body(self, way: Way, request: FillRequest) -> Body:
        """Return the body of a request, on Ollama such that the model stays loaded as the agent has it."""
        body = way.body(self.name, request)
        if way.keeps_model:
            window = await loaded_window(self.where, self.name, self._limits)
            body = {**body, "keep_alive": KEEP_ALIVE, "options": {**body["options"], "num_ctx": window}}
        return body

    def _object(self, data: str) -> dict[str, object]:
        value = json_object(data) or {}
        if value.get("error"):
            reason = self.where.redact(str(value["error"]))[:300]
            raise ModelStreamBroken("model.stream_error", url=self.where.root, reason=reason)
        return value


def _is_refusal(error: ModelError) -> bool:
    """Return whether a server does not know this way, or not with this model: anything but trouble that passes."""
    return error.key in ("model.rejected", "model.unknown", "model.no_endpoint", "model.stream_error")
