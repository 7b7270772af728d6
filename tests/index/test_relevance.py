"""Relevance of definitions: their words, by lines, and their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.index.relevance import FilePart, QueryWords, central, definitions, weighed
from codeagent_lsp.index.symbols import SymbolInfo
from codeagent_lsp.index.words import as_word, counted, question

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

    assert [round(score, 3) for each, score in found if each.name == "send"] == [1.3, 0.65]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    common, rare = frozenset[str](), frozenset[str]()
    parts = [*(FilePart(1.0, {"item": 1}, common) for _ in range(9)), FilePart(1.0, {"smtp": 1}, rare)]

    scores = weighed(parts)

    assert scores[-1] > scores[0]


def test_no_parts_no_scores() -> None:
    assert weighed([]) == []
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
        expected = {word: often for word, often in counted(" ".join(line)).items() if word in wanted}
        assert found.counts(number, number) == expected
    whole = Counter(word for line in lines for word, often in counted(" ".join(line)).items() for _ in range(often))
    assert found.counts(1, len(lines)) == {word: often for word, often in whole.items() if word in wanted}
