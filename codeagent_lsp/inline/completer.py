"""Completions while the user types: from what is known, from the request on its way, or from a new one.

One request at a time, after a pause in typing; it ends when the text goes another way. Not here: the protocol and which
files may be sent (`server/inline_completions.py`), what is sent (`context.py`).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from codeagent_lsp.errors import ModelError
from codeagent_lsp.inline.checking import Check
from codeagent_lsp.inline.context import FAST, SLOW, Budget, Material, Place, draft_of, pieces_for, prefix_of, suffix_of
from codeagent_lsp.llm.fill.filler import Filler, FillRequest, Piece, cut_tokens
from codeagent_lsp.workspace.text.visible import first_hidden

KEPT_LINES = 4
KEPT_SECONDS = 30.0
"""The distance in lines, and the time, within which the pieces of a request serve the next ones: while they stay the
same, the model has read them already.
"""
SLOW_SECONDS = 1.2
"""The time after which a first text shows that the machine is slow."""
CONTEXT_SECONDS = 0.3
LINGER_SECONDS = 0.5
"""The time for which a request continues that no caller waits for: the next key comes within that, and may join it."""
SAMPLES = 2
"""The number of answers that are tried before nothing is suggested, if the first would bring an error."""
# The end of a block: `)`, `}`, `end`, `fi`, `done`, `</p>`.
_CLOSES = re.compile(r"\s*(?:[)\]}>]|end\b|fi\b|done\b|esac\b|</)")
# A line that goes on with the same statement although it is not indented more: `else`, `except`, `} catch`.
_JOINS = re.compile(
    r"\s*(?:else|elif|elsif|except|finally|catch|rescue|ensure|when|case|\}\s*(?:else|catch|finally))\b"
)
_WORD = re.compile(r"\s*\w+\W")
_REPEATED = 3
KEPT = 24


@dataclass(frozen=True, slots=True)
class Options:
    """The user's settings: seconds of pause in typing before a request, and the most lines of a suggestion."""

    pause: float = 0.15
    max_lines: int = 10


@dataclass
class Counts:
    """The numbers of the editor's requests so far, for measurements and the status: all (`asked`), answered by what was
    known or by a draft, by a request on its way (`joined`), by a new one (`sent`), or `dropped`.
    """

    asked: int = 0
    known: int = 0
    drafts: int = 0
    joined: int = 0
    sent: int = 0
    dropped: int = 0


Gather = Callable[[Place], Awaitable[Material]]
Clean = Callable[[str], str]
Checks = Callable[[Place], Check | None]


