"""Where an answer of the model ends: with its block, before it repeats what follows, after so many lines.

Pure; also says while an answer comes whether more of it could be used. Not here: asking (`completer.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from codeagent_lsp.inline.place import Place
from codeagent_lsp.llm.fill.fim_tokens import cut_tokens

_CLOSES = re.compile(r"\s*(?:[)\]}>]|end\b|fi\b|done\b|esac\b|</)")
_JOINS = re.compile(
    r"\s*(?:else|elif|elsif|except|finally|catch|rescue|ensure|when|case|\}\s*(?:else|catch|finally))\b"
)
_WORD = re.compile(r"\s*\w+\W")
_REPEATED = 3


@dataclass(frozen=True, slots=True)
class Cut:
    """The usable part of an answer, and whether more of the answer would change nothing."""

    text: str
    final: bool


def cut(place: Place, answer: str, max_lines: int) -> Cut:
    """Return the usable part of an answer that may still be growing."""
    answer, ended = cut_tokens(answer.replace("\r\n", "\n"))
    if place.line_after.strip():
        line, broke, _ = answer.partition("\n")
        return Cut(_without_rest(line, place.line_after), ended or bool(broke))
    lines, final = _block(place, answer, max_lines)
    text = "\n".join(lines).rstrip()
    return Cut(text.replace("\n", place.line_break), ended or final)


def _without_rest(line: str, rest: str) -> str:
    """Return a line without an end that repeats the rest of the cursor's line, as a bracket that is already there."""
    line, rest = line.rstrip(), rest.strip()
    for size in range(min(len(line), len(rest)), 0, -1):
        if line.endswith(rest[:size]) and (size == len(rest) or not rest[:size].isalnum()):
            return line[:-size] if _unbalanced(line) else line
    return line


def _unbalanced(line: str) -> bool:
    """Return whether a line closes more than it opens, or has a quote open: its end then belongs to what follows."""
    depth = 0
    for char in line:
        depth += (char in "([{") - (char in ")]}")
        if depth < 0:
            return True
    return line.count('"') % 2 == 1 or line.count("'") % 2 == 1 or (depth == 0 and line[-1:] in ";,:")


def _block(place: Place, answer: str, max_lines: int) -> tuple[list[str], bool]:
    """Return the lines of the answer up to the end of the block at the cursor, and whether the end was seen."""
    lines = answer.split("\n")
    complete = lines[:-1]  # the last may still grow
    fresh = not place.line_before.strip()
    base = _width(place.line_before if fresh else place.indentation)
    follows = next((line for line in place.text[place.line_end :].split("\n")[1:6] if line.strip()), "")
    taken: list[str] = []
    for number, line in enumerate(lines):
        if number == max_lines or _repeats(taken, line):
            return taken, True
        whole = number < len(complete)
        if number and not whole and not line.strip():
            break
        if number and _ends(line, base, fresh=fresh, before=taken):
            closing = _CLOSES.match(line) and _width(line) == base and not fresh and line.rstrip() != follows.rstrip()
            return ([*taken, line] if closing and whole else taken), whole or _is_another(line)
        if number and whole and line.strip() and line.rstrip() == follows.rstrip() and not _JOINS.match(line):
            return taken, True
        taken.append(line)
    return taken, False


def _ends(line: str, base: int, *, fresh: bool, before: list[str]) -> bool:
    """Return whether a line no longer belongs to the block whose first line is indented by `base`."""
    if not line.strip():
        return any(each.strip() for each in before) and _width(before[-1]) <= base
    width = _width(line)
    if fresh:
        return width < base
    if not any(each.strip() for each in before[1:]) and width == base and not _opens(before[0]):
        return True
    return width <= base and not _JOINS.match(line)


def _is_another(line: str) -> bool:
    """Return whether a line that still grows cannot become one that belongs to the block."""
    return bool(_WORD.match(line)) and not _JOINS.match(line) and not _CLOSES.match(line)


def _opens(line: str) -> bool:
    return line.rstrip().endswith((":", "{", "(", "[", "=>", "->", ",", "=", "do", "then"))


def _repeats(taken: list[str], line: str) -> bool:
    """Return whether the model turns in circles: a line for the third time in a row."""
    last = taken[-(_REPEATED - 1) :]
    return bool(line.strip()) and len(last) == _REPEATED - 1 and all(each == line for each in last)


def _width(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip(" "))
