"""Display of untrusted text: invisible characters and those that change the reading order are written out.

Terminal control sequences are removed and text hidden in Unicode tag characters is decoded; the table of invisible
characters is in `workspace/text/unseen.py`. Not here: the exact display of a call before it is approved.
"""

from __future__ import annotations

import re

from codeagent_lsp.texts import text as words
from codeagent_lsp.workspace.text.unseen import escaped, shown

_TAGS = re.compile("[\U000e0000-\U000e007f]+")
_SELECTORS = re.compile("[\U000e0100-\U000e01ef]+")
# CSI, OSC (titles, links) up to its end, two-character sequences, and a lone ESC.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|[@-_])?")


def visible(text: str) -> str:
    """Return `text` with invisible characters escaped, ANSI sequences removed and hidden tag characters decoded."""
    text = _ANSI.sub("", text.replace("\r\n", "\n").removeprefix("\ufeff"))
    if text.isascii():
        return shown(text, escaped)
    text = _SELECTORS.sub(lambda match: f"[{len(match[0])} hidden characters]", _TAGS.sub(_told, text))
    return shown(text, escaped)


def has_unseen(text: str) -> bool:
    """Return whether `visible` would change `text`, apart from its line ends and byte-order mark."""
    return visible(text) != text.replace("\r\n", "\n").removeprefix("\ufeff")


def one_line(text: str, limit: int) -> str:
    """Return `text` made visible, with all whitespace runs as one space, cut to `limit` characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= limit else line[: max(0, limit - 1)] + "…"


def cut_at_word(line: str, limit: int) -> str:
    """Return `line`; of one longer than `limit` characters what fits of it with a "…", up to the end of a word unless
    that word is long.
    """
    if len(line) <= limit:
        return line
    head = line[: limit - 1]
    at_end = head if line[limit - 1].isspace() else head.rpartition(" ")[0]
    return (at_end if len(at_end) > limit // 2 else head).rstrip() + "…"


def ends_of(text: str, limit: int, language: str = "en") -> str:
    """Return `text`; of one longer than `limit` characters its head and tail, with the length of what is left out."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    left = words("text.left_out", language, count=f"{len(text) - limit:,}")
    return f"{text[: limit - tail]} {left} {text[len(text) - tail :]}"


def _told(match: re.Match[str]) -> str:
    # From U+E0020 on the block repeats ASCII; what is below are marks of a language.
    letters = "".join(chr(ord(char) - 0xE0000) for char in match[0] if ord(char) >= 0xE0020)
    return f"[hidden: {letters.rstrip(chr(0x7F))}]"
