"""The socket by which an allowed client of `editor-mcp` reaches this server. It is open only while it is needed.

A Unix socket that only this user can open; on Windows a port on loopback. A client has to be of this user and to say at
once, in its first frame, the token that was given to it. Not here: giving tokens (`lender.py`), what a client may do
(`session/lending/lent_run.py`).
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from codeagent_lsp import __version__
from codeagent_lsp.lend import MAX_HELLO, PROTOCOL, BadFrame, Frames, LendRequest
from codeagent_lsp.session.lending.lent_run import CallCancelled, LentCall
from codeagent_lsp.system import peer_user, user_id

HELLO_SECONDS = 5.0
"""How long a connection may take for its first frame."""
TOKEN_SECONDS = 60.0
"""How long a token waits for its client."""
LEAVE_SECONDS = 1.0
"""How long clients may take for their last frame."""
MAX_OPEN = 16
"""Most connections at a time, those included that have not said anything yet."""
MAX_NUMBER = 1 << 53
LONGEST_PATH = 100
"""Most bytes of a Unix socket's path, on every system that has such."""

Admit = Callable[["LentConnection"], None]
Refuse = Callable[[str, str, int | None], None]
"""Called with the reason, the client's name as far as it is known, and the user's number."""


@dataclass(frozen=True, slots=True)
class _Expected:
    request: LendRequest
    until: float


class LentConnection:
    """The connection of one client: the `Borrower` of its run. `on_bad` is called with the reason if it sends an
    invalid frame.
    """

    def __init__(self, frames: Frames, request: LendRequest, on_bad: Callable[[str], None]) -> None:
        self.request = request
        self.name = request.client
        self._frames = frames
        self._on_bad = on_bad

    async def next(self) -> LentCall | CallCancelled | None:
        """Wait for the client's next call or cancellation; None when it has disconnected or sent an invalid frame."""
        try:
            frame = await self._frames.read()
            return None if frame is None else _request_in(frame)
        except BadFrame as bad:
            self._on_bad(bad.reason)
            await self._frames.end("closed", bad.reason)
        except OSError:
            pass
        return None

    async def answer(self, number: int, text: str, *, ok: bool) -> None:
        """Send the answer to the call with this number, an error unless `ok`; nothing if the client has left."""
        with suppress(OSError):
            await self._frames.write({"answer": {"id": number, "text": text, "ok": ok}})

    async def leave(self, reason: str) -> None:
        """Send the reason (`ended`, `cancelled`), if the client is still there, and close the connection."""
        await self._frames.end("closed", reason)

    async def closed(self) -> None:
        """Wait until the connection is closed, by either side. Cancellable."""
        await self._frames.closed()

    def abort(self) -> None:
        """Close the connection at once, without a word to the client."""
        self._frames.abort()


def _request_in(frame: dict[str, Any]) -> LentCall | CallCancelled:
    """Return what a frame wants. BadFrame if it is none that is known."""
    call, cancelled = frame.get("call"), frame.get("cancel")
    # Exactly one member: a frame that also says something else was meant for another protocol.
    if _is_number(cancelled) and len(frame) == 1:
        return CallCancelled(cancelled)
    if isinstance(call, dict) and len(frame) == 1:
        number, tool, arguments = call.get("id"), call.get("tool"), call.get("arguments")
        if _is_number(number) and isinstance(tool, str) and isinstance(arguments, dict):
            return LentCall(number, tool[:100], arguments)
    raise BadFrame("frame")


