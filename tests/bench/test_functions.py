"""The bench of functions: what counts as edited and as shown, and that its table is printed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.bench import functions as bench
from tests.bench.edited import (
    Function,
    functions_at,
    in_map,
    in_peer_map,
    is_in_map,
    is_in_peer_map,
    is_in_piece,
    is_named,
    shared_words,
)
from tests.index.test_map_history import commit, git

SHOP = """\
class Cart:
    def total(self):
        price = 1
        return price


class Order:
    @property
    def total(self):
        return 2

    def send(self):
        def later():
            return 3

        return later


def total():
    return 4
"""


def edited(*hunks: tuple[int, int]) -> list[str]:
    return [each.symbol.qualified for each in functions_at("shop.py", SHOP, hunks)]


def one(*hunks: tuple[int, int]) -> Function:
    (found,) = functions_at("shop.py", SHOP, hunks)
    return found


def test_the_innermost_function_around_a_change_is_the_edited_one() -> None:
    assert edited((3, 1)) == ["Cart.total"]
    assert edited((14, 1)) == ["Order.send.later"]
    assert edited((16, 1), (3, 2), (8, 1)) == ["Order.send", "Cart.total", "Order.total"]


def test_what_is_added_between_functions_edits_none() -> None:
    assert edited((5, 0)) == []
    assert edited((11, 0)) == []
    assert edited((3, 0)) == ["Cart.total"]
    assert edited((1, 1), (5, 2), (11, 1)) == []


def test_a_function_is_in_a_map_by_its_file_its_scope_and_its_signature() -> None:
    cart, order, alone = one((3, 1)), one((10, 1)), one((20, 1))
    shown = in_map(
        "shop.py\n  class Cart\n    def total(self)\n  def total()\nother.py\n  class Order\n    def total(self)\n"
    )

    assert is_in_map(cart, shown)
    assert is_in_map(alone, shown)
    assert not is_in_map(order, shown)


def test_where_the_scope_is_not_shown_all_definitions_of_the_name_must_be() -> None:
    cart = one((3, 1))

    assert cart.alike == 2
    assert not is_in_map(cart, in_map("shop.py\n    def total(self)\n"))
    assert is_in_map(cart, in_map("shop.py\n    def total(self)\n    def total(self)\n"))


def test_files_that_are_only_named_show_no_function() -> None:
    assert not is_in_map(one((20, 1)), in_map("src/: a.py | shop.py\n.: shop.py\n"))


def test_a_piece_has_a_function_by_path_and_lines() -> None:
    cart = one((3, 1))

    assert is_in_piece(cart, "shop.py", 4, 9)
    assert not is_in_piece(cart, "shop.py", 5, 9)
    assert not is_in_piece(cart, "other.py", 1, 9)


def test_a_function_is_in_the_map_of_the_peer_by_its_line() -> None:
    shown = in_peer_map("\nshop.py:\n⋮\n│class Cart:\n│    def total(self):\n⋮\n\nb.py\n", ["shop.py", "b.py"])

    assert is_in_peer_map(one((3, 1)), shown)
    assert not is_in_peer_map(one((20, 1)), shown)
    assert set(shown) == {"shop.py", "b.py"}


def test_how_easy_it_is() -> None:
    cart = one((3, 1))

    assert is_named(cart, "the total is wrong")
    assert not is_named(cart, "the totals are wrong")
    assert shared_words(cart, "wrong prices of a cart") == {"pric", "cart"}
    assert not shared_words(cart, "fix the build")


@pytest.mark.slow
def test_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    filling = {f"lib/part{number}.py": f"def part_{number}():\n    return {number}\n" for number in range(40)}
    commit(folder, "the beginning of all", {**filling, "shop.py": SHOP})
    changed = SHOP.replace("price = 1", "price = 5")
    commit(folder, "the cart has another price in total", {"shop.py": changed})
    commit(folder, "a function that is new", {"shop.py": f"{changed}\n\ndef new():\n    pass\n"})
    monkeypatch.setattr(sys, "argv", ["functions", "--repo", str(folder), "--detail"])

    bench.main()

    printed = capsys.readouterr().out
    assert "1 commits that edit 1 functions, 41 files" in printed
    assert "beside them 1 that edit no function" in printed
    assert "shop.py:Cart.total" in printed
    found = ("map 1024", "map 1024, first sections", "pieces @5", "plain map 1024", "plain pieces @5")
    for name in (*found, "shares a word with it", "shares a telling word"):
        assert f"  {name:30} any 1.000  each 1.000" in printed
