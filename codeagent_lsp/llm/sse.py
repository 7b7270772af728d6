"""Server-sent events (WHATWG HTML) from an HTTP response, bounded in time and size.

httpx-sse splits the lines (at CR, LF, CRLF only, never at U+2028 as `Response.iter_lines` does) and joins the
fields; this module adds limits. Streams of lines are read here too. Not here: the content of the events (`deltas.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

import httpx
from httpx_sse import EventSource, ServerSentEvent

from codeagent_lsp.errors import ModelReplyInvalid, ModelStreamBroken, ModelTimeout
from codeagent_lsp.llm import failures
from codeagent_lsp.llm.endpoint import TROUBLE, Endpoint, TimeLimits

LINE_LIMIT = 2 * 1024 * 1024
TOTAL_LIMIT = 64 * 1024 * 1024
LAST_SECONDS = 5.0
LIFE = 2  # times the limit of the first token: as long nothing but signs of life may come
"""How long the counts behind a reply that has stopped, and the end of its stream, are waited for."""


@dataclass
class Clock:
    """The deadline of the first event, in the event loop's time; `started` once there was one. Of a reply that has
    stopped, the deadline of all that follows. `fresh` is the time of the last event that was unlike the one before it.
    """

    deadline: float
    started: bool = False
    stopped: bool = False
    fresh: float = 0.0
    _last: str | bytes = ""

    @classmethod
    def start(cls, limits: TimeLimits) -> Clock:
        """Return a clock for a request that is sent now."""
        return cls(asyncio.get_running_loop().time() + limits.first)

    def stop(self, limits: TimeLimits) -> None:
        """Take note that the reply has its reason to stop."""
        if not self.stopped:
            self.stopped = True
            self.deadline = asyncio.get_running_loop().time() + min(limits.silence, LAST_SECONDS)

    def heard(self, event: str | bytes) -> None:
        """Take note of an event."""
        if not self.started or event != self._last:
            self.fresh = asyncio.get_running_loop().time()
        self.started, self._last = True, event

    def next_limit(self, limits: TimeLimits) -> float:
        """Return the deadline of the next bytes, in the event loop's time."""
        if self.started and not self.stopped:
            # Comments, pings and empty pieces are signs of life, but a gateway sends them for a model that hangs, too.
            life = self.fresh + LIFE * max(limits.first, limits.silence)
            return min(asyncio.get_running_loop().time() + limits.silence, life)
        return self.deadline


async def events(
    response: httpx.Response, where: Endpoint, limits: TimeLimits, clock: Clock
) -> AsyncGenerator[str, None]:
    """Yield the data of each event.

    Raises ModelTimeout, ModelStreamBroken or ModelReplyInvalid when a limit is exceeded.
    """
    async with aclosing(_bounded_bytes(response, where, limits, clock)) as chunks:
        async for event in _decode(chunks):
            if event.data:
                clock.heard(event.data)
                yield event.data


async def lines(
    response: httpx.Response, where: Endpoint, limits: TimeLimits, clock: Clock
) -> AsyncGenerator[str, None]:
    """Yield each line that is not empty, of a stream of one JSON object a line. Errors as for `events`."""
    held = b""
    async with aclosing(_bounded_bytes(response, where, limits, clock)) as chunks:
        async for chunk in chunks:
            *whole, held = (held + chunk).split(b"\n")
            for line in filter(bytes.strip, whole):
                clock.heard(line)
                yield line.decode("utf-8", "replace")


def check_coding(response: httpx.Response, where: Endpoint) -> None:
    """Raise ModelStreamBroken for a body that is compressed several times: a few bytes of it can fill the memory."""
    if "," in response.headers.get("content-encoding", ""):
        raise ModelStreamBroken("model.stream_garbled", url=where.root, reason="nested compression")


async def read_body(response: httpx.Response, where: Endpoint, limits: TimeLimits, limit: int) -> bytes:
    """Read at most `limit` bytes of a body that is not a stream; of a broken connection, what has arrived."""
    body = bytearray()
    try:
        async with asyncio.timeout(limits.silence):
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > limit:
                    break
    except (TimeoutError, *TROUBLE):
        pass  # the status matters here; the message is optional
    return bytes(body[:limit])


def silence(where: Endpoint, limits: TimeLimits, clock: Clock) -> ModelTimeout:
    """Return the error for a server that sent nothing for too long."""
    if clock.started:
        return ModelTimeout("model.timeout_silence", url=where.root, seconds=f"{limits.silence:g}")
    return ModelTimeout("model.timeout_first", url=where.root, seconds=f"{limits.first:g}")


async def _bounded_bytes(
    response: httpx.Response, where: Endpoint, limits: TimeLimits, clock: Clock
) -> AsyncGenerator[bytes, None]:
    # Counted before anything is decoded: a line without an end would be held in memory as a whole.
    total = in_line = 0
    chunks = response.aiter_bytes()
    while True:
        try:
            async with asyncio.timeout_at(clock.next_limit(limits)):
                chunk = await anext(chunks, None)
        except TimeoutError as error:
            raise silence(where, limits, clock) from error
        except TROUBLE as error:
            raise failures.from_exception(error, where, limits, started=True) from error
        if chunk is None:
            yield b"\n\n"  # a last event without its empty line is still an event
            return
        total += len(chunk)
        end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        in_line = in_line + len(chunk) if end < 0 else len(chunk) - end
        if total > TOTAL_LIMIT or in_line > LINE_LIMIT:
            limit = TOTAL_LIMIT if total > TOTAL_LIMIT else LINE_LIMIT
            raise ModelReplyInvalid("model.reply_too_long", url=where.root, limit=f"{limit >> 20} MiB")
        yield chunk


async def _decode(chunks: AsyncIterator[bytes]) -> AsyncGenerator[ServerSentEvent, None]:
    """Yield the events of our bounded bytes by httpx-sse, always decoded as UTF-8."""
    # Stated by us: servers that name another encoding, or none, send UTF-8 all the same. `-sig` drops a byte order
    # mark.
    headers = {"content-type": "text/event-stream; charset=utf-8-sig"}
    relay = httpx.Response(200, headers=headers, content=chunks)
    async with aclosing(EventSource(relay).aiter_sse()) as stream:
        async for event in stream:
            yield event
