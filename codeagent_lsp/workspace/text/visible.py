"""Makes text that nobody vouches for plain to see: what is invisible, or changes the reading order, is written out.

Control sequences of terminals are dropped, words hidden in tag characters are told in letters; which other characters
are unseen says `workspace/text/unseen.py`. Not here: the exact showing of a call before it is approved.
"""

from __future__ import annotations

import re

from codeagent_lsp.workspace.text.unseen import escaped, shown

_TAGS = re.compile("[\U000e0000-\U000e007f]+")
_SELECTORS = re.compile("[\U000e0100-\U000e01ef]+")
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|[@-_])?")


def visible(text: str) -> str:
    """`text` with everything unseen escaped, and words hidden in tag characters in readable letters."""
    text = _ANSI.sub("", text.replace("\r\n", "\n").removeprefix("\ufeff"))
    if text.isascii():
        return shown(text, escaped)
    text = _SELECTORS.sub(lambda match: f"[{len(match[0])} hidden characters]", _TAGS.sub(_told, text))
    return shown(text, escaped)


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
