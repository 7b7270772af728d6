"""The HTTP transports of the library, with a size limit on replies and a record of error statuses added.

The library follows redirects within the server's origin only. Not here: the messages.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.errors import SettingError
from codeagent_lsp.network import DEFAULTS, PROXY_LOGIN, proxy_for, proxy_refused, refusal, way_to
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
    settings: ServerSettings, health: Health, auth: httpx2.Auth | None = None, network: NetworkSettings = DEFAULTS
) -> AsyncGenerator[Any, None]:
    """Open a Streamable HTTP transport (MCP) and yield its message streams."""
    async with (
        _client(settings, health, auth, network) as client,
        streamable_http_client(settings.url, http_client=client, max_sse_event_size=MAX_MESSAGE) as streams,
    ):
        yield streams


@asynccontextmanager
async def sse_transport(
    settings: ServerSettings, health: Health, auth: httpx2.Auth | None = None, network: NetworkSettings = DEFAULTS
) -> AsyncGenerator[Any, None]:
    """Open the older HTTP+SSE transport (MCP 2024-11-05) and yield its message streams."""

    def factory(headers: Any = None, timeout: Any = None, auth: httpx2.Auth | None = None) -> httpx2.AsyncClient:
        return _client(settings, health, auth, network)

    async with sse_client(settings.url, httpx_client_factory=factory, auth=auth) as streams:
        yield streams


def _client(
    settings: ServerSettings, health: Health, auth: httpx2.Auth | None, network: NetworkSettings
) -> httpx2.AsyncClient:
    async def watch(response: httpx2.Response) -> None:
        if response.status_code >= 400:
            health.status = response.status_code
        response.stream = _Bounded(response)

    return httpx2.AsyncClient(
        headers={**settings.headers, "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(CONNECT_SECONDS, read=max(SILENCE_SECONDS, settings.seconds)),
        auth=auth,
        event_hooks={"response": [watch]},
        trust_env=False,
        transport=_ByHost(health, network),
    )


class _ByHost(httpx2.AsyncBaseTransport):
    """Sends each request on the way to its host, as a login leads to other hosts: with or without proxy, with TLS. What
    a certificate or the proxy refuses is recorded in `health`.
    """

    def __init__(self, health: Health, network: NetworkSettings) -> None:
        self._health = health
        self._network = network
        self._ways: dict[tuple[str, bool], httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = str(request.url)
        try:
            response = await self._way(url).handle_async_request(request)
            if response.status_code == PROXY_LOGIN:
                self._health.refused = proxy_refused(url, self._network)
            return response
        except (httpx2.TransportError, ssl.SSLError) as error:
            self._health.refused = refusal(error, url, self._network)
            raise
        except SettingError as error:
            self._health.refused = error
            raise httpx2.ConnectError(str(error)) from error

    async def aclose(self) -> None:
        for way in self._ways.values():
            await way.aclose()

    def _way(self, url: str) -> httpx2.AsyncHTTPTransport:
        proxy, secure = proxy_for(url, self._network), url.startswith("https:")
        if (proxy, secure) not in self._ways:
            trust, proxy, proxy_trust = way_to(url, self._network)
            given = httpx2.Proxy(proxy, ssl_context=proxy_trust) if proxy else None
            self._ways[proxy, secure] = httpx2.AsyncHTTPTransport(verify=trust or False, proxy=given)
        return self._ways[proxy, secure]


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
