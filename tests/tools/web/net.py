"""A public network of the tests' own: names that resolve as a test says, addresses that are servers on loopback.

Everything that is connected to is noted, so that a test can say what was never connected to.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from codeagent_lsp.tools.web.dialing import Dialer, SocketAddress

PUBLIC = "93.184.216.34"
OTHER = "198.41.0.4"

Handler = Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Request:
    """What came: the first line's words, the header lines in lower-case names, and the body."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


@dataclass
class Net:
    """`names` gives for each name the answers in turn, the last one again and again. `tried` is what was dialled."""

    names: dict[str, list[Sequence[str]]] = field(default_factory=dict)
    servers: dict[SocketAddress, int] = field(default_factory=dict)
    tried: list[SocketAddress] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self.names.get(host)
        if not answers:
            raise OSError("no such name")
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def route(self, place: SocketAddress) -> SocketAddress:
        self.tried.append(place)
        return ("127.0.0.1", self.servers.get(place, 1))  # nobody listens on port 1

    @property
    def dialer(self) -> Dialer:
        return Dialer(self.resolve, self.route)


@asynccontextmanager
async def server(
    handler: Handler, net: Net, *places: SocketAddress, trust: ssl.SSLContext | None = None
) -> AsyncGenerator[list[Request]]:
    """A server that is all these public places; what it was asked."""
    requests: list[Request] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *rest = head.strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (item.partition(":") for item in rest)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            method, path = line.split(" ")[:2]
            requests.append(Request(method, path, headers, body))
            await handler(requests[-1], writer)
            await writer.drain()
        except (OSError, EOFError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=trust)
    port = listening.sockets[0].getsockname()[1]
    net.servers.update(dict.fromkeys(places, port))
    try:
        yield requests
    finally:
        listening.close()


def answer(body: bytes | str, status: str = "200 OK", media: str = "text/html", **headers: str) -> bytes:
    """A whole response."""
    data = body.encode() if isinstance(body, str) else body
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {media}\r\n{more}Content-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + data


def pages(found: dict[str, bytes]) -> Handler:
    """Answers by path; others are not found."""

    async def handle(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(found.get(request.path, answer("nothing", "404 Not Found")))

    return handle


def redirect(location: str, status: str = "302 Found") -> bytes:
    """A response that says to go elsewhere."""
    return answer("", status, Location=location)
