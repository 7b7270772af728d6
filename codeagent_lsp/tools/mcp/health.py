"""Facts that a transport collects about a server besides its messages: noise, exit, stderr.

Written by transports, read to explain a failure. Not here: the failures (`errors.py`).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from codeagent_lsp.errors import UserError
from codeagent_lsp.workspace.text.visible import one_line

MAX_MESSAGE = 8 << 20
"""Most bytes of one message; larger ones are not read."""
MAX_SKIPPED = 256 << 20
"""Most bytes of an oversized message to skip before the server is given up."""
MAX_NOISE = 100
"""Number of consecutive invalid messages after which a server is given up."""

SAMPLE = 200
TAIL = 4096


class Unreadable(ValueError):
    """Raised when a server's messages can no longer be separated."""


@dataclass(slots=True)
class Health:
    """Facts about one connection. `noise` counts invalid messages since the last valid one, `garbled` all of them;
    `status` is the last HTTP error status, 0 for none; `login` is the reason why a login failed; `refused` is what a
    certificate or the proxy refused; `ending` is how its process ended; `gone` is set when nothing more can arrive.
    """

    noise: int = 0
    garbled: int = 0
    sample: str = ""
    status: int = 0
    ending: str = ""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    problem: BaseException | None = None
    login: UserError | None = None
    refused: UserError | None = None
    stderr: bytes = b""

    def good(self) -> None:
        """Record a valid message."""
        self.noise = 0

    def garbage(self, data: bytes) -> None:
        """Record an invalid message. Unreadable after MAX_NOISE in a row."""
        self.noise += 1
        self.garbled += 1
        if data.strip():
            self.sample = one_line(data[: 2 * SAMPLE].decode("utf-8", "replace"), SAMPLE)
        if self.noise >= MAX_NOISE:
            raise Unreadable(f"{self.noise} lines in a row that are no messages, such as: {self.sample}")

    def printed(self, data: bytes) -> None:
        """Record output on standard error; the last TAIL bytes are kept."""
        self.stderr = (self.stderr + data)[-TAIL:]

    @property
    def last_words(self) -> str:
        """Return the last lines of its standard error, on one line."""
        lines = [line for line in self.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        return one_line(" | ".join(lines[-3:]), 2 * SAMPLE)
