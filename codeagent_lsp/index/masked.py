"""Takes secrets out of a text before the index keeps anything of it; lines stay where they are.

Only lines that may hold a secret are looked at closely, for most have none and a file must not take long. Not here:
what a secret looks like (`records/sanitizer.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

_NAMES = ("passw", "passphrase", "secret", "token", "apikey", "api_key", "bearer", "authoriz", "-----", "://")
_LONG = re.compile(r"[A-Za-z0-9+/_=.~-]{16,}")
_DIGIT = re.compile(r"[0-9]")
_NEAR = 1  # lines between two suspects that are looked at with them: a key stands on many lines


def masked(text: str) -> str:
    """Return the text with marks in the place of secrets, and as many lines."""
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
    """Spans of whole lines that may hold secrets, those that stand close together as one."""
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
    """Return where something stands that may be a secret or the name of one, in order."""
    found = [match.start() for match in _LONG.finditer(text) if _DIGIT.search(match[0])]
    lower = text.lower()
    if len(lower) != len(text):  # letters that have no lower case of one character
        lower = text
    for name in _NAMES:
        at = lower.find(name)
        while at >= 0:
            found.append(at)
            at = lower.find(name, at + 1)
    return sorted(found)


def _as_long(hidden: str, block: str) -> str:
    """A secret of several lines leaves one mark; the lines behind it keep their numbers."""
    return hidden + "\n" * (block.count("\n") - hidden.count("\n"))


@cache
def _sanitize() -> Callable[[str], str]:
    from codeagent_lsp.records.sanitizer import Sanitizer  # late: it is heavy, and many workspaces have no suspects

    return Sanitizer(identities=False, homes=()).text
