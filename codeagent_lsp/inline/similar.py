"""The pieces of other places that are most like the lines at the cursor, each with the lines that follow it.

What follows similar lines is often what is to be written. Pure. Not here: which texts are looked at (`context.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log

from codeagent_lsp.inline.place import Place

LOOKED_BACK = 8
"""Lines before the cursor that are compared, the cursor's own with them."""
FOLLOWING = 6
"""Lines that a piece goes on after those that are similar."""
STRIDE = 2
MOST_LINES = 4000
"""Lines of one text that are looked at."""

_WORD = re.compile(r"[^\W\d]\w+")
_STOP_WORDS = """
    self this return if else elif for while in not and or def class function func fn let const var new import from
    public private protected static void int str string bool true false none null the to of is as with
"""
_STOP = frozenset(_STOP_WORDS.split())


@dataclass(frozen=True, slots=True)
class Similar:
    """A piece: the file, the lines [start, end) from 0, their text, and how like the cursor's lines it is (0 to 1)."""

    path: str
    start: int
    end: int
    text: str
    score: float


def similar(place: Place, texts: Iterable[tuple[str, str]], limit: int, *, least: float = 0.12) -> list[Similar]:
    """Return the best pieces of `texts` (path and text), best first, at most one of two that overlap.

    In the cursor's own file the lines around the cursor are left out.
    """
    asked = _asked(place)
    if not asked:
        return []
    windows = [window for path, text in texts for window in _windows(place, path, text)]
    rarity = _rarity(windows)
    weights = {word: weight * rarity.get(word, 0.0) for word, weight in asked.items()}
    total = sum(weights.values())
    if not total:
        return []
    scored = [
        (sum(weights[word] for word in words if word in weights) / total, path, start, lines)
        for path, start, lines, words in windows
    ]
    scored.sort(key=lambda each: (-each[0], each[1], each[2]))
    return _apart([each for each in scored if each[0] >= least], limit)


def words_in(text: str) -> list[str]:
    """Return the words of a piece of code, without those that every piece has."""
    return [word for word in _WORD.findall(text) if word.lower() not in _STOP]


def _asked(place: Place) -> Mapping[str, float]:
    """Return the words of the lines before the cursor; those of the last lines weigh more."""
    lines = place.text[: place.offset].splitlines()[-LOOKED_BACK:]
    weights: dict[str, float] = {}
    for age, line in enumerate(reversed(lines)):
        for word in words_in(line):
            weights[word] = max(weights.get(word, 0.0), 1.0 / (1 + 0.4 * age))
    return weights


Window = tuple[str, int, Sequence[str], frozenset[str]]
"""Path, first line, the lines up to the end of what follows, and the words of the lines that are compared."""


def _windows(place: Place, path: str, text: str) -> list[Window]:
    lines = text.splitlines()[:MOST_LINES]
    here = place.text.count("\n", 0, place.offset) if path == place.path else -1
    found: list[Window] = []
    for start in range(0, max(1, len(lines) - 1), STRIDE):
        whole = lines[start : start + LOOKED_BACK + FOLLOWING]
        if here >= 0 and start - FOLLOWING <= here <= start + len(whole) + 2 * FOLLOWING:
            continue
        compared = frozenset(words_in("\n".join(whole[:LOOKED_BACK])))
        if compared:
            found.append((path, start, whole, compared))
    return found


def _rarity(windows: Sequence[Window]) -> Mapping[str, float]:
    """Return how telling each word is: 1 for one in a single window, near 0 for one in all."""
    often = Counter(word for _, _, _, words in windows for word in words)
    count = len(windows) + 1
    return {word: log(count / (1 + seen)) / log(count) if count > 2 else 1.0 for word, seen in often.items()}


def _apart(scored: Sequence[tuple[float, str, int, Sequence[str]]], limit: int) -> list[Similar]:
    taken: list[Similar] = []
    for score, path, start, lines in scored:
        end = start + len(lines)
        if all(each.path != path or end <= each.start or each.end <= start for each in taken):
            taken.append(Similar(path, start, end, "\n".join(lines), score))
        if len(taken) == limit:
            break
    return taken
