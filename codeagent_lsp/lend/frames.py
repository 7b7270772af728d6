"""Frames of the wire between a server and `editor-mcp`: one JSON object per line, of bounded length.

The client begins with `{"hello": {protocol, token, workspace, client}}`, which is answered by `{"welcome": {...}}` or
`{"refused": {reason, message}}`. Then the client sends `{"call": {id, tool, arguments}}` and `{"cancel": id}`; each
call is answered by `{"answer": {id, text, ok}}`, and `{"closed": {reason, message}}` is the last frame of the server.
Not here: who may connect (`server/door.py`).
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from typing import Any

PROTOCOL = 1
MAX_FRAME = 4 << 20
"""Most bytes of a frame."""
MAX_HELLO = 16 << 10
"""Most bytes of a frame of which the sender is not known yet."""
WRITE_SECONDS = 10.0
"""How long the other side may take nothing of what is written."""
_CHUNK = 1 << 16
_HTTP = re.compile(rb"[A-Z]{3,10} [^\n]*HTTP/|(?:GET|POST|PUT|HEAD|DELETE|OPTIONS|PATCH|CONNECT|TRACE|PRI) ")

REASONS = {
    "http": "This is no web server.",
    "json": "A frame is one JSON object per line.",
    "large": "The frame is too long.",
    "slow": "The first frame did not come in time.",
    "hello": "The first frame must be a hello with protocol, token, workspace and client.",
    "protocol": f"This editor speaks protocol {PROTOCOL}; use the codeagent-lsp of the editor's version.",
    "user": "Only the user of the editor may connect.",
    "token": "The token is not one that this editor has given.",
    "workspace": "This editor has another workspace open.",
    "client": "The token was given to another client.",
    "busy": "Too many connections are open.",
    "frame": "The frame is neither a call nor a cancel.",
    "off": "The user's settings do not lend the editor.",
    "cancelled": "The user has ended this.",
    "ended": "The editor has ended.",
}
"""What the reason of a refusal or an end means, for the client."""


class BadFrame(Exception):
    """Raised for a frame that cannot be read; `reason` is a key of `REASONS`."""

    def __init__(self, reason: str) -> None:
        super().__init__(REASONS[reason])
        self.reason = reason


class Frames:
    """The frames of one connection. Only one task may read; any may write."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._kept = bytearray()
        self._searched = 0
        self._writing = asyncio.Lock()

    async def read(self, limit: int = MAX_FRAME) -> dict[str, Any] | None:
        """Return the next frame; None at the end. BadFrame for what is none, OSError if the connection breaks."""
        while (end := self._kept.find(b"\n", self._searched)) < 0:
            # At its first bytes: a browser that waits for an answer sends no more.
            if _HTTP.match(self._kept):
                raise BadFrame("http")
            if len(self._kept) > limit:
                raise BadFrame("large")
            self._searched = len(self._kept)
            data = await self._reader.read(_CHUNK)
            if not data:
                return None
            self._kept += data
        line = bytes(self._kept[:end])
        del self._kept[: end + 1]
        self._searched = 0
        if len(line) > limit:
            raise BadFrame("large")
        return decoded(line)

    async def write(self, frame: dict[str, Any]) -> None:
        """Send a frame. OSError if the other side is gone, or takes nothing for ten seconds."""
        async with self._writing:
            if self._writer.is_closing():
                raise ConnectionResetError("the connection is closed")
            self._writer.write(encoded(frame))
            try:
                async with asyncio.timeout(WRITE_SECONDS):
                    await self._writer.drain()
            except TimeoutError:
                self._writer.transport.abort()
                raise ConnectionResetError("the other side does not read") from None

    async def end(self, kind: str, reason: str) -> None:
        """Send the last frame, `refused` or `closed`, and close; what the other side has not taken in time is lost."""
        with suppress(OSError):
            await self.write({kind: {"reason": reason, "message": REASONS[reason]}})
        self.close()

    def close(self) -> None:
        """Close the connection; what is written still goes out, see `closed`."""
        self._writer.close()

    async def closed(self) -> None:
        """Wait until the connection is closed."""
        with suppress(OSError):
            await self._writer.wait_closed()

    def abort(self) -> None:
        """Close the connection at once; what is not sent is lost."""
        self._writer.transport.abort()


def encoded(frame: dict[str, Any]) -> bytes:
    """Return the bytes of a frame; lone surrogates become replacement characters on the other side."""
    return json.dumps(frame, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def decoded(line: bytes) -> dict[str, Any]:
    """Return the frame in a line. BadFrame if it is none."""
    if _HTTP.match(line):
        raise BadFrame("http")
    try:
        frame = json.loads(line)
    except (ValueError, RecursionError):
        raise BadFrame("json") from None
    if not isinstance(frame, dict):
        raise BadFrame("json")
    return frame
