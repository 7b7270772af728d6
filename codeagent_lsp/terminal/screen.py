"""The output of a run for a person: the head, the events, prompts with a diff, the outcome.

Not here: how events become lines (`story.py`), what a typed answer means (`questions.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from codeagent_lsp.terminal.diffview import diff_lines, is_diff
from codeagent_lsp.terminal.questions import Keyboard, accepted, picked, without_review
from codeagent_lsp.terminal.safe import one_line, visible
from codeagent_lsp.terminal.stage import Stage
from codeagent_lsp.terminal.story import Story
from codeagent_lsp.terminal.summary import Summary, ending
from codeagent_lsp.texts import text

DETAIL_LINES = 40
_ASKING = ("approval_requested", "question_asked")


class Screen:
    """The `Face` for a person. `accept_all` approves every prompt."""

    def __init__(self, stage: Stage, keyboard: Keyboard, language: str, *, accept_all: bool = False) -> None:
        self.summary = Summary()
        self._stage = stage
        self._keyboard = keyboard
        self._language = language
        self._accept_all = accept_all
        self._story = Story(stage, language)
        self._about: tuple[str, str] = ("", "")

    def open(self, title: str, place: str) -> None:
        """Print the head of a run."""
        self._stage.print(Text.assemble(("● ", "cyan"), (one_line(title), "bold")))
        self._stage.print(Text(f"  {visible(place)}\n", style="dim"))
        self._stage.activity = text("progress.thinking", self._language)
        self._stage.resume()

    def close(self, note: str = "") -> None:
        """Print the outcome. `note` is the reason if there was no proper end."""
        self._stage.pause()
        for line in ending(self.summary, note, self._stage.seconds, self._language):
            self._stage.print(line)

    def event(self, event: Mapping[str, Any]) -> None:
        """See `client.Face`."""
        self.summary = self.summary.after(event)
        if event["type"] in _ASKING:
            self._about = (event["title"], event.get("detail", ""))
        self._story.tell(event)

    def message(self, words: str) -> None:
        """See `client.Face`."""
        self._stage.print(Text.assemble(("! ", "yellow"), visible(words)))

    async def choose(self, title: str, choices: tuple[str, ...]) -> str | None:
        """See `client.Face`."""
        self._stage.pause()
        try:
            offered = self._show_question(title, choices)
            if self._accept_all:
                answer = accepted(choices)
                self._stage.print(Text(f"  → {answer}\n", style="dim"))
                return answer
            if not self._keyboard.present:
                self._nobody()
                return None
            return await self._pick(offered)
        finally:
            self._stage.resume()

    async def ask(self, title: str, detail: str, *, secret: bool) -> str | None:
        """See `client.Face`."""
        self._stage.pause()
        try:
            self._stage.print(Text.assemble(("? ", "cyan"), (visible(title), "bold")))
            if detail:
                self._stage.print(Text(visible(detail)))
            if not self._keyboard.present:
                self._nobody()
                return None
            self._stage.console.print("> ", end="", style="cyan")
            return await (self._keyboard.secret_line() if secret else self._keyboard.line())
        finally:
            self._stage.resume()

    def _show_question(self, title: str, choices: tuple[str, ...]) -> tuple[str, ...]:
        """Print a question with its detail and return the choices to offer."""
        subject, detail = self._about
        if one_line(subject)[:100] != one_line(title)[:100]:
            detail = ""
        if is_diff(detail):
            self._stage.print(Rule(style="dim"))
            for line in diff_lines(detail, self._language):
                self._stage.print(line)
            choices = without_review(choices)
        elif detail:
            lines = visible(detail).split("\n")
            self._stage.print(Padding(Text("\n".join(lines[:DETAIL_LINES]), style="dim"), (0, 0, 0, 2)))
        self._stage.print(Text.assemble(("\n? ", "cyan"), (visible(title), "bold")))
        for number, choice in enumerate(choices, 1):
            self._stage.print(Text.assemble((f"  {number} ", "cyan bold"), visible(choice)))
        return choices

    async def _pick(self, choices: tuple[str, ...]) -> str | None:
        console = self._stage.console
        while True:
            console.print(f"{text('terminal.choose', self._language)}: ", end="", style="cyan")
            try:
                line = await self._keyboard.line()
            except asyncio.CancelledError:
                console.print()
                raise
            chosen = None if line is None else picked(line, choices)
            if line is None or chosen is not None:
                console.print()
                return chosen
            self._stage.print(Text(text("terminal.choose_again", self._language, count=len(choices)), style="yellow"))

    def _nobody(self) -> None:
        self.summary = self.summary.unasked()
        self._stage.print(Text(f"  {text('terminal.unasked', self._language)}\n", style="yellow"))