class Completer:
    """Makes completions with one model (`filler`), until `close`. `gather` returns what pieces are taken from, `clean`
    masks secrets in what is sent, `failed` receives errors of a model, `checks` begins to check what comes for a place,
    if that is possible.
    """

    def __init__(
        self,
        filler: Filler,
        gather: Gather,
        clean: Clean,
        failed: Callable[[ModelError], None],
        checks: Checks = lambda place: None,
    ) -> None:
        self.filler = filler
        self.counts = Counts()
        self._gather = gather
        self._clean = clean
        self._failed = failed
        self._checks = checks
        self._known = Suggestions()  # answers of before, which typing along them finds again
        self._flight: Flight | None = None  # the one request to the model
        self._latest: object = None  # the token of the last request: an earlier one gives up when it finds another
        self._slow = filler.slow  # by the last answer, which budget the next request has
        self._pieces: tuple[Place, float, tuple[Piece, ...]] | None = None

    async def complete(self, place: Place, options: Options, *, invoked: bool = False) -> str:
        """Return the text to insert at the cursor; '' for nothing, if the model fails, and if a later request came
        meanwhile. Waits for a pause in typing, unless the user `invoked` it.
        """
        self.counts.asked += 1
        self._latest = token = object()
        known = self._known.known(place)
        # That nothing fits is known too; a user who asks by a key wants another try.
        if known is not None and (known or not invoked):
            self.counts.known += 1
            return known
        draft = "" if invoked else await self._draft(place)
        if draft:
            self.counts.drafts += 1
            return draft
        if self._latest is not token:
            return ""
        joined = await self._join_flight(place)
        if joined is not None:
            return joined
        if not invoked:
            await asyncio.sleep(options.pause)
        # After each await: a later key may have come, and only its request counts.
        if self._latest is not token:
            return ""
        request = await self._request(place)
        if self._latest is not token:
            return ""
        # The old request first: a local model answers one at a time, and the new one would wait behind it.
        await self._land()
        if self._latest is not token:
            return ""
        self.counts.sent += 1
        self._flight = flight = self._start_flight(place, request, options)
        return await flight.wait(place) or ""

    def moved(self, path: str, text: str) -> None:
        """Take the new text of a file, by `Place.path`; a request in progress that does not fit it is cancelled.
        Returns at once.
        """
        flight = self._flight
        if flight is None or flight.over or flight.place.path != path:
            return
        # Where the cursor is if all that was changed was typed at it; anything else does not fit then.
        offset = flight.place.offset + len(text) - len(flight.place.text)
        if offset < 0 or not flight.fits(Place(path, text, offset)):
            flight.end()

    def forget(self, path: str) -> None:
        """Drop the answers for a file, by `Place.path`, that was closed, and cancel a request for it;
        returns at once.
        """
        self._known.forget(path)
        if self._flight is not None and self._flight.place.path == path:
            self._flight.end()

    async def close(self) -> None:
        """Cancel the request in progress, wait for its end and close the filler; not to be used afterwards."""
        await self._land()
        await self.filler.close()

    async def _draft(self, place: Place) -> str:
        """Return what the text itself says, at once; '' also for one that would bring an error here."""
        draft = draft_of(place)
        check = self._checks(place) if draft else None
        if check is None:
            return draft
        try:
            return "" if await check.brings_error(draft) else draft
        finally:
            await check.close()

    async def _join_flight(self, place: Place) -> str | None:
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
            self._send(prefix),
            self._send(suffix),
            place.path,
            tuple(Piece(piece.path, self._send(piece.text)) for piece in pieces),
            place.comment,
            budget.tokens,
            # Within a line only the line is completed, so the model need not write more.
            ("\n",) if place.line_after.strip() else (),
        )

    def _send(self, text: str) -> str:
        # Models have seen little with CRLF, and would mix both; the answer gets the file's line breaks back.
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
        # Kept also where none came in time: the next keys must not wait for them again.
        self._pieces = (place, now, pieces)
        return pieces

    def _start_flight(self, place: Place, request: FillRequest, options: Options) -> Flight:
        def texts(number: int) -> AsyncGenerator[str, None]:
            self.counts.dropped += number > 0
            return self._within_time(replace(request, sample=number))

        return Flight(place, texts, options.max_lines, self._known.keep, self._failed, self._checks(place))

    async def _within_time(self, request: FillRequest) -> AsyncGenerator[str, None]:
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


# One request to the model on its way: what has come so far, and waiting for it from more than one place.


