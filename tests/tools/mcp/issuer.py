"""A server of MCP that wants a login, and the authorization server that it sends clients to, on two ports of loopback.

The authorization server is strict: it checks the client, the address, PKCE and every code, and takes each code and
each refresh token once. `faults` bends one thing at a time, and `blabs` has the tool say with which token it is called;
`known` is a client that somebody registered by hand, for any port of loopback.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import queue
import secrets
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.tools.mcp.faulty_http import older_era, response, result

JSON = "Content-Type: application/json"


@dataclass
class Issuer:
    """What was asked of it, by name of the step; `lifetime` of tokens in seconds."""

    lifetime: int = 3600
    faults: frozenset[str] = frozenset()
    steps: list[str] = field(default_factory=list)
    resource: str = ""
    origin: str = ""
    clients: dict[str, list[str]] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    valid: set[str] = field(default_factory=set)
    refreshes: set[str] = field(default_factory=set)
    secrets: list[str] = field(default_factory=list)
    known: str = ""

    @property
    def url(self) -> str:
        return f"{self.resource}/mcp"

    def forget_tokens(self) -> None:
        """No access token is good any more."""
        self.valid.clear()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            lines = head.splitlines()
            size = next((int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length")), 0)
            body = await reader.readexactly(size)
            target = urlsplit(lines[0].split()[1])
            bearer = next((line[21:].strip() for line in lines if line.lower().startswith("authorization:")), "")
            if target.path == "/mcp":
                await self._resource(json.loads(body or b"{}"), bearer, writer)
            else:
                writer.write(self._answer(target.path, target.query, body.decode()))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _resource(self, message: dict[str, Any], bearer: str, writer: asyncio.StreamWriter) -> None:
        if bearer not in self.valid:
            self.steps.append("refused")
            known = f"{self.resource}/.well-known/oauth-protected-resource/mcp"
            writer.write(response("401 Unauthorized", b"", f'WWW-Authenticate: Bearer resource_metadata="{known}"'))
            return
        self.steps.append(str(message.get("method", "get")))
        if "blabs" in self.faults and message.get("method") == "tools/call":
            writer.write(result(message, {"content": [{"type": "text", "text": f"You came with {bearer} today."}]}))
            return
        async for piece in older_era(message):
            writer.write(piece)

    def _answer(self, path: str, query: str, body: str) -> bytes:
        if "protected-resource" in path and "silent" not in self.faults:
            elsewhere = "http://203.0.113.7" if "elsewhere" in self.faults else self.origin
            return self._said("resource", {"resource": self.url, "authorization_servers": [elsewhere]})
        if "authorization-server" in path and "silent" not in self.faults:
            return self._said("metadata", self._metadata())
        if path == "/register" and not {"silent", "unregistered"} & self.faults:
            return self._registered(json.loads(body))
        if path == "/authorize":
            return self._authorized(dict(parse_qsl(query)))
        if path == "/token":
            return self._tokens(dict(parse_qsl(body)))
        return response("404 Not Found")

    def _metadata(self) -> dict[str, Any]:
        return {
            "issuer": f"{self.origin}/other" if "pretender" in self.faults else self.origin,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "registration_endpoint": f"{self.origin}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        }

    def _registered(self, wanted: dict[str, Any]) -> bytes:
        client = secrets.token_hex(8)
        self.clients[client] = wanted["redirect_uris"]
        return self._said(
            "register", {**wanted, "client_id": client, "token_endpoint_auth_method": "none"}, "201 Created"
        )

    def _authorized(self, given: dict[str, str]) -> bytes:
        self.steps.append("authorize")
        client, back_to = given.get("client_id", ""), given.get("redirect_uri", "")
        by_hand = client == self.known and back_to.startswith("http://127.0.0.1:")
        if back_to not in self.clients.get(client, ()) and not by_hand:
            return response("400 Bad Request", b"unknown client or address")
        back = {"state": given["state"]}
        if "denied" in self.faults:
            back |= {"error": "access_denied", "error_description": "not today"}
        else:
            code = self._secret()
            self.codes[code] = given
            back["code"] = code
        if "forged" in self.faults:
            back["state"] = "x" * 43
        return response("302 Found", b"", f"Location: {given['redirect_uri']}?{urlencode(back)}")

    def _tokens(self, given: dict[str, str]) -> bytes:
        self.steps.append(given.get("grant_type", ""))
        if given.get("grant_type") == "refresh_token":
            good = given.get("refresh_token", "") in self.refreshes and "stale" not in self.faults
            self.refreshes.discard(given.get("refresh_token", ""))
        else:
            asked = self.codes.pop(given.get("code", ""), {})
            digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
            proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            same = all(asked.get(key) == given.get(key) for key in ("client_id", "redirect_uri", "resource"))
            good = bool(asked) and asked["code_challenge"] == proof and same and "broken" not in self.faults
        if not good:
            return response("400 Bad Request", b'{"error":"invalid_grant"}', JSON)
        access, refresh = self._secret(), self._secret()
        self.valid.add(access)
        self.refreshes.add(refresh)
        told = {"access_token": access, "token_type": "Bearer", "expires_in": self.lifetime, "refresh_token": refresh}
        return response("200 OK", json.dumps(told).encode(), JSON)

    def _said(self, step: str, value: dict[str, Any], status: str = "200 OK") -> bytes:
        self.steps.append(step)
        return response(status, json.dumps(value).encode(), JSON)

    def _secret(self) -> str:
        value = secrets.token_urlsafe(24)
        self.secrets.append(value)
        return value


@asynccontextmanager
async def issuing(*faults: str, lifetime: int = 3600) -> AsyncGenerator[Issuer, None]:
    """Both servers, running."""
    issuer = Issuer(lifetime, frozenset(faults))
    async with (
        await asyncio.start_server(issuer.handle, "127.0.0.1", 0) as first,
        await asyncio.start_server(issuer.handle, "127.0.0.1", 0) as second,
    ):
        issuer.resource, issuer.origin = (
            f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}" for server in (first, second)
        )
        yield issuer


@contextmanager
def issuing_in_a_thread(*faults: str) -> Iterator[Issuer]:
    """The same for a test that has no loop."""
    begun: queue.SimpleQueue[tuple[Issuer, asyncio.AbstractEventLoop, asyncio.Event]] = queue.SimpleQueue()

    async def serve() -> None:
        async with issuing(*faults) as issuer:
            over = asyncio.Event()
            begun.put((issuer, asyncio.get_running_loop(), over))
            await over.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    issuer, loop, over = begun.get(timeout=10)
    try:
        yield issuer
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
