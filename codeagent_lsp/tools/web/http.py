"""The HTTP client for pages: checked addresses at every hop, limits on time, size and redirects, and no state.

It uses no cookies, no referrer, no proxy of the environment, and follows no redirect to another site. Over the proxy of
the setting `network.proxy`, addresses are checked but not pinned (`dialing.py`). Not here: what is read out of a page,
pages that need a browser (`scraping.py`).
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from dataclasses import dataclass

import httpcore
import httpx

from codeagent_lsp.errors import ErrorCode, SettingError, ToolFailed, ToolRetry
from codeagent_lsp.network import PROXY_LOGIN, proxy_refused, refusal, tls_context
from codeagent_lsp.tools.web.dialing import Dialer
from codeagent_lsp.tools.web.urls import BadUrl, Target, WebRefused, parse_url, same_site, unreachable
from codeagent_lsp.workspace.text.visible import one_line

HEADERS: Mapping[str, str] = {
    "User-Agent": "codeagent-lsp",
    "Accept": "text/html, application/xhtml+xml, text/plain, text/markdown, application/json;q=0.9, */*;q=0.1",
    "Accept-Encoding": "gzip, deflate",
    "Accept-Language": "en, *;q=0.5",
}
_TROUBLE = (httpcore.NetworkError, httpcore.ProtocolError, httpx.HTTPError, ssl.SSLError, OSError)
_REDIRECTS = (301, 302, 303, 307, 308)
_PIECE = 1 << 16
# Window bits of zlib: 31 is gzip, 15 is zlib's own header, which servers send as `deflate`.
_PACKED = {"gzip": 31, "x-gzip": 31, "deflate": 15}


@dataclass(frozen=True, slots=True)
class PageLimits:
    """Limits of one page: total seconds, seconds without data, bytes after decompression, number of redirects."""

    seconds: float = 30.0
    silence_seconds: float = 10.0
    size: int = 5 << 20
    redirects: int = 5


@dataclass(frozen=True, slots=True)
class Page:
    """A response. `target` is the final address, `media` its type in small letters, such as `text/html`; `cut` is True
    if the body is longer than the limit.
    """

    target: Target
    media: str
    charset: str
    body: bytes
    cut: bool = False


class Fetcher:
    """Fetches pages within limits of time and size. `trust` is the TLS context that decides about certificates, None
    for that of the dialer's settings.
    """

    def __init__(self, dialer: Dialer, limits: PageLimits | None = None, trust: ssl.SSLContext | None = None) -> None:
        self.dialer = dialer
        self._limits = limits or PageLimits()
        self._trust = trust

    async def get(self, target: Target) -> Page:
        """Return the page, after redirects within its site, at most within the time of its limits (30 s), its body cut
        at their size (5 MiB). WebRefused for an address that is not public, ToolRetry for a redirect to another site,
        ToolFailed, with advice, if it fails.
        """
        return await self._bound(target, self._hops(target))

    async def post(self, target: Target, body: bytes, headers: Mapping[str, str]) -> Page:
        """Send a request with a body and return the response, cut at the size limit. `headers` are added to ours.
        ToolFailed for a redirect or an error.
        """
        return await self._bound(target, self._post(target, body, headers))

    async def _bound(self, target: Target, work: Awaitable[Page]) -> Page:
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await work
        except (TimeoutError, httpcore.TimeoutException):
            message = f"{target.host} did not answer in full within {self._limits.seconds:g} s."
            raise ToolFailed(message, ErrorCode.TIMEOUT) from None
        except SettingError as error:
            raise ToolFailed(str(error), ErrorCode.NETWORK_ERROR) from error
        except (*_TROUBLE, httpcore.ProxyError, httpcore.UnsupportedProtocol, RuntimeError) as error:
            if (known := refusal(error, target.url, self.dialer.network)) is not None:
                raise ToolFailed(str(known), ErrorCode.NETWORK_ERROR) from error
            if isinstance(error, RuntimeError):  # socks without its library
                raise unreachable(target.host, "the proxy cannot be used.") from error
            raise unreachable(target.host, one_line(str(error) or type(error).__name__, 200)) from error

    async def _post(self, target: Target, body: bytes, headers: Mapping[str, str]) -> Page:
        answer = await self._exchange("POST", target, {**HEADERS, **headers}, body)
        if isinstance(answer, str):
            raise ToolFailed(f"{target.host} answered with a redirect.", ErrorCode.NETWORK_ERROR)
        return answer

    async def _hops(self, target: Target) -> Page:
        here = target
        for _ in range(self._limits.redirects + 1):
            answer = await self._exchange("GET", here, HEADERS, b"")
            if isinstance(answer, Page):
                return answer
            here = _next(here, answer)
        raise ToolFailed(f"{target.url} redirects more than {self._limits.redirects} times.", ErrorCode.NOT_FOUND)

    async def _exchange(self, method: str, target: Target, headers: Mapping[str, str], body: bytes) -> Page | str:
        """Send one request on a new connection and return the page, or the location of a redirect."""
        if self._trust is None:
            self._trust = await asyncio.to_thread(tls_context, self.dialer.network)
        proxy = self.dialer.proxy_for(target.host, target.port)
        # Through a proxy the address is looked up there, so that it is checked here before, as far as it can be.
        if proxy:
            await self.dialer.admit(target.host, target.port)
        async with (
            httpx.AsyncClient(
                transport=_Checked(self.dialer, self._trust, proxy),
                follow_redirects=False,
                trust_env=False,
                timeout=httpx.Timeout(self._limits.silence_seconds),
            ) as client,
            client.stream(method, target.url, headers=dict(headers), content=body) as response,
        ):
            if response.status_code in _REDIRECTS and response.headers.get("location"):
                return response.headers["location"]
            if response.status_code >= 400:
                if proxy and response.status_code == PROXY_LOGIN:
                    raise ToolFailed(str(proxy_refused(target.url, self.dialer.network)), ErrorCode.NETWORK_ERROR)
                raise _refused_by(target, response.status_code)
            data, cut = await _unpack(response, self._limits.size)
            media, _, rest = response.headers.get("content-type", "text/html").partition(";")
            return Page(target, media.strip().lower(), _charset(rest), data, cut)


class _Checked(httpx.AsyncBaseTransport):
    """A transport for httpx over a connection pool that connects to checked addresses only, or to the proxy."""

    def __init__(self, dialer: Dialer, trust: ssl.SSLContext, proxy: str) -> None:
        given = httpx.Proxy(proxy, ssl_context=trust if proxy.startswith("https:") else None) if proxy else None
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=trust,
            max_connections=1,
            network_backend=None if given else _CheckedBackend(dialer),
            proxy=httpcore.Proxy(str(given.url), given.raw_auth, ssl_context=given.ssl_context) if given else None,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.AsyncByteStream)
        answer = await self._pool.handle_async_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer), extensions=answer.extensions)

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._answer.aiter_stream():
            yield piece

    async def aclose(self) -> None:
        await self._answer.aclose()


class _CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects to an address from the dialer; TLS and the `Host` header keep the host's name."""

    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of httpcore
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: httpcore.NetworkError | httpcore.TimeoutException | None = None
        # The checked address itself is connected to: looked up a second time, the name could lead elsewhere (DNS
        # rebinding).
        for address, real_port in await self._dialer.places(host.strip("[]"), port):
            try:
                return await self._inner.connect_tcp(address, real_port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore.ConnectError("no address")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _next(here: Target, location: str) -> Target:
    try:
        there = parse_url(location, here)
    except BadUrl as error:
        raise WebRefused(f"{here.url} redirects to what is never fetched: {error}.") from None
    # The user has approved this site; another one has to be asked for by its own name.
    if not same_site(here, there):
        raise ToolRetry(f"{here.url} redirects to another site. If you need it, call the tool with:\n{there.url}")
    return there


def _refused_by(target: Target, status: int) -> ToolFailed:
    # Only what may pass by itself is a matter of the network, which can be tried again.
    code = ErrorCode.NOT_FOUND if status < 500 and status != 429 else ErrorCode.NETWORK_ERROR
    return ToolFailed(f"{target.host} answered with the status {status} to {target.rest}.", code)


async def _unpack(response: httpx.Response, most: int) -> tuple[bytes, bool]:
    """Return the body and whether it was cut; never more than `most` bytes are decompressed."""
    packing = response.headers.get("content-encoding", "").strip().lower()
    if packing not in ("", "identity", *_PACKED):
        raise ToolFailed(f"The page is packed in a way that was not asked for: {one_line(packing, 40)}.")
    unpacker = zlib.decompressobj(_PACKED[packing]) if packing in _PACKED else None
    data = bytearray()
    async for piece in response.aiter_raw(_PIECE):
        try:
            # One byte more than the limit, by which it is seen that there is more.
            data += piece if unpacker is None else unpacker.decompress(piece, most + 1 - len(data))
        except zlib.error as error:
            raise ToolFailed("The page cannot be unpacked: its data is broken.", ErrorCode.NETWORK_ERROR) from error
        if len(data) > most:
            return bytes(data[:most]), True
    return bytes(data), False


def _charset(rest: str) -> str:
    for part in rest.split(";"):
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'")[:40]
    return ""
