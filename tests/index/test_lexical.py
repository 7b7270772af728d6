"""The full-text tables: what matches, in which order, and that they follow the store."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codeagent_lsp.index.store import (
    MAX_CHARS,
    MAX_OTHER_CHARS,
    Store,
    document,
    files_with,
    folder_and_stem,
    matching,
    rarity,
    search_words,
)
from codeagent_lsp.index.symbols import SymbolInfo
from codeagent_lsp.index.words import question
from tests.examples import examples
from tests.index.rig import put, shop


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return shop(tmp_path)


def found(store: Store, text: str, limit: int = 300) -> list[str]:
    return [path for path, _ in matching(store, question(text), limit)]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("the country's tax rate is wrong", "shop/taxes.py"),
        ("invoices are not sent", "shop/mail.py"),
        ("sendInvoice fails", "shop/mail.py"),
        ("`value_added_tax`", "shop/taxes.py"),
        ("pricing", "shop/prices.py"),
    ],
)
def test_the_file_that_speaks_of_it_comes_first(store: Store, text: str, path: str) -> None:
    assert found(store, text)[0] == path


def test_scores_fall_and_are_positive(store: Store) -> None:
    scores = [score for _, score in matching(store, question("cart checkout price"))]

    assert scores == sorted(scores, reverse=True)
    assert scores[-1] > 0


def test_a_definition_counts_more_than_a_use(store: Store) -> None:
    put(store, {"shop/uses.py": "total_price(1)\n", "shop/makes.py": "def reduce_price(item):\n    return item\n"})

    assert found(store, "reduce_price")[0] == "shop/makes.py"


def test_a_file_with_the_word_in_its_path_is_found_without_it_in_the_text(store: Store) -> None:
    put(store, {"shop/refunds.py": "pass\n"})

    assert found(store, "refund") == ["shop/refunds.py"]


def test_no_more_than_asked_for(store: Store) -> None:
    assert len(found(store, "cart", limit=2)) == 2


@pytest.mark.parametrize("text", ["", "the of and", "zzzzqq", "'\"*(){}^:-", "NEAR AND OR NOT", "a" * 500])
def test_nothing_to_look_for_finds_nothing(store: Store, text: str) -> None:
    assert found(store, text) == []


def test_a_word_that_most_files_have_says_nothing(store: Store) -> None:
    put(store, {f"shop/more{number}.py": "licence = 1\n" for number in range(30)})

    assert found(store, "licence") == []
    assert found(store, "licence invoice")[0] == "shop/mail.py"


def test_changed_and_removed_files(store: Store) -> None:
    put(store, {"shop/mail.py": "def send_parcel():\n    pass\n"})
    assert found(store, "parcel") == ["shop/mail.py"]
    assert found(store, "invoice") == []

    store.remove("shop/mail.py")
    assert found(store, "parcel") == []


def test_chinese_is_found_by_pairs(store: Store) -> None:
    put(store, {"shop/log.py": "# 写入日志文件\n", "shop/other.py": "# 读取配置\n"})

    assert found(store, "日志文件有错误") == ["shop/log.py"]


def test_accented_words_are_found(store: Store) -> None:
    put(store, {"shop/size.py": "# die Größe messen\n"})

    assert found(store, "Größe") == ["shop/size.py"]


def test_how_many_files_have_a_word(store: Store) -> None:
    assert rarity(store, ["invoic", "nowhere"]) == {"invoic": 1}
    assert rarity(store, []) == {}


def test_identifiers_are_looked_for_in_parts_and_as_wholes() -> None:
    assert search_words(question("`total_price` total")) == ["total", "pric", "_total_price"]


def test_what_is_indexed_of_a_file() -> None:
    symbol = SymbolInfo("addItem", "method", "a.py", 1, 2)

    path, names, text = document("shop/web_cart.py", [symbol], "items items other")

    assert path.split() == ["shop", "web", "cart", "py"]
    assert names.split() == ["add", "item", "_additem"]
    assert text.split() == ["item", "item"]  # `other` is a stop word


def test_a_word_said_a_hundred_times_is_indexed_a_few_times() -> None:
    *_, text = document("a.py", [], "needle " * 100)

    assert 1 < text.split().count("needl") < 20


@pytest.mark.parametrize(("path", "most"), [("a.py", MAX_CHARS), ("a.json", MAX_OTHER_CHARS)])
def test_of_a_long_text_the_beginning_is_indexed(path: str, most: int) -> None:
    *_, text = document(path, [], "start" + " " * most + "end")

    assert text.split() == ["start"]


def test_words_of_folders_and_of_the_name() -> None:
    folders, stem = folder_and_stem("src/web_app/user_model.test.py")

    assert folders == {"src", "web", "app"}
    assert stem == {"user", "model"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60), deadline=None)
@given(text=st.text(max_size=200))
def test_any_question_is_answered(store: Store, text: str) -> None:
    for path, score in matching(store, question(text)):
        assert path in store.files()
        assert score > 0


def test_files_that_have_all_of_the_names(store: Store) -> None:
    texts = {
        "a.py": "def load_user(name):\n    return fetchAll(name)\n",
        "b.py": "load_user('x')\n",
        "c.py": "user = load(fetch)\n",
    }
    put(store, texts)

    assert files_with(store, ["load_user"], 9) == ["a.py", "b.py"]
    assert files_with(store, ["load_user", "fetchAll"], 9) == ["a.py"]
    assert "c.py" in files_with(store, ["load", "fetch"], 9), "by its parts a name may be in more files, never in fewer"
    assert files_with(store, ["load_user"], 1) == ["a.py"]
    assert files_with(store, [], 9) == []
    assert files_with(store, ['"quoted" OR x'], 9) == []
