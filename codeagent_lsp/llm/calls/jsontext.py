"""Tolerant parsing of JSON as models write it: strictly first, then repaired if asked for.

Not here: the meaning of the JSON (`dialects.py`, `schema.py`).
"""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Sequence
from typing import Any

# The repair walks over the text in Python, which takes seconds for more.
REPAIR_LIMIT = 1_000_000

_DEEPEST = 100

# Without `good`, a backslash that begins no escape of JSON, as in `\d` or `C:\Users`.
_ESCAPE = re.compile(r'\\(?P<good>["\\/bfnrt]|u[0-9a-fA-F]{4})?')


class WrittenNumber(float):
    """A number with the text in which a model has `written` it: as versions, `1.10` and `1.1` differ."""

    written: str

    def __new__(cls, written: str) -> WrittenNumber:
        """Return the number of a text that is one."""
        number = super().__new__(cls, written)
        number.written = written
        return number


def loads(source: str, *, repair: bool = False) -> Any:
    """Parse `source` as JSON; with `repair`, broken JSON is repaired as well as possible, even if it is `torn`.
    ValueError if it is not JSON and cannot be repaired, or is nested too deeply (`is_deep`).
    """
    value = _loads(source, repair=repair)
    if is_deep(value):
        raise ValueError("nested too deeply")
    return value


def is_deep(value: Any) -> bool:
    """Return whether lists and objects are nested about 100 levels deep or more: checking, storing and sending them
    recurses.
    """
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True


def _loads(source: str, *, repair: bool) -> Any:
    try:
        # Not strict: models write line breaks inside of strings as they are.
        return json.loads(source, strict=False, parse_float=WrittenNumber)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except ValueError:
        if not repair or len(source) > REPAIR_LIMIT:
            raise
    try:
        # The commonest mistake, and one that has only one meaning; the general repair guesses.
        return json.loads(_escape_backslashes(source), strict=False)
    except (ValueError, RecursionError):
        pass
    if any(token[0].startswith("'") for token in _STRINGS.finditer(source)):  # as Python writes it
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            return ast.literal_eval(_PAIR.sub(lambda pair: str(json.loads(f'"{pair[0]}"')), source.strip()))
    source = _without_ticks(source)
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(source, strict=False)
    plain, strings = _without_strings(source)
    if ambiguous(source) or ambiguous(plain):
        raise ValueError("a quote inside a string that is not escaped, or a value that is missing")
    import json_repair  # late: an idle server does without it

    try:
        return _with_strings(json_repair.loads(plain), strings)
    except (RecursionError, ValueError, IndexError, TypeError, AttributeError) as error:
        raise ValueError("not JSON") from error


def _without_ticks(source: str) -> str:
    """Return broken JSON with the values that are written between backticks, as JavaScript has them, as strings. What
    a backslash in one means is not told: ValueError for such a one, and for one without an end.
    """
    if "`" not in source:
        return source
    plain = _TICKED.sub(
        lambda token: token[0] if token["text"] is None else token["before"] + json.dumps(token["text"]), source
    )
    rest = _STRINGS.sub('""', plain)
    if _TICK.search(rest) or (plain != source and "`" in rest):
        raise ValueError("a value between backticks that is not clear")
    return plain


def _without_strings(source: str) -> tuple[str, list[str]]:
    """Return broken JSON with a number, between two signs, in the place of what each whole string in it says, and these
    texts: the general repair strips them and takes escapes out of them. Remarks are left out, as they may have quotes.
    """
    numbers: dict[str, int] = {}

    def stored(token: re.Match[str]) -> str:
        if token["remark"] is not None:
            return " "
        number = numbers.setdefault(_string_text(token[0]), len(numbers))
        return f'"{_STORED}{number}{_STORED}"'

    return _STRINGS.sub(stored, source), list(numbers)


def _with_strings(value: Any, strings: Sequence[str]) -> Any:
    """Return a repaired value with the texts that were taken out of it."""
    if isinstance(value, dict):
        return {_with_strings(key, strings): _with_strings(item, strings) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_strings(item, strings) for item in value]
    return _STORED_AT.sub(lambda at: strings[int(at[1])], value) if isinstance(value, str) else value


def _escape_backslashes(source: str) -> str:
    """Return JSON with each backslash that begins no escape as one that stands for itself."""
    return _ESCAPE.sub(lambda found: found[0] if found["good"] else r"\\", source)


