"""Expansion of the words of a script as far as its text determines it: quotes, escapes, braces, known variables. Pure.

For denial and rules only, never for permission: a guess may be wrong. Unknown values become `UNKNOWN`, the home folder
`~`. Not here: which words belong to which command (`reading.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

UNKNOWN = "\x00"
MAX_DEPTH = 12
_MAX_BRANCHES = 64
_BREAK = "\x01"
_OPEN, _COMMA, _CLOSE = "\x02", "\x03", "\x04"
_BRACES = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")
_MARKS = str.maketrans({"{": _OPEN, ",": _COMMA, "}": _CLOSE})
_LITERAL = str.maketrans({_OPEN: "{", _COMMA: ",", _CLOSE: "}"})
_ESCAPE = re.compile(
    r"\\([abeEfnrtv\\'\"?]|c[\x00-\x7f]|[0-7]{1,3}|x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8})"
)
_LETTERS = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))
_BACKSLASH = re.compile(r"\\(\n?)(.?)", re.DOTALL)
_VARIABLE = re.compile(r"\$\{?(\w+|[@*#?$!-])\}?")
_DEFAULT = re.compile(r"\$\{(\w+):?([-=+])(.*)\}", re.DOTALL)
_MODIFIED = re.compile(r"\$\{(\w+)(?::?\?|[:%#/^,@]).*\}", re.DOTALL)
_FIXED = {"HOME": "~", "IFS": _BREAK, "@": "", "*": "", "0": "$0", "SHELL": "bash", "BASH": "bash"}

Variables = Mapping[str, str]


def fields(node: Node, variables: Variables) -> tuple[str, ...]:
    """Return the words that the word at `node` expands to; an expansion may yield none or several."""
    text = _decoded(node, variables, 0)
    found = [part for branch in _branches(text) for part in re.split(f"{_BREAK}+", branch)]
    quoted = node.type in ("string", "raw_string", "ansi_c_string")
    return tuple(part for part in found if part or quoted)


def value(node: Node, variables: Variables) -> str:
    """Return the expansion of the word at `node` as one text."""
    return _decoded(node, variables, 0).translate(_LITERAL).replace(_BREAK, " ")


def unquoted(text: str) -> str:
    """Return a word without its quotes and backslashes, ignoring the grammar."""
    return _BACKSLASH.sub(r"\2", text).replace("'", "").replace('"', "").replace("${HOME}", "~").replace("$HOME", "~")


def _decoded(node: Node, variables: Variables, depth: int) -> str:
    kind = node.type
    if depth > MAX_DEPTH:
        return UNKNOWN
    if kind == "raw_string":
        return _text(node)[1:-1]
    if kind in ("ansi_c_string", "ansii_c_string"):
        return _ansi(_text(node)[2:-1])
    if kind in ("string", "translated_string"):
        return _string(node, variables, depth)
    if kind in ("concatenation", "command_name"):
        return "".join(_decoded(child, variables, depth + 1) for child in node.children)
    if kind in ("simple_expansion", "expansion"):
        return _variable(_text(node), variables)
    if kind == "command_substitution":
        return _printed(node, variables, depth)
    return _bare(_text(node)) if not node.is_named or not node.named_child_count else UNKNOWN


def _string(node: Node, variables: Variables, depth: int) -> str:
    source, end, parts = _text(node).encode(), node.start_byte, []
    for child in node.named_children:
        if child.type == "string_content":
            continue
        parts.append(source[end - node.start_byte : child.start_byte - node.start_byte].decode(errors="replace"))
        parts.append(_decoded(child, variables, depth + 1).replace(_BREAK, " "))
        end = child.end_byte
    parts.append(source[end - node.start_byte :].decode(errors="replace"))
    parts[0] = parts[0].removeprefix("$")[1:]
    parts[-1] = parts[-1][:-1] if parts[-1].endswith('"') else parts[-1]
    return "".join(re.sub(r'\\([\\"$`])|\\\n', r"\1", part) if even % 2 == 0 else part
                   for even, part in enumerate(parts))  # fmt: skip


def _bare(text: str) -> str:
    """Return an unquoted word with its braces and commas marked for brace expansion."""
    return _BACKSLASH.sub(r"\2", text.translate(_MARKS) if "{" in text or "," in text or "}" in text else text)


def _ansi(text: str) -> str:
    """Return the text of `$'…'` with its escapes decoded; an unknown escape is kept, as in bash."""
    return _ESCAPE.sub(_unescaped, text)


def _unescaped(match: re.Match[str]) -> str:
    body = match[1]
    if body[0] in _LETTERS:
        return _LETTERS[body[0]]
    if body[0] == "c":
        return chr(ord(body[1]) & 0x1F)
    code = int(body[1:], 16) if body[0] in "xuU" else int(body, 8) & 0xFF
    return chr(code) if code < 0x110000 else match[0]


def _variable(text: str, variables: Variables) -> str:
    """Return the value of `$name` and `${name}`; for `${name:-text}` the text if the value is unknown, and for other
    forms, such as `${name:?}` and `${name%/}`, the value as if unchanged.
    """
    if (match := _VARIABLE.fullmatch(text)) is not None:
        return _known(match[1], variables)
    if (default := _DEFAULT.fullmatch(text)) is not None:
        value = _known(default[1], variables)
        return unquoted(default[3]) if default[2] == "+" or value in ("", UNKNOWN) else value
    modified = _MODIFIED.fullmatch(text)
    return _known(modified[1], variables) if modified else UNKNOWN


def _known(name: str, variables: Variables) -> str:
    return variables.get(name, _FIXED.get(name, "" if name.isdigit() else UNKNOWN))


def _printed(node: Node, variables: Variables, depth: int) -> str:
    """Return the expansion of `$(echo …)` or `$(printf …)`; UNKNOWN for other commands."""
    inner = node.named_children
    if len(inner) != 1 or inner[0].type != "command":
        return UNKNOWN
    words = [_decoded(child, variables, depth + 1).translate(_LITERAL) for child in inner[0].named_children]
    printed = [word for word in words[1:] if not word.startswith("-")]
    return _BREAK.join(printed) if words and words[0] in ("echo", "printf") else UNKNOWN


def _branches(text: str) -> list[str]:
    """Return the results of brace expansion: `{a,b}c` gives `ac` and `bc`."""
    done: list[str] = []
    waiting = [text]
    while waiting and len(done) + len(waiting) < _MAX_BRANCHES:
        branch = waiting.pop()
        found = _BRACES.search(branch)
        if found is None:
            done.append(branch.translate(_LITERAL))
        elif _COMMA in found[1]:
            pieces = found[1].split(_COMMA)
            waiting.extend(branch[: found.start()] + piece + branch[found.end() :] for piece in reversed(pieces))
        else:
            waiting.append(f"{branch[: found.start()]}{{{found[1]}}}{branch[found.end() :]}")
    return done + [branch.translate(_LITERAL) for branch in waiting]


def _text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")
