"""Of a long file the definitions that a task is about are shown, little at first."""

from __future__ import annotations

import pytest

from codeagent_lsp.direct.material import Hints, chosen_pieces, identifiers, names_definition
from codeagent_lsp.messages import estimate_tokens
from codeagent_lsp.tools.code.source import SourceFile, source_of

FILLER = "".join(
    f'def filler_{n}(value):\n    """Nothing of interest."""\n    total = value\n    for each in range({n}):\n'
    f"        total += each\n    return total\n\n\n"
    for n in range(180)
)
TEXT = f'''"""A module of some 1,500 lines."""

{FILLER}
def helper(items):
    return len(items) + 1


def mean(values):
    return sum(values) / helper(values)


class Box:
    """A box."""

    def __init__(self):
        self.items = []

    def size(self):
        return helper(self.items)
'''


@pytest.fixture(scope="module")
def source() -> SourceFile:
    found = source_of("stats.py", TEXT)
    assert found is not None
    assert TEXT.count("\n") > 1400
    return found


def names(source: SourceFile, hints: Hints, budget: int = 1500) -> list[str]:
    return [piece.name for piece in chosen_pieces(source, hints, budget)[0]]


def test_the_function_that_the_task_names(source: SourceFile) -> None:
    hints = Hints(named=identifiers("The function mean in stats.py is wrong"))
    assert names_definition(source, hints)
    assert names(source, hints) == ["mean"]


def test_where_nothing_is_named_what_the_search_found(source: SourceFile) -> None:
    line = next(each.symbol.line_start for each in source.definitions if each.symbol.name == "size")
    found = {"stats.py": [range(line, line + 2)], "other.py": [range(1, 20)]}

    assert names(source, Hints(named=identifiers("It counts wrongly"), likely=found)) == ["Box.size"]


def test_what_the_search_found_does_not_widen_what_is_named(source: SourceFile) -> None:
    line = next(each.symbol.line_start for each in source.definitions if each.symbol.name == "size")
    hints = Hints(
        named=identifiers("The function mean in stats.py is wrong"), likely={"stats.py": [range(line, line + 2)]}
    )

    assert names(source, hints) == ["mean"]


def test_what_it_calls_only_when_a_first_answer_did_not_do(source: SourceFile) -> None:
    assert names(source, Hints(named=frozenset({"mean"}), wide=True))[:2] == ["helper", "mean"]


def test_the_function_that_the_failing_test_uses(source: SourceFile) -> None:
    used = identifiers("assert mean([1, 2]) == 1.5")
    assert "mean" in names(source, Hints(named=identifiers("Some tests fail. Repair the code."), used=used))


def test_the_function_with_the_line_of_a_traceback(source: SourceFile) -> None:
    line = TEXT[: TEXT.index("return len(items)")].count("\n") + 1
    assert names(source, Hints(lines={"stats.py": {line}})) == ["helper"]
    assert names(source, Hints(lines={"other.py": {line}})) != ["helper"]


def test_a_method_stands_below_the_line_of_its_class(source: SourceFile) -> None:
    (piece,) = chosen_pieces(source, Hints(named=frozenset({"size"})), 500)[0]
    assert piece.name == "Box.size"
    assert piece.text.startswith("class Box:\n    def size(self):")


@pytest.mark.parametrize("budget", [50, 200, 1000, 3000])
def test_never_more_than_the_budget(source: SourceFile, budget: int) -> None:
    hints = Hints(named=identifiers("filler helper mean value total"), wide=True)
    pieces, outline = chosen_pieces(source, hints, budget)
    assert sum(estimate_tokens(piece.text) for piece in pieces) <= budget + 20 * len(pieces)
    assert len(outline) <= 40


def test_without_a_hint_something_is_shown(source: SourceFile) -> None:
    assert names(source, Hints())
