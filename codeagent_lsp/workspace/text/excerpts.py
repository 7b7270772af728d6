"""Selects what of a long text to keep: its beginning and end, lines with errors, lines with the words of the task.

Deterministic. Not here: which texts are too long (`agent/context/window.py`), the cut of a tool's output
(`tools/outputs.py`) and of a command's while it runs (`shadow/output.py`).
"""

from __future__ import annotations

import io
import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import groupby

KEYWORDS = 24
LONGEST_LINE = 400
LEAST = 200
AROUND = 2
LONGEST_PIECE = 1 << 16
GAP = 40
"""About how many bytes the line needs that says how much is left out."""

_ERROR = re.compile(
    r"\b(?:\w*error|\w*exception|traceback|fail(?:ed|ure|ures|s)?|fatal|panic|undefined|not found|denied|warning"
    r"|not ok)\b|^E |[✗✘✕❌]|错误|异常|失败|警告",
    re.IGNORECASE,
)
_HINTS = (
    *("error", "exception", "traceback", "fail", "fatal", "panic", "undefined", "not found", "denied", "warning"),
    *("not ok", "\ne ", "✗", "✘", "✕", "❌", "错误", "异常", "失败", "警告"),
)
"""One of them is in the small letters of every text that has a line with an error; they are quicker to look for."""
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
    """Return the keywords of a task in lower case, at most 24: names in code first, then long words. Only the first
    4000 characters are read.
    """
    found: dict[str, int] = {}
    common = frozenset(_COMMON.split())
    for word in _WORD.findall(task[:4000]):
        for part in [word.casefold()] if word.isascii() else _han_words(word):
            if len(part) >= (3 if part.isascii() else 2) and part not in common:
                found.setdefault(part, _weight(word))
    return tuple(sorted(found, key=lambda part: -found[part])[:KEYWORDS])


