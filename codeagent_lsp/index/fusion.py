"""Fusion of the results of several searches into one list. Pure. Not here: searching."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codeagent_lsp.index.chunks import Chunk

_RANK = 60  # the constant k of reciprocal rank fusion: how little the first ranks differ from the next
_OTHERS = 0.3  # weight of all lists but the first; other values are measured in docs/index-measurements.md

_Key = tuple[str, int, int]


def fused(found: Sequence[Sequence[Chunk]], limit: int) -> tuple[Chunk, ...]:
    """Merge ranked lists by reciprocal rank fusion, as scores of different searches are not comparable.

    The first list has the greatest weight. A chunk that a list lacks gets the rank after its file's first chunk in that
    list, so that files found by several searches come first. A single list keeps its order and scores.
    """
    several = [(_OTHERS if number else 1.0, way) for number, way in enumerate(found) if way]
    if len(several) < 2:
        return tuple(several[0][1][:limit]) if several else ()
    known: dict[_Key, Chunk] = {}
    for _, way in several:
        for chunk in way:
            known.setdefault(_key(chunk), chunk)
    points = dict.fromkeys(known, 0.0)
    for weight, way in several:
        pieces, files = _places(way)
        for key in known:
            place = pieces.get(key, files.get(key[0]))
            points[key] += 0.0 if place is None else weight / (_RANK + place)
    return tuple(known[key] for key in sorted(points, key=lambda key: (-points[key], key))[:limit])


def _places(way: Sequence[Chunk]) -> tuple[Mapping[_Key, int], Mapping[str, int]]:
    """Return the rank of every chunk, and the rank after the first chunk of every file."""
    pieces: dict[_Key, int] = {}
    files: dict[str, int] = {}
    for place, chunk in enumerate(way):
        pieces.setdefault(_key(chunk), place)
        files.setdefault(chunk.path, place + 1)
    return pieces, files


def _key(chunk: Chunk) -> _Key:
    return chunk.path, chunk.line_start, chunk.line_end
