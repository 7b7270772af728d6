"""The terminal output of a run: permanent lines, what is unfinished of an answer and of a command's output, and an
activity line.

The unfinished and the activity are shown on a terminal only. Of a command's output the middle is left out where it is
long, also in a file or a pipe. Not here: what the lines say.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import CodeBlock, Heading, Markdown
from rich.padding import Padding
from rich.segment import Segment
from rich.spinner import Spinner
from rich.syntax import Syntax
from rich.text import Text

from codeagent_lsp.terminal.display import one_line, visible
from codeagent_lsp.workspace.text.visible import cut

TAIL_LINES = 6
INTERVAL = 0.1
FIRST_LINES, LAST_LINES = 10, 20
FEW_LINES = 5
"""No more than these are never left out: to say so would take nearly as much room."""
LINE_WIDTH = 1000
INDENT = 4

LeftOut = Callable[[int], str]
# A line that begins or ends a code block: at least three backticks or tildes.
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")


class CommandOutput:
    """The lines that one command prints. The first 10 are due (to be printed) as soon as they end, of the others only
    the last 20, at the end.
    """

    def __init__(self) -> None:
        self._begun = ""  # the line that has no end yet
        self._lines: list[str] = []  # not taken yet
        self._taken = 0

    @property
    def waiting(self) -> list[str]:
        """The lines that are not due yet, with the unfinished one."""
        return [*self._lines, *filter(None, [_last_written(self._begun)])]

    def feed(self, piece: str) -> None:
        """Add a piece of output, of any length; what a carriage return overwrites in a line is dropped."""
        *ended, self._begun = (self._begun + piece).split("\n")
        self._lines += map(_last_written, ended)

    def take(self) -> list[str]:
        """Return the finished lines that are due, each once; [] if there are none."""
        due = self._lines[: FIRST_LINES - self._taken]
        del self._lines[: len(due)]
        self._taken += len(due)
        return due

    def forget(self) -> None:
        """Drop all but the last 6 finished lines that wait."""
        self._lines = self._lines[-TAIL_LINES:]

    def close(self) -> tuple[list[str], int, list[str]]:
        """Return the rest: the lines that are due, how many are left out after them (0 if only a few would be), and the
        last ones.
        """
        self._lines, self._begun = self.waiting, ""
        due, left_out = self.take(), len(self._lines) - LAST_LINES
        return (due, left_out, self._lines[left_out:]) if left_out > FEW_LINES else (due, 0, self._lines)


class Stage:
    """What a run prints on one console: permanent lines, and at the bottom of a terminal, between `resume` and `pause`,
    the unfinished answer and `activity`.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.activity = ""
        self._blocks = Blocks()
        self._output = CommandOutput()
        self._left_out: LeftOut | None = None
        self._often: tuple[Text, int] | None = None  # a line that may come again, and how often it came
        self._parted = True  # the last line is empty, or there is none
        self._began = time.monotonic()
        self._spinner = Spinner("dots", style="cyan")
        self._live: Live | None = None
        self._ticking: asyncio.Task[None] | None = None

    @property
    def seconds(self) -> float:
        """The seconds since the stage was created, by a clock that never goes back."""
        return time.monotonic() - self._began

    def print(self, what: RenderableType) -> None:
        """Print permanent lines, after the rest of an answer and of a command's output."""
        self.flush()
        self._print(what)

    def print_often(self, line: Text) -> None:
        """Print a line; several equal ones in a row become one, with their number. It appears with the next output."""
        same, count = self._often or (None, 0)
        if line != same:
            self.flush()
            count = 0
        self._often = line, count + 1
        self._parted = False

    def print_output(self, lines: Sequence[str]) -> None:
        """Print all of these lines, given without their ends, in the form of a command's output."""
        self.flush()
        self._print_output(lines)

    def gap(self) -> None:
        """Print an empty line, unless there is one already."""
        self.flush()
        self._part()

    def write(self, piece: str) -> None:
        """Add a piece of an answer in Markdown, of any length; each block, such as a paragraph or a list, is printed
        once it is complete.
        """
        for block in self._blocks.feed(piece):
            self._print_block(block)

    def end_answer(self) -> None:
        """Print the rest of the answer, if there is any; what is written afterwards is another one."""
        for block in self._blocks.close():
            self._print_block(block)

    def output(self, piece: str, left_out: LeftOut | None = None) -> None:
        """Add a piece of what a command prints. The first lines are printed as they end, the last ones by `flush`,
        below the line that `left_out` makes of the number of those between. Without `left_out` the last lines are only
        shown while they are new, and never printed.
        """
        self._output.feed(piece)
        self._left_out = left_out
        if left_out is None:
            self._output.forget()
        elif not self._blocks.rest:  # else it would stand within a sentence
            self._print_output(self._output.take())

    def flush(self) -> None:
        """Print the rest of the answer and of a command's output, and the line that `print_often` holds."""
        self.end_answer()
        self._print_often()
        due, left_out, last = self._output.close()
        self._output = CommandOutput()
        if self._left_out is not None:
            self._print_output([*due, *([self._left_out(left_out)] if left_out else ()), *last])

    def resume(self) -> None:
        """Show the activity line, on a terminal only, with a task that updates it until `pause`. Needs a running event
        loop.
        """
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
        """Print the rest of what is unfinished and hide the activity line, so that the user can type; twice does no
        harm.
        """
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
        self._part()
        if self.console.is_terminal:
            self._print(PlainMarkdown(visible(block)))
        else:
            self._print(Text(visible(block).rstrip()))
        self._part()

    def _print_output(self, lines: Sequence[str]) -> None:
        """Print lines of a command's output, below its call and indented."""
        if not lines:
            return
        if self.console.is_terminal:
            self._print(Padding(Text("\n".join(map(_cut, lines)), style="dim"), (0, 0, 0, INDENT)))
        else:
            self._print(Text("\n".join(f"{'':{INDENT}}{_cut(line)}".rstrip() for line in lines)))

    def _print_often(self) -> None:
        if self._often is not None:
            shown, self._often = _with_count(*self._often), None
            self._print(shown)

    def _part(self) -> None:
        if not self._parted:
            self._print(Text())

    def _print(self, what: RenderableType) -> None:
        self._print_often()
        if self._live is not None:
            self._live.refresh()  # the console repeats below what is printed what it showed last
        self._parted = isinstance(what, Text) and (not what.plain or what.plain.endswith("\n"))
        self.console.print(what, soft_wrap=not self.console.is_terminal)

    def _bottom(self) -> RenderableType:
        words, seconds = Text(one_line(self.activity), style="dim"), f" · {int(self.seconds)} s"
        words.truncate(max(1, self.console.width - len(seconds) - 2), overflow="ellipsis")
        self._spinner.update(text=words.append(seconds))
        answer = Text(("" if self._parted else "\n") + "\n".join(visible(self._blocks.rest).split("\n")[-TAIL_LINES:]))
        output = Text(
            "\n".join(f"{'':{INDENT}}{_cut(line)}" for line in self._output.waiting[-TAIL_LINES:]), style="dim"
        )
        output.no_wrap, output.overflow = True, "ellipsis"
        often = _with_count(*self._often) if self._often else Text()
        return Group(*(part for part in (often, answer, output) if part.plain.strip()), self._spinner)


