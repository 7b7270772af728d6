"""The answers of several ways to search in one list. Pure. Not here: searching."""

from __future__ import annotations

from collections.abc import Sequence

from codeagent_lsp.index.chunks import Chunk

_RANK = 60  # how little the first places differ from those after them


def fused(found: Sequence[Sequence[Chunk]], limit: int) -> tuple[Chunk, ...]:
    """The answers of several ways to search in one list, by their places in each: scores of different ways do not
    compare. One way alone keeps its order and its scores.
    """
    several = [way for way in found if way]
    if len(several) < 2:
        return tuple(several[0][:limit]) if several else ()
    points: dict[tuple[str, int, int], float] = {}
    known: dict[tuple[str, int, int], Chunk] = {}
    for way in several:
        for place, chunk in enumerate(way):
            key = (chunk.path, chunk.line_start, chunk.line_end)
            points[key] = points.get(key, 0.0) + 1 / (_RANK + place)
            known.setdefault(key, chunk)
    order = sorted(points, key=lambda key: (-points[key], key))[:limit]
    return tuple(known[key] for key in order)
