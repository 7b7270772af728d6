"""Requests to one model server over connections that are kept: a POST, the objects of its answer, and its errors.

Not here: the content of requests and answers (`providers/`), limits inside a stream (`sse.py`), retries (`retry.py`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

import httpx

from codeagent_lsp.errors import ModelError, ModelStreamBroken
from codeagent_lsp.llm import failures, sse, wire
from codeagent_lsp.llm.endpoint import TROUBLE, Endpoint, TimeLimits, open_client
from codeagent_lsp.llm.sse import Clock

DONE = "[DONE]"
"""The last object of a stream of an OpenAI-compatible server, and of a complete reply that was no stream."""

LINGER_SECONDS = 0.1
"""How long a server may take to end a response whose reply is complete; its connection is closed after that."""

_JSON_BODY_LIMIT = 8 * 1024 * 1024


class Exchange:
    """The connections to one server; `headers` are sent with every request."""

    def __init__(self, where: Endpoint, limits: TimeLimits, headers: Mapping[str, str]) -> None:
        self._where = where
        self._limits = limits
        own = {"Accept": "text/event-stream, application/json", "Content-Type": "application/json"}
        self._headers = where.with_extra({**own, **headers})
        self._lingers = False
        self._client = open_client(where, limits)

    @asynccontextmanager
    async def post(self, url: str, body: dict[str, Any], clock: Clock) -> AsyncGenerator[httpx.Response, None]:
        """Send a request and yield the open response, headers read. Failures up to there raise ModelError."""
        request = self._client.build_request("POST", url, content=wire.encode(body), headers=self._headers)
        try:
            async with asyncio.timeout_at(clock.deadline):
                response = await self._client.send(request, stream=True)
        except TimeoutError as error:
            raise sse.silence(self._where, self._limits, clock) from error
        except TROUBLE as error:
            raise failures.from_exception(error, self._where, self._limits) from error
        try:
            sse.check_coding(response, self._where)
            if response.status_code not in wire.REPLIES:
                body_start = await sse.read_body(response, self._where, self._limits, failures.BODY_LIMIT)
                raise failures.from_response(response.status_code, response.headers, body_start, self._where)
            # A login page of a proxy or a wrong path, with status 200.
            if "html" in response.headers.get("content-type", ""):
                raise ModelStreamBroken("model.stream_garbled", url=self._where.root, reason="an HTML page")
            yield response
        finally:
            # Also where the stream is left early: closing is what stops the server's work.
            await response.aclose()

    async def objects(self, response: httpx.Response, clock: Clock) -> AsyncGenerator[str, None]:
        """Yield the objects of an answer as text: of its events, of its lines, or the one that is its whole body.

        Raises ModelStreamBroken when there was none.
        """
        kind = response.headers.get("content-type", "")
        if "json" in kind and "ndjson" not in kind:
            raw = await sse.read_body(response, self._where, self._limits, _JSON_BODY_LIMIT)
            text = raw.decode("utf-8", "replace")
            value = json_object(text)
            if value is not None:
                clock.started = True
                yield text
                if value.get("choices"):
                    # A whole reply in place of a stream has no event for its end.
                    yield DONE
        else:
            split = sse.lines if "ndjson" in kind else sse.events
            async with aclosing(split(response, self._where, self._limits, clock)) as objects:
                async for text in objects:
                    yield text
        if not clock.started:
            raise ModelStreamBroken("model.stream_cut", url=self._where.root)

    async def drain(self, objects: AsyncGenerator[str, None]) -> None:
        """Read an answer to its end, so that its connection serves the next call; a server that lingers loses it."""
        if self._lingers:
            return
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                async for _ in objects:
                    pass
        except (TimeoutError, ModelError):
            # Some servers keep a finished stream open: every call would wait for it.
            self._lingers = True

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def json_object(data: str | bytes) -> dict[str, Any] | None:
    """Return the JSON object in `data`; None when it is anything else."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