def _with_count(line: Text, count: int) -> Text:
    return line.copy().append(f" ×{count}", style="dim") if count > 1 else line


def _last_written(line: str) -> str:
    """Return what is seen of a line that was rewritten from its beginning, as progress bars do."""
    return line.rstrip("\r").rpartition("\r")[2]


def _cut(line: str) -> str:
    return cut(visible(line), LINE_WIDTH)


def console(width: int | None = None) -> Console:
    """Return a new console on stdout, without markup; characters outside its encoding become question marks. Changes
    stdout and stderr for that.
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    return Console(width=width, highlight=False, markup=False, emoji=False)


# Markdown answers as they stream: splitting into complete blocks, and the rendering of a block.


class Blocks:
    """Splits one streamed Markdown text into complete blocks. `rest` is the unfinished block."""

    def __init__(self) -> None:
        self.rest = ""

    def feed(self, piece: str) -> list[str]:
        """Add a piece, of any length, and return the blocks that it completes, in order; [] if it completes none."""
        self.rest += piece
        blocks = []
        while (end := _end_of_block(self.rest)) is not None:
            block, self.rest = self.rest[:end], self.rest[end:].lstrip("\n")
            if block.strip():
                blocks.append(block)
        return blocks

    def close(self) -> list[str]:
        """Return the rest as the last block; [] if it is blank. The next piece begins a new text."""
        block, self.rest = self.rest, ""
        return [block] if block.strip() else []


class _LeftHeading(Heading):
    """A left-aligned heading."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.assemble(self.text, style="bold cyan")


class _BareCode(CodeBlock):
    """A code block in the terminal's own colours, indented by two columns, without a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Padding(Syntax(code, self.lexer_name, theme="ansi_dark", word_wrap=True), (0, 0, 0, 2))


class PlainMarkdown(Markdown):
    """Markdown (Rich) for streamed text: nothing centred, no boxes, nothing hidden."""

    elements: ClassVar[dict[str, Any]] = {
        **Markdown.elements,
        "heading_open": _LeftHeading,
        "fence": _BareCode,
        "code_block": _BareCode,
    }

    def __init__(self, markup: str) -> None:
        super().__init__("", hyperlinks=False)
        parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
        parser.disable("reference")  # what is defined in one block would be used in another
        self.parsed = parser.parse(markup)
        for token in self.parsed:
            if token.children:
                token.children = [*_with_targets(token.children)]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        begun = False
        for piece in super().__rich_console__(console, options):
            begun = begun or not isinstance(piece, Segment) or piece.text != "\n"
            if begun:  # lists would begin with an empty line
                yield piece


def _with_targets(inline: Iterable[Token]) -> Iterator[Token]:
    """Yield the tokens of a paragraph with the target of each link and picture as text behind its words."""
    target = words = ""
    for token in inline:
        token.content = visible(token.content)  # entities stand for any character
        if token.type == "link_open":
            target, words = str(token.attrs.get("href", "")), ""
        elif token.type == "link_close":
            if words not in (target, target.removeprefix("mailto:")):
                yield Token("text", "", 0, content=f" ({visible(target)})")
        elif token.type == "image":
            words += token.content
            yield Token("text", "", 0, content=f"{token.content} ({visible(str(token.attrs.get('src', '')))})".lstrip())
        else:
            words += token.content
            yield token


def _end_of_block(text: str) -> int | None:
    """Return the end of the first block, after an empty line or a closing fence; None if it is unfinished."""
    fence, place = "", 0
    while (end := text.find("\n", place)) >= 0:
        line = text[place:end]
        match = _FENCE.match(line)
        if fence:
            # The end may have more of the same signs than the beginning, but nothing behind them.
            if match and match[1].startswith(fence) and not line.strip().strip(fence[0]):
                return end + 1
        elif match:
            # A code block ends the paragraph before it without an empty line.
            if place:
                return place
            fence = match[1]
        elif not line.strip() and place:
            return end + 1
        place = end + 1
    return None