class Flight:
    """One request to the model for `place`, begun when it is made. `texts` streams an answer, by the number of the try;
    `failed` receives the error if that breaks. An answer that `check` finds to bring an error counts as none.
    """

    def __init__(
        self,
        place: Place,
        texts: Callable[[int], AsyncGenerator[str, None]],
        max_lines: int,
        done: Callable[[Place, str], None],
        failed: Callable[[ModelError], None],
        check: Check | None = None,
    ) -> None:
        self.place = place
        self.answer = ""
        self._max_lines = max_lines
        self._done = done
        self._failed = failed
        self._check = check
        self._waiting = 0  # requests of the editor that wait for this answer
        self._grown = asyncio.Event()
        self._task = asyncio.create_task(self._fly(texts))
        self._linger: asyncio.TimerHandle | None = None  # ends a request for which nobody waits any more

    @property
    def over(self) -> bool:
        """Whether the answer is complete, has failed, or was cancelled."""
        return self._task.done()

    def fits(self, place: Place) -> bool:
        """Return whether what was typed between the request's place and this one agrees with what has come of the
        answer so far.
        """
        typed = typed_since(place, self.place)
        return typed is not None and (self.answer.startswith(typed) or typed.startswith(self.answer))

    async def wait(self, place: Place) -> str | None:
        """Return the answer for a place that fits, once it is there; None as soon as it cannot be one, or if the
        request fails. If no caller waits any more, the request is cancelled after 0.5 s.
        """
        self._waiting += 1
        self._stop_lingering()
        try:
            while not self.over and self.fits(place):
                await self._more()
            typed = typed_since(place, self.place)
            if not self.over or typed is None or self._task.cancelled():
                return None
            return rest_of(self.answer, typed)
        finally:
            self._waiting -= 1
            if not self._waiting and not self.over:
                # Not at once: the next key cancels one request and sends the next, which may wait for the same answer.
                self._linger = asyncio.get_running_loop().call_later(LINGER_SECONDS, self.end)

    def end(self) -> None:
        """Cancel the request, so that the model's server stops; returns at once."""
        self._stop_lingering()
        self._task.cancel()

    async def ended(self) -> None:
        """Cancel the request and wait until nothing of it is left; its error is not raised."""
        self.end()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _more(self) -> None:
        """Wait until more has come, or the answer is over."""
        grown = asyncio.ensure_future(self._grown.wait())
        try:
            await asyncio.wait((self._task, grown), return_when=asyncio.FIRST_COMPLETED)
        finally:
            grown.cancel()

    def _stop_lingering(self) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None

    async def _fly(self, texts: Callable[[int], AsyncGenerator[str, None]]) -> None:
        try:
            self._grow(await self._fine(texts))
        except ModelError as error:
            self._failed(error)
            return
        finally:
            if self._check is not None:
                await self._check.close()
        self._done(self.place, self.answer)

    async def _fine(self, texts: Callable[[int], AsyncGenerator[str, None]]) -> str:
        """Return the first answer that brings no error, '' if none does."""
        fallen = ""  # the answer before, which would bring an error
        for number in range(SAMPLES):
            answer = await self._sample(texts(number))
            # The same again: the model has nothing else to offer.
            if not answer or answer == fallen:
                break
            if self._check is None or not await self._check.brings_error(answer):
                return answer
            fallen = answer
        return ""

    async def _sample(self, texts: AsyncGenerator[str, None]) -> str:
        received = ""
        final = Cut("", final=False)
        async with aclosing(texts):
            async for text in texts:
                received += text
                final = cut(self.place, received, self._max_lines)
                self._grow(final.text)
                if final.final:
                    break
                # At the end of a line, not of a word: a server takes longer for a text than the model for a token.
                if self._check is not None and "\n" in text:
                    self._check.expect(final.text)
        # The line break makes the last line a whole one, which `cut` else takes for still growing.
        return final.text if final.final else cut(self.place, f"{received}\n", self._max_lines).text

    def _grow(self, answer: str) -> None:
        self.answer = answer
        # A new event for each growth: one that is set and cleared could be missed by a second waiter.
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()


# Where an answer of the model ends: with its block, before it repeats what follows, after so many lines.


@dataclass(frozen=True, slots=True)
class Cut:
    """The usable part of an answer, '' for none, and whether it is `final`: the rest of the answer would
    not change it.
    """

    text: str
    final: bool


def cut(place: Place, answer: str, max_lines: int) -> Cut:
    """Return the usable part of an answer that may still be growing, at most `max_lines` lines, with the line breaks of
    the place's text.
    """
    answer, ended = cut_tokens(answer.replace("\r\n", "\n"))
    # What is not seen is not offered. The last character may be a part of what is still growing.
    if (hidden := first_hidden(answer)) < len(answer) - (not ended):
        answer, ended = answer[:hidden], True
    if place.line_after.strip():
        line, broke, _ = answer.partition("\n")
        return Cut(_without_rest(line, place.line_after), ended or bool(broke))
    lines, final = _block(place, answer, max_lines)
    text = "\n".join(lines).rstrip()
    return Cut(text.replace("\n", place.line_break), ended or final)


def _without_rest(line: str, rest: str) -> str:
    """Return a line without an end that repeats the rest of the cursor's line, as a bracket that is already there."""
    line, rest = line.rstrip(), rest.strip()
    # The longest repetition first; a piece of a word may end alike by chance.
    for size in range(min(len(line), len(rest)), 0, -1):
        if line.endswith(rest[:size]) and (size == len(rest) or not rest[:size].isalnum()):
            return line[:-size] if _unbalanced(line) else line
    return line


def _unbalanced(line: str) -> bool:
    """Return whether a line closes more than it opens, or has a quote open: its end then belongs to what follows."""
    depth = 0
    for char in line:
        depth += (char in "([{") - (char in ")]}")
        if depth < 0:
            return True
    return line.count('"') % 2 == 1 or line.count("'") % 2 == 1 or (depth == 0 and line[-1:] in ";,:")


