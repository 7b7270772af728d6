"""What fills in the middle of a text: the request, and the port that every way of asking a model implements.

Values only. Not here: what goes into a request (`inline/`), how a server is asked (`ways.py`, `open_filler.py`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of another place of the workspace that the model should know: its path, as shown, and its text."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class FillRequest:
    """The text before and after the cursor of the file `path`, and pieces of other places, the most telling last.

    `comment` begins a line of comment in the file's language, for servers that take pieces in no other way; `stop` are
    texts at which the model ends. `sample` 0 is the most likely text, other numbers are other ones.
    """

    prefix: str
    suffix: str
    path: str = ""
    pieces: tuple[Piece, ...] = ()
    comment: str = "#"
    max_tokens: int = 128
    stop: tuple[str, ...] = ()
    sample: int = 0

    @property
    def temperature(self) -> float:
        """How far from the most likely text the model may go."""
        return 0.6 if self.sample else 0.0


class Filler(Protocol):
    """A model that fills in the middle. `slow` is whether it runs on this machine's processor."""

    @property
    def name(self) -> str:
        """The name of the model."""

    @property
    def slow(self) -> bool: ...

    def stream(self, request: FillRequest) -> AsyncGenerator[str, None]:
        """Yield the text that belongs between prefix and suffix, as it comes. Raises ModelError.

        To end it early, close the generator: the server then stops.
        """

    async def close(self) -> None:
        """Close the connections, and the child process if nobody else uses it."""
