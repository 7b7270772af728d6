"""Chooses a function as an example of how a project writes code, for a task that wants something new. Pure functions.

Not here: the definitions that such a task may change (`pieces.py`), which files are looked at
(`session/solving/gathering.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from codeagent_lsp.agent.context.tokens import estimate_tokens
from codeagent_lsp.agent.solving.material import Piece
from codeagent_lsp.agent.solving.pieces import Hints, functions_of, identifiers, text_of
from codeagent_lsp.tools.code.source import SourceFile

LEAST, MOST = 30, 200
"""Tokens of an example: a shorter one shows nothing, a longer one takes the attention from the task."""
_CALLABLE = frozenset(("function", "method"))
_SHORT = 5
"""Words that are added to those of each function, so that the shortest do not win by one common word."""


def example_of_style(
    sources: Iterable[SourceFile], hints: Hints, shown: Collection[tuple[str, str]] = ()
) -> Piece | None:
    """Return the function that has most words of the task and its tests, for its length; None where none has any.

    `shown` are the definitions that the model sees anyway, by path and dotted name. Of equals the first one wins.
    """
    wanted = hints.named | hints.used
    examples = ((_likeness(piece.text, wanted), piece) for piece in _pieces(sources, shown))
    likeness, best = max(examples, key=lambda each: each[0], default=(0.0, None))
    return best if likeness > 0 else None


def _pieces(sources: Iterable[SourceFile], shown: Collection[tuple[str, str]]) -> Iterator[Piece]:
    for source in sources:
        for each in functions_of(source):
            if each.symbol.kind in _CALLABLE and (source.path, each.qualified) not in shown:
                text = text_of(source, each)
                if LEAST <= estimate_tokens(text) <= MOST:
                    yield Piece(each.qualified, each.symbol.line_start, text, source.path)


def _likeness(text: str, wanted: frozenset[str]) -> float:
    words = identifiers(text)
    return len(words & wanted) / float((_SHORT + len(words)) ** 0.5)