def _block(place: Place, answer: str, max_lines: int) -> tuple[list[str], bool]:
    """Return the lines of the answer up to the end of the block at the cursor, and whether the end was seen."""
    lines = answer.split("\n")
    complete = lines[:-1]  # the last may still grow
    fresh = not place.line_before.strip()
    base = _width(place.line_before if fresh else place.indentation)
    follows = next((line for line in place.text[place.line_end :].split("\n")[1:6] if line.strip()), "")
    taken: list[str] = []
    for number, line in enumerate(lines):
        if number == max_lines or _repeats(taken, line):
            return taken, True
        whole = number < len(complete)
        # It may still become a line of the block, or the end of it.
        if number and not whole and not line.strip():
            break
        if number and _ends(line, base, fresh=fresh, before=taken):
            # The bracket that closes what the first line has opened is a part of the block, unless the file has it
            # already.
            closing = _CLOSES.match(line) and _width(line) == base and not fresh and line.rstrip() != follows.rstrip()
            return ([*taken, line] if closing and whole else taken), whole or _is_another(line)
        if number and whole and line.strip() and line.rstrip() == follows.rstrip() and not _JOINS.match(line):
            return taken, True
        taken.append(line)
    return taken, False


def _ends(line: str, base: int, *, fresh: bool, before: list[str]) -> bool:
    """Return whether a line no longer belongs to the block whose first line is indented by `base`."""
    if not line.strip():
        return any(each.strip() for each in before) and _width(before[-1]) <= base
    width = _width(line)
    if fresh:
        return width < base
    if not any(each.strip() for each in before[1:]) and width == base and not _opens(before[0]):
        return True
    return width <= base and not _JOINS.match(line)


def _is_another(line: str) -> bool:
    """Return whether a line that still grows cannot become one that belongs to the block."""
    return bool(_WORD.match(line)) and not _JOINS.match(line) and not _CLOSES.match(line)


def _opens(line: str) -> bool:
    return line.rstrip().endswith((":", "{", "(", "[", "=>", "->", ",", "=", "do", "then"))


def _repeats(taken: list[str], line: str) -> bool:
    """Return whether the model turns in circles: a line for the third time in a row."""
    last = taken[-(_REPEATED - 1) :]
    return bool(line.strip()) and len(last) == _REPEATED - 1 and all(each == line for each in last)


def _width(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip(" "))


# Answers that are known, and the rest of one for a text that was typed on along it. Pure.


def typed_since(place: Place, earlier: Place) -> str | None:
    """Return what was typed at the earlier place to come to this one, '' for nothing; None if anything else has
    changed.
    """
    if place.path != earlier.path or place.offset < earlier.offset:
        return None
    typed = place.text[earlier.offset : place.offset]
    if len(place.text) != len(earlier.text) + len(typed):
        return None
    # The lengths agree, so nothing else can have changed if both ends are the same.
    same_before = place.text.startswith(earlier.text[: earlier.offset])
    return typed if same_before and place.text[place.offset :] == earlier.text[earlier.offset :] else None


def rest_of(answer: str, typed: str) -> str | None:
    """Return what is left of an answer after `typed`, its beginning, was typed, '' if all was; None if something else
    was typed.
    """
    return answer[len(typed) :] if answer.startswith(typed) else None


class Suggestions:
    """The last 24 answers, each with the place that it was made for. An empty answer counts too: nothing fits there."""

    def __init__(self) -> None:
        self._kept: deque[tuple[Place, str]] = deque(maxlen=KEPT)

    def keep(self, place: Place, answer: str) -> None:
        """Add an answer for a place, '' if nothing fits there; the oldest one is dropped."""
        self._kept.appendleft((place, answer))

    def known(self, place: Place) -> str | None:
        """Return the answer for a place, or what is left of one after the user typed its beginning; '' if nothing fits
        there, None if none is known. An answer that was typed to its end counts as unknown, since another may follow.
        """
        for earlier, answer in self._kept:
            typed = typed_since(place, earlier)
            rest = None if typed is None else rest_of(answer, typed)
            if rest or (rest is not None and not typed):
                return rest
        return None

    def forget(self, path: str) -> None:
        """Forget the answers for a file, by its `Place.path`; nothing if there are none."""
        self._kept = deque((each for each in self._kept if each[0].path != path), maxlen=KEPT)
