"""The style of a text's indentation, by tabs or by blanks, and a text fitted to that of another.

Lines that begin inside a string keep their leading blanks. Pure functions. Not here: how deep code is indented
(`tools/code/shift.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index.literals import Literal, fixed_lines, language_of, literal_lines, literals
from codeagent_lsp.workspace.text.position import split_lines, with_newlines

_BLANKS = re.compile(r"[ \t]*")
_STYLES = (r"^\t", "^  ")
_COLUMNS = "The tabs within the lines of {path} have become blanks. Give its lines with their tabs."


def in_style_of(path: str, before: str, after: str) -> str:
    """Return the whole new text of a file indented as its old text is, with tabs or with blanks; unchanged where only
    the indentation differs, as then that is the change. EditRefused where the columns of a table, or other tabs that
    are no indentation, have become blanks.
    """
    language = language_of(path, before)
    after = with_newlines(after, "\n")
    if not has_one_style(after, before):
        made = literals(after, language)
        there = literals(before, language)
        styled = in_style(after, without_literals(before, there), made, literal_lines(before, there))
        after = after if _is_same(styled, before) and not needs_tabs(path) else styled
    if "\t" not in after and after.split() != before.split() and _lost_columns(path, before, after):
        raise EditRefused("not_found", _COLUMNS.format(path=path))
    return after


def in_style(code: str, text: str, inside: Collection[Literal] = (), known: Counter[str] | None = None) -> str:
    """Return `code` indented with tabs or with spaces, whichever `text` uses exclusively; unchanged if it uses both or
    none.

    Lines `inside` literals stay, except comments, which follow the code around them. Blanks beyond the indentation stay
    too, unless the text has the line (in `known`) with other ones.
    """
    tabs, blanks = re.search(r"^\t+\S", text, re.MULTILINE), re.search(r"^ {2,}\S", text, re.MULTILINE)
    # Both or none: the file has no style to follow.
    if bool(tabs) == bool(blanks):
        return code
    lines, fixed = code.split("\n"), fixed_lines(inside)
    loose = [line for number, line in enumerate(lines) if number not in fixed]
    like = loose if tabs else text.split("\n")
    # The smallest indentation is one level.
    unit = min((len(found[1]) for line in like if (found := re.match(r"( {2,8})\S", line))), default=4)

    def to_tabs(line: str) -> str:
        return re.sub(rf"^(?: {{{unit}}})+", lambda match: "\t" * (len(match[0]) // unit), line)

    def to_blanks(line: str) -> str:
        return re.sub(r"^\t+", lambda match: " " * unit * len(match[0]), line)

    change = to_tabs if tabs else to_blanks
    depths = {
        number: _depth(lines[max(each.first - 1, 0)])
        for each in inside
        if each.moves
        for number in range(max(each.first, 0), each.last + 1)
    }

    def changed(number: int, line: str) -> str:
        depth = depths.get(number)
        if number in fixed or depth is None or (known and change(line) in known) or not line.startswith(depth):
            return line if number in fixed else change(line)
        return change(depth) + line.removeprefix(depth)

    return "\n".join(changed(number, line) for number, line in enumerate(lines))


def has_one_style(code: str, text: str) -> bool:
    """Return whether one of tabs and blanks is used for indentation in neither text, literals included, so that
    `in_style` would change nothing.
    """
    return any(
        not re.search(style, text, re.MULTILINE) and not re.search(style, code, re.MULTILINE) for style in _STYLES
    )


def without_literals(text: str, inside: Iterable[Literal]) -> str:
    """Return the lines of a text that do not begin inside its literals, joined, with their line ends."""
    within = frozenset(line for each in inside for line in range(each.first, each.last + 1))
    return "".join(line for number, line in enumerate(split_lines(text)) if number not in within)


def needs_tabs(path: str) -> bool:
    """Return whether a file is read by a program to which blanks are no tabs."""
    name = path.rpartition("/")[2].lower()
    return name in ("makefile", "gnumakefile") or name.endswith((".mk", ".mak", ".go", ".tsv", ".tab"))


def _is_same(one: str, other: str) -> bool:
    return one.rstrip() == with_newlines(other, "\n").rstrip()


def _lost_columns(path: str, before: str, after: str) -> bool:
    """Return whether most lines of a table, whose columns are apart by tabs, have blanks in their place."""
    filled = [line for line in before.splitlines() if line.strip()]
    columns = [tuple(line.split()) for line in filled if "\t" in line.strip()]
    if not columns or (len(columns) < len(filled) and not path.lower().endswith((".tsv", ".tab"))):
        return False
    there = {tuple(line.split()) for line in after.splitlines() if " " in line.strip()}
    return 2 * sum(line in there for line in columns) >= len(columns)


def _depth(line: str) -> str:
    found = _BLANKS.match(line)
    return found[0] if found and line.strip() else ""
