"""Words of code and of queries about code: identifiers split, stop words, light stemming, Chinese bigrams.

Pure text processing. Not here: searching the words (`store.py`) and their weights (`rank.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

MAX_QUESTION = 20_000
LONGEST_WORD = 40
LONGEST_TOKEN = 120  # characters; longer tokens are not words or names, but encoded data

# All but letters, digits, _ and $ becomes a blank: translating and splitting is several times faster than a pattern.
_BLANKS = bytes(code if code > 127 or chr(code).isalnum() or chr(code) in "_$" else 32 for code in range(256))
_BLANKS_BUT_LINES = bytes(10 if code == 10 else blank for code, blank in enumerate(_BLANKS))
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CAMEL = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")

# Most processes need none of the rest: they are compiled on first use, and cached by `re`.
_ANY_TOKEN = rf"[{_HAN}]+|(?:(?![{_HAN}])[\w$])+"
_ANY_PART = rf"[{_HAN}]+|[A-Z]+(?![a-z])|[A-Z]?(?:(?![{_HAN}A-Z])[^\W\d_])+|[0-9]+"
_SPAN = r"`+([^`\n]{1,200})`+"
_PATH = r"(?<![\w./\\-])(?:[A-Za-z]:)?[\w.@+\\/-]*[\w-]\.[A-Za-z][A-Za-z0-9]{0,9}\b(?!\()"
_FOLDER = r"(?<![\w./:-])(?:\.{0,2}/)?[\w.-]+(?:/[\w.-]+)+/?"
_FRAME = r'File "([^"\n]+)", line \d+, in ([\w<>]+)|\bat (?:async )?([\w$.<>]+) \(([^()\n]+?):\d+(?::\d+)?\)'
_CALL = r"\b([A-Za-z_$][\w$]*)\(\)?"
_LONG_WORD = r"(?<![\w$])[A-Za-z]{6,40}(?![\w$])"
_DOTTED = r"\b[A-Za-z_]\w*(?:(?:\.|::|#|->)[A-Za-z_]\w*)+"
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
class QueryTerms:
    """The terms of a request: its words with their counts, and the paths and identifiers that it names. `joined` are
    its long plain words as the index has identifiers of several parts, since `elasticaformatter` may mean
    `ElasticaFormatter`.
    """

    words: tuple[tuple[str, int], ...] = ()
    paths: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()


def words_of(text: str) -> Iterator[str]:
    """Yield the stemmed words of a text in order, identifiers split into parts, without stop words."""
    return (part for token in _tokens(text) for piece in _pieces(token) for part in split(piece))


def terms_of(text: str) -> Iterator[str]:
    """Yield words as `words_of` does (stemmed, without stop words), and each identifier of several parts and up to 40
    characters also as a whole, as `count_words` does.
    """
    return (word for token in _tokens(text) for word in _terms(token))


def count_words(text: str) -> dict[str, int]:
    """Return how often each stemmed word of a text occurs; an identifier of several parts also counts as a whole, as
    `as_word` returns it.
    """
    counts: dict[str, int] = {}
    known = counts.get
    for token, often in Counter(_tokens(text)).items():
        for word in _terms(token):
            counts[word] = known(word, 0) + often
    return counts


def lines_of_tokens(text: str) -> list[list[str]]:
    """Return for each line of a text, ended by LF, the list of its tokens, of which `terms_of` gives the words; [] for
    a line without any. Signs separate tokens.
    """
    blanked = text.encode("utf-8", "replace").translate(_BLANKS_BUT_LINES).decode()
    return [line.split() for line in blanked.split("\n")]


def as_word(token: str) -> str:
    """Return an identifier of several parts as one word that no part can equal, such as `_startline` for `startLine`;
    '' for any other token.
    """
    return f"_{token.lower().strip('_$')}" if len(token) <= LONGEST_WORD and is_name(token) else ""


def split(token: str) -> tuple[str, ...]:
    """Return the stemmed parts of one identifier or word in lower case: `HTTPServer_v2` gives http, server, v, 2.
    Chinese gives bigrams; () for a token of over 120 characters.
    """
    if not token.isascii():
        return tuple(_parts_of_any(token))
    if len(token) > LONGEST_TOKEN:
        return ()
    plain = token.isalpha() and token.islower()  # the common case: there are no parts to split
    words = [token] if plain else [part.lower() for part in _PART.findall(token)]
    return tuple([stem(word) for word in words if word not in STOP_WORDS and len(word) <= LONGEST_WORD])


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """Return a lower-case English word without common endings, so that `parses`, `parsed` and `parsing` are equal;
    words of less than 4 letters, and those that are not all ASCII letters, as they are.
    """
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    # Not `dies` and `ties`.
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending, least in (("ing", 6), ("ed", 5)):
        # The `ed` of `need` and `feed` is no ending.
        if word.endswith(ending) and len(word) >= least and not word.endswith("eed"):
            word = _without_double(word[: -len(ending)])
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def question(text: str) -> QueryTerms:
    """Return the terms of a request in its order, its words with their counts. Only the first 20,000 characters are
    read.
    """
    text = text[:MAX_QUESTION]
    counts: dict[str, int] = {}
    for word in words_of(text):
        counts[word] = counts.get(word, 0) + 1
    joined = (f"_{word.lower()}" for word in re.findall(_LONG_WORD, text))
    return QueryTerms(tuple(counts.items()), _unique(_paths(text)), _unique(_names(text)), _unique(joined))


def is_name(token: str) -> bool:
    """Return whether a token can only be an identifier: snake_case, camelCase or the like, of 3 characters or more."""
    if len(token) < 3 or token[0].isdecimal():
        return False
    return bool("_" in token.strip("_") or token.startswith("__") or _CAMEL.search(token))


def _tokens(text: str) -> list[str]:
    """Return runs of letters, digits, _ and $ together with non-ASCII characters, which `_pieces` separates."""
    return text.encode("utf-8", "replace").translate(_BLANKS).decode().split()


def _pieces(token: str) -> Sequence[str]:
    return (token,) if token.isascii() else re.findall(_ANY_TOKEN, token)


@lru_cache(maxsize=1 << 15)
def _terms(token: str) -> tuple[str, ...]:
    """Return the words of a token and, if it is an identifier, the whole."""
    found: list[str] = []
    for piece in _pieces(token):
        whole = as_word(piece)
        found += (*split(piece), whole) if whole else split(piece)
    return tuple(found)


def _parts_of_any(token: str) -> Iterator[str]:
    for part in re.findall(_ANY_PART, token):
        word = part.lower()
        if re.match(f"[{_HAN}]", word):
            yield from _pairs(word)
        elif len(word) <= LONGEST_WORD and word not in STOP_WORDS:
            yield stem(word)


def _pairs(word: str) -> Iterator[str]:
    """Yield overlapping bigrams of Chinese characters, a single one as it is."""
    yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))


def _without_double(word: str) -> str:
    # `fall`, `pass` and `buzz` have a double letter of their own.
    double = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz"
    return word[:-1] if double else word


def _paths(text: str) -> Iterator[str]:
    for frame in re.finditer(_FRAME, text):
        yield frame[1] or frame[4]
    for pattern in (_PATH, _FOLDER):
        # Text without blanks, such as Chinese, goes on right behind a path; other paths have letters beyond ASCII.
        for flags in (re.ASCII, re.UNICODE):
            yield from (found.replace("\\", "/").strip("/") for found in re.findall(pattern, text, flags))


def _names(text: str) -> Iterator[str]:
    for frame in re.finditer(_FRAME, text):
        yield from _identifiers(frame[2] or frame[3])
    for span in re.findall(_SPAN, text):
        yield from _identifiers(span)
    for pattern in (_CALL, _DOTTED):
        for found in re.findall(pattern, text, re.ASCII):
            yield from _identifiers(found)
    yield from (token for token in _identifiers(text) if is_name(token))


def _identifiers(text: str) -> Iterator[str]:
    return (token for token in re.findall(r"[A-Za-z_$][\w$]*", text) if len(token) > 2)


def _unique(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))
