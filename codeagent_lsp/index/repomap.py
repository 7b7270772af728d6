"""The text of a repo map: the relevant files and the relevant signatures in them, fitted to a number of tokens.

The best definitions of all files stand in a section for each file; more files follow, by folder, so that most of what
a task could need is named. The text is stable: scores are rounded, small changes since the last map are ignored, and
line numbers are shown only where they are asked for. Pure. Not here: the ranks of files (`rank.py`) and of definitions
(`relevance.py`), the graph that is kept between maps (`answers.py`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count as count_from
from typing import NamedTuple

from codeagent_lsp.index.relevance import TYPES, Outline
from codeagent_lsp.index.symbols import SymbolInfo
from codeagent_lsp.messages import estimate_tokens
from codeagent_lsp.workspace.text.visible import cut

Counter = Callable[[str], int]

MOST_FILES = 400
MOST_DEFINITIONS = 400
PATHS_SHARE = 0.3  # of the budget, at most, for naming files; what is left shows signatures
FIRST_FILES = 3  # that have a section even if no definition of them is shown
SIGNATURE_CHARS = 100
MORE = "… and {count} more files\n"
STEADY = 0.12  # a score that changed by less than this share is kept; rounding alone changes up to 0.05


@dataclass(frozen=True, slots=True)
class RepoMap:
    """A map as text for the model, with the scores it was made from; passed as `previous`, it keeps the next one
    stable. `shown` are the index paths of the files named in the text, the best first.
    """

    text: str = ""
    shown: tuple[str, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    definitions: Mapping[str, float] = field(default_factory=dict)


def render(
    ranked: Iterable[tuple[str, float]],
    definitions: Iterable[tuple[SymbolInfo, float]],
    outline: Outline,
    budget: int,
    *,
    previous: RepoMap | None = None,
    count: Counter = estimate_tokens,
    lines: bool = False,
    among: int = 0,
) -> RepoMap:
    """Return the map of the best files and definitions that fits in `budget` tokens; one with an empty text if nothing
    fits. `definitions` are those of the best files with scores; `outline` returns the types around them. With
    `previous`, the last map, small changes of scores do not change the order.

    With `lines` each definition has the number of its line. With `among`, the number of all files, its end says how
    many are not named.
    """
    budget -= count(MORE.format(count=among)) if among else 0
    scores = steady(dict(ranked), previous.scores if previous else {})
    order = sorted(scores, key=lambda path: (-scores[path], path))[:MOST_FILES]
    # Names get their share first, signatures what is left, and then names what these have not used.
    named = order[: _most(order, {}, int(budget * PATHS_SHARE), count)]
    best = _best(definitions, order, previous.definitions if previous else {})
    first = order[:FIRST_FILES]

    def sections(many: int) -> dict[str, list[str]]:
        return _sections(best.symbols[:many], order, first, outline, lines=lines)

    # More definitions never take fewer tokens, so halving finds how many fit.
    fitting = bisect_right(
        range(1, len(best.symbols) + 1), budget, key=lambda many: count(_text(sections(many), named))
    )
    shown = sections(fitting)
    named = order[: _most(order, shown, budget, count)]
    text = _text(shown, named)
    if not named or count(text) > budget:
        return RepoMap(scores=scores, definitions=best.scores)
    more = among - len(named)
    return RepoMap(f"{text}{MORE.format(count=more)}" if more > 0 else text, tuple(named), scores, best.scores)


def steady(scores: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    """Return scores, by any key, of two significant digits; those close to their value in `before` keep it, so that the
    order stays.
    """
    rounded: dict[str, float] = {}
    for path, score in scores.items():
        old = before.get(path)
        same = old is not None and abs(score - old) <= STEADY * old
        rounded[path] = old if same and old is not None else float(f"{score:.2g}")
    return rounded


def _most(order: Sequence[str], sections: Mapping[str, Sequence[str]], budget: int, count: Counter) -> int:
    """Return how many of the files can be named within `budget` tokens, beside the sections."""
    return bisect_right(range(1, len(order) + 1), budget, key=lambda files: count(_text(sections, order[:files])))


class _Best(NamedTuple):
    """Definitions, best first, and the score of each by its key."""

    symbols: list[SymbolInfo]
    scores: Mapping[str, float]


def _best(definitions: Iterable[tuple[SymbolInfo, float]], order: Sequence[str], before: Mapping[str, float]) -> _Best:
    """Return the definitions of the files in `order` by steady scores."""
    known = set(order)
    keys: dict[str, SymbolInfo] = {}
    scores: dict[str, float] = {}
    for symbol, score in definitions:
        if symbol.path in known and score > 0:
            key = _key(symbol, keys)
            keys[key], scores[key] = symbol, score
    scores = steady(scores, before)
    best = sorted(keys, key=lambda key: (-scores[key], keys[key].path, keys[key].line_start))[:MOST_DEFINITIONS]
    return _Best([keys[key] for key in best], {key: scores[key] for key in best})


def _key(symbol: SymbolInfo, taken: Container[str]) -> str:
    """Return a name for a definition that does not depend on its line."""
    name = f"{symbol.path}:{symbol.qualified}"
    return next(key for number in count_from(1) if (key := f"{name}:{number}") not in taken)


def _sections(
    definitions: Iterable[SymbolInfo],
    order: Sequence[str],
    first: Iterable[str],
    outline: Outline,
    *,
    lines: bool,
) -> dict[str, list[str]]:
    """Return the lines of the definitions by file, the files in `order`; the `first` files have a section anyway."""
    by_file: dict[str, list[SymbolInfo]] = {path: [] for path in first}
    for symbol in definitions:
        by_file.setdefault(symbol.path, []).append(symbol)
    return {path: _lines(by_file[path], outline, lines=lines) for path in order if path in by_file}


def _lines(chosen: Sequence[SymbolInfo], outline: Outline, *, lines: bool) -> list[str]:
    """Return the signatures of definitions of one file and of the types around them, in file order."""
    parents = {symbol.parent for symbol in chosen} - {""}
    around = [s for s in outline(chosen[0].path) if s.qualified in parents and s.kind in TYPES] if parents else []
    shown = sorted({*chosen, *around}, key=lambda symbol: (symbol.line_start, -symbol.line_end))
    numbers = [f"{symbol.line_start}: " if lines else "" for symbol in shown]
    signatures = [f"{'  ' * _depth(symbol)}{cut(symbol.signature or symbol.name, SIGNATURE_CHARS)}" for symbol in shown]
    return [f"{number}{signature}" for number, signature in zip(numbers, signatures, strict=True)]


def _text(sections: Mapping[str, Sequence[str]], named: Sequence[str]) -> str:
    parts = [line for path, lines in sections.items() for line in (path, *(f"  {line}" for line in lines))]
    rest = _folders([path for path in named if path not in sections])
    return "\n".join((*parts, rest)).rstrip("\n") + "\n" if named else ""


def _folders(paths: Iterable[str]) -> str:
    """Return one line per folder, `folder/: a.py | b.py`; folders and names in alphabetical order, for stability."""
    groups: dict[str, list[str]] = {}
    for path in sorted(paths):
        folder, slash, name = path.rpartition("/")
        groups.setdefault(f"{folder}/" if slash else ".", []).append(name)
    return "".join(f"{folder}: {' | '.join(names)}\n" for folder, names in sorted(groups.items()))


def _depth(symbol: SymbolInfo) -> int:
    return symbol.parent.count(".") + 1 if symbol.parent else 0
