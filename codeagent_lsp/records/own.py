"""The first layer: keys we hold ourselves, wherever and however they are written.

Each is looked for as it is, in hex, Base64 of both alphabets at any alignment, URL-quoted, escaped for JSON or HTML,
and reversed. All writings of one key get the same mark. Keys may come later, as tokens of a login do. Not here: secrets
of others.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from codeagent_lsp.records.mark import Mark

LEAST = 8  # a shorter one would also be found in ordinary words
MOST_LEARNT = 64  # tokens are renewed for as long as a server runs


class OwnSecrets:
    """Finds `secrets`; those shorter than `LEAST` characters are left out. `version` grows when it learns; it may learn
    in one thread and mask in others.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self.version = 0
        self._given = _usable(secrets)
        self._learnt: tuple[str, ...] = ()
        self._writings = _sorted_writings(self._given)

    def learn(self, secrets: Iterable[str]) -> None:
        """Find these from now on, too; of all that were ever learnt, the last `MOST_LEARNT`."""
        new = [secret for secret in _usable(secrets) if secret not in self._given]
        learnt = (*(secret for secret in self._learnt if secret not in new), *new)[-MOST_LEARNT:]
        if learnt == self._learnt:
            return
        self._learnt = learnt
        self._writings = _sorted_writings((*self._given, *learnt))
        self.version += 1  # last: whoever sees it finds them

    @property
    def longest(self) -> int:
        """The length of the longest writing; what a stream has to hold back."""
        return len(self._writings[0][0]) if self._writings else 0

    def mask(self, text: str, mark: Mark) -> str:
        """`text` with every writing of a secret replaced by the secret's mark."""
        for writing, secret in self._writings:
            if writing in text:
                text = text.replace(writing, mark(secret))
        return text


def _usable(secrets: Iterable[str]) -> tuple[str, ...]:
    known = dict.fromkeys(secret.strip() for secret in secrets)
    return tuple(secret for secret in known if len(secret) >= LEAST)


def _sorted_writings(secrets: Iterable[str]) -> list[tuple[str, str]]:
    """Every writing with its secret, the longest first."""
    found = {writing: secret for secret in sorted(secrets) for writing in _writings(secret)}
    return sorted(found.items(), key=lambda pair: (-len(pair[0]), pair[0]))


def _writings(secret: str) -> Iterator[str]:
    import html  # late: its tables are large, and an idle server does without them

    data = secret.encode("utf-8", "surrogateescape")
    candidates = [secret, secret[::-1], data.hex(), data.hex().upper(), html.escape(secret)]
    candidates += [quote(data, safe=""), quote_plus(data), quote(data, safe="").lower()]
    candidates += [json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]]
    candidates += [json.dumps(json.dumps(secret))[3:-3]]
    for shift in range(3):
        core = _base64_core(data, shift)
        candidates += [core, core.translate(str.maketrans("+/", "-_"))]
    return (candidate for candidate in candidates if len(candidate) >= LEAST)


def _base64_core(data: bytes, shift: int) -> str:
    """What the Base64 of anything that has `data` at an offset of `shift` modulo 3 contains."""
    encoded = base64.b64encode(b"\0" * shift + data).decode("ascii").rstrip("=")
    head = (shift * 8 + 5) // 6
    tail = len(encoded) - (1 if (shift + len(data)) % 3 else 0)
    return encoded[head:tail]
