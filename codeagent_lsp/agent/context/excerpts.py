"""Chooses what of a long text to keep: its beginning and end, lines with errors, lines with the words of the task.

Pure and deterministic. Not here: which texts are too long (`window.py`), the plain cut of a tool's output
(`tools/truncation.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

KEYWORDS = 24
LONGEST_LINE = 400
LEAST = 200
AROUND = 2

_ERROR = re.compile(
    r"\b(?:\w*error|\w*exception|traceback|fail(?:ed|ure|ures|s)?|fatal|panic|undefined|not found|denied|warning)\b|^E "
    r"|错误|异常|失败|警告",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w./-]*[a-zA-Z_][\w./-]*\w|[\u3400-\u9fff]{2,}")
_HAN_BREAK = re.compile(r"[的了是在把将为和与或让使请给用里中上下到个这那一不]|修改|添加|文件|函数|代码|帮我")
_COMMON = (
    "about add after all also and any are because been before but call can change code could create delete does each"
    " else file files fix for from function get give have here how into its just like line make method more must need"
    " not now only other our out please project remove rename should show some test tests text than that the their them"
    " then there these they this those update use used user using want was were what when where which who why will with"
    " would write you your"
)


def keywords_of(task: str) -> tuple[str, ...]:
    """Return the keywords of a task in lower case, at most 24: names in code first, then long words."""
    found: dict[str, int] = {}
    common = frozenset(_COMMON.split())
    for word in _WORD.findall(task[:4000]):
        for part in [word.casefold()] if word.isascii() else _han_words(word):
            if len(part) >= (3 if part.isascii() else 2) and part not in common:
                found.setdefault(part, _weight(word))
    return tuple(sorted(found, key=lambda part: -found[part])[:KEYWORDS])


def excerpt(text: str, limit: int, keywords: Sequence[str] = ()) -> str:
    """Return at most `limit` characters (never fewer than 200) of `text`: whole lines in order, with gaps marked. Of
    few, very long lines each keeps its beginning and its end.
    """
    limit = max(limit, LEAST)
    if len(text) <= limit:
        return text
    whole = text.split("\n")
    shares = share_out([len(line) for line in whole], limit - len(whole))
    if all(share >= min(len(line), LONGEST_LINE) for line, share in zip(whole, shares, strict=True)):
        return "\n".join(_without_middle(line, share, keywords) for line, share in zip(whole, shares, strict=True))
    lines = [_shortened(line, keywords) for line in whole]
    room = limit - 40
    kept = _ends(lines, room // 2)
    used = sum(len(lines[index]) + 1 for index in kept) + 40
    for index in _by_interest(lines, keywords):
        cost = 0 if index in kept else len(lines[index]) + 1
        gaps = 0 if {index - 1, index + 1} & kept else 40
        if cost and used + cost + gaps <= room:
            kept.add(index)
            used += cost + gaps
    return _joined(lines, kept)[:limit]


def share_out(sizes: Sequence[int], limit: int) -> tuple[int, ...]:
    """Return a fair share of `limit` for each size: what the small ones leave goes to the large ones."""
    shares = [0] * len(sizes)
    left = limit
    for done, index in enumerate(sorted(range(len(sizes)), key=lambda index: sizes[index])):
        shares[index] = min(sizes[index], max(0, left) // (len(sizes) - done))
        left -= shares[index]
    return tuple(shares)


def _han_words(run: str) -> list[str]:
    """Split Chinese text into rough words: the parts between particles; of long parts pairs of characters."""
    parts = [part for part in _HAN_BREAK.split(run) if part]
    pairs = [part[at : at + 2] for part in parts for at in range(0, len(part), 2)]
    return [*(part for part in parts if len(part) < 4), *pairs]


def _weight(word: str) -> int:
    name = "_" in word or "." in word or "/" in word or any(map(str.isupper, word[1:]))
    return 100 + len(word) if name else len(word)


def _shortened(line: str, keywords: Sequence[str]) -> str:
    """Return a very long line cut to about 400 characters around its first keyword."""
    if len(line) <= LONGEST_LINE:
        return line
    folded = line.casefold()
    place = min((at for word in keywords if (at := folded.find(word)) >= 0), default=0)
    start = max(0, place - LONGEST_LINE // 3)
    end = start + LONGEST_LINE - 40
    return f"{'…' if start else ''}{line[start:end]}… ({len(line)} characters)"


def _without_middle(line: str, longest: int, keywords: Sequence[str]) -> str:
    """Return the beginning and the end of a line, and what is around the first keyword between them, in at most
    `longest` characters.
    """
    if len(line) <= longest:
        return line
    gap = f"… ({len(line)} characters) …"
    part = (longest - 2 * len(gap)) // 3
    folded = line.casefold()
    places = (folded.find(word, part, len(folded) - part) for word in keywords)
    place = next((place for place in places if place >= 0), -1)
    if place < 0:
        return f"{line[: 2 * part]}{gap}{line[len(line) - part :]}"
    start = min(max(part, place - part // 3), len(line) - 2 * part)
    return f"{line[:part]}{gap}{line[start : start + part]}{gap}{line[len(line) - part :]}"


def _ends(lines: Sequence[str], room: int) -> set[int]:
    """Return the indices of the first and last lines that fit; two thirds of `room` characters are for the first."""
    kept: set[int] = set()
    for indices, share in ((range(len(lines)), room * 2 // 3), (range(len(lines) - 1, -1, -1), room // 3)):
        for index in indices:
            share -= len(lines[index]) + 1
            if share < 0 or index in kept:
                break
            kept.add(index)
    return kept


def _by_interest(lines: Sequence[str], keywords: Sequence[str]) -> Iterable[int]:
    """Yield the indices of lines with errors or keywords, the best first, each followed by its neighbours."""
    scores = {index: score for index, line in enumerate(lines) if (score := _score(line, keywords))}
    seen: set[int] = set()
    for index in sorted(scores, key=lambda index: (-scores[index], index)):
        for near in sorted(range(index - AROUND, index + AROUND + 1), key=lambda other: abs(other - index)):
            if 0 <= near < len(lines) and near not in seen:
                seen.add(near)
                yield near


def _score(line: str, keywords: Sequence[str]) -> int:
    folded = line.casefold()
    return 3 * (_ERROR.search(line) is not None) + 2 * sum(word in folded for word in keywords)


def _joined(lines: Sequence[str], kept: set[int]) -> str:
    parts = []
    for shown, group in groupby(range(len(lines)), kept.__contains__):
        indices = list(group)
        parts += [lines[index] for index in indices] if shown else [f"[... {len(indices)} lines left out ...]"]
    return "\n".join(parts)
