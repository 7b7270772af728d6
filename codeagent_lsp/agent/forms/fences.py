"""Splits a model's Markdown reply into fenced code blocks and the prose around them. Pure functions.

A block's path is taken from its info string, from the line before it, or from a comment in its first line. Not here:
which file the code belongs to and how it is read (`answer.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from codeagent_lsp.workspace.text.lines import with_newlines

MAX_PATH = 200

_OPENING = re.compile(r"^ {0,3}(?P<marks>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$")
_PATH = re.compile(r"(?<![\w./\\-])[\w./\\-]*\w\.\w{1,10}(?![\w/\\-])")
_DECORATION = re.compile(r"^[\s>#*`'\"\-]*(?:(?:file(?:name)?|path|in)\b\s*:?)?[\s*`'\"]*|[\s*`'\":]+$", re.IGNORECASE)
_COMMENT = re.compile(
    r"^\s*(?:#|//|--|;|%|/\*|<!--)\s*(?:(?:file(?:name)?|path)\s*:\s*)?(?P<path>\S+?)\s*(?:\*/|-->)?\s*$", re.I
)


@dataclass(frozen=True, slots=True)
class Fence:
    """One fenced block: its text with LF line ends, the path that the reply gives for it ('' for none), and whether its
    closing fence was written.
    """

    code: str
    path: str = ""
    info: str = ""
    closed: bool = True


@dataclass(frozen=True, slots=True)
class ReplyParts:
    """A reply split up: the blocks in order, and the text outside of them without the lines that only give a path."""

    fences: tuple[Fence, ...]
    prose: str


def parts_of(reply: str) -> ReplyParts:
    """Split a reply into its fenced blocks and its prose. A nested block (with a language) belongs to the outer one."""
    prose: list[str] = []
    found: list[Fence] = []
    code: list[str] | None = None
    marks, info, depth = "", "", 0
    for line in with_newlines(reply, "\n").split("\n"):
        opening = _OPENING.match(line)
        if code is None:
            if opening is None:
                prose.append(line)
            else:
                code, marks, info, depth = [], opening["marks"], opening["info"].strip(), 0
            continue
        if opening is not None and opening["info"].strip() and len(code) == 1 and not info and path_in(code[0]):
            prose.append(code[0])  # a fence that held only the path and was not closed
            code, marks, info = [], opening["marks"], opening["info"].strip()
            continue
        if opening is not None and opening["marks"].startswith(marks):
            if opening["info"].strip():
                depth += 1
            elif depth:
                depth -= 1
            else:
                found.append(_fence(code, info, prose, closed=True))
                code = None
                continue
        code.append(line)
    if code is not None:
        found.append(_fence(code, info, prose, closed=False))
    return ReplyParts(tuple(found), "\n".join(prose).strip())


def path_in(line: str) -> str:
    """Return the path that a line of prose names; '' when it names none or more than one."""
    bare = _DECORATION.sub("", line)
    if bare and len(bare) <= MAX_PATH and " " not in bare and ("." in bare or "/" in bare):
        return _tidy(bare)
    named = {_tidy(found) for found in _PATH.findall(line)}
    return named.pop() if len(named) == 1 else ""


def _fence(code: list[str], info: str, prose: list[str], *, closed: bool) -> Fence:
    text = "".join(f"{line}\n" for line in code)
    path = _in_info(info) or _before(prose) or _in_comment(code)
    return Fence(text, path, info, closed)


def _in_info(info: str) -> str:
    """Return the path of ```` ```python path=a.py ````, ```` ```a.py ```` or ```` ```python:a.py ````; '' for none."""
    words = re.split(r"[\s:=]+", info)
    return next((_tidy(word) for word in words if _PATH.fullmatch(word.strip("\"'{}"))), "")


def _before(prose: list[str]) -> str:
    """Return the path in the last non-empty line before the block; a line with nothing else leaves the prose."""
    for index in range(len(prose) - 1, max(-1, len(prose) - 3), -1):
        if not prose[index].strip():
            continue
        path = path_in(prose[index])
        if path and not _said(prose[index], path):
            del prose[index]
        return path
    return ""


def _said(line: str, path: str) -> bool:
    """Return whether a line has more words than the path."""
    return len(re.findall(r"\w+", line.replace("\\", "/").replace(path, ""))) > 1


def _in_comment(code: Iterable[str]) -> str:
    first = next(iter(code), "")
    comment = _COMMENT.match(first)
    return _tidy(comment["path"]) if comment and _PATH.fullmatch(comment["path"]) else ""


def _tidy(path: str) -> str:
    return path.strip("\"'`*{} ").replace("\\", "/").removeprefix("./")
