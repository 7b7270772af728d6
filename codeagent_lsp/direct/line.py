"""The answer form `line`: the one line that is wrong, and the corrected line. Pure functions.

It is the cheapest answer: a small model gives it in a tenth of the tokens of a whole function, so that several can be
asked for and tried. Not here: finding out which line is wrong, which is the model's part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index.literals import refuse_altered
from codeagent_lsp.tools.code.source import source_of
from codeagent_lsp.workspace.edits.match import replace
from codeagent_lsp.workspace.text.lines import content_of, ending_of, split_lines

_PAIR = re.compile(
    r"^[ \t>*-]*WRONG:[ \t]*\n?(?P<wrong>.*?)\n+[ \t>*-]*RIGHT:[ \t]*\n?(?P<right>.*?)\s*(?=\n```|\n\s*\n|\Z)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_LABEL = re.compile(r"^\s*(?:RIGHT|CORRECT(?:ED)?)(?: LINE)?:\s*", re.IGNORECASE)
_FENCE = re.compile(r"^ {0,3}```[^\n]*$", re.MULTILINE)


def line_pair(reply: str) -> tuple[str, str] | None:
    """Return the wrong and the corrected line of a reply; None where it gives none."""
    found = _PAIR.search(reply)
    return (_bare(found["wrong"]), _bare(found["right"])) if found is not None else None


def as_pair(wrong: str, reply: str) -> str:
    """Return the reply to a question about one line as an answer that names both lines. Of the reply's lines the one
    most similar to `wrong` is taken, since models repeat the lines around it.
    """
    pair = line_pair(reply)
    given = pair[1] if pair is not None else _FENCE.sub("", reply)
    lines = [plain for line in given.splitlines() if (plain := _bare(_LABEL.sub("", line)).strip())]
    nearest = max(lines, key=lambda line: SequenceMatcher(None, line, wrong, autojunk=False).ratio(), default="")
    return f"WRONG: {wrong}\nRIGHT: {nearest}"


def with_line(path: str, text: str, wrong: str, right: str, preferred: Sequence[str] = ()) -> str:
    """Return `text` with the line `wrong` replaced by `right`, with its indentation kept.

    `preferred` are dotted names of definitions that are searched first. EditRefused when `wrong` is empty, or no line
    or more than one matches it.
    """
    if not wrong.strip():
        raise EditRefused("empty", "The line after WRONG: is empty. Copy the line that is wrong.")
    if "\n" in wrong.strip("\n"):
        done = replace(text, wrong, right)
        refuse_altered(path, text, done.text, [right])
        return done.text
    lines = split_lines(text)
    having = [number for number, line in enumerate(lines) if content_of(line).strip() == wrong.strip()]
    near = [number for number in having if number in _inside(path, text, preferred)]
    found = near or having
    if len(found) != 1:
        why = f"{len(found)} lines of {path} are" if found else f"No line of {path} is"
        raise EditRefused("ambiguous" if found else "not_found", f"{why} {wrong.strip()!r}. Copy it exactly.")
    old = lines[found[0]]
    indent = content_of(old)[: len(content_of(old)) - len(content_of(old).lstrip())]
    lines[found[0]] = indent + right.strip() + ending_of(old)
    return "".join(lines)


def _inside(path: str, text: str, names: Sequence[str]) -> frozenset[int]:
    """Return the 0-based numbers of the lines of these definitions."""
    source = source_of(path, text) if names else None
    spans = [each.symbol for each in source.definitions if each.qualified in names] if source is not None else []
    return frozenset(line for each in spans for line in range(each.line_start - 1, each.line_end))


def _bare(text: str) -> str:
    """Return a line without the fences and backticks that models put around it."""
    plain = _FENCE.sub("", text).strip("\n")
    return plain.strip()[1:-1] if re.fullmatch(r"\s*`[^`\n]+`\s*", plain) else plain
