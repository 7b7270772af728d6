"""Makes any text safe to print: no control sequence and no invisible direction mark reaches the terminal. Pure."""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180b-\u180e\u200b\u200e\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
# These make up emoji and some scripts, where they follow other characters; behind ASCII they only hide.
_JOINERS = re.compile(r"(?<=[\x00-\x7f])(?!\ufe0f\u20e3)[\u200c\u200d\ufe00-\ufe0f]+")


def visible(text: str) -> str:
    """`text` with line ends as `\\n`, and every other control or invisible character shown by its number."""
    return _JOINERS.sub(_named, _UNSAFE.sub(_named, text.replace("\r\n", "\n")))


def one_line(text: str, width: int = 200) -> str:
    """`text` on one line of at most `width` characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= width else line[: max(0, width - 1)] + "…"


def _named(match: re.Match[str]) -> str:
    return "".join(f"<U+{ord(char):04X}>" for char in match[0])