def _is_number(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_NUMBER


class Door:
    """The listening socket of one server. `holds` returns whether a folder, a real path, is open here; `admit` is
    called with each connection that may stay, `refuse` for each that may not.
    """

    def __init__(self, place: Path, holds: Callable[[str], bool], admit: Admit, refuse: Refuse) -> None:
        self._place = place
        self._holds = holds
        self._admit = admit
        self._refuse = refuse
        self._server: asyncio.Server | None = None
        self._own_folder: Path | None = None
        self._path: Path | None = None
        self.address = ""
        self._expected: dict[str, _Expected] = {}
        self._open: set[Frames] = set()
        self._opening = asyncio.Lock()

    async def expect(self, request: LendRequest) -> tuple[str, str]:
        """Open the socket if it is closed; return (address, token), a secret for this client, for one connection within
        a minute. OSError if nothing can listen here.
        """
        async with self._opening:
            if self._server is None:
                await self._listen()
        token = secrets.token_urlsafe(32)
        # For one connection and a minute: a token that is found later opens nothing.
        self._expected[token] = _Expected(request, time.monotonic() + TOKEN_SECONDS)
        return self.address, token

    async def close_unused(self) -> None:
        """Close the socket if no client is connected and none is expected. Call it again later: it does nothing while
        one is.
        """
        now = time.monotonic()
        self._expected = {token: each for token, each in self._expected.items() if each.until > now}
        if self._server is not None and not self._expected and not self._open and not self._opening.locked():
            await self.close("ended")

    async def close(self, reason: str) -> None:
        """Close the socket, forget all tokens, send the reason to all clients and close their connections, after 1 s at
        the latest by force. `expect` opens it again.
        """
        self._expected.clear()
        server, self._server = self._server, None
        if server is not None:
            server.close()
        # Before what takes time: whoever looks finds nothing any more.
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None
        if self._own_folder is not None:
            shutil.rmtree(self._own_folder, ignore_errors=True)
            self._own_folder = None
        self.address = ""
        leaving = [asyncio.ensure_future(frames.end("closed", reason)) for frames in self._open]
        if leaving:
            await asyncio.wait(leaving, timeout=LEAVE_SECONDS)
        for frames in tuple(self._open):
            frames.abort()

    async def _listen(self) -> None:
        if sys.platform == "win32":  # asyncio has no Unix sockets there
            self._server = await asyncio.start_server(self._on_connection, "127.0.0.1", 0)
            host, port = self._server.sockets[0].getsockname()[:2]
            self.address = f"tcp:{host}:{port}"
        else:
            path = self._place / "socket"
            # The kernel takes no longer ones; below a deep home the state folder has a longer one.
            if len(os.fsencode(path)) > LONGEST_PATH:
                self._own_folder = Path(tempfile.mkdtemp(prefix="codeagent-"))  # for this user alone
                path = self._own_folder / "socket"
            path.unlink(missing_ok=True)
            opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                # In a folder that nobody else can enter, so that no moment is lost before the mode is set.
                opened.bind(str(path))
                path.chmod(0o600)
                self._server = await asyncio.start_unix_server(self._on_connection, sock=opened)
            except OSError:
                opened.close()
                raise
            self._path, self.address = path, f"unix:{path}"

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = Frames(reader, writer)
        task = asyncio.current_task()
        assert task is not None
        self._open.add(frames)
        try:
            connection = await self._check(frames, writer)
            if connection is not None:
                self._admit(connection)
                # The streams of asyncio are closed when this returns and nobody refers to them any more.
                await frames.closed()
        except asyncio.CancelledError:
            frames.abort()
        finally:
            self._open.discard(frames)

    async def _check(self, frames: Frames, writer: asyncio.StreamWriter) -> LentConnection | None:
        """Return the connection if it may stay; else None, after it was told why not and closed."""
        user = peer_user(writer.get_extra_info("socket")) if self._path is not None else user_id()
        name = ""
        try:
            if user != user_id():
                raise BadFrame("user")
            if len(self._open) > MAX_OPEN:
                raise BadFrame("busy")
            async with asyncio.timeout(HELLO_SECONDS):
                frame = await frames.read(MAX_HELLO)
            if frame is None:
                raise BadFrame("hello")
            hello = frame.get("hello")
            name = _client_name(hello)
            request = self._expected.pop(self._allowed_token(hello))
            await frames.write({"welcome": {"protocol": PROTOCOL, "version": __version__}})
            return LentConnection(frames, request.request, lambda why: self._refuse(why, name, user))
        except BadFrame as bad:
            reason = bad.reason
        except TimeoutError:
            reason = "slow"
        except OSError:
            frames.abort()
            return None
        self._refuse(reason, name, user)
        await frames.end("refused", reason)
        return None

    def _allowed_token(self, hello: Any) -> str:
        """Return the token of a hello that is right. BadFrame with the reason if it is not."""
        if not isinstance(hello, dict):
            raise BadFrame("hello")
        token, workspace, client = (hello.get(name) for name in ("token", "workspace", "client"))
        if hello.get("protocol") != PROTOCOL:
            raise BadFrame("protocol")
        if not isinstance(token, str) or not isinstance(workspace, str) or not isinstance(client, str):
            raise BadFrame("hello")
        given, now = token.encode("utf-8", "replace"), time.monotonic()
        # All are compared, so that the time tells nothing.
        matching = [known for known in self._expected if hmac.compare_digest(known.encode(), given)]
        if not matching or self._expected[matching[0]].until <= now:
            raise BadFrame("token")
        if "\0" in workspace or not self._holds(os.path.realpath(workspace)):
            raise BadFrame("workspace")
        if client != self._expected[matching[0]].request.client:
            raise BadFrame("client")
        return matching[0]


def _client_name(hello: Any) -> str:
    name = hello.get("client") if isinstance(hello, dict) else None
    return name[:64] if isinstance(name, str) else ""
