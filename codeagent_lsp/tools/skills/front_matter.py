"""Parser of front matter: the head of a Markdown file between two lines of `---`, as names with texts or lists.

The head is YAML, read by PyYAML (a late import) without types: every value is a text. What YAML does not allow but
people often write is accepted: a plain value with a colon in it, `[one] [two]`, a value that begins with `@` or `**`. A
nested value is left out, or an error that names the line where its key is asked for. Not here: which keys there are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Value = str | tuple[str, ...]

MAX_LINES = 400

_PAIR = re.compile(r"([A-Za-z_][\w-]*):[ \t]+(\S.*)$")
# `description: Use it when: always` is no YAML, since the value has a colon.
_PLAIN = re.compile(r"[^\s\"'\[\]{}|>&*!%@`#-].*(?::(?:\s|$)|\t)")
_ODD = re.compile(r"\[[^\[\]]*\][ \t]*[^\s#,]|\"[^\"]*\"[ \t]+[^\s#]|'[^']*'[ \t]+[^\s#]|[@`]|\*\W")
"""The beginnings of values that are no YAML, and that nobody means as such."""


class FrontMatterError(ValueError):
    """Raised for an invalid head; `line` is 1-based."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file: the values of its head, and the text after it."""

    head: Mapping[str, Value]
    body: str

    def one(self, name: str) -> str:
        """Return a value as one text; '' if it is missing."""
        value = self.head.get(name, "")
        return value if isinstance(value, str) else ", ".join(value)

    def many(self, name: str) -> tuple[str, ...]:
        """Return a value as a tuple; a single text is split at its commas."""
        value = self.head.get(name, ())
        return value if isinstance(value, tuple) else tuple(filter(None, map(str.strip, value.split(","))))


def parse(source: str, names: Collection[str]) -> Document:
    """Parse `source` into head and body; the head may be missing. FrontMatterError if it is malformed, or if the value
    of one of the `names`, which are asked for, is nested.
    """
    lines = source.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---":
        return Document({}, source)
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        raise FrontMatterError(1, "the head begins with --- and never ends.")
    if end > MAX_LINES:
        raise FrontMatterError(1, f"the head has more than {MAX_LINES} lines.")
    return Document(_head(lines[1:end], names), "\n".join(lines[end + 1 :]).strip("\n") + "\n")


def _head(lines: Sequence[str], names: Collection[str]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    node = _mapping(lines)
    for key, value in node.value if node is not None else ():
        # Marks count from 0, and the first line is the `---`.
        line = key.start_mark.line + 2
        if key.id != "scalar":
            raise FrontMatterError(line, "expected `name: value`.")
        if key.value in found:
            raise FrontMatterError(line, f"`{key.value}` stands here twice.")
        try:
            found[key.value] = _value(value)
        except FrontMatterError:
            if key.value in names:
                raise
    return found


def _mapping(lines: Sequence[str]) -> Any:
    """Return the head as a YAML node; None if it is empty."""
    from yaml import YAMLError  # late: only who reads skills and agents needs it

    try:
        node = _composed(lines)
    except YAMLError as error:
        try:
            node = _composed([_quoted(line) for line in lines])
        except YAMLError:
            raise _problem(error) from error
    if node is not None and node.id != "mapping":
        raise FrontMatterError(node.start_mark.line + 2, "expected `name: value`.")
    return node


def _composed(lines: Sequence[str]) -> Any:
    import yaml  # late: only who reads skills and agents needs it

    try:
        return yaml.compose("\n".join(lines), Loader=yaml.BaseLoader)
    except RecursionError:
        raise FrontMatterError(2, "what is nested so deeply cannot be read.") from None


def _quoted(line: str) -> str:
    """Return a line with its value in quotes if the value is no YAML as it is."""
    match = _PAIR.fullmatch(line.rstrip())
    if match is None or not (_PLAIN.match(match[2]) or _ODD.match(match[2])):
        return line
    value = re.split(r"\s#", match[2], maxsplit=1)[0].rstrip()
    return f"{match[1]}: {json.dumps(value, ensure_ascii=False)}"


def _problem(error: Exception) -> FrontMatterError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = str(getattr(error, "problem", None) or "it has characters that cannot be read")
    return FrontMatterError(mark.line + 2 if mark is not None else 2, f"{problem}.")


def _value(node: Any) -> Value:
    if node.id == "sequence":
        return tuple(filter(None, map(_text, node.value)))
    return _text(node)


def _text(node: Any) -> str:
    if node.id != "scalar":
        raise FrontMatterError(node.start_mark.line + 2, "expected a text or a list, not something nested.")
    if node.style is None and node.value in ("~", "null"):
        return ""
    return str(node.value).strip("\n") if node.style in ("|", ">") else str(node.value)
