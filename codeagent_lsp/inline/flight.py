"""One request to the model on its way: what has come so far, and waiting for it from more than one place.

Who types along what comes joins the request that is on its way; who types something else ends it.
Not here: when to ask, and remembering answers (`completer.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from codeagent_lsp.errors import ModelError
from codeagent_lsp.inline.cut import Cut, cut
from codeagent_lsp.inline.place import Place
from codeagent_lsp.inline.suggestions import rest_of, typed_since

LINGER_SECONDS = 0.5
"""How long a request goes on that nobody waits for: the next key comes within that, and may join it."""


class Flight:
    """A request for `place`. `texts` is the stream of the answer; `failed` gets the error if it breaks."""

    def __init__(
        self,
        place: Place,
        texts: AsyncGenerator[str, None],
        max_lines: int,
        done: Callable[[Place, str], None],
        failed: Callable[[ModelError], None],
    ) -> None:
        self.place = place
        self.answer = ""
        self._max_lines = max_lines
        self._done = done
        self._failed = failed
        self._waiting = 0
        self._grown = asyncio.Event()
        self._task = asyncio.create_task(self._fly(texts))
        self._linger: asyncio.TimerHandle | None = None

    @property
    def over(self) -> bool:
        """Whether the answer is complete or has failed."""
        return self._task.done()

    def fits(self, place: Place) -> bool:
        """Return whether what was typed since agrees with what has come so far."""
        typed = typed_since(place, self.place)
        return typed is not None and (self.answer.startswith(typed) or typed.startswith(self.answer))

    async def wait(self, place: Place) -> str | None:
        """Return the answer for a place that fits, once it is there; None as soon as it cannot be one."""
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
                self._linger = asyncio.get_running_loop().call_later(LINGER_SECONDS, self.end)

    def end(self) -> None:
        """End the request at once; the server stops."""
        self._stop_lingering()
        self._task.cancel()

    async def ended(self) -> None:
        """End the request and wait until nothing of it is left."""
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

    async def _fly(self, texts: AsyncGenerator[str, None]) -> None:
        received = ""
        final = Cut("", final=False)
        try:
            async with aclosing(texts):
                async for text in texts:
                    received += text
                    final = cut(self.place, received, self._max_lines)
                    self._grow(final.text)
                    if final.final:
                        break
        except ModelError as error:
            self._failed(error)
            return
        self._grow(cut(self.place, f"{received}\n", self._max_lines).text if not final.final else final.text)
        self._done(self.place, self.answer)

    def _grow(self, answer: str) -> None:
        self.answer = answer
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()
