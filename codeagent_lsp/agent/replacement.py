"""Fits the code of a model's answer into a file in place of a selection. Pure functions.

Models repeat the lines around the code and shift its indentation; all of that is undone here. Not here: what of a reply
is code (`forms/envelope.py`), asking the model (`rewrite.py`).
"""

from __future__ import annotations

import re

from codeagent_lsp.workspace.text.lines import dominant_newline, with_newlines

OPEN, CLOSE = "<selection>", "</selection>"
PLACE = "[the code to rewrite stands here]"

_TAG = re.compile(r"^[ \t]*</?selection>[ \t]*\n?", re.MULTILINE)
_OPENERS = (":", "{", "(", "[")
_PAIRS = {")": "(", "]": "[", "}": "{"}
_LEAST_LETTERS = 5


def replaced(text: str, start: int, end: int, given: str) -> str:
    """Return `text` with `start:end` replaced by the code that a model has given for it; unchanged if that is empty."""
    bare = _TAG.sub("", with_newlines(given, "\n")).replace(OPEN, "").replace(CLOSE, "").replace(PLACE, "")
    if not bare.strip():
        return text
    selected = text[start:end]
    line_start = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    prefix = text[line_start:start]
    suffix = re.split(r"[\r\n]", text[end:], maxsplit=1)[0]
    code = in_style(bare, text)
    if not prefix.strip() and (not suffix.strip() or selected.endswith(("\n", "\r"))):
        code = without_surroundings(code, selected, text[:line_start], text[end:])
    else:
        code = _without_rest_of_line(code, selected, prefix.strip(), suffix.strip())
    new = fitted(code, selected, dominant_newline(text), prefix if not prefix.strip() else "")
    return text[:start] + new + text[end:]


def without_surroundings(code: str, selected: str, before: str, after: str) -> str:
    """Return `code` without the lines around the selection that the reply repeats at its beginning and its end."""
    lines = code.strip("\n").split("\n")
    own = _filled(selected)
    first = _repeated(lines, own, _filled(before)[::-1])
    lines = lines[first:]
    last = _repeated(lines[::-1], own[::-1], _filled(after))
    return "\n".join(lines[: len(lines) - last])


def fitted(code: str, selected: str, newline: str, prefix: str = "") -> str:
    """Return `code` with the indentation, the line ends and the blank lines at both ends of the text it replaces.

    `prefix` is the white space before the selection on its first line.
    """
    lead = selected[: len(selected) - len(selected.lstrip("\r\n"))] if selected.strip() else ""
    ending = selected[len(selected.rstrip("\r\n")) :] if selected.strip() else selected
    core = selected.strip("\r\n")
    body = code.strip("\n").rstrip()
    if "\n" not in body and not prefix and core == core.lstrip():
        body = body.strip()
    else:
        body = _indented(body, prefix + with_newlines(core, "\n") if core else prefix + "x").removeprefix(prefix)
    return lead + body.replace("\n", newline) + ending


def in_style(code: str, text: str) -> str:
    """Return `code` indented with tabs or with spaces, whichever `text` uses exclusively."""
    tabs, blanks = re.search(r"^\t+\S", text, re.MULTILINE), re.search(r"^ {2,}\S", text, re.MULTILINE)
    if tabs and not blanks:
        unit = min((len(found) for found in re.findall(r"^( {2,8})\S", code, re.MULTILINE)), default=4)
        return re.sub(rf"^(?: {{{unit}}})+", lambda match: "\t" * (len(match[0]) // unit), code, flags=re.MULTILINE)
    if blanks and not tabs:
        unit = min((len(found) for found in re.findall(r"^( {2,8})\S", text, re.MULTILINE)), default=4)
        return re.sub(r"^\t+", lambda match: " " * unit * len(match[0]), code, flags=re.MULTILINE)
    return code


def _filled(text: str) -> list[str]:
    return [line.strip() for line in with_newlines(text, "\n").split("\n") if line.strip()]


def _repeated(lines: list[str], own: list[str], around: list[str]) -> int:
    """Return how many of the first `lines` only repeat the lines `around` (nearest first) and are not part of `own`."""
    filled = [(index, line.strip()) for index, line in enumerate(lines) if line.strip()]
    for count in range(min(len(filled) - 1, len(around)), 0, -1):
        found = [line for _, line in filled[:count]]
        if found != around[:count][::-1] or own[:count] == found:
            continue
        rest = lines[filled[count][0] :]
        if any(_telling(line) for line in found) or _balance(rest) == _balance(own) != _balance(lines):
            return filled[count][0]
    return 0


def _telling(line: str) -> bool:
    """Return whether a line is unlikely to occur twice by chance, as a lone bracket or `else:` would."""
    return sum(map(str.isalnum, line)) >= _LEAST_LETTERS and line not in ("return", "break", "continue", "finally:")


def _balance(lines: list[str]) -> tuple[int, ...]:
    text = "".join(lines)
    return tuple(text.count(opening) - text.count(closing) for closing, opening in _PAIRS.items())


def _without_rest_of_line(code: str, selected: str, prefix: str, suffix: str) -> str:
    """Return `code` without the rest of the line, where only a part of a line was asked for and the reply gives all of
    it.
    """
    body = code.strip()
    if len(prefix) > 1 and body.startswith(prefix) and not selected.strip().startswith(prefix):
        body = body[len(prefix) :].strip()
        if suffix and body.endswith(suffix) and not selected.strip().endswith(suffix):
            body = body[: -len(suffix)].strip()
        return body
    return code


def _indented(code: str, selected: str) -> str:
    """Return `code` shifted as a whole so that its first line has the indentation of the selection's first line."""
    want, have = _indent(selected), _indent(code)
    if want == have:
        return code
    first, *rest = code.split("\n")
    if have and all(line.startswith(have) or not line.strip() for line in rest):
        return "\n".join(want + line[len(have) :] if line.strip() else line for line in (first, *rest))
    if have:
        return code
    if _in_place(first, rest, want):
        return "\n".join((want + first, *rest))
    return "\n".join(want + line if line.strip() else line for line in (first, *rest))


def _in_place(first: str, rest: list[str], want: str) -> bool:
    """Return whether only the first line has lost its indentation."""
    filled = [line for line in rest if line.strip()]
    if not filled or not all(line.startswith(want) for line in filled):
        return False
    return not first.rstrip().endswith(_OPENERS) or len(_indent(filled[0])) > len(want)


def _indent(text: str) -> str:
    first = next((line for line in text.split("\n") if line.strip()), "")
    return first[: len(first) - len(first.lstrip(" \t"))]
