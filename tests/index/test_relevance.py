"""Relevance of definitions: their words, by lines, and their names.

Pieces of files: that they follow definitions, lose no line, and the right one answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.index.rank import Task, build_graph, rank_files
from codeagent_lsp.index.relevance import (
    MOST_LINES,
    Chunk,
    FilePart,
    QueryWords,
    answers,
    central,
    definitions,
    split,
    weigh_parts,
)
from codeagent_lsp.index.symbols import SymbolInfo
from codeagent_lsp.index.words import as_word, count_words, question
from tests.index.rig import SHOP, put, shop

TEXT = """\
class Cart:
    def add(self, item):
        self.items.append(item)

    def total(self):
        # prices of the invoice are rounded half up
        return round(sum(self.items))


def send(customer):
    smtp(customer)
"""
CART = (
    SymbolInfo("Cart", "class", "cart.py", 1, 7, "class Cart"),
    SymbolInfo("add", "method", "cart.py", 2, 3, "def add(self, item)", "", "Cart"),
    SymbolInfo("total", "method", "cart.py", 5, 7, "def total(self)", "Round half up.", "Cart"),
    SymbolInfo("send", "function", "cart.py", 10, 11, "def send(customer)"),
    SymbolInfo("LIMIT", "constant", "cart.py", 12, 12, "LIMIT"),
)

LONG = "".join(
    f"def step_{number}(value):\n" + "".join(f"    value += {line}\n" for line in range(11)) + "    return value\n\n"
    for number in range(6)
)


def outline(path: str) -> Sequence[SymbolInfo]:
    return CART


def best(text: str | None, asked: str) -> str:
    found = definitions([("cart.py", 1.0)], lambda path: text, outline, question(asked))
    return max(found, key=lambda each: each[1])[0].name


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("prices are rounded", "total"),  # in a comment
        ("the customer gets no mail", "send"),
        ("`append` of an item", "add"),
        ("send it", "send"),
        ("the class of the cart", "Cart"),
    ],
)
def test_the_definition_that_has_the_words_is_the_best(asked: str, name: str) -> None:
    assert best(TEXT, asked) == name


def test_without_a_text_signature_and_docstring_have_to_do() -> None:
    assert best(None, "rounding") == "total"
    assert best(None, "customer") == "send"


def test_a_type_does_not_count_the_words_of_its_members() -> None:
    found = {
        each.name: score
        for each, score in definitions([("cart.py", 1.0)], lambda _: TEXT, outline, question("smtp invoice"))
    }

    assert found["Cart"] < found["total"]
    assert "LIMIT" not in found


def test_the_score_of_the_file_counts() -> None:
    found = definitions([("cart.py", 1.0), ("b.py", 0.5)], lambda _: TEXT, outline, question("customer"))

    assert [round(score, 3) for each, score in found if each.name == "send"] == [1.0, 0.5]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    parts = [*(FilePart(1.0, {"item": 1}) for _ in range(9)), FilePart(1.0, {"smtp": 1})]

    scores = weigh_parts(parts, frozenset(("item", "smtp")))

    assert scores[-1] > scores[0]


def test_a_word_of_the_first_line_counts_more_than_one_of_the_rest() -> None:
    parts = [FilePart(1.0, {"item": 1}), FilePart(1.0, {"smtp": 1})]

    assert [each > 0.99 for each in weigh_parts(parts, frozenset(("smtp",)))] == [False, True]
    assert [each > 0.99 for each in weigh_parts(parts, frozenset(("item",)))] == [True, False]


@pytest.mark.parametrize(
    "better",
    [
        FilePart(1.0, {"item": 1}, named=frozenset(("item",))),
        FilePart(1.0, {"item": 1}, around=frozenset(("item",))),
        FilePart(1.0, {"item": 1}, asked=True),
        FilePart(1.0, {"item": 3}),
        FilePart(2.0, {"item": 1}),
    ],
)
def test_more_of_a_query_in_a_part_is_better(better: FilePart) -> None:
    plain, more = weigh_parts([FilePart(1.0, {"item": 1}), better], frozenset(("item",)))

    assert plain < more <= better.score


def test_a_long_part_comes_before_a_short_one_with_the_same_words() -> None:
    short, long = weigh_parts([FilePart(1.0, {"item": 1}, lines=12), FilePart(1.0, {"item": 1})], frozenset())

    assert short < long == 1.0


def test_no_parts_no_scores() -> None:
    assert weigh_parts([], frozenset()) == []
    assert definitions([], lambda _: None, outline, question("cart")) == []


def test_a_query_without_words_finds_nothing_in_a_text() -> None:
    assert QueryWords(question("the")).lines(TEXT).counts(1, 99) == {}


def test_without_a_task_types_stand_before_functions_and_members_are_left_out() -> None:
    assert [(each.name, score) for each, score in central([("cart.py", 1.0)], outline)] == [
        ("Cart", 0.6),
        ("send", 0.3),
    ]


WORDS = st.sampled_from(
    [
        "parties",
        "party",
        "Parsing",
        "parse_block",
        "parseBlock",
        "HTTPServer",
        "elasticaFormatter",
        "用户 登录",
        "stopped",
        "x1",
    ]
)


@given(st.lists(st.lists(WORDS, max_size=6), max_size=6), st.lists(WORDS, min_size=1, max_size=4))
def test_the_words_of_lines_are_those_that_the_index_counts(lines: list[list[str]], asked: list[str]) -> None:
    asking = question(" ".join(asked))
    wanted = {word for word, _ in asking.words} | {as_word(name) for name in asking.names} | set(asking.joined)
    text = "\n".join(" ".join(line) for line in lines)

    found = QueryWords(asking).lines(text)

    for number, line in enumerate(lines, 1):
        expected = {word: often for word, often in count_words(" ".join(line)).items() if word in wanted}
        assert found.counts(number, number) == expected
    whole = Counter(word for line in lines for word, often in count_words(" ".join(line)).items() for _ in range(often))
    assert found.counts(1, len(lines)) == {word: often for word, often in whole.items() if word in wanted}


def search(folder: Path, text: str, files: dict[str, str] | None = None, limit: int = 10) -> list[Chunk]:
    store = shop(folder, files)
    texts = {**SHOP, **(files or {})}
    order = rank_files(store, build_graph(store.defined(), store.used(), store.files()), store.files(), Task(text))
    return answers(order, texts.get, store.symbols, question(text), limit=limit)


def test_the_piece_that_answers_comes_first(tmp_path: Path) -> None:
    first = search(tmp_path, "step_4 loses the value", {"lib/steps.py": LONG})[0]

    assert first.path == "lib/steps.py"
    assert first.symbol == "step_4"
    assert (first.line_start, first.line_end) == (57, 70)
    assert first.text.startswith("def step_4(value):\n")


def test_each_further_piece_of_a_file_counts_for_less() -> None:
    texts = {"a.py": LONG, "b.py": LONG}
    names = [SymbolInfo(f"step_{at}", "function", "", 14 * at + 1, 14 * at + 14) for at in range(6)]

    found = answers([("a.py", 1.0), ("b.py", 0.9)], texts.get, lambda path: names, question("value"))

    assert [chunk.path for chunk in found[:6]] == ["a.py", "b.py", "a.py", "b.py", "a.py", "b.py"]


FILLING = "    call()\n" * 12


def test_a_piece_whose_name_has_the_words_comes_before_one_that_uses_them_once() -> None:
    text = f"def first(self):\n{FILLING}    checkout()\n\ndef checkout(self):\n{FILLING}"
    names = [SymbolInfo("first", "function", "", 1, 15), SymbolInfo("checkout", "function", "", 16, 28)]

    found = answers([("a.py", 1.0)], {"a.py": text}.get, lambda path: names, question("checkout"))

    assert [chunk.symbol for chunk in found] == ["checkout", "first"]


def test_a_short_function_is_found_by_its_name_in_a_piece_with_others() -> None:
    short = "def near():\n    return 1\n\ndef checkout():\n    return 2\n\n"
    text = f"{short}def first(self):\n{FILLING}    checkout(); checkout()\n"
    names = [
        SymbolInfo("near", "function", "", 1, 3),
        SymbolInfo("checkout", "function", "", 4, 6),
        SymbolInfo("first", "function", "", 7, 20),
    ]

    found = answers([("a.py", 1.0)], {"a.py": text}.get, lambda path: names, question("`checkout`"))

    assert found[0].line_start == 1


def test_no_more_than_asked_for_best_first(tmp_path: Path) -> None:
    found = search(tmp_path, "cart checkout price tax", limit=3)

    assert len(found) == 3
    assert [chunk.score for chunk in found] == sorted((chunk.score for chunk in found), reverse=True)


def test_files_that_cannot_be_read_any_more_are_passed_over(tmp_path: Path) -> None:
    store = shop(tmp_path)
    put(store, {"shop/gone.py": "def checkout_cart():\n    pass\n"})

    found = answers([("shop/gone.py", 1.0), ("shop/cart.py", 0.5)], SHOP.get, store.symbols, question("checkout"))

    assert {chunk.path for chunk in found} == {"shop/cart.py"}


def test_nothing_ranked_nothing_found() -> None:
    assert answers([], SHOP.get, lambda path: (), question("cart")) == []


def test_text_without_definitions_is_cut_by_lines() -> None:
    text = "".join(f"line {number}\n" for number in range(150))

    lengths = [chunk.line_end - chunk.line_start + 1 for chunk in split("notes.md", text, ())]

    assert sum(lengths) == 150
    assert all(MOST_LINES // 2 <= length <= MOST_LINES for length in lengths[:-1])


def test_lines_are_counted_as_the_parser_counts_them() -> None:
    text = "# a\fb\u2028c\r\n\ndef f():\r\n    return 1\r\n"

    (chunk,) = split("a.py", text, ())

    assert (chunk.line_start, chunk.line_end) == (1, 4)
    assert chunk.text == "# a\fb\u2028c\n\ndef f():\n    return 1"


def test_long_texts_are_cut_after_blank_lines() -> None:
    text = "".join(f"line {number}\n" + "\n" * (number in (40, 80)) for number in range(120))

    assert [chunk.text.splitlines()[0] for chunk in split("notes.md", text, ())][:3] == ["line 0", "line 41", "line 81"]


@given(st.integers(0, 399))
def test_a_new_line_leaves_the_pieces_far_from_it_as_they_were(at: int) -> None:
    lines = [f"entry {number}: {number * 7919 % 1000}" for number in range(400)]
    before = {chunk.text for chunk in split("CHANGES.md", "\n".join(lines), ())}

    after = [chunk.text for chunk in split("CHANGES.md", "\n".join((*lines[:at], "new", *lines[at:])), ())]

    assert sum(text not in before for text in after) <= 5


def test_short_pieces_go_with_what_follows() -> None:
    symbols = [SymbolInfo(name, "function", "a.py", line, line) for line, name in enumerate("abc", 1)]

    assert len(split("a.py", "def a(): 1\ndef b(): 2\ndef c(): 3\n", symbols)) == 1


def test_an_empty_text_has_no_pieces() -> None:
    assert split("a.py", "", ()) == []


@given(
    st.integers(0, 400),
    st.lists(st.tuples(st.integers(1, 420), st.integers(0, 200)), max_size=12),
)
def test_no_line_is_lost_or_doubled(lines: int, places: list[tuple[int, int]]) -> None:
    text = "".join(f"{number}\n" for number in range(lines))
    symbols = [SymbolInfo("s", "function", "a.py", start, start + length) for start, length in places]

    chunks = split("a.py", text, symbols)

    assert "".join(chunk.text + "\n" for chunk in chunks) == text
    assert all(chunk.line_end - chunk.line_start < MOST_LINES for chunk in chunks)
    assert [chunk.line_start for chunk in chunks[1:]] == [chunk.line_end + 1 for chunk in chunks[:-1]]
