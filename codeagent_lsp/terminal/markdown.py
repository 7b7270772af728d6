"""Markdown answers as they stream: splitting into complete blocks, and the rendering of a block.

A block comes from a model, so nothing in it is hidden from the reader: links show their targets and are no terminal
links (OSC 8), HTML is shown as it was written, and unseen characters for which entities stand are shown by number.
Not here: the control characters of the text itself (`safe.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.padding import Padding
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text

from codeagent_lsp.terminal.safe import visible

_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")


class Blocks:
    """Splits streamed Markdown into complete blocks. `rest` is the unfinished block."""

    def __init__(self) -> None:
        self.rest = ""

    def feed(self, piece: str) -> list[str]:
        """Return the blocks that `piece` completes."""
        self.rest += piece
        blocks = []
        while (end := _end_of_block(self.rest)) is not None:
            block, self.rest = self.rest[:end], self.rest[end:].lstrip("\n")
            if block.strip():
                blocks.append(block)
        return blocks

    def close(self) -> list[str]:
        """Return the rest as the last block, if there is any."""
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
    """Markdown for streamed text: nothing centred, no boxes, nothing hidden."""

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
                token.children = [*_shown(token.children)]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        begun = False
        for piece in super().__rich_console__(console, options):
            begun = begun or not isinstance(piece, Segment) or piece.text != "\n"
            if begun:  # lists would begin with an empty line
                yield piece


def _shown(inline: Iterable[Token]) -> Iterator[Token]:
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
            if match and match[1].startswith(fence) and not line.strip().strip(fence[0]):
                return end + 1
        elif match:
            if place:
                return place
            fence = match[1]
        elif not line.strip() and place:
            return end + 1
        place = end + 1
    return None
