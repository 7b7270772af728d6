"""An HTTP proxy with a password, as companies have it: it alone knows certain names, and notes what it was asked."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

USER = "ann"
PASSWORD = "-".join(["proxy", "pass", "w0rd@x"])


@dataclass
class CompanyProxy:
    """`names` are the hosts that it knows, all of them on loopback, with their ports; `asked` the first lines of
    requests, `refused` counts those without the right password.
    """

    names: Mapping[str, int]
    port: int = 0
    asked: list[str] = field(default_factory=list)
    refused: int = 0

    def url(self, password: str = PASSWORD, user: str = USER) -> str:
        """Its URL with user and password."""
        return f"http://{user}:{password.replace('@', '%40')}@127.0.0.1:{self.port}"

    @property
    def bare(self) -> str:
        """Its URL without a user."""
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        with suppress(OSError, EOFError):
            head = await reader.readuntil(b"\r\n\r\n")
            line, *headers = head.decode("latin-1").strip().split("\r\n")
            self.asked.append(line)
            expected = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            if f"proxy-authorization: basic {expected}".lower() not in [header.lower() for header in headers]:
                self.refused += 1
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n")
                writer.write(b"Content-Length: 0\r\nConnection: close\r\n\r\n")
                await writer.drain()
            else:
                await self._passed(line, headers, reader, writer)
        writer.close()

    async def _passed(
        self, line: str, headers: list[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        method, wanted, version = line.split(" ")
        parts = urlsplit(f"//{wanted}" if method == "CONNECT" else wanted)
        port = self.names.get(parts.hostname or "")
        if port is None:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            return
        there, out = await asyncio.open_connection("127.0.0.1", port)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            kept = [header for header in headers if not header.lower().startswith("proxy-")]
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            out.write("\r\n".join([f"{method} {path} {version}", *kept, "", ""]).encode("latin-1"))
        await asyncio.gather(_copied(reader, out), _copied(there, writer))


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def company_proxy(**names: int) -> AsyncGenerator[CompanyProxy]:
    """A running proxy; `model_test=8080` makes it know `model.test`."""
    proxy = CompanyProxy({name.replace("_", "."): port for name, port in names.items()})
    listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = listening.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listening.close()
