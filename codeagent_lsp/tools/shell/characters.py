"""Characters that a reader does not see, and a command line drawn so that every one of them shows. Pure.

Not here: what a terminal can bear (`terminal/safe.py`), file names that deceive (`workspace/sensitive.py`).
"""

from __future__ import annotations

import re
import unicodedata

_HIDDEN_KINDS = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"))
_HIDDEN_ASCII = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# Letters and marks by their class, but drawn as nothing.
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_LONG_RUN = re.compile(r" {17,}|\t{9,}|\n{4,}")


def hidden(text: str) -> tuple[str, ...]:
    """The distinct characters of `text` that are not seen: controls, direction marks, blanks other than space,
    tab and newline, unassigned ones. In order of their first place."""
    if text.isascii():
        return tuple(dict.fromkeys(_HIDDEN_ASCII.findall(text)))
    return tuple(dict.fromkeys(filter(_is_hidden, text)))


def named(char: str) -> str:
    """A character by its number: `<U+202E>`."""
    return f"<U+{ord(char):04X}>"


def shown(command: str, limit: int) -> str:
    """`command` for the user's eyes, in about `limit` characters.

    Each hidden character stands by its number, a long run of blanks by its length, so that nothing is pushed out
    of sight; what is still too long keeps its head and its tail.
    """
    plain = "".join(named(char) if _is_hidden(char) else char for char in command)
    text = _LONG_RUN.sub(_counted, plain)
    if len(text) <= limit:
        return text
    tail = max(1, limit // 2)
    head = max(1, limit - tail)
    return f"{text[:head]} <… {len(text) - head - tail} more …> {text[-tail:]}"


def _is_hidden(char: str) -> bool:
    if char in " \t\n":
        return False
    return unicodedata.category(char) in _HIDDEN_KINDS or char in _FILLERS or "\ufe00" <= char <= "\ufe0f"


def _counted(match: re.Match[str]) -> str:
    return f"<U+{ord(match[0][0]):04X} x {len(match[0])}>"
