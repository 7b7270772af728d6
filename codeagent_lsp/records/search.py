"""Plain words in a text, and the lines around them: many times faster than patterns, most of which need one word.

Not here: what the words mean; where the names of secrets stand (`names.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

_ASCII_LOWER = {code: code + 32 for code in range(65, 91)}


def places(text: str, *words: str) -> Iterator[int]:
    """Yield where one of the words stands, word by word; also where one begins within the one before."""
    for word in words:
        at = text.find(word)
        while at >= 0:
            yield at
            at = text.find(word, at + 1)


def lowered(text: str) -> str:
    """Return a text in lower case with every character at its place: a few letters would have two."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text.translate(_ASCII_LOWER)


def replaced(
    at: Iterable[int], text: str, pattern: re.Pattern[str], made: Callable[[re.Match[str]], str], behind: int = 0
) -> str:
    """Return a text with what `made` makes of the matches of a pattern, which is looked for in the lines that hold the
    offsets and in so many lines `behind` each.
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
