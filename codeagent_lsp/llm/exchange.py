"""Requests to one model server over connections that are kept: a POST, the objects of its answer, and its errors.

Answers are streams of lines or server-sent events (WHATWG HTML), bounded in time and size. httpx-sse splits the lines
(at CR, LF, CRLF only, never at U+2028 as `Response.iter_lines` does) and joins the fields; the limits are added here.
Not here: the content of requests and answers (`providers/`, `deltas.py`), retries (`providers/http_model.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from httpx_sse import EventSource, ServerSentEvent

from codeagent_lsp.errors import ModelError, ModelReplyInvalid, ModelStreamBroken, ModelTimeout
from codeagent_lsp.llm import failures, wire
from codeagent_lsp.llm.endpoint import TROUBLE, Endpoint, TimeLimits, open_client
from codeagent_lsp.state import json_object

DONE = "[DONE]"
"""The last object of a stream of an OpenAI-compatible server, and of a complete reply that was not streamed."""

LINGER_SECONDS = 0.1
"""The time that a server may take to end a response whose reply is complete; its connection is closed after that."""

_JSON_BODY_LIMIT = 8 * 1024 * 1024

LINE_LIMIT = 2 * 1024 * 1024
TOTAL_LIMIT = 64 * 1024 * 1024
LAST_SECONDS = 5.0
"""The longest wait for the counts behind a reply that has stopped, and for the end of its stream."""
LIFE = 2
"""Nothing but signs of life may come for as long as this factor times the longer limit: that of the first token or of
silence.
"""


class Exchange:
    """The connections to one server, kept for later requests until `close`; `headers` are sent with every request."""

    def __init__(self, where: Endpoint, limits: TimeLimits, headers: Mapping[str, str]) -> None:
        self._where = where
        self._limits = limits
        own = {"Accept": "text/event-stream, application/json", "Content-Type": "application/json"}
        self._headers = where.with_extra({**own, **headers})
        self._lingers = False  # whether the server keeps finished streams open
        self._client = open_client(where, limits)

    @asynccontextmanager
    async def post(self, url: str, body: dict[str, Any], clock: Clock) -> AsyncGenerator[httpx.Response, None]:
        """Send a request and yield the open response, headers read. `url` is absolute, `body` becomes JSON; `clock`
        limits the wait for the headers. ModelError if the connection fails or the status is not 200 or 201,
        ModelStreamBroken for an HTML page. Leaving the block closes the response.
        """
        request = self._client.build_request("POST", url, content=wire.encode(body), headers=self._headers)
        try:
            async with asyncio.timeout_at(clock.deadline):
                response = await self._client.send(request, stream=True)
        except TimeoutError as error:
            raise silence(self._where, self._limits, clock) from error
        except TROUBLE as error:
            raise failures.from_exception(error, self._where, self._limits) from error
        try:
            check_coding(response, self._where)
            # The beginning is enough for a message, and a server may send without end.
            if response.status_code not in wire.REPLIES:
                body_start = await read_body(response, self._limits, failures.BODY_LIMIT)
                raise failures.from_response(response.status_code, response.headers, body_start, self._where)
            # A login page of a proxy or a wrong path, with status 200.
            if "html" in response.headers.get("content-type", ""):
                raise ModelStreamBroken("model.stream_garbled", url=self._where.root, reason=failures.PAGE)
            yield response
        finally:
            # Also where the stream is left early: closing is what stops the server's work.
            await response.aclose()

    async def objects(self, response: httpx.Response, clock: Clock) -> AsyncGenerator[str, None]:
        """Yield the objects of an answer as text: of its events, of its lines, or the one that is its whole body, after
        which `DONE` follows if it has `choices`.

        ModelStreamBroken when there was none; other errors as for `events`.
        """
        kind = response.headers.get("content-type", "")
        if "json" in kind and "ndjson" not in kind:
            raw = await read_body(response, self._limits, _JSON_BODY_LIMIT)
            text = raw.decode("utf-8", "replace")
            value = json_object(text)
            if value is not None:
                clock.started = True
                yield text
                if value.get("choices"):
                    # A whole reply in place of a stream has no event for its end.
                    yield DONE
        else:
            split = lines if "ndjson" in kind else events
            async with aclosing(split(response, self._where, self._limits, clock)) as objects:
                async for text in objects:
                    yield text
        if not clock.started:
            raise ModelStreamBroken("model.stream_cut", url=self._where.root)

    async def drain(self, objects: AsyncGenerator[str, None]) -> None:
        """Read an answer to its end, at most 0.1 s, so that its connection serves the next call. A server that took
        longer is not waited for again.
        """
        if self._lingers:
            return
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                async for _ in objects:
                    pass
        except (TimeoutError, ModelError):
            # Some servers keep a finished stream open: every call would wait for it.
            self._lingers = True

    async def close(self) -> None:
        """Close the connections, also those that are kept for the next call; requests after it fail."""
        await self._client.aclose()


@dataclass
class Clock:
    """The time limits of one request. `deadline` is that of the first event, in the event loop's time, and once the
    reply has `stopped` that of all that follows; `started` after the first event. `fresh` is the time of the last event
    that was unlike the one before it.
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
        """Note that the reply has its finish reason: the rest must come within 5 s, or within the limit of silence if
        it is shorter.
        """
        if not self.stopped:
            self.stopped = True
            self.deadline = asyncio.get_running_loop().time() + min(limits.silence, LAST_SECONDS)

    def heard(self, event: str | bytes) -> None:
        """Note that an event came; one equal to the one before counts as no progress."""
        if not self.started or event != self._last:
            self.fresh = asyncio.get_running_loop().time()
        self.started, self._last = True, event

    def next_limit(self, limits: TimeLimits) -> float:
        """Return until when the next bytes must arrive, in the event loop's time (seconds): the deadline before the
        first event and after the finish reason, else the limit of silence from now, or earlier if the server only
        repeats itself.
        """
        if self.started and not self.stopped:
            # Comments, pings and empty pieces are signs of life, but a gateway sends them for a model that hangs, too.
            life = self.fresh + LIFE * max(limits.first, limits.silence)
            return min(asyncio.get_running_loop().time() + limits.silence, life)
        return self.deadline


async def events(
    response: httpx.Response, where: Endpoint, limits: TimeLimits, clock: Clock
) -> AsyncGenerator[str, None]:
    """Yield the data of each server-sent event that has any (WHATWG HTML, always as UTF-8).

    ModelTimeout after too long a silence (`limits`, `clock`), ModelReplyInvalid for more than 2 MiB in a line or 64 MiB
    in all, ModelStreamBroken or another ModelError if the connection fails.
    """
    async with aclosing(_bounded_bytes(response, where, limits, clock)) as chunks:
        async for event in _decode(chunks):
            if event.data:
                clock.heard(event.data)
                yield event.data


async def lines(
    response: httpx.Response, where: Endpoint, limits: TimeLimits, clock: Clock
) -> AsyncGenerator[str, None]:
    r"""Yield each line that is not blank, without its `\n` and as UTF-8, of a stream of one JSON object a line. Errors
    as for `events`.
    """
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


async def read_body(response: httpx.Response, limits: TimeLimits, limit: int) -> bytes:
    """Read at most `limit` bytes of a body that is not a stream. Never raises: after a failure, or `limits.silence`
    seconds, it returns what has arrived.
    """
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
    """Return, without raising it, the error for a server that sent nothing for too long."""
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