def excerpt(text: str, limit: int, keywords: Sequence[str] = ()) -> str:
    """Return `text`, or of a longer one at most `limit` characters (200 if it is less): whole lines in order, with gaps
    marked. Of few, very long lines each keeps its beginning and its end. `keywords` are in lower case.
    """
    limit = max(limit, LEAST)
    if len(text) <= limit:
        return text
    whole = text.split("\n")
    # Each line costs its line end as well.
    shares = share_out([len(line) for line in whole], limit - len(whole))
    if all(share >= min(len(line), LONGEST_LINE) for line, share in zip(whole, shares, strict=True)):
        return "\n".join(_without_middle(line, share, keywords) for line, share in zip(whole, shares, strict=True))
    lines = [_shorten_line(line, keywords) for line in whole]
    room = limit - 40
    # Half for both ends, and the other half for lines of interest.
    kept = _ends(lines, room // 2)
    used = sum(len(lines[index]) + 1 for index in kept) + 40
    for index in _by_interest(lines, keywords):
        cost = 0 if index in kept else len(lines[index]) + 1
        # A line beside a kept one makes no gap, which would need a line that says so.
        gaps = 0 if {index - 1, index + 1} & kept else 40
        if cost and used + cost + gaps <= room:
            kept.add(index)
            used += cost + gaps
    return _join(lines, kept)[:limit]


@dataclass(frozen=True, order=True, slots=True)
class FoundLine:
    """A line of a long text with its score; the higher, the more interesting. `before` is minus the offset of its first
    byte, so that of lines with equal scores the first is the greatest. `size` is in bytes with the line end, `text` is
    without it.
    """

    score: float
    before: int
    size: int
    text: str

    @property
    def start(self) -> int:
        """The offset of its first byte in the text, from 0."""
        return -self.before

    @property
    def cost(self) -> int:
        """About how many bytes it takes to show it: its text in UTF-8, the line end, and the mark of a gap."""
        return len(self.text.encode("utf-8", "replace")) + 1 + GAP


class LinesOfInterest:
    """Collects, from a text that comes in pieces of UTF-8, the best lines with errors or keywords (in lower case) and
    those around them, as many as can be shown in `limit` bytes; `total` counts the bytes of the text. No line is cut,
    as half a secret could not be masked; one that would fill more than a quarter of the limit is left out.
    """

    def __init__(self, limit: int, keywords: Sequence[str] = ()) -> None:
        self.total = 0
        self._room = limit
        self._longest = limit // 4
        self._keywords = keywords
        self._begun = b""
        self._looked_at = 0
        self._last: deque[tuple[int, bytes]] = deque(maxlen=AROUND)
        self._near = (0, 0.0)
        self._best: list[FoundLine] = []
        self._full = False

    def add(self, data: bytes) -> None:
        """Take the next piece of the text, in bytes of UTF-8, which may end within a line or a character."""
        self.total += len(data)
        whole, newline, rest = (self._begun + data).rpartition(b"\n")
        if not newline and len(rest) > LONGEST_PIECE:
            whole, newline, rest = rest, b"", b""
        self._begun = rest
        if whole or newline:
            self._look(whole + newline)

    def found(self) -> list[FoundLine]:
        """Return the best lines, in the order of the text. To be called at its end: a line that has only begun counts
        as whole.
        """
        rest, self._begun = self._begun, b""
        if rest:
            self._look(rest)
        return sorted(self._best, key=lambda line: line.start)

    def _look(self, data: bytes) -> None:
        # `\ne ` among the hints is a line that begins so, and before the first line no line feed stands.
        folded = "\n" + data.decode("utf-8", "ignore").lower()
        lines = io.BytesIO(data)  # iterates at line feeds alone
        if any(word in folded for word in (*_HINTS, *self._keywords)):
            for line in lines:
                self._judge(_score(line.decode("utf-8", "ignore"), self._keywords), line)
            return
        while self._near[0] and (line := lines.readline()):
            self._judge(0, line)
        # Nothing here counts but the last lines, which may stand before a hit in the next piece.
        start = len(data)
        for _ in range(AROUND):
            start = data.rfind(b"\n", lines.tell(), max(0, start - 1)) + 1 or lines.tell()
        self._looked_at += start - lines.tell()
        lines.seek(start)
        for line in lines:
            self._judge(0, line)

    def _judge(self, score: float, line: bytes) -> None:
        left, as_near = self._near
        if score:
            for start, earlier in self._last:
                self._take(score / 2, start, earlier)
            self._last.clear()
            self._take(score, self._looked_at, line)
            self._near = (AROUND, score / 2)
        elif left:
            self._take(as_near, self._looked_at, line)
            self._near = (left - 1, as_near)
        else:
            self._last.append((self._looked_at, line))
        self._looked_at += len(line)

    def _take(self, score: float, start: int, line: bytes) -> None:
        # Nothing better than the worst kept line: not worth decoding.
        if self._full and score <= self._best[0].score:
            return
        text = line.decode("utf-8", "replace").removesuffix("\n")
        found = FoundLine(score, -start, len(line), text)
        if found.cost > self._longest:
            return
        heappush(self._best, found)
        self._room -= found.cost
        while self._room < 0:
            self._full = True
            self._room += heappop(self._best).cost


def join_names(names: Iterable[str], most: int) -> str:
    """Return at most `most` names joined by `, `, and how many more there are: "a, b and 3 more"."""
    known = list(names)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more


def share_out(sizes: Sequence[int], limit: int) -> tuple[int, ...]:
    """Return a fair share of `limit` for each size, in the same order and at most the size: what the small ones leave
    goes to the large ones. Together they are at most `limit`.
    """
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


def _shorten_line(line: str, keywords: Sequence[str]) -> str:
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


def _join(lines: Sequence[str], kept: set[int]) -> str:
    parts = []
    for shown, group in groupby(range(len(lines)), kept.__contains__):
        indices = list(group)
        parts += [lines[index] for index in indices] if shown else [f"[... {len(indices)} lines left out ...]"]
    return "\n".join(parts)
