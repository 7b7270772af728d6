"""The text of a repo map: the relevant files and the relevant signatures in them, fitted to a number of tokens.

The best files have sections with signatures; more files follow, by folder, so that most of what a task
could need is named. The text is stable: scores are rounded, small changes since the last map are ignored, and no line
number is shown. Pure. Not here: the ranks (`rank.py`) and the graph that
is kept between maps (`mapper.py`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from codeagent_lsp.index.symbols import SymbolInfo
from codeagent_lsp.index.words import QueryTerms, words_of

Outline = Callable[[str], Sequence[SymbolInfo]]
Counter = Callable[[str], int]

MOST_FILES = 400
PATHS_SHARE = 0.6  # of the budget, at most, for naming files; what is left shows signatures
SECTION_SHARE = 0.05  # of the best score, below which a file is only named
SIGNATURE_CHARS = 100
STEADY = 0.12  # a score that changed by less than this share is kept; rounding alone changes up to 0.05

_MOST_SECTIONS = 24
_MOST_SIGNATURES = 8
_TYPES = frozenset(("class", "interface", "struct", "enum", "module", "type"))
_CALLABLE = frozenset(("function", "method"))


@dataclass(frozen=True, slots=True)
class RepoMap:
    """A map with the scores it was made from; passed as `previous`, it keeps the next one stable.

    `shown` are the files named in the text, sections first.
    """

    text: str = ""
    shown: tuple[str, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text conservatively: 3 bytes of UTF-8 each."""
    return len(text.encode("utf-8", "replace")) // 3 + 1


def render(
    ranked: Iterable[tuple[str, float]],
    outline: Outline,
    asking: QueryTerms,
    budget: int,
    *,
    previous: RepoMap | None = None,
    count: Counter = estimate_tokens,
) -> RepoMap:
    """Return the map of the best files that fits in `budget` tokens; an empty one where nothing fits."""
    scores = steady(dict(ranked), previous.scores if previous else {})
    order = sorted(scores, key=lambda path: (-scores[path], path))[:MOST_FILES]
    named = order[: _most(order, {}, int(budget * PATHS_SHARE), count)]
    best = [path for path in named if scores[path] >= SECTION_SHARE * scores[order[0]]]
    sections = _sections(best, named, outline, asking, budget, count)
    named = order[: _most(order, sections, budget, count)]
    text = _text(sections, named)
    return RepoMap(text, tuple(named), scores) if named and count(text) <= budget else RepoMap(scores=scores)


def steady(scores: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    """Return scores of two significant digits; those close to their previous value keep it."""
    rounded: dict[str, float] = {}
    for path, score in scores.items():
        old = before.get(path)
        same = old is not None and abs(score - old) <= STEADY * old
        rounded[path] = old if same and old is not None else float(f"{score:.2g}")
    return rounded


def signatures(symbols: Sequence[SymbolInfo], asking: QueryTerms, most: int = _MOST_SIGNATURES) -> list[str]:
    """Return the lines of the definitions most relevant to the query, indented by nesting, in file order."""
    chosen = _chosen(symbols, asking, most)
    return [f"{'  ' * _depth(symbol, symbols)}{_cut(symbol.signature or symbol.name)}" for symbol in chosen]


def paths_in(text: str) -> list[str]:
    """Return the files that the text of a map names, in its order."""
    found: list[str] = []
    folder = ""
    for line in text.splitlines():
        if line.startswith("  "):
            continue
        head, colon, names = line.partition(": ")
        if colon and (head == "." or head.endswith("/")):
            folder = "" if head == "." else head
            found += (folder + name for name in names.split(" | "))
        elif line:
            found.append(line.removesuffix(":"))
    return found


def _most(order: Sequence[str], sections: Mapping[str, Sequence[str]], budget: int, count: Counter) -> int:
    """Return how many of the files can be named within `budget` tokens, beside the sections."""
    return bisect_right(range(1, len(order) + 1), budget, key=lambda files: count(_text(sections, order[:files])))


def _sections(
    best: Sequence[str], named: Sequence[str], outline: Outline, asking: QueryTerms, budget: int, count: Counter
) -> dict[str, list[str]]:
    """Return signatures of the best files, as long as the whole text fits in `budget` tokens."""
    sections: dict[str, list[str]] = {}
    for path in best[:_MOST_SECTIONS]:
        lines = signatures(outline(path), asking)
        while lines and count(_text({**sections, path: lines}, named)) > budget:
            lines = lines[: len(lines) // 2]
        tried = {**sections, path: lines}
        if count(_text(tried, named)) > budget:
            break
        sections = tried
    return sections


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


def _chosen(symbols: Sequence[SymbolInfo], asking: QueryTerms, most: int) -> list[SymbolInfo]:
    """Return the best definitions, with the types that contain them, in file order."""
    weights = [_weight(symbol, asking) for symbol in symbols]
    order = sorted(range(len(symbols)), key=lambda at: (-weights[at], at))
    taken = {symbols[at].qualified for at in order[:most] if weights[at] > 0}
    parents = {symbols[at].parent for at in order[:most] if weights[at] > 0}
    chosen = [s for s in symbols if s.qualified in taken or (s.qualified in parents and s.kind in _TYPES)]
    return sorted(chosen, key=lambda symbol: (symbol.line_start, -symbol.line_end))[: most + len(parents)]


def _weight(symbol: SymbolInfo, asking: QueryTerms) -> float:
    """Return the relevance of a definition: named in the query, words in common, and being at the top level."""
    if symbol.kind not in _TYPES and symbol.kind not in _CALLABLE:
        return 0.0
    asked = {word for word, _ in asking.words}
    weight = 10.0 if symbol.name in asking.names else 0.0
    weight += 3.0 * len(asked.intersection(words_of(symbol.name)))
    weight += 1.0 * len(asked.intersection(words_of(symbol.signature)))
    weight += 0.5 * len(asked.intersection(words_of(symbol.docstring)))
    return weight + (0.0 if symbol.parent else 0.6 if symbol.kind in _TYPES else 0.3)


def _depth(symbol: SymbolInfo, symbols: Sequence[SymbolInfo]) -> int:
    return symbol.parent.count(".") + 1 if symbol.parent else 0


def _cut(signature: str) -> str:
    return signature if len(signature) <= SIGNATURE_CHARS else signature[: SIGNATURE_CHARS - 1] + "…"
