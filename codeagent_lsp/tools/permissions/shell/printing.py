"""Prediction of what a few commands print, if the script itself holds their input. Pure functions.

With it, `echo … | base64 -d | sh` is read as the script that it runs. For denial only: None means unknown.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

_PASSING = frozenset(("cat", "tee", "head", "tail", "sort", "uniq"))


def printed(name: str, arguments: Sequence[str], stdin: str | None) -> str | None:
    """Return the output of the command `name` with the input `stdin`; None if unknown."""
    if name in ("echo", "printf"):
        words = [word for word in arguments if not word.startswith("-")]
        if name == "printf" and len(words) > 1 and "%" in words[0]:
            words = words[1:]
        return " ".join(words).replace("\\n", "\n")
    if name in ("find", "gfind"):
        return _found(arguments)
    if stdin is None:
        return None
    if name in ("base64", "gbase64") and set(arguments) & {"-d", "-D", "-di", "--decode"}:
        return _base64(stdin)
    if name == "xxd" and any("r" in word for word in arguments):
        return _hexadecimal(stdin)
    if name == "rev":
        return "\n".join(line[::-1] for line in stdin.split("\n"))
    return stdin if name in _PASSING else None


def _found(arguments: Sequence[str]) -> str | None:
    """Return the folders that `find` starts in, the first that it prints, unless a test could leave them out."""
    first = next((place for place, word in enumerate(arguments) if word.startswith(("-", "(", "!"))), len(arguments))
    free = all(word.startswith("-print") or word in ("-depth", "-xdev", "-mount") for word in arguments[first:])
    return "\n".join(arguments[:first]) if free else None


def _base64(text: str) -> str | None:
    try:
        return base64.b64decode(text).decode(errors="replace")
    except (binascii.Error, ValueError):
        return None


def _hexadecimal(text: str) -> str | None:
    try:
        return bytes.fromhex(text).decode(errors="replace")
    except ValueError:
        return None
