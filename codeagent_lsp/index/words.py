"""Words of code and of questions about code: identifiers split, stop words, light stemming, Chinese in pairs.

Pure text work. Not here: what the words are searched in (`lexical.py`) and how much each counts (`rank.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

MAX_QUESTION = 20_000
LONGEST_WORD = 40

_TOKEN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*|[0-9]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_ANY_TOKEN = re.compile(rf"[{_HAN}]+|(?:(?![{_HAN}])[\w$])+")
_ANY_PART = re.compile(rf"[{_HAN}]+|[A-Z]+(?![a-z])|[A-Z]?(?:(?![{_HAN}A-Z])[^\W\d_])+|[0-9]+")
_IS_HAN = re.compile(rf"[{_HAN}]")
_CAMEL = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_SPAN = re.compile(r"`+([^`\n]{1,200})`+")
_PATH = r"(?<![\w./\\-])(?:[A-Za-z]:)?[\w.@+\\/-]*[\w-]\.[A-Za-z][A-Za-z0-9]{0,9}\b(?!\()"
_FOLDER = r"(?<![\w./:-])(?:\.{0,2}/)?[\w.-]+(?:/[\w.-]+)+/?"
_PLACES = [re.compile(pattern, flags) for pattern in (_PATH, _FOLDER) for flags in (re.ASCII, re.UNICODE)]
_FRAME = re.compile(
    r'File "([^"\n]+)", line \d+, in ([\w<>]+)|\bat (?:async )?([\w$.<>]+) \(([^()\n]+?):\d+(?::\d+)?\)'
)
_CALL = re.compile(r"\b([A-Za-z_$][\w$]*)\(\)?", re.ASCII)
_DOTTED = re.compile(r"\b[A-Za-z_]\w*(?:(?:\.|::|#|->)[A-Za-z_]\w*)+", re.ASCII)
_WORDS = """
    a about above after again all also am an and any are as at be because been before being below between both but by
    can cannot could did do does doing done down during each etc few for from further had has have having he her here
    hers him his how i if in into is it its itself just let me more most my no nor not now of off on once only or other
    our ours out over own please same she should so some such than that the their theirs them then there these they
    this those through to too under until up us very via was we were what when where which while who whom why will
    with would you your yours e g ie eg
    self cls def
"""
STOP_WORDS = frozenset(_WORDS.split())


@dataclass(frozen=True, slots=True)
class Question:
    """What a request says: its words, how often each, and what it names: files and folders, identifiers."""

    words: tuple[tuple[str, int], ...] = ()
    paths: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def words_of(text: str) -> Iterator[str]:
    """The stemmed words of a text in order, identifiers in parts, without stop words."""
    for token in _tokens(text):
        yield from split(token)


def counted(text: str) -> dict[str, int]:
    """How often each word stands in a text; an identifier of several parts also counts as a whole, in lower case."""
    counts: dict[str, int] = {}
    for token, often in Counter(_tokens(text)).items():
        for word in split(token):
            counts[word] = counts.get(word, 0) + often
        whole = as_word(token)
        if whole:
            counts[whole] = counts.get(whole, 0) + often
    return counts


@lru_cache(maxsize=1 << 16)
def as_word(token: str) -> str:
    """An identifier of several parts as one word, which no part of another can equal; '' for any other token."""
    return f"_{token.lower().strip('_$')}" if len(token) <= LONGEST_WORD and is_name(token) else ""


@lru_cache(maxsize=1 << 16)
def split(token: str) -> tuple[str, ...]:
    """The stemmed parts of one identifier or word: `HTTPServer_v2` gives http, server, v, 2; Chinese gives pairs."""
    found: list[str] = []
    for part in (_PART if token.isascii() else _ANY_PART).findall(token):
        word = part.lower()
        if _IS_HAN.match(word):
            found += _pairs(word)
        elif len(word) <= LONGEST_WORD and word not in STOP_WORDS:
            found.append(stem(word))
    return tuple(found)


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """A lower-case English word without its commonest endings, so that `parses`, `parsed` and `parsing` are one."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending, least in (("ing", 6), ("ed", 5)):
        if word.endswith(ending) and len(word) >= least and not word.endswith("eed"):
            word = _undoubled(word[: -len(ending)])
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def question(text: str) -> Question:
    """What is asked for. Only the first 20,000 characters are read."""
    text = text[:MAX_QUESTION]
    counts: dict[str, int] = {}
    for word in words_of(text):
        counts[word] = counts.get(word, 0) + 1
    return Question(tuple(counts.items()), _unique(_paths(text)), _unique(_names(text)))


def is_name(token: str) -> bool:
    """Whether a token can only be an identifier: snake_case, camelCase or with digits inside."""
    return len(token) > 2 and bool("_" in token.strip("_") or token.startswith("__") or _CAMEL.search(token))


def _tokens(text: str) -> list[str]:
    return (_TOKEN if text.isascii() else _ANY_TOKEN).findall(text)


def _pairs(word: str) -> Iterator[str]:
    """Chinese in overlapping pairs, a single sign as it is."""
    yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))


def _undoubled(word: str) -> str:
    double = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz"
    return word[:-1] if double else word


def _paths(text: str) -> Iterator[str]:
    for frame in _FRAME.finditer(text):
        yield frame[1] or frame[4]
    for pattern in _PLACES:
        for found in pattern.findall(text):
            yield found.replace("\\", "/").strip("/")


def _names(text: str) -> Iterator[str]:
    for frame in _FRAME.finditer(text):
        yield from _identifiers(frame[2] or frame[3])
    for span in _SPAN.findall(text):
        yield from _identifiers(span)
    for pattern in (_CALL, _DOTTED):
        for found in pattern.findall(text):
            yield from _identifiers(found)
    yield from (token for token in _identifiers(text) if is_name(token))


def _identifiers(text: str) -> Iterator[str]:
    return (token for token in re.findall(r"[A-Za-z_$][\w$]*", text) if len(token) > 2)


def _unique(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))