def _string_text(token: str) -> str:
    """Return the text of a string of JSON, or of one of Python in single quotes. ValueError if it is none."""
    if token.startswith('"'):
        return str(json.loads(_escape_backslashes(token), strict=False))
    try:
        return str(ast.literal_eval(token.replace("\r", "\\r").replace("\n", "\\n")))
    except SyntaxError as error:
        raise ValueError("no string") from error


def loads_object(source: str, *, repair: bool = False) -> dict[str, Any] | None:
    """Return the JSON object in `source`, also one encoded in a JSON string; None for anything else, and, with
    `repair`, for a `torn` one. Never raises.
    """
    if repair and torn(source):
        return None
    try:
        value = loads(source, repair=repair)
        if isinstance(value, str):
            value = None if repair and torn(value) else loads(value, repair=repair)
    except ValueError:
        return None
    # A repair may make `{}` of a text that has no object at all.
    if isinstance(value, dict) and (value or "{" in source):
        return value
    return None


def torn(source: str) -> bool:
    """Return whether repairing the JSON would mean inventing content: it ends inside a string, or a second object
    follows the first. Callers then reject it, as a command that lost its end may do something else.
    """
    start = source.find("{")
    end = span(source, start) if start >= 0 else None
    if end is not None and not source[:start].strip():
        return source[end:].lstrip().startswith("{")
    marks = (match[0] for match in _STRUCTURE.finditer(source))
    # Never closed, with an odd number of quotes: the text ends inside a string, and where it would have gone on
    # nobody knows.
    return end is None and sum(mark == '"' for mark in marks) % 2 == 1


def ambiguous(source: str) -> bool:
    """Return whether a repair of the JSON would be a guess: two texts are adjacent, as after a quote that is not
    escaped, a value is missing, or a name comes twice.
    """
    if _PLAIN_QUOTES.match(source):  # a dictionary of Python, whose strings may hold such quotes
        return False
    names: list[set[str]] = []
    kind = before = ""
    for token in _TOKENS.finditer(source):
        last, kind, word = kind, token.lastgroup or "", token[0].strip()
        if kind == "comment":
            kind = last
        elif kind == "mark":
            if word in ",}]" and before == ":":
                return True
            if word in "{[":
                names.append(set())
            elif word in "}]" and names:
                names.pop()
            elif word == ":" and last == "string" and names:
                if before in names[-1]:
                    return True
                names[-1].add(before)
        # Two values without a comma between. Only where a name follows in a new line, or after a plain value, was it
        # just forgotten.
        elif last in ("string", "word") and "string" in (last, kind):
            is_name = kind == "string" and source[token.end() :].lstrip().startswith(":")
            if not (is_name and ("\n" in token[0][: token[0].find('"')] or _VALUE.fullmatch(before))):
                return True
        before = word
    return before == ":"


def span(source: str, start: int) -> int | None:
    """Return the offset behind the JSON object or array that begins at `start`, by its brackets outside of strings,
    whether it is valid or not; None when it never closes.
    """
    depth, inside, position = 0, False, start
    pattern = _STRUCTURE
    while match := pattern.search(source, position):
        position = match.end()
        mark = match[0]
        if mark[0] == "\\":
            continue
        if mark == '"':
            inside = not inside
        elif not inside:
            depth += 1 if mark in "{[" else -1
            if depth == 0:
                return position
    return None


_STRINGS = re.compile(
    r'"(?:[^"\\]|\\.)*"|(?<![\w)])\'(?:[^\'\\]|\\.)*\'(?=\s*[:,}\]]|\s*\Z)|(?P<remark>//[^\n]*|/\*.{0,2000}?\*/|(?<![^\s{\[,])#[^\n]*)',
    re.DOTALL,
)
_TICKED = re.compile(rf"{_STRINGS.pattern}|(?P<before>[:,\[]\s*)`(?P<text>[^`\\]*)`(?=\s*[,}}\]])", re.DOTALL)
_TICK = re.compile(r"[:,\[]\s*`")
_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")  # one character, in JSON
_STORED = "\ue000"
_STORED_AT = re.compile(f"{_STORED}(\\d+){_STORED}")
_STRUCTURE = re.compile(r'\\.|["{}\[\]]', re.DOTALL)
_PLAIN_QUOTES = re.compile(r"\s*[\[{\s]*'")
_TOKENS = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<mark>[{}\[\],:])|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<word>[^\s"{}\[\],:]+|"))',
    re.DOTALL,
)
_VALUE = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null|True|False|None")
