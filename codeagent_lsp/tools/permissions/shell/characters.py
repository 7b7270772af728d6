"""Display of a command line with every character visible, and detection of invisible characters. Pure functions.

Not here: which characters those are (`workspace/text/unseen.py`), what a terminal can bear (`terminal/safe.py`), file
names that deceive (`workspace/files/sensitive.py`).
"""

from __future__ import annotations

import re

from codeagent_lsp.workspace.text.unseen import is_odd, numbered, shown_exactly

_HIDDEN_ASCII = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_LONG_RUN = re.compile(r" {17,}|\t{9,}|\n{4,}")


def hidden(text: str) -> tuple[str, ...]:
    """Return the distinct invisible characters of `text` in order of their first occurrence: controls, direction marks,
    blanks other than space, tab and newline, unassigned ones.
    """
    if text.isascii():
        return tuple(dict.fromkeys(_HIDDEN_ASCII.findall(text)))
    return tuple(dict.fromkeys(filter(is_odd, text)))


def shown(command: str, limit: int) -> str:
    """Return `command` for display, in about `limit` characters.

    Each hidden character is shown by its number and a long run of blanks by its length, so that nothing is pushed out
    of sight; text that is still too long keeps its head and its tail.
    """
    text = _LONG_RUN.sub(_counted, shown_exactly(command))
    if len(text) <= limit:
        return text
    tail = max(1, limit // 2)
    head = max(1, limit - tail)
    return f"{text[:head]} <… {len(text) - head - tail} more …> {text[-tail:]}"


def _counted(match: re.Match[str]) -> str:
    return f"{numbered(match[0][0])[:-1]} x {len(match[0])}>"
