"""The example of a project's style is a function that is like what is wanted, and not shown anyway."""

from __future__ import annotations

import pytest

from codeagent_lsp.direct.gathering import MOST, example_of_style
from codeagent_lsp.direct.material import Hints, Material, ShownFile, identifiers
from codeagent_lsp.direct.question import messages_for
from codeagent_lsp.messages import estimate_tokens
from codeagent_lsp.tools.code.source import SourceFile, source_of
from codeagent_lsp.workspace.files.file_view import FileText

PRICES = '''
RATES = {"book": 7, "other": 19}


def short(price):
    return price


@logged
def price_with_tax(price, kind):
    """Return the price with the tax of its kind."""
    if price < 0:
        raise ValueError("a price is never negative")
    rate = RATES[kind]
    return price * (100 + rate) / 100


def weight_of(items):
    """Return the weight of all items, in grams."""
    total = 0
    for item in items:
        total += item.weight
    return total
'''
WANTED = Hints(identifiers("Add a function price_with_discount that takes a price and a discount"))


def parsed(text: str, name: str = "prices.py") -> SourceFile:
    found = source_of(name, text)
    assert found is not None
    return found


def test_the_function_with_most_words_of_the_task() -> None:
    example = example_of_style([parsed(PRICES)], WANTED)
    assert example is not None
    assert (example.name, example.path) == ("price_with_tax", "prices.py")
    assert example.text.startswith("@logged\ndef price_with_tax")


def test_none_that_is_shown_anyway() -> None:
    assert example_of_style([parsed(PRICES)], WANTED, {("prices.py", "price_with_tax")}) is None
    elsewhere = example_of_style([parsed(PRICES)], WANTED, {("other.py", "price_with_tax")})
    assert elsewhere is not None


@pytest.mark.parametrize(
    "text", ["", "X = 1\n", "def price(a):\n    return a\n", "class Price:\n    pass\n", "def ("], ids=str.strip
)
def test_none_where_nothing_shows_a_style(text: str) -> None:
    assert example_of_style([parsed(text)], WANTED) is None


def test_no_long_function_and_none_without_a_common_word() -> None:
    lines = "".join(f"    price = price + {number}\n" for number in range(200))
    assert example_of_style([parsed(f"def price(price):\n{lines}")], WANTED) is None
    assert example_of_style([parsed(PRICES)], Hints(identifiers("Füge eine Funktion hinzu"))) is None


def test_it_is_told_as_what_it_is_before_the_task_and_may_not_be_changed() -> None:
    example = example_of_style([parsed(PRICES)], WANTED)
    assert example is not None
    assert estimate_tokens(example.text) <= MOST
    read = FileText("cart.py", "def cart():\n    return []\n", "disk")
    material = Material((ShownFile("cart.py", read),), example=example)
    user = messages_for("Add a price", material, "whole")[1].content
    assert "how this project writes code, from prices.py (for your information" in user
    assert user.index("```python\n@logged\ndef price_with_tax") < user.index("Task: Add a price")
    assert "how this project writes" not in messages_for("Add a price", Material(), "whole")[1].content
