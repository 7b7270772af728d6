"""A search by meaning to try without a server: words as vectors, some of them taken for the same thing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from zlib import crc32

from codeagent_lsp.index.words import words_of

SIZE = 64
SAME = {"bill": "invoic", "post": "mail", "basket": "cart"}


class Meaning:
    """Vectors of words; `asked` are all texts so far. `failing` is raised instead of an answer."""

    def __init__(self, name: str = "meaning") -> None:
        self.name = name
        self.asked: list[str] = []
        self.largest = 0
        self.failing: Exception | None = None
        self.closed = False

    async def model(self) -> str:
        return self.name

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        if self.failing is not None:
            raise self.failing
        self.asked += texts
        self.largest = max(self.largest, len(texts))
        return [vector(text) for text in texts]

    async def embed_query(self, text: str) -> list[float]:
        (found,) = await self.embed([text])
        return found

    async def close(self) -> None:
        self.closed = True


class Memory:
    """Vectors by key, in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, Sequence[float]] = {}
        self.tidied = 0

    def known(self, keys: Iterable[str], size: int) -> set[str]:
        return {key for key in keys if key in self.kept}

    def add(self, vectors: Mapping[str, Sequence[float]]) -> None:
        self.kept.update(vectors)

    def nearest(self, vector: Sequence[float], limit: int) -> list[tuple[str, float]]:
        found = [(key, sum(a * b for a, b in zip(vector, each, strict=True))) for key, each in self.kept.items()]
        return sorted(found, key=lambda each: -each[1])[:limit]

    def tidy(self, size: int) -> None:
        self.tidied += 1


def vector(text: str) -> list[float]:
    """Each word is one direction."""
    numbers = [0.0] * SIZE
    for word in words_of(text):
        numbers[crc32(SAME.get(word, word).encode()) % SIZE] += 1.0
    length = math.sqrt(sum(number * number for number in numbers)) or 1.0
    return [number / length for number in numbers]
