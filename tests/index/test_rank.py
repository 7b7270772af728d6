"""What makes a file matter: its words, being named, focus, neighbours, kind and late edits."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.index.rank import Graph, Task, build_graph, important, rank_files, worth
from codeagent_lsp.index.store import Store
from codeagent_lsp.index.words import QueryTerms, question
from tests.index.rig import put, shop


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return shop(tmp_path)


def order(store: Store, task: Task) -> list[str]:
    return [path for path, _ in scores(store, task)]


def scores(store: Store, task: Task) -> list[tuple[str, float]]:
    return rank_files(store, made(store), store.files(), task)


def made(store: Store) -> Graph:
    return build_graph(store.defined(), store.used(), store.files())


def test_the_source_stands_before_test_document_and_made_file(store: Store) -> None:
    found = order(store, Task("cart checkout"))

    assert found[0] == "shop/cart.py"
    assert {"tests/test_cart.py", "docs/cart.md", "shop/static/cart.min.js"} <= set(found)


@pytest.mark.parametrize(
    ("text", "path"), [("test of the cart checkout", "tests/test_cart.py"), ("cart checkout docs", "docs/cart.md")]
)
def test_unless_tests_or_documents_are_asked_for(store: Store, text: str, path: str) -> None:
    plain = dict(scores(store, Task("cart checkout")))
    asked = dict(scores(store, Task(text)))

    assert asked[path] / asked["shop/cart.py"] > 1.5 * plain[path] / plain["shop/cart.py"]


def test_data_stays_behind_where_documents_are_asked_for(store: Store) -> None:
    put(store, {"docs/cart.yaml": "cart: checkout\n", "docs/basket.md": "cart: checkout\n"})

    found = dict(scores(store, Task("docs of the cart checkout")))

    assert found["docs/basket.md"] > 1.5 * found["docs/cart.yaml"]


def test_the_first_line_says_whether_tests_are_meant(store: Store) -> None:
    asked = order(store, Task("test of the cart checkout"))
    told = order(store, Task("the cart checkout is slow\n\n* add a test\n* mend the test"))

    assert asked[0] == "tests/test_cart.py"
    assert told[0] == "shop/cart.py"


def test_the_first_line_counts_as_much_as_all_the_rest(store: Store) -> None:
    rest = "cart checkout price total item " * 3

    assert order(store, Task(f"value_added_tax is wrong\n\n{rest}"))[0] == "shop/taxes.py"
    assert order(store, Task(f"all is wrong\n\nvalue_added_tax {rest}"))[0] != "shop/taxes.py"


def test_the_head_of_a_stack_trace_is_no_first_line() -> None:
    subject = Task("\nTraceback (most recent call last):\nthe cart fails\n").subject()

    assert [word for word, _ in subject.words] == ["cart", "fail"]


def test_a_long_word_finds_the_name_that_is_written_like_it(store: Store) -> None:
    put(store, {"shop/a.py": "class ParcelFormatter:\n    pass\n", "shop/b.py": "parcel = formatter\n"})

    assert order(store, Task("fix the parcelformatter"))[0] == "shop/a.py"


@pytest.mark.parametrize("name", ["shop/mail.py", "mail.py", "/home/me/work/shop/mail.py", "./shop/mail.py"])
def test_a_file_named_by_path_comes_first(store: Store, name: str) -> None:
    assert order(store, Task(f"the cart checkout breaks in {name}"))[0] == "shop/mail.py"


def test_a_file_in_a_stack_trace_comes_forward(store: Store) -> None:
    trace = 'Traceback:\n  File "/srv/shop/taxes.py", line 3, in value_added_tax\n    cart checkout'

    assert order(store, Task(trace))[0] == "shop/taxes.py"


def test_a_folder_that_is_named_brings_its_files(store: Store) -> None:
    put(store, {"api/v1/users.py": "x = 1\n", "api/v2/users.py": "x = 1\n"})

    assert order(store, Task("under api/v2 only"))[0] == "api/v2/users.py"


def test_a_path_that_fits_too_many_files_names_none(store: Store) -> None:
    put(store, {f"big/part/a{number}.py": "x = 1\n" for number in range(40)})

    found = dict(scores(store, Task("move big/part/ elsewhere, the invoice")))

    assert all(score <= 1.5 for score in found.values())


def test_a_mentioned_name_counts_like_one_in_the_text(store: Store) -> None:
    assert order(store, Task("make it right", mentioned=("value_added_tax",)))[0] == "shop/taxes.py"


def test_what_is_in_focus_matters_and_so_do_its_neighbours(store: Store) -> None:
    found = order(store, Task("make it faster", focused=("shop/prices.py",)))

    assert found[0] == "shop/prices.py"
    assert {"shop/cart.py", "shop/taxes.py"} <= set(found)
    assert "shop/mail.py" not in found


def test_a_focused_file_that_is_not_indexed_is_passed_over(store: Store) -> None:
    assert order(store, Task("invoice", focused=("gone.py",)))[0] == "shop/mail.py"


def test_neighbours_of_what_matches_matter_a_little(store: Store) -> None:
    found = dict(scores(store, Task("value_added_tax")))

    assert 0 < found["shop/cart.py"] < found["shop/prices.py"] < found["shop/taxes.py"]


def test_late_edits_decide_between_equals(store: Store) -> None:
    put(store, {"one/parcel.py": "size = 1\n", "two/parcel.py": "size = 1\n"})

    assert order(store, Task("parcel size"))[0] == "one/parcel.py"
    assert order(store, Task("parcel size", recent={"two/parcel.py": 5.0}))[0] == "two/parcel.py"


def test_late_edits_alone_matter_little(store: Store) -> None:
    found = scores(store, Task("invoice", recent={"shop/cart.py": 9.0, "gone.py": 9.0, "README.md": 0.0}))

    assert found[0][0] == "shop/mail.py"
    assert 0 < dict(found)["shop/cart.py"] < 0.1
    assert {"gone.py", "README.md"}.isdisjoint(dict(found))


def test_files_that_are_gone_from_the_index_are_not_ranked(store: Store) -> None:
    graph = made(store)
    store.remove("shop/taxes.py")

    found = rank_files(store, graph, store.files(), Task("value_added_tax"))

    assert "shop/taxes.py" not in dict(found)


def test_the_same_question_has_the_same_answer(store: Store) -> None:
    assert scores(store, Task("cart price tax invoice")) == scores(store, Task("cart price tax invoice"))


@pytest.mark.parametrize("text", ["", "the", "zzzz"])
def test_a_task_that_says_nothing_ranks_nothing(store: Store, text: str) -> None:
    assert scores(store, Task(text)) == []


def test_what_holds_the_repository_together(store: Store) -> None:
    found = [path for path, _ in important(made(store), store.files())]

    assert found[0] in {"shop/prices.py", "shop/cart.py"}
    assert found.index("README.md") > found.index("shop/mail.py")


def test_an_index_without_files(tmp_path: Path) -> None:
    empty = Store(tmp_path / "index.sqlite")

    assert important(made(empty), {}) == []


def test_worth_by_kind() -> None:
    nothing = QueryTerms()

    assert worth("a.py", nothing) == 1
    assert worth("tests/a.py", nothing) < 0.5
    assert worth("a.md", nothing) < 0.5
    assert worth("a.min.js", nothing) < worth("tests/a.py", nothing)
    assert worth("tests/a.py", question("fix the failing tests")) == 1
    assert worth("a.md", question("update the README")) == 1
