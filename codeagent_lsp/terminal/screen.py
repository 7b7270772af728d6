"""The output of a run for a person: the head, the events, prompts with a diff, the outcome, what is on the disk.

Not here: how events become lines (`story.py`), what a typed answer means (`questions.py`).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.rule import Rule
from rich.text import Text

from codeagent_lsp.lsp_client.disk import FileWrite
from codeagent_lsp.terminal.display import one_line, visible
from codeagent_lsp.terminal.questions import (
    Decision,
    Keyboard,
    Part,
    accepted,
    decision_of,
    parts_of,
    picked,
    without_review,
)
from codeagent_lsp.terminal.stage import Stage
from codeagent_lsp.terminal.story import ASKING, Story
from codeagent_lsp.terminal.summary import Summary, account, ending, place_of
from codeagent_lsp.texts import text

DETAIL_LINES = 40
_QUESTION = "question_asked"
MAX_LINES = 400
TAB_WIDTH = 4

# As an approval is told: the tool, its arguments as JSON, and paragraphs about it.
_CALL = re.compile(r"\w+\n(\{\n.*?\n\}|\{\})\s*(.*)", re.DOTALL)
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_DEV_NULL = "/dev/null"


class Screen:
    """The `Face` for a person at a terminal. `folder` is that of the run, None for the current one; `accept_all`
    approves every prompt.
    """

    def __init__(
        self, stage: Stage, keyboard: Keyboard, language: str, folder: Path | None = None, *, accept_all: bool = False
    ) -> None:
        self.summary = Summary()
        self._stage = stage
        self._keyboard = keyboard
        self._language = language
        self._accept_all = accept_all
        self._folder = folder or Path.cwd()
        self._story = Story(stage, language, place_of(self._folder))
        self._about: tuple[str, str, str] = ("", "", "")  # type, title and detail of the last event that asks

    def open(self, title: str, place: str) -> None:
        """Print the head of a run with its title and the folder `place`, and begin to show the activity line. Needs a
        running event loop.
        """
        self._stage.print(Text.assemble(("● ", "cyan"), (one_line(title), "bold")))
        self._stage.print(Text(f"  {visible(place)}\n", style="dim"))
        self._stage.activity = text("progress.starting", self._language)
        self._stage.resume()

    def close(self, note: str = "", written: Sequence[FileWrite] = ()) -> None:
        """Stop the activity line, and print the outcome and what was `written`, as net changes. `note` is the reason if
        there was no proper end.
        """
        self._story.end()
        self._stage.pause()
        self._stage.gap()
        end = ending(self.summary, note, self._stage.seconds, self._language)
        for line in (*end, *account(self.summary, written, self._folder, self._language)):
            self._stage.print(line)

    def event(self, event: Mapping[str, Any]) -> None:
        """Show an event of the run, in the form of the protocol, and add it to `summary`."""
        self.summary = self.summary.after(event)
        if event["type"] in ASKING:
            self._about = (event["type"], event["title"], event.get("detail", ""))
        self._story.tell(event)

    def message(self, words: str) -> None:
        """Print a warning or an error, made safe for a terminal, that is no event of the run."""
        self._stage.print(Text.assemble(("! ", "yellow"), visible(words)))

    async def choose(self, title: str, choices: tuple[str, ...]) -> str | None:
        """Show the question and return the choice that the user types; with `--yes` the one that accepts, without a
        keyboard None.
        """
        self._stage.pause()
        self._keyboard.forget()
        try:
            kind, detail = self._find_question(title)
            if is_diff(detail):
                self._show_diff(detail)
                choices = without_review(choices)
                if self._keyboard.present and len(parts_of(detail)) > 1:
                    choices = (*choices, text("choice.singly", self._language))
            elif detail and not self._accept_all:
                self._show_detail(title, detail)
            self._show_title(title)
            if self._accept_all:
                answer = accepted(choices)
                self._stage.print(Text(f"  → {visible(answer or '–')}\n", style="dim"))
                return answer
            for number, choice in enumerate(choices, 1):
                self._stage.print(Text.assemble((f"  {number} ", "cyan bold"), visible(choice)))
            if self._keyboard.present:
                return await self._pick(choices)
            self._nobody("unasked" if is_diff(detail) else "unanswered" if kind == _QUESTION else "not_allowed")
            return None
        finally:
            self._stage.resume()

    async def decide(self, diff: str) -> Decision | None:
        """Show the changes of a diff one by one and return what the user decides about each; None if they have not
        decided about all.
        """
        self._stage.pause()
        try:
            keys = ("apply", "discard", "later", "apply_rest", "discard_rest")
            choices = tuple(text(f"choice.{key}", self._language) for key in keys)
            parts, chosen = parts_of(diff), dict[str, list[Part]]({"apply": [], "discard": [], "later": []})
            rest = ""
            for number, part in enumerate(parts, 1):
                if not rest:
                    self._show_diff(part.diff)
                    self._show_title(text("terminal.part", self._language, number=number, count=len(parts)))
                    self._stage.print(Text("  ").append_text(_in_a_line(choices)))
                    answer = await self._pick(choices)
                    if answer is None:
                        return None
                    key = keys[choices.index(answer)]
                    rest = key.removesuffix("_rest") if key.endswith("_rest") else ""
                chosen[rest or key].append(part)
            if chosen["later"]:
                self.summary = self.summary.left_for_later()
            return decision_of(parts, chosen["apply"], chosen["discard"])
        finally:
            self._stage.resume()

    async def ask(self, title: str, detail: str, *, secret: bool) -> str | None:
        """Show the question and return the line that the user types; None without a keyboard. A `secret` is not
        shown.
        """
        self._stage.pause()
        try:
            self._show_title(title)
            if detail and detail.strip() != self._story.answer.strip():
                self._stage.print(Text(visible(detail)))
            if not self._keyboard.present:
                self._nobody("unanswered")
                return None
            self._stage.console.print("> ", end="", style="cyan")
            return await (self._keyboard.secret_line() if secret else self._keyboard.line())
        finally:
            self._stage.resume()

    def _find_question(self, title: str) -> tuple[str, str]:
        """Return the type of the event that told of a question, and its detail; '' where it was another one."""
        kind, subject, detail = self._about
        # Prompts come with a title in one line, maybe cut.
        return (kind, detail) if one_line(subject)[:100] == one_line(title)[:100] else ("", "")

    def _show_title(self, title: str) -> None:
        self._stage.gap()
        self._stage.print(Text.assemble(("? ", "cyan"), (visible(title), "bold")))

    def _show_diff(self, diff: str) -> None:
        self._stage.gap()
        self._stage.print(Rule(style="dim"))
        for line in diff_lines(diff, self._language):
            self._stage.print(line)

    def _show_detail(self, title: str, detail: str) -> None:
        lines = visible(_in_words(title, detail)).split("\n")[:DETAIL_LINES]
        self._stage.print(Text("\n".join(f"  {line}".rstrip() for line in lines), style="dim"))

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
                self._stage.print(Text())
                return chosen
            self._stage.print(Text(text("terminal.choose_again", self._language, count=len(choices)), style="yellow"))

    def _nobody(self, words: str) -> None:
        """Say why nobody is asked; the answer is none."""
        self.summary = self.summary.unasked()
        self._stage.print(Text(f"  {text(f'terminal.{words}', self._language)}\n", style="yellow"))


def _in_words(title: str, detail: str) -> str:
    """Return the detail of a question without its JSON, if it begins with a call: the arguments that the title does not
    say, one below the other, and what else is told.
    """
    found = _CALL.fullmatch(detail)
    if found is None:
        return detail
    try:
        given: dict[str, Any] = json.loads(found[1])
    except ValueError:  # cut, or with characters that are shown by their numbers
        return detail
    rows = []
    for name, value in given.items():
        words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if words not in title and value is not False:
            # Below the name, so that no line of a text looks like another argument.
            rows.append(f"{name}: {words}" if "\n" not in words else "\n    ".join((f"{name}:", *words.split("\n"))))
    return "\n".join((*rows, *([""] if rows else []), found[2])).rstrip()


def _in_a_line(choices: Sequence[str]) -> Text:
    numbered = (Text.assemble((f"{number} ", "cyan bold"), choice) for number, choice in enumerate(choices, 1))
    return Text("   ").join(numbered)


# Rendering of a unified diff for a terminal: coloured lines with a heading per file, each with its number in the old
# file, in the new one, or in both.


def is_diff(detail: str) -> bool:
    """Return whether a text is a unified diff, by its first two lines (`---` and `+++`)."""
    return detail.startswith("--- ") and "\n+++ " in detail


def diff_lines(diff: str, language: str = "en") -> Iterator[Text]:
    """Yield a unified diff as coloured lines, safe for a terminal, at most 400, then a line in `language` that counts
    the rest.
    """
    lines = list(_render(diff.split("\n")))
    yield from lines[:MAX_LINES]
    if len(lines) > MAX_LINES:
        yield Text(text("terminal.more", language, count=len(lines) - MAX_LINES), style="dim")


def _render(lines: list[str]) -> Iterator[Text]:
    old = new = old_left = new_left = 0
    origin, seen, digits = "", False, _digits(lines)
    for line in lines:
        inside = old_left > 0 or new_left > 0
        mark = line[:1]
        # Only within the counted lines of a hunk: there, `--- x` is a removed line `-- x`. An empty one has lost its
        # blank.
        if inside and mark in ("+", "-", " ", ""):
            removed, added = mark != "+", mark != "-"
            before, after = str(old) if removed else "", str(new) if added else ""
            yield _body(f"  {before:>{digits}} {after:>{digits}} ", mark or " ", line[1:])
            old, old_left = old + removed, old_left - removed
            new, new_left = new + added, new_left - added
        elif line.startswith("--- "):
            origin = line[4:]
        elif line.startswith("+++ "):
            seen = False
            yield from _heading(origin, line[4:])
        elif match := _HUNK.match(line):
            gap = seen and int(match[1]) > old
            old, new = int(match[1]), int(match[3])
            # A count that is left out is 1.
            old_left, new_left = int(match[2] or 1), int(match[4] or 1)
            if gap:
                yield Text(f"  {'⋯':>{digits}}", style="dim")
            seen = True
        elif line:
            yield Text(f"{'':{2 * digits + 5}}{visible(line)}", style="dim")


def _digits(lines: list[str]) -> int:
    """Return how wide the columns of a diff's line numbers are."""
    hunks = filter(None, map(_HUNK.match, lines))
    last = (int(hunk[at]) + int(hunk[at + 1] or 1) - 1 for hunk in hunks for at in (1, 3))
    return max(3, len(str(max(last, default=0))))


def _heading(old: str, new: str) -> Iterator[Text]:
    name, before = new.partition("/")[2] or new, old.partition("/")[2] or old
    if new == _DEV_NULL:
        yield Text.assemble(("✗ ", "red"), (visible(before), "bold"), ("  deleted", "red"))
    elif old == _DEV_NULL:
        yield Text.assemble(("✚ ", "green"), (visible(name), "bold"), ("  new", "green"))
    elif before != name:
        yield Text.assemble(("➜ ", "yellow"), (f"{visible(before)} → {visible(name)}", "bold"), ("  moved", "yellow"))
    else:
        yield Text.assemble(("✎ ", "yellow"), (visible(name), "bold"))


def _body(numbers: str, mark: str, content: str) -> Text:
    style = {"+": "green", "-": "red"}.get(mark, "")
    shown = visible(content.rstrip("\r")).expandtabs(TAB_WIDTH)  # by the text's own columns, not those of the screen
    return Text.assemble((numbers, "dim"), (f"{mark} {shown}", style))
