"""What the fake model servers share: a script of replies, HTTP on loopback, and refusals in words.

A fake refuses what the real server refuses by its documentation. Not here: the formats (the other `fake_*` modules).
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from tests.faults import model_server as rig
from tests.faults.model_server import Asked, Connection

Answer = tuple[int, str, bytes]
"""Status, content type and body."""


@dataclass(frozen=True)
class Said:
    """One reply of the script: text, reasoning, calls as name and arguments."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


class Refused(Exception):
    """The request is not as the documentation says."""

    def __init__(self, reason: str, status: int = 400, param: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.param = param


class FakeServer:
    """Replies with its script, "Done." after its end, and to the question of a probe. `bodies` are the requests."""

    def __init__(self, *script: Said) -> None:
        self.bodies: list[Any] = []
        self.refusals: list[str] = []
        self.headers: dict[str, str] = {}  # of answers that are errors
        self._script = list(script)

    async def play(self, connection: Connection) -> None:
        """Answer one request."""
        status, kind, body = self._safely(connection.asked)
        headers = self.headers if status >= 400 else {}
        await connection.send(rig.head(status, kind, Content_Length=str(len(body)), **headers) + body)

    def answer(self, asked: Asked) -> Answer:
        """Return the answer to one request, raise Refused."""
        raise NotImplementedError

    def refusal(self, error: Refused) -> Answer:
        """Return the answer to a request that is refused."""
        return error.status, "application/json", json.dumps({"error": {"message": str(error)}}).encode()

    def play_next(self, *script: Said) -> None:
        """Begin with this script."""
        self._script = list(script)

    def next_reply(self, tools: list[str]) -> Said:
        """Return the next reply of the script."""
        if tools == ["get_weather"]:
            return Said(calls=(("get_weather", {"city": "Paris"}),))
        return self._script.pop(0) if self._script else Said("Done.")

    def _safely(self, asked: Asked) -> Answer:
        try:
            return self.answer(asked)
        except Refused as error:
            if error.status != 404:  # asking what kind of server it is leads there too
                self.refusals.append(str(error))
            return self.refusal(error)


@asynccontextmanager
async def serving(fake: FakeServer) -> AsyncGenerator[str, None]:
    """The address of a fake that runs in this event loop."""
    async with rig.model_server(fake.play, get=fake.play) as server:
        yield server.url


@contextmanager
def serving_aside(fake: FakeServer) -> Iterator[str]:
    """The address of a fake that runs in a thread, for tests that wait without an event loop."""
    ready, done = threading.Event(), threading.Event()
    found: list[str] = []

    async def serve() -> None:
        async with serving(fake) as url:
            found.append(url)
            ready.set()
            await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait(10)
    try:
        yield found[0]
    finally:
        done.set()
        thread.join()


def only(value: Mapping[str, Any], allowed: str, where: str) -> None:
    """Refuse a name that is not among those of `allowed`."""
    for name in value:
        if name not in allowed.split():
            raise Refused(f"Invalid JSON payload received. Unknown name \"{name}\" at '{where}': Cannot find field.")


def need(condition: object, reason: str) -> None:
    """Refuse the request unless the condition holds."""
    if not condition:
        raise Refused(reason)


def shared(one: str, two: str) -> int:
    """The length of the common beginning of two texts."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == two[:middle] else (low, middle - 1)
    return low


def halves(text: str) -> list[str]:
    """A text in two pieces, as it streams."""
    return [piece for piece in (text[: len(text) // 2], text[len(text) // 2 :]) if piece]
