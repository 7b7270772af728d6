"""The answers of several ways to search in one list. Pure. Not here: searching."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codeagent_lsp.index.chunks import Chunk

_RANK = 60  # how little the first places differ from those after them
_OTHERS = 0.3  # of the words; docs/index-measurements.md has what more and less gave

_Key = tuple[str, int, int]


def fused(found: Sequence[Sequence[Chunk]], limit: int) -> tuple[Chunk, ...]:
    """The answers of several ways to search in one list, by their places in each: scores of different ways do not
    compare. The first way counts most. A piece that a way did not find has the place after the first of its
    file there, so that files come first that several ways find. One way alone keeps its order and its scores.
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
    """Return the place of every piece, and the place after the first piece of every file."""
    pieces: dict[_Key, int] = {}
    files: dict[str, int] = {}
    for place, chunk in enumerate(way):
        pieces.setdefault(_key(chunk), place)
        files.setdefault(chunk.path, place + 1)
    return pieces, files


def _key(chunk: Chunk) -> _Key:
    return chunk.path, chunk.line_start, chunk.line_end
