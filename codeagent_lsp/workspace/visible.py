"""Makes text that nobody vouches for plain to see: what is invisible, or changes the reading order, is written out.

Emoji keep the joiners and selectors they are made of. Not here: the exact showing of a call before it is approved
(`tools/executor.py`), where even those are escaped.
"""

from __future__ import annotations

import re
import unicodedata

_TAGS = re.compile("[\U000e0000-\U000e007f]+")
_SELECTORS = re.compile("[\U000e0100-\U000e01ef]+")
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|[@-_])?")
_JOINER, _EMOJI_STYLE = "\u200d", "\ufe0f"
_BLANK = frozenset("\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800\u034f\u061c\u180e")
_PLAIN = re.compile(r"[\n\t\x20-\x7e]*")


def visible(text: str) -> str:
    """`text` with everything unseen escaped, and words hidden in tag characters in readable letters."""
    if _PLAIN.fullmatch(text):
        return text
    text = _ANSI.sub("", text.replace("\r\n", "\n").removeprefix("\ufeff"))
    text = _SELECTORS.sub(lambda match: f"[{len(match[0])} hidden characters]", _TAGS.sub(_told, text))
    return "".join(char if _seen(char) or _in_emoji(text, index) else _escaped(char) for index, char in enumerate(text))


def has_unseen(text: str) -> bool:
    """Whether `text` holds anything that its reader would not see."""
    return visible(text) != text.replace("\r\n", "\n").removeprefix("\ufeff")


def one_line(text: str, limit: int) -> str:
    """`text` visible, on one line, of at most `limit` characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= limit else line[: max(0, limit - 1)] + "…"


def _told(match: re.Match[str]) -> str:
    letters = "".join(chr(ord(char) - 0xE0000) for char in match[0] if ord(char) >= 0xE0020)
    return f"[hidden: {letters.rstrip(chr(0x7F))}]"


def _seen(char: str) -> bool:
    return char in "\n\t" or (char.isprintable() and char not in _BLANK and not "\ufe00" <= char <= _EMOJI_STYLE)


def _in_emoji(text: str, index: int) -> bool:
    """Whether the character at `index` joins or styles a picture, as in families and hearts."""
    before, after = text[index - 1 : index], text[index + 1 : index + 2]
    if text[index] == _EMOJI_STYLE:
        return bool(before) and (_is_picture(before) or before in "#*0123456789")
    return text[index] == _JOINER and bool(before and after) and _is_picture(before) and _is_picture(after)


def _is_picture(char: str) -> bool:
    return unicodedata.category(char) in ("So", "Sk") or char in (_EMOJI_STYLE, "\u2640", "\u2642")


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
