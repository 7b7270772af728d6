"""The terminal output of a run: permanent lines, the unfinished block of an answer, and an activity line.

The last two exist only on a terminal. Not here: what the lines say.
"""

from __future__ import annotations

import asyncio
import sys
import time

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.spinner import Spinner
from rich.text import Text

from codeagent_lsp.terminal.markdown import Blocks, PlainMarkdown
from codeagent_lsp.terminal.safe import one_line, visible

TAIL_LINES = 6
INTERVAL = 0.1


class Stage:
    """The output on one console. `activity` is shown at the bottom while the stage is not paused."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.activity = ""
        self._blocks = Blocks()
        self._began = time.monotonic()
        self._spinner = Spinner("dots", style="cyan")
        self._live: Live | None = None
        self._ticking: asyncio.Task[None] | None = None

    @property
    def seconds(self) -> float:
        """Return the seconds since the stage was created."""
        return time.monotonic() - self._began

    def print(self, what: RenderableType) -> None:
        """Print permanent lines, after finishing an answer in progress."""
        self.flush()
        self._print(what)

    def write(self, piece: str) -> None:
        """Add a piece of a Markdown answer."""
        for block in self._blocks.feed(visible(piece)):
            self._print_block(block)

    def flush(self) -> None:
        """Print the rest of the answer."""
        for block in self._blocks.close():
            self._print_block(block)

    def resume(self) -> None:
        """Show the activity line."""
        if self.console.is_terminal and not self.console.is_dumb_terminal and self._live is None:
            self._live = Live(
                get_renderable=self._bottom,
                console=self.console,
                transient=True,
                auto_refresh=False,  # its thread would print between our lines
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start(refresh=True)
            self._ticking = asyncio.get_running_loop().create_task(self._tick(self._live))

    def pause(self) -> None:
        """Hide the activity line, so that the user can type."""
        self.flush()
        live, self._live = self._live, None
        if live is not None:
            live.stop()
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None

    async def _tick(self, live: Live) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            live.refresh()

    def _print_block(self, block: str) -> None:
        """Print a block, rendered for a terminal, unchanged for a file or a pipe."""
        if self.console.is_terminal:
            self._print(Padding(PlainMarkdown(block), (0, 0, 1, 0)))
        else:
            self._print(Text(f"{block.rstrip()}\n"))

    def _print(self, what: RenderableType) -> None:
        if self._live is not None:
            self._live.refresh()  # the console repeats below what is printed what it showed last
        self.console.print(what, soft_wrap=not self.console.is_terminal)

    def _bottom(self) -> RenderableType:
        words = f"{one_line(self.activity)} · {int(self.seconds)} s"
        self._spinner.update(text=Text(words, style="dim", no_wrap=True, overflow="ellipsis"))
        tail = Text("\n".join(self._blocks.rest.split("\n")[-TAIL_LINES:]))
        return Group(tail, self._spinner) if tail.plain.strip() else self._spinner


def console(width: int | None = None) -> Console:
    """Return a console on stdout; characters outside its encoding become question marks."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    return Console(width=width, highlight=False, markup=False, emoji=False)
