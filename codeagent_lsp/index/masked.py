"""Masking of secrets in a text before the index stores any of it; line numbers do not change.

For speed, only lines that may contain a secret are passed to the sanitizer. Not here:
detecting secrets (`records/sanitizer.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

_NAMES = ("passw", "passphrase", "secret", "token", "apikey", "api_key", "bearer", "authoriz", "-----", "://")
_LONG = re.compile(r"[A-Za-z0-9+/_=.~-]{16,}")
_DIGIT = re.compile(r"[0-9]")
_NEAR = 1  # lines between two suspects that are examined with them: a key may have many lines


def masked(text: str) -> str:
    """Return the text with secrets replaced by marks, with as many lines as before."""
    pieces: list[str] = []
    end = 0
    for start, stop in _blocks(text):
        block = text[start:stop]
        hidden = _sanitize()(block)
        if hidden != block:
            pieces += (text[end:start], _as_long(hidden, block))
            end = stop
    return "".join((*pieces, text[end:])) if pieces else text


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield spans of whole lines that may contain secrets, neighbouring ones joined."""
    begun = ended = -1
    for at in _suspects(text):
        if at < ended:
            continue
        start, stop = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        if begun >= 0 and text.count("\n", ended, start) > _NEAR + 1:
            yield begun, ended
            begun = -1
        begun, ended = (start if begun < 0 else begun), (len(text) if stop < 0 else stop)
    if begun >= 0:
        yield begun, ended


def _suspects(text: str) -> list[int]:
    """Return the offsets of possible secrets or names of secrets, in order."""
    found = [match.start() for match in _LONG.finditer(text) if _DIGIT.search(match[0])]
    lower = text.lower()
    if len(lower) != len(text):  # a letter whose lower case has more than one character
        lower = text
    for name in _NAMES:
        at = lower.find(name)
        while at >= 0:
            found.append(at)
            at = lower.find(name, at + 1)
    return sorted(found)


def _as_long(hidden: str, block: str) -> str:
    """Append the line ends that were lost with a secret of several lines."""
    return hidden + "\n" * (block.count("\n") - hidden.count("\n"))


@cache
def _sanitize() -> Callable[[str], str]:
    from codeagent_lsp.records.sanitizer import Sanitizer  # late: it is heavy, and many workspaces have no suspects

    return Sanitizer(identities=False, homes=()).text
