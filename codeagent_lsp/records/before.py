"""Secrets that stand before what names them: compared with a name, explained by a comment behind the code, given as the
default in an annotation above a field.

Not here: values behind their name (`assignments.py`), the value of an object whose name follows it (`positions.py`).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property

from codeagent_lsp.records.mark import MARK
from codeagent_lsp.records.names import Name, NameKind
from codeagent_lsp.records.values import looks_random, looks_scrambled, quoted_reveals

_LONGEST = 4_400  # characters of a line before a name, in which a value may stand
_NEAR = 200  # characters before a name, in which its comment or comparison begins
_Span = tuple[int, int]
_QUOTED = r"(?P<q>[\"'`])(?P<value>[^\"'`\s]{6,4096}+)(?P=q)"
# `"…" == password`, also with the object that has it.
_COMPARED = re.compile(rf"{_QUOTED}[ \t]{{0,4}}(?:[!=]==?|<>|eq|ne)[ \t]{{0,4}}\(?[\w.>$@-]{{0,60}}\Z")
_COMPARES = ("=", "<>", " eq ", " ne ")
_COMPARING = re.compile(r"[\"'`][ \t]{0,4}(?:[!=]==?|<>|eq|ne)[ \t]{0,4}\(?[\w.>$@-]{0,60}\Z")
_COMPARING_ANYWHERE = re.compile(r"[\"'`][ \t]{0,4}(?:[!=]=|<>|(?:eq|ne)[ \t(])")
_COMMENT = re.compile(r"[ \t;,)}`](?P<sign>#|//|--|/\*|;)[ \t]")
_VALUE = re.compile(rf"{_QUOTED}|(?<![^\s=:(])(?P<bare>[^\s\"'`,;()\[\]{{}}<>]{{12,4096}}+)")
_HASH = re.compile(r"[0-9a-f]{7,128}")
# `#[arg(default_value = "…")]`, `@Value(defaultValue = "…")` above a field.
_ANNOTATION = re.compile(r"[ \t]*(?:#\[|@|\[)[^\n]*\bdefault", re.IGNORECASE)
_DEFAULT = re.compile("default|DEFAULT")
_OWN_LINE = re.compile(r"[ \t]*(?:[A-Za-z_][\w<>?.]*[ \t]+){0,4}\Z")


class Behind:
    """Where one text has anything of what may stand before a name; most names need no further look."""

    def __init__(self, text: str) -> None:
        self._text = text

    def may_have(self, start: int) -> bool:
        """Return whether there is any near before the name that begins at an offset."""
        return _has(self._near, start - _NEAR - 1, start) or _has(self._defaults, start - 2 * _LONGEST, start)

    @cached_property
    def _near(self) -> list[int]:
        found = [match.start() for match in _COMPARING_ANYWHERE.finditer(self._text)]
        return sorted(found + [match.start() for match in _COMMENT.finditer(self._text)])

    @cached_property
    def _defaults(self) -> list[int]:
        return [match.start() for match in _DEFAULT.finditer(self._text)]


def _has(places: list[int], first: int, last: int) -> bool:
    at = bisect_left(places, first)
    return at < len(places) and places[at] < last


def before(text: str, name: Name) -> Iterator[_Span]:
    """Yield the spans of the secrets that stand before their name, on its line or in an annotation above it."""
    if name.kind not in (NameKind.SECRET, NameKind.PERHAPS):
        return
    near = max(0, name.start - _NEAR)
    line = text[text.rfind("\n", near, name.start) + 1 or near : name.start]
    if any(sign in line[-70:] for sign in _COMPARES) and _COMPARING.search(line):
        start = _line_start(text, name)
        found = _COMPARED.search(text, start, name.start)
        judge = looks_scrambled if name.kind is NameKind.PERHAPS else _is_compared
        if found and judge(found["value"]):
            yield found.span("value")
    elif comment := _COMMENT.search(line):
        yield from _scrambled(text, _line_start(text, name), name.start - len(line) + comment.start())
    elif len(line) < _NEAR and _OWN_LINE.match(line):
        yield from _annotated(text, name.start - len(line))


def _line_start(text: str, name: Name) -> int:
    far = max(0, name.start - _LONGEST)
    return text.rfind("\n", far, name.start) + 1 or far


def _annotated(text: str, start: int) -> Iterator[_Span]:
    """Yield the defaults in the annotation on the line before the one that begins at an offset."""
    if text[start - 2 : start - 1] not in ("]", ")", "\r"):
        return
    above = text.rfind("\n", max(0, start - _LONGEST), start - 1) + 1
    if _ANNOTATION.match(text, above, start - 1):
        yield from _scrambled(text, above, start - 1)


def _scrambled(text: str, start: int, end: int) -> Iterator[_Span]:
    for found in _VALUE.finditer(text, start, end):
        part = "value" if found["value"] is not None else "bare"
        # A number that git or a list of checksums has, and a remark behind it.
        if looks_scrambled(found[part][:400]) and (part == "value" or not _HASH.fullmatch(found[part])):
            yield found.span(part)


def _is_compared(value: str) -> bool:
    return looks_random(value, least=6) and quoted_reveals(value, sure=True) and not MARK.search(value)
