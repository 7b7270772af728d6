"""Front matter: the head of a Markdown file between two lines of `---`, as names with texts or lists of texts.

Understands the part of YAML that such heads are written in: `key: value`, quotes, `[a, b]`, lists with dashes,
`>` and `|` blocks, comments. Anything else (anchors, tags, nested mappings) is an error that names the line, for
what cannot be understood must not be guessed. Not here: which keys there are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Value = str | tuple[str, ...]

MAX_LINES = 400

_KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(.*)|)$")
_ITEM = re.compile(r"[ \t]*-(?:[ \t]+(.*)|)$")
_BLOCK = re.compile(r"[|>][+-]?$")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/"}


class FrontMatterError(ValueError):
    """A head that cannot be understood; `line` is 1-based."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line


@dataclass(frozen=True, slots=True)
class Document:
    """A file taken apart: what its head says, and the text after it."""

    head: Mapping[str, Value]
    body: str

    def one(self, name: str) -> str:
        """A value as one text; '' when it is not there."""
        value = self.head.get(name, "")
        return value if isinstance(value, str) else ", ".join(value)

    def many(self, name: str) -> tuple[str, ...]:
        """A value as a list: a single text is split at its commas."""
        value = self.head.get(name, ())
        return value if isinstance(value, tuple) else tuple(filter(None, map(str.strip, value.split(","))))


def parse(source: str) -> Document:
    """The head and the body of `source`; without a head, the head is empty. FrontMatterError."""
    lines = source.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---":
        return Document({}, source)
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        raise FrontMatterError(1, "the head begins with --- and never ends.")
    if end > MAX_LINES:
        raise FrontMatterError(1, f"the head has more than {MAX_LINES} lines.")
    return Document(_head(lines[1:end]), "\n".join(lines[end + 1 :]).strip("\n") + "\n")


def _head(lines: Sequence[str]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    at = 0
    while at < len(lines):
        line, number = lines[at], at + 2
        at += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _KEY.match(line.rstrip())
        if match is None:
            raise FrontMatterError(number, "expected `name: value`.")
        name, rest = match[1], _uncommented(match[2] or "")
        if name in found:
            raise FrontMatterError(number, f"`{name}` stands here twice.")
        inner, at = _below(lines, at)
        found[name] = _value(rest, inner, number)
    return found


def _below(lines: Sequence[str], at: int) -> tuple[Sequence[str], int]:
    """The lines that belong to a key: indented ones, empty ones, and list items."""
    start = at
    while at < len(lines) and (not lines[at].strip() or lines[at][0] in " \t" or _ITEM.match(lines[at])):
        at += 1
    return lines[start:at], at


def _value(rest: str, inner: Sequence[str], number: int) -> Value:
    if _BLOCK.fullmatch(rest):
        return _block(inner, folded=rest[0] == ">")
    told = [(line, number + offset) for offset, line in enumerate(inner, 1) if line.strip()]
    told = [(line, place) for line, place in told if not line.lstrip().startswith("#")]
    if rest.startswith("["):
        return _flow(" ".join([rest, *(line.strip() for line, _ in told)]), number)
    if not rest and told and _ITEM.match(told[0][0]):
        return tuple(_item(line, place) for line, place in told)
    if told and (not rest or rest[0] in "\"'"):
        raise FrontMatterError(told[0][1], "expected a text or a list, not something nested.")
    return _scalar(" ".join([rest, *(line.strip() for line, _ in told)]).strip(), number)


def _item(line: str, number: int) -> str:
    match = _ITEM.match(line.rstrip())
    if match is None:
        raise FrontMatterError(number, "expected `- text`.")
    return _scalar(_uncommented(match[1] or ""), number)


def _block(inner: Sequence[str], *, folded: bool) -> str:
    told = [line for line in inner if line.strip()]
    indent = min((len(line) - len(line.lstrip()) for line in told), default=0)
    lines = [line[indent:].rstrip() for line in inner]
    return (" ".join(filter(None, lines)) if folded else "\n".join(lines)).strip()


def _flow(text: str, number: int) -> tuple[str, ...]:
    if not text.endswith("]"):
        raise FrontMatterError(number, "the list has no closing bracket.")
    parts = re.findall(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,\[\]{}"']+)\s*(?:,|$)""", text[1:-1])
    if re.sub(r"[\s,]", "", "".join(parts)) != re.sub(r"[\s,]", "", text[1:-1]):
        raise FrontMatterError(number, "the list cannot be read.")
    return tuple(filter(None, (_scalar(part.strip(), number) for part in parts)))


def _scalar(text: str, number: int) -> str:
    if text[:1] == '"':
        if len(text) < 2 or not re.fullmatch(r'"(?:[^"\\]|\\.)*"', text):
            raise FrontMatterError(number, "the quotes do not end.")
        return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), text[1:-1])
    if text[:1] == "'":
        if len(text) < 2 or not re.fullmatch(r"'(?:[^']|'')*'", text):
            raise FrontMatterError(number, "the quotes do not end.")
        return text[1:-1].replace("''", "'")
    if text[:1] in tuple("&*!{}@`%|>"):
        raise FrontMatterError(number, f"`{text[:20]}` cannot be read; put the text into quotes.")
    return "" if text in ("~", "null") else text


def _uncommented(text: str) -> str:
    """Without a comment at the end; one inside quotes is text."""
    if text[:1] in ("'", '"'):
        match = re.match(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*(#.*)?$""", text)
        return match[1] if match else text.rstrip()
    return re.split(r"(?:^|\s)#", text, maxsplit=1)[0].rstrip()
