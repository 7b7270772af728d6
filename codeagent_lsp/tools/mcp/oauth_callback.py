"""The loopback address to which a browser returns from an OAuth login (RFC 8252); it listens only during a login.

The port is reserved from the start, since it is part of the registration. Requests without the expected `state` are
answered with 404 and change nothing. Not here: the login (`login.py`).
"""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qsl, urlsplit

from codeagent_lsp.background_tasks import BackgroundTasks

PATH = "/callback"
MAX_HEAD = 16 << 10
HEAD_SECONDS = 10.0
MAX_VISITORS = 16


class OAuthCallback:
    """The callback address on `port` if that is free, else on another. `said` is the final text in the browser.

    OSError if there is no port at all.
    """

    def __init__(self, port: int = 0, said: str = "Done.") -> None:
        self._said = said
        self._socket = _first_kept(port)
        self.port = int(self._socket.getsockname()[1])

    @property
    def address(self) -> str:
        """The redirect address: with an IP address, as RFC 8252 asks, since a name may be resolved otherwise."""
        return f"http://127.0.0.1:{self.port}{PATH}"

    @asynccontextmanager
    async def opened(self, state: str) -> AsyncGenerator[asyncio.Future[Mapping[str, str]], None]:
        """Listen while this context is open; the future gets the query of the request with `state`, the first one, as
        names and values. OSError if the port is lost.
        """
        answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        visitors = BackgroundTasks()

        def came(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if len(visitors) >= MAX_VISITORS:
                writer.transport.abort()
                return
            visitors.start(self._meet(reader, writer, state, answer))

        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # visitors of it outlast it for a while
        server = await asyncio.start_server(came, sock=self._socket, limit=MAX_HEAD)
        try:
            yield answer
        finally:
            server.close()
            answer.cancel()
            await visitors.close(1.0)  # responses in progress have a second
            await visitors.end()
            with suppress(OSError):  # another login would say so
                self._socket = _reserve(self.port, again=True)

    def close(self) -> None:
        """Release the reserved port; `opened` cannot be used afterwards. It can be called again."""
        self._socket.close()

    async def _meet(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        state: str,
        answer: asyncio.Future[Mapping[str, str]],
    ) -> None:
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                brought = _brought(head, state)
                status, words = ("404 Not Found", "") if brought is None else ("200 OK", self._said)
                # The page goes first: once the answer is there, the listener closes.
                writer.write(_page(status, words))
                await writer.drain()
            if brought is not None and not answer.done():
                answer.set_result(brought)
        except (OSError, EOFError, asyncio.LimitOverrunError):  # TimeoutError too: the visitor is gone
            pass
        finally:
            writer.close()


def _brought(head: bytes, state: str) -> Mapping[str, str] | None:
    """Return the query of a valid callback request; None for any other."""
    method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
    try:
        target = urlsplit(rest.rpartition(" ")[0])
        given = dict(parse_qsl(target.query, max_num_fields=20))
    except ValueError:
        return None
    # In constant time: every program here can reach the port and guess.
    fits = hmac.compare_digest(given.get("state", "").encode(), state.encode())
    return given if method == "GET" and target.path == PATH and fits else None


def _page(status: str, words: str) -> bytes:
    body = words.encode()
    lines = (
        f"HTTP/1.1 {status}",
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "Referrer-Policy: no-referrer",
        "Connection: close",
    )
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


def _first_kept(port: int) -> socket.socket:
    for again in (False, True):
        with suppress(OSError):
            return _reserve(port, again=again)
    return _reserve(0)


def _reserve(port: int, *, again: bool = False) -> socket.socket:
    """Return a socket that reserves a loopback port without listening; `again` allows a port that was used a moment
    ago.
    """
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(again))
        held.bind(("127.0.0.1", port))
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)  # no other process shares it while it is held
    except OSError:
        held.close()
        raise
    return held
