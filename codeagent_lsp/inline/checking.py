"""The check whether a suggestion would bring an error: the language servers that run already are asked, on exactly that
text.

An error that is not known in time, or cannot be known because the text does not end yet, does not count. Not here: the
servers (`language_servers/`), what becomes of a suggestion that brings one (`completer.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from codeagent_lsp.inline.context import Place
from codeagent_lsp.language_servers.session_servers import FoundDiagnostics
from codeagent_lsp.tools.diagnostics.difference import Diagnostic, difference, from_lsp
from codeagent_lsp.tools.diagnostics.syntax import syntax_errors
from codeagent_lsp.workspace.files.file_view import FileView

KNOWN_SECONDS = 2.0
"""The time that a server has for a text while the model still writes."""
LATE_SECONDS = 0.15
"""The time that a complete suggestion waits for the answers of servers."""
LONGEST_TEXT = 200_000
"""The most characters of a text that is checked: longer ones take a server longer than a suggestion may wait."""


class WarmServers(Protocol):
    """Port: the language servers of one session, of which only those that already run are used here."""

    async def look_at(
        self, view: FileView, path: str, text: str, seconds: float, found: Callable[[FoundDiagnostics], None]
    ) -> None:
        """Call `found` with the diagnostics that a file would have with this text, once for each server that runs and
        answers within `seconds`; see `SessionServers`.
        """


class Check(Protocol):
    """Port: the check of the suggestions for one place, from the request until `close`; the caller closes it."""

    def expect(self, answer: str) -> None:
        """Begin to check an answer that may be the whole one, while more may come; returns at once. `brings_error` for
        the same answer is then sooner known.
        """

    async def brings_error(self, answer: str) -> bool:
        """Return whether the text would have an error with this answer that it does not have without. Waits at most
        about 0.15 s; False if that is not known by then or the answer leaves something open.
        """

    async def close(self) -> None:
        """Cancel the questions to the servers and wait for their end."""


class SuggestionChecks:
    """Makes checks by the language servers that `servers` returns, those that run now, on the texts of the view that
    `view` returns. One per server.
    """

    def __init__(self, servers: Callable[[], Sequence[WarmServers]], view: Callable[[], FileView]) -> None:
        self._servers = servers
        self._view = view

    def begin(self, place: Place, old: str = "") -> Check | None:
        """Begin to check a place before the answer that replaces `old` is there; the caller closes the check. None if
        no language server runs, the text has no file, or it has over 200,000 characters.
        """
        servers = self._servers()
        if place.file is None or not servers or len(place.text) > LONGEST_TEXT:
            return None
        return _PlaceCheck(servers, self._view, place, place.file, old)


class _PlaceCheck:
    def __init__(
        self, servers: Sequence[WarmServers], view: Callable[[], FileView], place: Place, file: str, old: str
    ) -> None:
        self._servers = servers
        self._view = view
        self._place = place
        self._file = file
        self._old = old
        self._before = self._trial = self._look(old)

    def expect(self, answer: str) -> None:
        # One after the other: a server would not be done with either.
        if answer != self._trial.answer and self._trial.task.done():
            self._trial = self._look(answer)

    async def brings_error(self, answer: str) -> bool:
        unfinished = asyncio.create_task(asyncio.to_thread(self._is_unfinished, answer))
        deadline = time.monotonic() + LATE_SECONDS
        await self._before.wait(deadline, {})
        if answer != self._trial.answer:
            await self._trial.end()
            self.expect(answer)
        await self._trial.wait(deadline, self._before.took)
        if await unfinished:
            return False
        before, after = self._before.said, self._trial.said
        # A linter knows in milliseconds what a checker of types is late with: each is compared with itself.
        texts = {self._file: (self._place.text, self._text(answer))}
        both = [(before[name], after[name]) for name in before.keys() & after.keys()]
        made = (item for old, new in both for item in difference(old, new, texts).new)
        # In other lines there may be errors that only became visible, as what stood before them was no code.
        first, last = self._lines(answer)
        return any(item.severity == "error" and first <= item.line <= last for item in made)

    async def close(self) -> None:
        await self._before.end()
        await self._trial.end()

    def _look(self, answer: str) -> _Trial:
        text = self._text(answer)

        async def work(take: Callable[[FoundDiagnostics], None]) -> None:
            for servers in self._servers:
                await servers.look_at(self._view(), self._file, text, KNOWN_SECONDS, take)

        return _Trial(answer, self._file, work)

    def _text(self, answer: str) -> str:
        text, offset = self._place.text, self._place.offset
        return f"{text[:offset]}{answer}{text[offset + len(self._old) :]}"

    def _lines(self, answer: str) -> tuple[int, int]:
        """Return the first and the last line of an answer, from 1."""
        first = self._place.text.count("\n", 0, self._place.offset) + 1
        return first, first + answer.count("\n")

    def _is_unfinished(self, answer: str) -> bool:
        """Return whether an answer leaves something open: what servers say of its lines then is of no code."""
        first, last = self._lines(answer)
        return any(first <= fault.line <= last + 1 for fault in syntax_errors(self._file, self._text(answer)) or ())


class _Trial:
    """One answer that is looked at; what servers say of it, by their names, comes one after the other."""

    def __init__(
        self, answer: str, file: str, work: Callable[[Callable[[FoundDiagnostics], None]], Coroutine[Any, Any, None]]
    ) -> None:
        self.answer = answer
        self._file = file
        self.said: dict[str, tuple[Diagnostic, ...]] = {}
        self.took: dict[str, float] = {}
        self._began = time.monotonic()
        self._came = asyncio.Event()
        self.task = asyncio.create_task(work(self._take))
        self.task.add_done_callback(lambda _: self._came.set())

    async def wait(self, deadline: float, took: Mapping[str, float]) -> None:
        """Wait for what servers say until `deadline`, a time of `time.monotonic`; not for one that will be late, as it
        `took` so many seconds before. Nothing is known of the servers without `took`.
        """

        def is_due() -> bool:
            missing = [self._began + seconds for name, seconds in took.items() if name not in self.said]
            return not took or any(due <= deadline for due in missing)

        with suppress(TimeoutError):
            async with asyncio.timeout(deadline - time.monotonic()):
                while not self.task.done() and is_due():
                    self._came.clear()
                    await self._came.wait()

    async def end(self) -> None:
        """End the work."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    def _take(self, found: FoundDiagnostics) -> None:
        self.said[found.server] = from_lsp(found.items, self._file, found.text, found.encoding)
        self.took[found.server] = time.monotonic() - self._began
        self._came.set()
