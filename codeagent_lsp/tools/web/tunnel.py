"""A connection through an HTTP proxy by its method CONNECT (RFC 9110, 9.3.6), for the traffic of helper programs.

Not here: which hosts may be reached (`dialing.py`), our own requests (`http.py`).
"""

from __future__ import annotations

import asyncio
import base64
from urllib.parse import unquote, urlsplit

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.network import PROXY_LOGIN, proxy_refused, shown, tls_context
from codeagent_lsp.tools.web.problems import unreachable

SECONDS = 10.0
_PORTS = {"http": 80, "https": 443}


async def tunnel(
    proxy: str, host: str, port: int, network: NetworkSettings
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection to the host. ToolFailed if the proxy gives none."""
    parts = urlsplit(proxy)
    if parts.scheme not in _PORTS:
        raise unreachable(host, f"the proxy {shown(proxy)} cannot be used for this.")
    secure = await asyncio.to_thread(tls_context, network) if parts.scheme == "https" else None
    try:
        async with asyncio.timeout(SECONDS):
            place = parts.hostname, parts.port or _PORTS[parts.scheme]
            reader, writer = await asyncio.open_connection(*place, ssl=secure)
            authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            writer.write(_request(authority, parts.username, parts.password))
            head = await reader.readuntil(b"\r\n\r\n")
    except (OSError, EOFError, asyncio.LimitOverrunError):  # TimeoutError too
        raise unreachable(host, f"the proxy {shown(proxy)} does not answer.") from None
    status = head.split(b"\r\n")[0].decode("latin-1").partition(" ")[2]
    if status.startswith("2"):
        return reader, writer
    writer.close()
    refused = proxy_refused(f"https://{host}:{port}", network) if status.startswith(str(PROXY_LOGIN)) else None
    words = str(refused or f"The proxy {shown(proxy)} gives no connection to {host}: {status[:100]}")
    raise ToolFailed(words, ErrorCode.NETWORK_ERROR)


def _request(authority: str, user: str | None, password: str | None) -> bytes:
    pair = f"{unquote(user or '')}:{unquote(password or '')}".encode()
    login = b"Proxy-Authorization: Basic " + base64.b64encode(pair) + b"\r\n" if user else b""
    return f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n".encode("ascii") + login + b"\r\n"
