"""The HTTP transports of the library, with a size limit on replies and a record of error statuses added.

The library follows redirects within the server's origin only. Not here: the messages.
"""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from codeagent_lsp.tools.mcp.health import MAX_MESSAGE, Health
from codeagent_lsp.tools.mcp.settings import ServerSettings

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 900.0
"""Most seconds without data on an event stream."""


class TooMuch(httpx2.StreamError):
    """Raised for a reply that is too long, or compressed without being asked for."""

    def __init__(self, words: str) -> None:
        super().__init__(words)


@asynccontextmanager
async def http_transport(
    settings: ServerSettings, health: Health, auth: httpx2.Auth | None = None
) -> AsyncGenerator[Any, None]:
    """Open a Streamable HTTP transport (MCP) and yield its message streams."""
    async with (
        _client(settings, health, auth) as client,
        streamable_http_client(settings.url, http_client=client, max_sse_event_size=MAX_MESSAGE) as streams,
    ):
        yield streams


@asynccontextmanager
async def sse_transport(
    settings: ServerSettings, health: Health, auth: httpx2.Auth | None = None
) -> AsyncGenerator[Any, None]:
    """Open the older HTTP+SSE transport (MCP 2024-11-05) and yield its message streams."""

    def factory(headers: Any = None, timeout: Any = None, auth: httpx2.Auth | None = None) -> httpx2.AsyncClient:
        return _client(settings, health, auth)

    async with sse_client(settings.url, httpx_client_factory=factory, auth=auth) as streams:
        yield streams


def _client(settings: ServerSettings, health: Health, auth: httpx2.Auth | None) -> httpx2.AsyncClient:
    async def watch(response: httpx2.Response) -> None:
        if response.status_code >= 400:
            health.status = response.status_code
        response.stream = _Bounded(response)

    return httpx2.AsyncClient(
        headers={**settings.headers, "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(CONNECT_SECONDS, read=max(SILENCE_SECONDS, settings.seconds)),
        auth=auth,
        event_hooks={"response": [watch]},
        trust_env=not _is_local(settings.url),
    )


def _is_local(url: str) -> bool:
    """Return whether the host is local, so that no proxy applies."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class _Bounded(httpx2.AsyncByteStream):
    """A response body with a size limit. Event streams are exempt: each event has a limit of its own."""

    def __init__(self, response: httpx2.Response) -> None:
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        self._inner = stream
        self._packed = response.headers.get("content-encoding", "identity") not in ("", "identity")
        self._endless = response.headers.get("content-type", "").lower().startswith("text/event-stream")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._packed:
            raise TooMuch("the reply is packed, which was not asked for")
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_MESSAGE and not self._endless:
                raise TooMuch(f"the reply has more than the {MAX_MESSAGE >> 20} MiB that are read")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
