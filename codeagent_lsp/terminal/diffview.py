"""Rendering of a unified diff for a terminal: coloured lines with a heading per file, each with its number in the old
file, in the new one, or in both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.text import Text

from codeagent_lsp.terminal.safe import visible
from codeagent_lsp.texts import text

MAX_LINES = 400
TAB_WIDTH = 4

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_DEV_NULL = "/dev/null"


def is_diff(detail: str) -> bool:
    """Return whether a text is a unified diff."""
    return detail.startswith("--- ") and "\n+++ " in detail


def diff_lines(diff: str, language: str = "en") -> Iterator[Text]:
    """Yield the lines to print, at most `MAX_LINES`, then a line that counts the rest."""
    lines = list(_rendered(diff.split("\n")))
    yield from lines[:MAX_LINES]
    if len(lines) > MAX_LINES:
        yield Text(text("terminal.more", language, count=len(lines) - MAX_LINES), style="dim")


def _rendered(lines: list[str]) -> Iterator[Text]:
    old = new = old_left = new_left = 0
    origin, seen, digits = "", False, _digits(lines)
    for line in lines:
        inside = old_left > 0 or new_left > 0
        mark = line[:1]
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
            old, new = int(match[1]), int(match[3])
            old_left, new_left = int(match[2] or 1), int(match[4] or 1)
            if seen:
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
