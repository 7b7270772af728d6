"""The words of a search over runs, as SQLite's full-text search understands them. Pure.

Languages that are written without spaces are kept and asked for character by character: an invisible separator stands
between them. Not here: the database (`run_history.py`).
"""

from __future__ import annotations

import re
import unicodedata

PREFIX = 3
"""A last word of so many characters may be the beginning of one."""
EXCERPT_CHARS = 160
SEPARATOR = "\u200b"
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff])"
)
_WORD = re.compile(r"\w+")


def separated(words: str) -> str:
    """Return text with separators between characters that stand for words or syllables, and with composed letters."""
    return _UNSPACED.sub(rf"\1{SEPARATOR}", unicodedata.normalize("NFC", words))


def shown(words: str) -> str:
    """Return kept text as the user wrote it."""
    return words.replace(SEPARATOR, "")


def expressions(query: str) -> tuple[str, ...]:
    """Return expressions to try in turn: all words, the last of which may go on, then any of them."""
    phrases = [" ".join(_WORD.findall(separated(each))) for each in query.split()]
    quoted = [f'"{phrase}"' for phrase in phrases if phrase]
    if not quoted:
        return ()
    goes_on = " *" if len(phrases[-1]) >= PREFIX else ""
    every = " AND ".join(quoted) + goes_on
    return (every, " OR ".join(quoted)) if len(quoted) > 1 else (every,)


def excerpt(words: str, query: str) -> str:
    """Return the words around the first place where one of the query stands, in one line."""
    flat = " ".join(words.split())
    low = flat.lower()
    places = [low.find(word) for word in _WORD.findall(query.lower())]
    at = min((place for place in places if place >= 0), default=0)
    start = max(0, at - EXCERPT_CHARS // 3)
    piece = flat[start : start + EXCERPT_CHARS]
    return f"{'…' if start else ''}{piece}{'…' if start + EXCERPT_CHARS < len(flat) else ''}"
