"""Maps of an index: what they show, that they stay, and when the graph is made anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.index import answers as mappers
from codeagent_lsp.index.answers import Mapper
from codeagent_lsp.index.rank import Task
from codeagent_lsp.index.store import Store
from codeagent_lsp.messages import estimate_tokens
from tests.index.rig import put, shop

FILLING = {f"lib/part{number}.py": f"def part_{number}():\n    return {number}\n" for number in range(120)}
CHECKOUT = Task("the cart checkout adds the wrong tax")


class Counting(Store):
    """Counts how often all names are read."""

    reads = 0

    def used(self):  # type: ignore[no-untyped-def]
        self.reads += 1
        return super().used()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return shop(tmp_path, FILLING)


def counting(folder: Path) -> Counting:
    shop(folder, FILLING).close()
    store = shop(folder)
    return Counting(store.path, store.companions)


def test_one_map_from_nothing(store: Store) -> None:
    text = Mapper(store).task_map(Task("the cart checkout"), 200).text

    assert text.startswith("shop/cart.py\n  class Cart\n")
    assert "\n    def checkout(self)\n" in text
    assert estimate_tokens(text) <= 200


def test_focused_files_and_mentioned_names(store: Store) -> None:
    assert Mapper(store).task_map(Task("faster", ("lib/part7.py",)), 1024).text.startswith("lib/part7.py\n")
    assert Mapper(store).task_map(Task("faster", (), ("value_added_tax",)), 1024).text.startswith("shop/taxes.py\n")


def test_the_overview_is_the_same_for_every_task(store: Store) -> None:
    mapper = Mapper(store)
    before = mapper.overview(300).text
    mapper.task_map(CHECKOUT, 300)

    assert mapper.overview(300).text == before
    assert "shop/prices.py" in before


def test_without_a_task_the_map_is_the_overview(store: Store) -> None:
    mapper = Mapper(store)

    assert mapper.task_map(Task(), 300).text == mapper.overview(300).text != ""


def test_an_edit_of_another_file_leaves_the_map_as_it_is(store: Store) -> None:
    mapper = Mapper(store)
    before = mapper.task_map(CHECKOUT, 400).text

    for number in range(20):
        put(store, {f"lib/part{number}.py": f"def quite_another_{number}():\n    return 'longer than before'\n"})
        assert mapper.task_map(CHECKOUT, 400).text == before


def test_moving_the_lines_of_a_shown_file_leaves_the_map_as_it_is(store: Store) -> None:
    mapper = Mapper(store)
    before = mapper.task_map(CHECKOUT, 400).text

    put(store, {"shop/taxes.py": "\n\n\ndef value_added_tax(items):\n    # the rate of the country\n    return 19\n"})

    assert mapper.task_map(CHECKOUT, 400).text == before


def test_a_changed_signature_is_shown(store: Store) -> None:
    mapper = Mapper(store)
    mapper.task_map(CHECKOUT, 400)

    put(
        store, {"shop/taxes.py": "def value_added_tax(items, country):\n    # the rate of the country\n    return 19\n"}
    )

    assert "value_added_tax(items, country)" in mapper.task_map(CHECKOUT, 400).text


def test_a_new_and_a_removed_file(store: Store) -> None:
    mapper = Mapper(store)
    mapper.task_map(CHECKOUT, 400)
    put(store, {"shop/checkout.py": "def checkout_cart_with_tax(cart):\n    return cart\n"})
    store.remove("shop/taxes.py")

    shown = mapper.task_map(CHECKOUT, 400).shown

    assert "shop/checkout.py" in shown[:2]
    assert "shop/taxes.py" not in shown


def test_the_graph_is_made_once_and_loaded_by_the_next_process(tmp_path: Path) -> None:
    store = counting(tmp_path)
    saved = tmp_path / "graph"

    first = Mapper(store, saved).task_map(CHECKOUT, 400)
    assert store.reads == 1
    second = Mapper(store, saved).task_map(CHECKOUT, 400)

    assert store.reads == 1
    assert second.text == first.text


def test_the_graph_is_made_anew_only_when_much_has_changed(tmp_path: Path) -> None:
    store = counting(tmp_path)
    mapper = Mapper(store)
    mapper.task_map(CHECKOUT, 400)
    put(store, {"lib/part1.py": "x = 1\n"})
    mapper.task_map(CHECKOUT, 400)
    assert store.reads == 1

    put(store, {f"lib/part{number}.py": "x = 2\n" for number in range(10)})
    mapper.task_map(CHECKOUT, 400)

    assert store.reads == 2


@pytest.mark.parametrize("content", [b"", b"\0" * 40, b"not a graph at all, but some text"])
def test_a_damaged_graph_is_made_anew(tmp_path: Path, content: bytes) -> None:
    store, saved = counting(tmp_path), tmp_path / "graph"
    saved.write_bytes(content)

    assert Mapper(store, saved).task_map(CHECKOUT, 400).text
    assert store.reads == 1
    assert saved.read_bytes() != content


def test_a_graph_that_cannot_be_saved_does_no_harm(tmp_path: Path) -> None:
    store = counting(tmp_path)
    (tmp_path / "graph").mkdir()

    assert Mapper(store, tmp_path / "graph").task_map(CHECKOUT, 400).text
    assert Mapper(store, tmp_path / "missing" / "graph").task_map(CHECKOUT, 400).text
    assert not list(tmp_path.rglob("*.part"))


def test_only_the_last_maps_are_kept(store: Store) -> None:
    mapper = Mapper(store)

    for number in range(mappers._KEPT_MAPS * 3):
        mapper.task_map(Task(f"the cart checkout {number}"), 200)

    assert len(mapper._last) == mappers._KEPT_MAPS


def test_an_empty_index(tmp_path: Path) -> None:
    store = Store(tmp_path / "index.sqlite", shop(tmp_path / "other").companions)

    assert Mapper(store).task_map(Task("the cart checkout"), 1024).text == ""
    assert Mapper(store).overview(500).text == ""
