"""The common basis of all searches for secrets: the marks that replace them, `<secret:3f2a9c>`, equal for equal secrets
within one process, and the search for plain words, many times faster than patterns, most of which need one word.

The digits are a keyed BLAKE2b hash whose key is random per process, so guesses cannot be tested against a record. Not
here: finding secrets (`own.py`, `fixed_forms.py`, `http_secrets.py`, `assignments.py`).
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

Mark = Callable[[str], str]

MARK = re.compile(r"<secret:[0-9a-f]{6}>")
# As programs write `<`, `:` and `>` in JSON, HTML and addresses, or all of it in capitals.
_OTHER_MARK = re.compile(
    r"(?:<|&lt;|&#60;|%3c|\\u003c|\\x3c)secret(?::|%3a|&#58;|\\u003a)(?P<digits>[0-9a-f]{6})(?:>|&gt;|&#62;|%3e|\\u003e|\\x3e)",
    re.IGNORECASE,
)
_BROKEN_MARK = re.compile(
    r"<secret:(?![0-9a-f]{6}>)[0-9a-f]{0,8}(?=[\s\"'`<>,;)\]}\\]|\Z)|(?<![<\w])secret:[0-9a-f]{6}\b>?"
    r"|[<\[(](?i:secret|redacted|hidden|masked)[>\])]|(?:(?<=[\"'=])|(?<=[=:][ ]))\*{3,}(?=[\"'\s]|\Z)"
)
_INSTEAD = ("secret:", "secret>", "secret]", "secret)", "redacted", "hidden", "masked", "***")

_EDGE = 4
_STARS = "***"


def respelt_marks(text: str) -> dict[str, str]:
    """Return the marks that a text has in another spelling, such as `&lt;secret:3f2a9c&gt;`: a mapping from the proper
    mark to that spelling, the last one of several.
    """
    found = _OTHER_MARK.finditer(text) if "secret" in text or "SECRET" in text or "Secret" in text else ()
    return {f"<secret:{each['digits'].lower()}>": each[0] for each in found if not MARK.fullmatch(each[0])}


def broken_marks(text: str) -> tuple[str, ...]:
    """Return what a text has in the place of marks, in order: incomplete ones, such as `<secret:3f2a`, their digits
    without signs, stars, `[redacted]`; () if there is nothing of it.
    """
    lower = text.lower()
    return tuple(_BROKEN_MARK.findall(text)) if any(sign in lower for sign in _INSTEAD) else ()


def mark_spans(text: str, spans: Iterable[tuple[int, int]], mark: Mark) -> str:
    """Return `text` with each of its `spans` (character offsets, in order) replaced by what `mark` returns for it. A
    span that begins inside the one before is left out.
    """
    parts, position = list[str](), 0
    for start, end in spans:
        if start >= position:
            parts += [text[position:start], mark(text[start:end])]
            position = end
    return "".join((*parts, text[position:])) if parts else text


class Marker:
    """Makes marks such as `<secret:3f2a9c>` with one random key, equal for equal secrets. Calling it with a secret
    returns its mark; a mark is returned unchanged.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = secrets.token_bytes(32) if key is None else key

    def __call__(self, secret: str) -> str:
        """Return the mark of `secret`."""
        if MARK.fullmatch(secret):
            return secret
        digest = hashlib.blake2b(secret.encode("utf-8", "surrogatepass"), key=self._key, digest_size=3)
        return f"<secret:{digest.hexdigest()}>"


def mask_id(value: str) -> str:
    """Return an identifier reduced to its first and last 4 characters with `***` between; only `***` for 8 characters
    or fewer.
    """
    if len(value) <= 2 * _EDGE:
        return _STARS
    return f"{value[:_EDGE]}{_STARS}{value[-_EDGE:]}"


_ASCII_LOWER = {code: code + 32 for code in range(65, 91)}


def places(text: str, *words: str) -> Iterator[int]:
    """Yield the 0-based offsets of these words in a text, all of the first word, then of the next; overlapping ones
    too.
    """
    # Hundreds of words are looked for in every text, and most texts have none of most: that is told by the different
    # words of the text, which are much shorter than it.
    known = _different_words(text) if _LONG <= len(text) <= _LONGEST else text
    for word in words:
        if _longest_part(word) not in known:
            continue
        at = text.find(word)
        while at >= 0:
            yield at
            at = text.find(word, at + 1)


_LONG = 1_000  # characters, from which on a text says most words more than once
_LONGEST = 1_000_000  # of a text that is kept
_PIECE = 16_000  # characters that are taken apart at a time
_PART = re.compile(r"\w+")
_BETWEEN_WORDS = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) == "_")}


@lru_cache(maxsize=2)  # a text is masked in many steps, and in small letters, too
def _different_words(text: str) -> str:
    # Of other scripts, whose letters are not looked up as fast, what stands between blanks.
    plain = text.translate(_BETWEEN_WORDS) if text.isascii() else text
    words: set[str] = set()
    at = 0
    while at < len(plain):  # all words at once are ten times the text
        end = plain.find(" ", at + _PIECE)
        end = len(plain) if end < 0 else end
        words.update(plain[at:end].split())
        at = end
    return "\n".join(words)


@lru_cache(maxsize=2048)
def _longest_part(word: str) -> str:
    return max(_PART.findall(word), key=len, default="")


@lru_cache(maxsize=1)
def lower_in_place(text: str) -> str:
    """Return a text in lower case in which every character keeps its offset."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text.translate(_ASCII_LOWER)


def replace_matches(
    at: Iterable[int], text: str, pattern: re.Pattern[str], made: Callable[[re.Match[str]], str], behind: int = 0
) -> str:
    """Return a text with the matches of a pattern replaced by what `made` returns. Only the lines around the offsets
    `at` are searched, each with `behind` more lines after it.
    """
    spans: list[tuple[int, int]] = []
    for place in sorted(at):
        if spans and place < spans[-1][1] and not behind:
            continue
        start, end = text.rfind("\n", 0, place) + 1, place
        for _ in range(1 + behind):
            end = text.find("\n", end) + 1 or len(text)
        joined = spans.pop() if spans and start < spans[-1][1] else (start, end)
        spans.append((joined[0], end))
    pieces, done = [], 0
    for start, end in spans:
        pieces += [text[done:start], pattern.sub(made, text[start:end])]
        done = end
    return "".join((*pieces, text[done:])) if spans else text
