"""Makes any text safe to print: no control sequence and no invisible direction mark reaches the terminal. Pure."""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """`text` with line ends as `\\n`, and every other control or invisible character shown by its number."""
    return _UNSAFE.sub(_named, text.replace("\r\n", "\n"))


def one_line(text: str, width: int = 200) -> str:
    """`text` on one line of at most `width` characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= width else line[: max(0, width - 1)] + "…"


def _named(match: re.Match[str]) -> str:
    return f"<U+{ord(match[0]):04X}>"
