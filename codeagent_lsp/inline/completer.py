"""Completions while the user types: from what is known, from the request on its way, or from a new one.

One request at a time, after a pause in typing; it ends when the text goes another way. Not here: the protocol and
which files may be sent (`server/inline.py`), what is sent (`context.py`, `windows.py`), where answers end (`cut.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

from codeagent_lsp.errors import ModelError
from codeagent_lsp.inline.context import Material, pieces_for
from codeagent_lsp.inline.flight import Flight
from codeagent_lsp.inline.place import Place
from codeagent_lsp.inline.suggestions import Suggestions
from codeagent_lsp.inline.windows import FAST, SLOW, Budget, prefix_of, suffix_of
from codeagent_lsp.llm.fill.filler import Filler, FillRequest, Piece

KEPT_LINES = 4
KEPT_SECONDS = 30.0
"""How far from its place, and how long, the pieces of a request serve the next ones: while they stay the same, the
model has read them already."""
SLOW_SECONDS = 1.2
"""A first text later than this is that of a slow machine."""
CONTEXT_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Options:
    """The user's settings: seconds of pause, most lines."""

    pause: float = 0.15
    max_lines: int = 10


@dataclass
class Counts:
    """What became of the requests of the editor, for the bench and for people."""

    asked: int = 0
    known: int = 0
    joined: int = 0
    sent: int = 0


Gather = Callable[[Place], Awaitable[Material]]
Clean = Callable[[str], str]


class Completer:
    """Completes for one filler.

    `gather` returns what pieces are taken from, `clean` masks secrets in what is sent, `failed` gets errors of a model.
    """

    def __init__(self, filler: Filler, gather: Gather, clean: Clean, failed: Callable[[ModelError], None]) -> None:
        self.filler = filler
        self.counts = Counts()
        self._gather = gather
        self._clean = clean
        self._failed = failed
        self._known = Suggestions()
        self._flight: Flight | None = None
        self._latest: object = None
        self._slow = filler.slow
        self._pieces: tuple[Place, float, tuple[Piece, ...]] | None = None

    async def complete(self, place: Place, options: Options, *, invoked: bool = False) -> str:
        """Return the text to insert at the cursor; '' for nothing, also when a later request came meanwhile."""
        self.counts.asked += 1
        self._latest = token = object()
        known = self._known.known(place)
        if known is not None and (known or not invoked):
            self.counts.known += 1
            return known
        joined = await self._joined(place)
        if joined is not None:
            return joined
        if not invoked:
            await asyncio.sleep(options.pause)
        if self._latest is not token:
            return ""
        request = await self._request(place)
        if self._latest is not token:
            return ""
        await self._land()
        if self._latest is not token:
            return ""
        self.counts.sent += 1
        self._flight = flight = self._started(place, request, options)
        return await flight.wait(place) or ""

    def moved(self, path: str, text: str) -> None:
        """Hear of a new text of a file: a request on its way for another text ends now."""
        flight = self._flight
        if flight is None or flight.over or flight.place.path != path:
            return
        offset = flight.place.offset + len(text) - len(flight.place.text)
        if offset < 0 or not flight.fits(Place(path, text, offset)):
            flight.end()

    def forget(self, path: str) -> None:
        """Hear that a file was closed."""
        self._known.forget(path)
        if self._flight is not None and self._flight.place.path == path:
            self._flight.end()

    async def close(self) -> None:
        """End what is on its way and close the filler."""
        await self._land()
        await self.filler.close()

    async def _joined(self, place: Place) -> str | None:
        flight = self._flight
        if flight is None or flight.over or not flight.fits(place):
            return None
        answer = await flight.wait(place)
        if answer is not None:
            self.counts.joined += 1
        return answer

    async def _land(self) -> None:
        flight, self._flight = self._flight, None
        if flight is not None:
            await flight.ended()

    async def _request(self, place: Place) -> FillRequest:
        budget = SLOW if self._slow else FAST
        prefix, suffix = prefix_of(place, budget), suffix_of(place, budget)
        pieces = await self._pieces_for(place, budget)
        return FillRequest(
            self._sent(prefix),
            self._sent(suffix),
            place.path,
            tuple(Piece(piece.path, self._sent(piece.text)) for piece in pieces),
            place.comment,
            budget.tokens,
            ("\n",) if place.line_after.strip() else (),
        )

    def _sent(self, text: str) -> str:
        return self._clean(text.replace("\r\n", "\n"))

    async def _pieces_for(self, place: Place, budget: Budget) -> tuple[Piece, ...]:
        now = time.monotonic()
        if self._pieces is not None and _near(place, self._pieces[0]) and now - self._pieces[1] < KEPT_SECONDS:
            return self._pieces[2]
        try:
            async with asyncio.timeout(CONTEXT_SECONDS):
                material = await self._gather(place)
                pieces = await asyncio.to_thread(pieces_for, place, material, budget)
        except TimeoutError:
            pieces = ()
        self._pieces = (place, now, pieces)
        return pieces

    def _started(self, place: Place, request: FillRequest, options: Options) -> Flight:
        texts = self._timed(request)
        return Flight(place, texts, options.max_lines, self._known.keep, self._failed)

    async def _timed(self, request: FillRequest) -> AsyncGenerator[str, None]:
        began, first = time.monotonic(), True
        async with aclosing(self.filler.stream(request)) as texts:
            async for text in texts:
                if first:
                    self._slow = self.filler.slow or time.monotonic() - began > SLOW_SECONDS
                    first = False
                yield text


def _near(place: Place, other: Place) -> bool:
    """Return whether two cursors are a few lines apart in one file."""
    if place.path != other.path or abs(place.offset - other.offset) > 2000:
        return False
    low, high = sorted((place.offset, other.offset))
    return place.text.count("\n", low, high) <= KEPT_LINES
