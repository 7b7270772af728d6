"""A slow and obvious model of LSP text: walks character by character, shares nothing with the product."""

from __future__ import annotations

import random

SEPARATORS = ("\n", "\r\n", "\r", "\f", "\v", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
LETTERS = ("a", "é", "中", "\U0001f600", "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\ufeff", "e\u0301", "\ud800")


def lines(text: str) -> list[tuple[int, int]]:
    """Start and end, without line end, of every line."""
    found, start, place = [], 0, 0
    while place < len(text):
        if text[place] in "\r\n":
            found.append((start, place))
            place += 2 if text[place : place + 2] == "\r\n" else 1
            start = place
        else:
            place += 1
    return [*found, (start, len(text))]


def width(char: str, encoding: str) -> int:
    """Units of one character."""
    code = ord(char)
    if encoding == "utf-32":
        return 1
    if encoding == "utf-16":
        return 2 if code > 0xFFFF else 1
    return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4


def offset(text: str, line: int, character: int, encoding: str) -> int:
    """The offset of a position, clamped and rounded down."""
    spans = lines(text)
    if line >= len(spans):
        return len(text)
    place, end = spans[line]
    while place < end and width(text[place], encoding) <= character:
        character -= width(text[place], encoding)
        place += 1
    return place


def position(text: str, place: int, encoding: str) -> tuple[int, int]:
    """The position of an offset; inside a line end, the start of it."""
    spans = lines(text)
    line = max(number for number, (start, _) in enumerate(spans) if start <= place)
    start, end = spans[line]
    return line, sum(width(char, encoding) for char in text[start : min(place, end)])


def random_text(rng: random.Random, pieces: int) -> str:
    """Up to `pieces` letters and separators of all kinds."""
    both = (*LETTERS, *LETTERS, *SEPARATORS)
    return "".join(rng.choice(both) for _ in range(rng.randint(0, pieces)))
