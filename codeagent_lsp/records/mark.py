"""What stands where a secret stood: `<secret:3f2a9c>`, the same for equal secrets within one process.

The digits are a keyed hash whose key is random per process, so that nobody can test guesses against a record.
Not here: finding secrets (`own.py`, `blocks.py`, `vendors.py`, `urls.py`, `assignments.py`).
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable

Mark = Callable[[str], str]
Layer = Callable[[str, Mark], str]

MARK = re.compile(r"<secret:[0-9a-f]{6}>")

_EDGE = 4
_STARS = "****"


class Marker:
    """Makes marks. Calling it with a secret gives its mark; a mark stays what it is."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = secrets.token_bytes(32) if key is None else key

    def __call__(self, secret: str) -> str:
        """Return the mark of `secret`."""
        if MARK.fullmatch(secret):
            return secret
        digest = hashlib.blake2b(secret.encode("utf-8", "surrogatepass"), key=self._key, digest_size=3)
        return f"<secret:{digest.hexdigest()}>"


def mask_id(value: str) -> str:
    """An identity down to its first and last 4 characters; nothing of one that is hardly longer."""
    if len(value) <= 2 * _EDGE:
        return _STARS
    return f"{value[:_EDGE]}{_STARS}{value[-_EDGE:]}"
