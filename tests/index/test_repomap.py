"""The text of the map: budget, signatures, folders, and that it stays as it is."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.index.relevance import definitions
from codeagent_lsp.index.repomap import (
    SIGNATURE_CHARS,
    RepoMap,
    render,
    steady,
)
from codeagent_lsp.index.symbols import SymbolInfo
from codeagent_lsp.index.words import question
from codeagent_lsp.messages import estimate_tokens
from tests.index.maps import paths_in

ASKING = question("the parser loses comments, see `parse_block`")

PARSER = (
    SymbolInfo("Parser", "class", "src/p.py", 1, 30, "class Parser(Base)"),
    SymbolInfo("parse_block", "method", "src/p.py", 5, 9, "def parse_block(self, text: str) -> Block", "", "Parser"),
    SymbolInfo("reset", "method", "src/p.py", 10, 12, "def reset(self) -> None", "", "Parser"),
    SymbolInfo("keep_comments", "function", "src/p.py", 40, 44, "def keep_comments(text)"),
    SymbolInfo("LIMIT", "constant", "src/p.py", 50, 50, "LIMIT = 3"),
)


def no_outline(path: str) -> tuple[SymbolInfo, ...]:
    return ()


def outline(path: str) -> tuple[SymbolInfo, ...]:
    return PARSER if path == "src/p.py" else ()


def rendered(
    ranked: list[tuple[str, float]],
    outline: Callable[[str], Sequence[SymbolInfo]],
    budget: int,
    previous: RepoMap | None = None,
    count: Callable[[str], int] = estimate_tokens,
    among: int = 0,
) -> RepoMap:
    best = definitions(ranked, lambda path: None, outline, ASKING)
    return render(ranked, best, outline, budget, previous=previous, count=count, among=among)


def many(count: int) -> list[tuple[str, float]]:
    return [(f"src/part{number % 7}/file{number}.py", 1 / (number + 1)) for number in range(count)]


def test_a_map_as_it_looks() -> None:
    ranked = [("src/p.py", 1.0), ("src/b.py", 0.5), ("src/a.py", 0.4), ("setup.py", 0.1)]

    made = rendered(ranked, outline, 60)

    assert made.text == (
        "src/p.py\n"
        "  class Parser(Base)\n"
        "    def parse_block(self, text: str) -> Block\n"
        "    def reset(self) -> None\n"
        "  def keep_comments(text)\n"
        "src/b.py\n"
        "src/a.py\n"
        ".: setup.py\n"
    )
    assert made.shown == ("src/p.py", "src/b.py", "src/a.py", "setup.py")


def test_files_beyond_the_sections_stand_by_folder_and_alphabet() -> None:
    ranked = [(f"src/{name}.py", 1.0 - number / 100) for number, name in enumerate("zyxwvutsrqponmlkjihgfedcba")]

    text = rendered([*ranked, ("top.py", 0.01)], no_outline, 400).text

    assert text.startswith("src/z.py\nsrc/y.py\nsrc/x.py\n.: top.py\nsrc/: a.py | b.py | c.py | ")


def test_a_map_says_how_many_files_it_does_not_name() -> None:
    few = rendered([("a.py", 1.0), ("b.py", 0.5)], no_outline, 400, among=5)
    assert few.text == "a.py\nb.py\n… and 3 more files\n"
    assert paths_in(few.text) == ["a.py", "b.py"]
    assert "more" not in rendered([("a.py", 1.0), ("b.py", 0.5)], no_outline, 400, among=2).text


@pytest.mark.parametrize("budget", [64, 256, 1024])
def test_what_a_map_does_not_name_is_within_its_budget(budget: int) -> None:
    made = rendered(many(500), outline, budget, among=5000)
    assert estimate_tokens(made.text) <= budget
    assert made.shown and made.text.endswith(f"… and {5000 - len(made.shown)} more files\n")


@pytest.mark.parametrize("budget", [64, 256, 1024, 4096])
def test_a_map_keeps_to_its_budget_and_uses_it(budget: int) -> None:
    made = rendered(many(2000), outline, budget)

    assert estimate_tokens(made.text) <= budget
    assert estimate_tokens(made.text) > budget * 0.4 or len(made.shown) == 400


def test_the_tokens_of_the_model_are_counted_when_it_can() -> None:
    made = rendered(many(500), outline, 100, count=lambda text: len(text.split("/")))

    assert len(made.text.split("/")) <= 100


@pytest.mark.parametrize("budget", [0, 1, 3, -5])
def test_no_room_no_map(budget: int) -> None:
    made = rendered(many(5), outline, budget)

    assert made.text == ""
    assert made.shown == ()


def test_nothing_ranked_no_map() -> None:
    assert rendered([], outline, 1024) == RepoMap()


def test_what_a_map_names_can_be_read_from_it() -> None:
    made = rendered([*many(80), ("top.py", 2.0), ("other.py", 0.0001), ("src/p.py", 3.0)], outline, 2048)

    assert sorted(paths_in(made.text)) == sorted(made.shown)
    assert paths_in(made.text)[:2] == ["src/p.py", "top.py"]


def test_names_with_blanks_can_be_read_too() -> None:
    ranked = [(f"my docs/{number} a.md", 1.0) for number in range(30)]

    made = rendered(ranked, no_outline, 1024)

    assert sorted(paths_in(made.text)) == sorted(path for path, _ in ranked)


def lines(symbols: Sequence[SymbolInfo], *chosen: str) -> list[str]:
    best = [(symbol, 1.0) for symbol in symbols if symbol.name in chosen]
    path = symbols[0].path
    return render([(path, 1.0)], best, lambda path: symbols, 1000).text.splitlines()[1:]


def test_a_definition_comes_under_the_type_that_it_is_in() -> None:
    assert lines(PARSER, "parse_block", "keep_comments") == [
        "  class Parser(Base)",
        "    def parse_block(self, text: str) -> Block",
        "  def keep_comments(text)",
    ]


def test_long_signatures_are_cut_and_missing_ones_are_names() -> None:
    symbols = (
        SymbolInfo("wide", "function", "a.py", 1, 2, "def wide(" + "x" * 300),
        SymbolInfo("bare", "function", "a.py", 3, 4),
    )

    wide, bare = lines(symbols, "wide", "bare")

    assert len(wide) == SIGNATURE_CHARS + 2
    assert wide.endswith("…")
    assert bare == "  bare"


def test_the_best_definitions_of_all_files_stand_before_all_of_the_best_file() -> None:
    files = {
        name: [SymbolInfo(f"{name}_{n}", "function", f"{name}.py", n, n, f"def {name}_{n}()") for n in range(1, 40)]
        for name in "ab"
    }
    best = [(each, 2.0 - each.line_start / 100 - (name == "b") / 1000) for name in "ab" for each in files[name]]

    text = render([("a.py", 1.0), ("b.py", 0.9)], best, lambda path: files[path[0]], 120).text

    assert text.startswith("a.py\n  def a_1()\n")
    assert 0 <= text.count("def a_") - text.count("def b_") <= 2
    assert estimate_tokens(text) <= 120


def test_definitions_whose_scores_only_tremble_stay() -> None:
    symbols = [SymbolInfo(f"f{n}", "function", "a.py", n, n, f"def f{n}(value)") for n in range(1, 200)]
    best = [(each, 1 / each.line_start) for each in symbols]
    before = render([("a.py", 1.0)], best, lambda path: symbols, 200)
    trembling = random.Random(7)

    for _ in range(10):
        moved = [(each, score * trembling.uniform(0.95, 1.05)) for each, score in best]
        assert render([("a.py", 1.0)], moved, lambda path: symbols, 200, previous=before).text == before.text


def test_scores_that_hardly_move_do_not_move() -> None:
    assert steady({"a": 0.55, "b": 0.9, "c": 0.123456}, {"a": 0.5, "b": 0.5}) == {"a": 0.5, "b": 0.9, "c": 0.12}


def test_the_map_is_the_same_while_scores_only_tremble() -> None:
    ranked = many(300)
    before = rendered(ranked, outline, 1024)
    trembling = random.Random(5)

    for _ in range(20):
        moved = [(path, score * trembling.uniform(0.95, 1.05)) for path, score in ranked]
        trembling.shuffle(moved)
        after = rendered(moved, outline, 1024, previous=before)
        assert after.text == before.text
        assert after.scores == before.scores


def test_the_map_changes_when_a_file_matters_that_did_not() -> None:
    before = rendered(many(300), outline, 1024)

    after = rendered([*many(300), ("new.py", 5.0)], outline, 1024, previous=before)

    assert after.text.startswith("new.py\n")


def test_equal_scores_are_in_the_order_of_their_paths() -> None:
    ranked = [(f"{name}.py", 0.5) for name in "cab"]

    assert rendered(ranked, no_outline, 1024).shown == ("a.py", "b.py", "c.py")


@settings(deadline=None)
@given(
    st.dictionaries(
        st.from_regex(r"([a-c]{1,3}/){0,3}[a-e]{1,4}\.py", fullmatch=True), st.floats(0.001, 3), max_size=60
    ),
    st.integers(10, 600),
)
def test_any_map_keeps_to_its_budget_and_names_the_best(scores: dict[str, float], budget: int) -> None:
    made = rendered([*scores.items()], no_outline, budget)

    assert not made.text or estimate_tokens(made.text) <= budget
    assert sorted(paths_in(made.text)) == sorted(made.shown)
    least = min((made.scores[path] for path in made.shown), default=0.0)
    assert all(made.scores[path] <= least for path in scores.keys() - set(made.shown)) or not made.shown
