"""The first layer of the sanitizer: keys that this program itself holds, in any encoding.

Each key is searched for as it is, in hex, in Base64 of both alphabets and Base32 at any alignment, URL-quoted, escaped
for JSON, HTML, C or a shell, as numbers, reversed, and split into pieces that are joined again. Each encoding of a key
has a mark of its own, as what stood there is put back for it. Keys can be added later, such as tokens of a login.
Not here: other secrets (`fixed_forms.py`, `assignments.py`, ...).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from codeagent_lsp.records.mark import Mark

LEAST = 8  # a shorter one would also be found in ordinary words
_JOINTS = dict.fromkeys(map(ord, " \t\r\n\"'`+\\,.&<>()"))
_JOINT = r"[ \t\r\n\"'`+\\,.&<>()]{0,80}"
MOST_LEARNT = 64  # tokens are renewed for as long as a server runs


class OwnSecrets:
    """Finds this program's own keys, of at least 8 characters, in any encoding. `version` grows when `learn` adds some.
    Safe to learn in one thread and mask in others.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self.version = 0
        self._given = _usable(secrets)
        self._learnt: tuple[str, ...] = ()
        self._writings = _sorted_writings(self._given)

    def learn(self, secrets: Iterable[str]) -> None:
        """Add secrets to find; those of fewer than 8 characters are ignored. Of all that were ever added, the last 64
        are kept, besides those given at the start.
        """
        new = [secret for secret in _usable(secrets) if secret not in self._given]
        learnt = (*(secret for secret in self._learnt if secret not in new), *new)[-MOST_LEARNT:]
        if learnt == self._learnt:
            return
        self._learnt = learnt
        self._writings = _sorted_writings((*self._given, *learnt))
        self.version += 1  # last: readers of the new version must find them

    @property
    def longest(self) -> int:
        """The length in characters of the longest encoded secret, which a stream has to hold back."""
        return len(self._writings[0]) if self._writings else 0

    def mask(self, text: str, mark: Mark) -> str:
        """Return `text` with every encoding of a secret replaced by what `mark` returns for that encoding."""
        # The longest first, as a short one may be a part of it.
        for writing in self._writings:
            if writing in text:
                text = text.replace(writing, mark(writing))
        return self._without_pieces(text, mark)

    def _without_pieces(self, text: str, mark: Mark) -> str:
        """Return `text` with keys replaced that stand in it in pieces, as in `"abc" + "def"` or over several lines."""
        secrets = (*self._given, *self._learnt)
        if not secrets:
            return text
        whole = text.translate(_JOINTS)
        for secret in secrets:
            bare = secret.translate(_JOINTS)
            if len(bare) >= LEAST and bare in whole:
                pattern = _JOINT.join(map(re.escape, bare))
                text = re.sub(pattern, lambda match: mark(match[0]), text)
        return text


def _usable(secrets: Iterable[str]) -> tuple[str, ...]:
    known = dict.fromkeys(secret.strip() for secret in secrets)
    return tuple(secret for secret in known if len(secret) >= LEAST)


def _sorted_writings(secrets: Iterable[str]) -> list[str]:
    """Return every encoding of the secrets, the longest first."""
    found = {writing for secret in secrets for writing in _writings(secret)}
    return sorted(found, key=lambda writing: (-len(writing), writing))


def _writings(secret: str) -> Iterator[str]:
    import html  # late: its tables are large, and an idle server does without them

    data = secret.encode("utf-8", "surrogateescape")
    candidates = [secret, secret[::-1], data.hex(), data.hex().upper(), html.escape(secret)]
    candidates += [quote(data, safe=""), quote_plus(data), quote(data, safe="").lower()]
    candidates += [json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]]
    # As JSON in JSON, without the quotes and backslashes around it.
    candidates += [json.dumps(json.dumps(secret))[3:-3]]
    candidates += _as_numbers(data)
    # Five bytes make eight characters in Base32, three make four in Base64: a key may begin at any of these bytes.
    for shift in range(5):
        core = _base32_core(data, shift)
        candidates += [core, core.lower()]
    for shift in range(3):
        core = _base64_core(data, shift)
        candidates += [core, core.translate(str.maketrans("+/", "-_"))]
    return (candidate for candidate in candidates if len(candidate) >= LEAST)


def _as_numbers(data: bytes) -> list[str]:
    """Return the spellings of every byte by its number: escapes of C, shells, JSON, HTML and URLs, lists."""
    forms = ("\\x%02x", "\\x%02X", "\\u%04x", "\\u%04X", "\\%03o", "%%%02x", "%%%02X", "&#%d;", "&#x%02x;", "&#x%02X;")
    found = ["".join(form % byte for byte in data) for form in forms]
    for between in (", ", ",", " "):
        found += [between.join(form % byte for byte in data) for form in ("%d", "0x%02x", "0x%02X", "%02x")]
    return [*found, data.hex(":"), data.hex(":").upper(), data.hex(" ").upper(), data.hex("-")]


def _base32_core(data: bytes, shift: int) -> str:
    """Return the substring that the Base32 of any data contains which has `data` at an offset of `shift` modulo 5."""
    encoded = base64.b32encode(b"\0" * shift + data).decode("ascii").rstrip("=")
    # Characters at the edges also have bits of the data around, which are not known: only those between are the same.
    head = (shift * 8 + 4) // 5
    tail = len(encoded) - (1 if (shift + len(data)) % 5 else 0)
    return encoded[head:tail]


def _base64_core(data: bytes, shift: int) -> str:
    """Return the substring that the Base64 of any data contains which has `data` at an offset of `shift` modulo 3."""
    encoded = base64.b64encode(b"\0" * shift + data).decode("ascii").rstrip("=")
    head = (shift * 8 + 5) // 6
    tail = len(encoded) - (1 if (shift + len(data)) % 3 else 0)
    return encoded[head:tail]
