"""The style of a file's indentation, tabs or blanks, and code brought into it.

Not here: by how much code is moved (`tools/code/shift.py`, `agent/replacement.py`), which lines are content
(`literals.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

from codeagent_lsp.index.literals import Literal, fixed_lines
from codeagent_lsp.workspace.text.lines import split_lines

_LEAD = re.compile(r"[ \t]*")


def in_style(code: str, text: str, inside: Collection[Literal] = (), known: Counter[str] | None = None) -> str:
    """Return `code` indented with tabs or with spaces, whichever `text` uses exclusively, but for what is `inside`
    literals. Comments follow the code around them; deeper blanks stay, unless the line is `known` with other ones.
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
        number: _blanks(lines[max(each.first - 1, 0)])
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


def without_literals(text: str, inside: Iterable[Literal]) -> str:
    """Return the lines of a text that do not begin inside its literals."""
    within = frozenset(line for each in inside for line in range(each.first, each.last + 1))
    return "".join(line for number, line in enumerate(split_lines(text)) if number not in within)


def _blanks(line: str) -> str:
    found = _LEAD.match(line)
    return found[0] if found and line.strip() else ""
