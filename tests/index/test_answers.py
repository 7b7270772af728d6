"""Search and maps on the texts that a run sees, and never a word of what it may not read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codeagent_lsp.index.answers import Answers
from codeagent_lsp.index.rank import Task, fuse_lists
from codeagent_lsp.index.relevance import Chunk
from codeagent_lsp.index.store import saved_graph
from tests.index.rig import SHOP
from tests.index.workspaces import service, write
from tests.workspace.file_fakes import Workspace, workspace

CHECKOUT = Task("the cart checkout adds the wrong tax")


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    made = workspace(tmp_path / "ws")
    write(made.root, dict(SHOP))
    return made


@pytest.fixture
async def answers(place: Workspace, tmp_path: Path) -> AsyncIterator[Answers]:
    async with service(place.root, store=tmp_path / "state" / "index.sqlite") as index:
        await index.refresh()
        yield Answers(index.store, index.folders)


def anything(path: str) -> bool:
    return True


class TestSearch:
    def test_the_best_piece_comes_first(self, place: Workspace, answers: Answers) -> None:
        found = answers.search(place.view, Task("rate of the value added tax"), 5, anything)
        assert (found[0].path, found[0].symbol) == ("shop/taxes.py", "value_added_tax")
        assert found[0].text.startswith("def value_added_tax(items):")
        assert list(found) == sorted(found, key=lambda chunk: -chunk.score)
        assert len(answers.search(place.view, Task("cart"), 1, anything)) == 1

    def test_lines_are_those_of_the_text_the_run_sees(self, place: Workspace, answers: Answers) -> None:
        place.open("shop/taxes.py", "# moved down\n" * 20 + SHOP["shop/taxes.py"])
        best = answers.search(place.view, Task("value_added_tax"), 1, anything)[0]
        assert best.path == "shop/taxes.py"
        assert (best.line_start, best.line_end) == (21, 23)

    def test_words_that_are_only_staged_are_found(self, place: Workspace, answers: Answers) -> None:
        place.stage("shop/vouchers.py", "def redeem_voucher(code):\n    return lookup(code)\n")
        assert answers.search(place.view, Task("redeem a voucher"), 3, anything)[0].path == "shop/vouchers.py"

    def test_deleted_files_are_not_found(self, place: Workspace, answers: Answers) -> None:
        place.stage("shop/taxes.py", None)
        found = answers.search(place.view, Task("rate of the value added tax"), 5, anything)
        assert "shop/taxes.py" not in {chunk.path for chunk in found}

    def test_a_file_that_may_not_be_read_is_not_shown(self, place: Workspace, answers: Answers) -> None:
        found = answers.search(place.view, Task("value added tax"), 9, lambda path: not path.endswith("taxes.py"))
        assert found
        assert "shop/taxes.py" not in {chunk.path for chunk in found}

    @pytest.mark.parametrize("query", ["", "   ", "the of and", '"( OR * NEAR', "x" * 5000, "ünïcödé 大"])
    def test_odd_questions_have_answers_too(self, place: Workspace, answers: Answers, query: str) -> None:
        assert isinstance(answers.search(place.view, Task(query), 5, anything), tuple)


class TestMaps:
    def test_the_map_of_a_task_has_its_file(self, place: Workspace, answers: Answers) -> None:
        made = answers.task_map(place.view, CHECKOUT, 200, anything)
        assert "shop/cart.py\n  class Cart\n" in made.text
        assert {"shop/taxes.py", "shop/cart.py"} < set(made.shown[:3])

    def test_it_shows_what_is_staged(self, place: Workspace, answers: Answers) -> None:
        answers.task_map(place.view, CHECKOUT, 200, anything)
        place.stage("shop/cart.py", "class Cart:\n    def checkout_with_voucher(self):\n        pass\n")
        assert "checkout_with_voucher" in answers.task_map(place.view, CHECKOUT, 200, anything).text
        place.stage("shop/cart.py", None)
        assert "cart.py" not in answers.task_map(place.view, CHECKOUT, 200, anything).text.split("docs/")[0]

    def test_of_a_file_that_may_not_be_read_no_more_than_its_name(self, place: Workspace, answers: Answers) -> None:
        made = answers.task_map(place.view, CHECKOUT, 300, lambda path: not path.endswith("cart.py"))
        assert "shop/cart.py" in made.shown
        assert "class Cart" not in made.text
        assert "class Cart" in answers.task_map(place.view, CHECKOUT, 300, anything).text

    def test_the_overview_stays_while_other_texts_change(self, place: Workspace, answers: Answers) -> None:
        before = answers.overview(place.view, 300, anything)
        place.open("README.md", "Another shop.\n")
        assert answers.overview(place.view, 300, anything).text == before.text != ""

    async def test_the_graph_is_kept_for_the_next_process(
        self, place: Workspace, answers: Answers, tmp_path: Path
    ) -> None:
        text = answers.overview(place.view, 300, anything).text
        store = tmp_path / "state" / "index.sqlite"
        assert saved_graph(store).exists()
        async with service(place.root, store=store) as index:
            assert Answers(index.store, index.folders).overview(place.view, 300, anything).text == text


class TestFusion:
    def test_one_way_alone_keeps_its_order_and_scores(self) -> None:
        found = [chunk("a.py", 0.9), chunk("b.py", 0.1)]
        assert fuse_lists([found, []], 5) == tuple(found)
        assert fuse_lists([found], 1) == (found[0],)
        assert fuse_lists([[], []], 5) == fuse_lists([], 5) == ()

    def test_what_several_find_comes_first(self) -> None:
        words = [chunk("a.py"), chunk("b.py"), chunk("c.py")]
        vectors = [chunk("d.py"), chunk("b.py"), chunk("e.py")]
        assert [each.path for each in fuse_lists([words, vectors], 4)] == ["b.py", "a.py", "c.py", "d.py"]

    def test_a_file_that_several_find_comes_first_with_all_its_pieces(self) -> None:
        words = [chunk("a.py"), chunk("b.py", at=1), chunk("c.py")]
        vectors = [chunk("b.py", at=90), chunk("d.py")]
        found = fuse_lists([words, vectors], 5)
        assert [(each.path, each.line_start) for each in found[:3]] == [("b.py", 1), ("b.py", 90), ("a.py", 1)]

    def test_pieces_of_one_file_are_not_the_same(self) -> None:
        found = fuse_lists([[chunk("a.py", at=1)], [chunk("a.py", at=50), chunk("a.py", at=1)]], 5)
        assert [each.line_start for each in found] == [1, 50]


def chunk(path: str, score: float = 1.0, at: int = 1) -> Chunk:
    return Chunk(path, at, at + 9, "text", score)
