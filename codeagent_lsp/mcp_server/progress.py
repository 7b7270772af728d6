"""Progress notifications of a call, with its output, for a client that gave a progress token (MCP).

Text is sent in pieces of whole lines, a few times a second; a client that does not read loses the oldest, and delays
nothing. Not here: what prints (`sandbox.py`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from codeagent_lsp.session.run_output import OutputStream
from codeagent_lsp.shadow.shell import OnOutput, no_output

MOST_WAITING = 64
DRAIN_SECONDS = 2.0
"""Most seconds that the end of a call waits for a client to take the rest."""

Report = Callable[[float, float | None, str | None], Awaitable[None]]


def report_of(context: Any) -> Report | None:
    """Return the function that reports progress of a request to the client, by the library's context of the request;
    None if the client did not ask for it.
    """
    wanted = context.meta is not None and "progress_token" in context.meta
    return context.session.report_progress if wanted else None


@dataclass(frozen=True, slots=True)
class Listener:
    """Functions that receive the output of a running call, by stream and text, and lines about its status."""

    output: OnOutput = no_output
    note: Callable[[str], None] = lambda line: None


SILENCE = Listener()


@asynccontextmanager
async def telling(report: Report | None) -> AsyncGenerator[Listener, None]:
    """Yield a listener that sends what it receives as progress with increasing numbers, and at the end sends the rest
    for at most 2 s; one that ignores everything without `report`.
    """
    if report is None:
        yield SILENCE
        return
    teller = _Teller(report)
    stream = OutputStream(lambda _, text: teller.tell(text))
    work = asyncio.ensure_future(teller.work())
    try:
        yield Listener(stream.write, teller.tell)
        stream.close()
        teller.end()
        await asyncio.wait([work], timeout=DRAIN_SECONDS)
    finally:
        stream.close()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


class _Teller:
    def __init__(self, report: Report) -> None:
        self._report = report
        self._waiting: deque[str] = deque(maxlen=MOST_WAITING)
        self._news = asyncio.Event()
        self._ended = False
        self._count = 0

    def tell(self, text: str) -> None:
        self._waiting.append(text)
        self._news.set()

    def end(self) -> None:
        self._ended = True
        self._news.set()

    async def work(self) -> None:
        while True:
            while self._waiting:
                self._count += 1
                await self._report(float(self._count), None, self._waiting.popleft())
            if self._ended:
                return
            self._news.clear()
            await self._news.wait()
