"""What a transport learns about a server besides its messages: noise, the end of its line, its last words.

Written by transports, read when a failure must be named. Not here: the failures (`errors.py`).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from codeagent_lsp.errors import UserError
from codeagent_lsp.workspace.text.visible import one_line

MAX_MESSAGE = 8 << 20
"""Bytes of one message; larger ones are not read."""
MAX_SKIPPED = 256 << 20
"""Bytes of a message that is passed over before its server is given up."""
MAX_NOISE = 100
"""Messages in a row that are none before a server is given up."""

SAMPLE = 200
TAIL = 4096


class Unreadable(ValueError):
    """A server whose messages cannot be told apart any more."""


@dataclass(slots=True)
class Health:
    """`noise` counts what was no message since the last good one, `garbled` in all; `status` is the last HTTP status
    that was a refusal, 0 for none; `login` is why a login did not work; `ending` says how its process ended; `gone` is
    set when nothing more can come.
    """

    noise: int = 0
    garbled: int = 0
    sample: str = ""
    status: int = 0
    ending: str = ""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    problem: BaseException | None = None
    login: UserError | None = None
    stderr: bytes = b""

    def good(self) -> None:
        """A message came."""
        self.noise = 0

    def garbage(self, data: bytes) -> None:
        """Something else came. Unreadable when that is all that comes."""
        self.noise += 1
        self.garbled += 1
        if data.strip():
            self.sample = one_line(data[: 2 * SAMPLE].decode("utf-8", "replace"), SAMPLE)
        if self.noise >= MAX_NOISE:
            raise Unreadable(f"{self.noise} lines in a row that are no messages, such as: {self.sample}")

    def printed(self, data: bytes) -> None:
        """It wrote to its standard error."""
        self.stderr = (self.stderr + data)[-TAIL:]

    @property
    def last_words(self) -> str:
        """The last lines of its standard error, on one line."""
        lines = [line for line in self.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        return one_line(" | ".join(lines[-3:]), 2 * SAMPLE)
