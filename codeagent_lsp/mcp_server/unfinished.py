"""Bounds HTTP connections that never send a whole request head, so that they keep nobody else out.

Not here: who may make requests (`transports.py`).
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 5.0
MAX_UNFINISHED = 32


class PatientProtocol(H11Protocol):
    """A connection that is closed unless a request head is complete in time; of too many, the oldest gives way."""

    unfinished: dict[PatientProtocol, asyncio.TimerHandle]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self.connections.discard(self)  # only those that asked for something count for the limit
        while len(self.unfinished) >= MAX_UNFINISHED:
            next(iter(self.unfinished))._give_up()
        self.unfinished[self] = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Parse more of the request; a complete head ends the wait."""
        super().data_received(data)
        if self.cycle is not None:
            self._finished()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._finished()
        super().connection_lost(exc)

    def _finished(self) -> None:
        if (timer := self.unfinished.pop(self, None)) is not None:
            timer.cancel()
            self.connections.add(self)

    def _give_up(self) -> None:
        if (timer := self.unfinished.pop(self, None)) is not None:
            timer.cancel()
        self.transport.abort()


def patient_protocol() -> type[Any]:
    """Return the protocol of one server, with its own list of unfinished connections."""
    return type("Patient", (PatientProtocol,), {"unfinished": {}})
