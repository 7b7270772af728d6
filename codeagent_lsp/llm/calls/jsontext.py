"""Tolerant parsing of JSON as models write it: strictly first, then repaired if asked for.

Not here: the meaning of the JSON (`dialects.py`, `schema.py`).
"""

from __future__ import annotations

import json
import re
from typing import Any

REPAIR_LIMIT = 1_000_000

_BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrtu]|u[0-9a-fA-F]{4})')


def loads(source: str, *, repair: bool = False) -> Any:
    """Parse `source` as JSON; with `repair`, broken JSON is repaired as well as possible, also where it is `torn`.
    ValueError if it is none.
    """
    try:
        return json.loads(source, strict=False)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except ValueError:
        if not repair or len(source) > REPAIR_LIMIT:
            raise
    try:
        return json.loads(_BAD_ESCAPE.sub(r"\\\\", source), strict=False)
    except (ValueError, RecursionError):
        pass
    import json_repair  # late: an idle server does without it

    try:
        return json_repair.loads(source)
    except (RecursionError, ValueError, IndexError, TypeError, AttributeError) as error:
        raise ValueError("not JSON") from error


def loads_object(source: str, *, repair: bool = False) -> dict[str, Any] | None:
    """Return the JSON object in `source`, also one encoded in a JSON string; None for anything else, and for a `torn`
    one.
    """
    if repair and torn(source):
        return None
    try:
        value = loads(source, repair=repair)
        if isinstance(value, str):
            value = None if repair and torn(value) else loads(value, repair=repair)
    except ValueError:
        return None
    if isinstance(value, dict) and (value or "{" in source):
        return value
    return None


def torn(source: str) -> bool:
    """Return whether a repair of the JSON would invent what it says: it ends inside a string, or a second object
    follows the first. A command that lost its end is another command.
    """
    start = source.find("{")
    end = span(source, start) if start >= 0 else None
    if end is not None and not source[:start].strip():
        return source[end:].lstrip().startswith("{")
    marks = (match[0] for match in _STRUCTURE.finditer(source))
    return end is None and sum(mark == '"' for mark in marks) % 2 == 1


def span(source: str, start: int) -> int | None:
    """Return the offset behind the JSON object or array that begins at `start`; None when it never closes."""
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


_STRUCTURE = re.compile(r'\\.|["{}\[\]]', re.DOTALL)
