"""Marks that replace secrets: `<secret:3f2a9c>`, equal for equal secrets within one process.

The digits are a keyed BLAKE2b hash whose key is random per process, so guesses cannot be tested against a record.
Not here: finding secrets (`own.py`, `blocks.py`, `vendors.py`, `urls.py`, `assignments.py`).
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable

Mark = Callable[[str], str]

MARK = re.compile(r"<secret:[0-9a-f]{6}>")

_EDGE = 4
_STARS = "***"


class Marker:
    """Makes marks with one key. Calling it with a secret returns its mark; a mark is returned unchanged."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = secrets.token_bytes(32) if key is None else key

    def __call__(self, secret: str) -> str:
        """Return the mark of `secret`."""
        if MARK.fullmatch(secret):
            return secret
        digest = hashlib.blake2b(secret.encode("utf-8", "surrogatepass"), key=self._key, digest_size=3)
        return f"<secret:{digest.hexdigest()}>"


def mask_id(value: str) -> str:
    """Return an identifier reduced to its first and last 4 characters; only stars for 8 characters or less."""
    if len(value) <= 2 * _EDGE:
        return _STARS
    return f"{value[:_EDGE]}{_STARS}{value[-_EDGE:]}"
