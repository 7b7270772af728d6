"""Search by meaning: what is embedded and how often, what is found, and that nothing fails where it does not work."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from codeagent_lsp.errors import ContextOverflow, ModelUnreachable
from codeagent_lsp.index import semantic
from codeagent_lsp.index.semantic import BATCH, MAX_CHARS, PORTION, Semantic, is_worth_it
from codeagent_lsp.index.service import IndexService
from codeagent_lsp.index.vectors import Vectors, VectorsUnusable, is_installed
from tests.index.meaning import SIZE, Meaning, Memory, vector
from tests.index.rig import SHOP
from tests.index.workspaces import service, settle, write

# Long enough for a piece of its own: short ones are joined.
CART = "class Cart:\n    def checkout(self):\n" + "        self.checkout(cart)\n" * 12
VOUCHER = "\n\ndef voucher(percent):\n" + "    voucher -= percent\n" * 12

DOWN = ModelUnreachable("model.unreachable", url="http://127.0.0.1:1", reason="refused")


class Rig:
    """An index with a search by meaning on it."""

    def __init__(self, root: Path, index: IndexService, meaning: Meaning, memory: Memory) -> None:
        self.root, self.index, self.meaning, self.memory = root, index, meaning, memory
        self.notes: list[str] = []
        self.semantic = Semantic(index.store, index.folders, meaning, lambda model: memory, self.notes.append)

    async def refresh(self) -> int:
        await self.index.refresh()
        return await self.semantic.refresh()

    async def found(self, query: str, limit: int = 5) -> list[str]:
        return list(dict.fromkeys(chunk.path for chunk in await self.semantic.search(query, limit)))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "ws"
    place.mkdir()
    write(place, {**SHOP, "shop/cart.py": CART})
    settle()
    return place


@asynccontextmanager
async def rig(root: Path, meaning: Meaning | None = None, memory: Memory | None = None) -> AsyncIterator[Rig]:
    async with service(root, store=root.parent / "state" / "index.sqlite") as index:
        made = Rig(root, index, meaning or Meaning(), memory or Memory())
        try:
            yield made
        finally:
            await made.semantic.close()
            assert made.meaning.closed


async def test_another_word_for_it_finds_the_file(root: Path) -> None:
    async with rig(root) as at:
        await at.refresh()

        assert (await at.found("bills by post"))[0] == "shop/mail.py"
        best, *_ = await at.semantic.search("bills by post", 1)
        assert best.symbol.startswith("Mailer")
        assert best.text == "\n".join(SHOP["shop/mail.py"].splitlines()[best.line_start - 1 : best.line_end])
        assert at.notes == []


async def test_nothing_is_embedded_twice(root: Path) -> None:
    async with rig(root) as at:
        first = await at.refresh()
        pieces = [text for text in at.meaning.asked if text != "size"]

        assert first == len(pieces) == len(set(pieces)) > 4
        assert await at.refresh() == 0

        write(root, {"shop/copy.py": SHOP["shop/mail.py"]})
        (root / "shop/taxes.py").rename(root / "shop/rates.py")
        assert await at.refresh() == 0
        assert {"shop/copy.py", "shop/mail.py"} <= set(await at.found("invoice", 10))
        assert "shop/rates.py" in await at.found("country tax")


async def test_only_what_has_changed_is_embedded(root: Path) -> None:
    async with rig(root) as at:
        await at.refresh()
        write(root, {"shop/prices.py": SHOP["shop/prices.py"] + VOUCHER})
        settle()

        assert 0 < await at.refresh() <= 2
        assert (await at.found("voucher"))[0] == "shop/prices.py"


async def test_after_a_restart_nothing_is_embedded_again(root: Path) -> None:
    memory = Memory()
    async with rig(root, memory=memory) as at:
        await at.refresh()
    async with rig(root, memory=memory) as at:
        assert await at.refresh() == 0
        assert (await at.found("basket checkout"))[0] == "shop/cart.py"


async def test_another_model_means_other_vectors(root: Path) -> None:
    async with rig(root, Meaning("one")) as at:
        count = await at.refresh()
    async with rig(root, Meaning("two")) as at:
        assert await at.refresh() == count


async def test_lost_vectors_are_made_again(root: Path) -> None:
    async with rig(root) as at:
        count = await at.refresh()
    async with rig(root, memory=Memory()) as at:
        assert await at.refresh() == count


async def test_what_is_gone_is_not_found(root: Path) -> None:
    async with rig(root) as at:
        await at.refresh()
        (root / "shop/mail.py").unlink()
        assert "shop/mail.py" not in await at.found("invoice")

        await at.refresh()
        assert "shop/mail.py" not in await at.found("invoice")


async def test_a_piece_that_has_changed_since_is_not_shown(root: Path) -> None:
    """The vector says what was there; the words of what is there now are searched by other means."""
    async with rig(root) as at:
        await at.refresh()
        write(root, {"shop/mail.py": "\n\n" + SHOP["shop/mail.py"]})

        assert "shop/mail.py" not in await at.found("invoice")


async def test_tests_come_behind_sources(root: Path) -> None:
    async with rig(root) as at:
        await at.refresh()
        found = await at.found("cart checkout", 10)

        assert found.index("shop/cart.py") < found.index("tests/test_cart.py")
        assert "shop/static/cart.min.js" not in found


async def test_no_more_than_asked_for_and_few_of_one_file(root: Path) -> None:
    long = "".join(f"def invoice_{n}():\n    a = 1\n    b = 2\n    c = 3\n    return invoice\n\n\n" for n in range(9))
    write(root, {"shop/long.py": long})
    settle()
    async with rig(root) as at:
        await at.refresh()

        assert len(await at.semantic.search("invoice", 2)) == 2
        found = await at.semantic.search("invoice", 10)
        assert sum(chunk.path == "shop/long.py" for chunk in found) == 3


class TestFailure:
    async def test_nothing_fails_and_the_user_is_told_once(self, root: Path) -> None:
        async with rig(root) as at:
            at.meaning.failing = DOWN
            assert await at.refresh() == 0
            assert await at.refresh() == 0
            assert await at.semantic.search("invoice", 5) == ()
            assert len(at.notes) == 1
            assert "refused" in at.notes[0]

    async def test_it_rests_and_comes_back(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(semantic, "REST_SECONDS", 0.3)
        async with rig(root) as at:
            await at.refresh()
            at.meaning.failing = DOWN
            assert await at.found("invoice") == []
            at.meaning.failing = None
            assert await at.found("invoice") == []  # it rests

            await asyncio.sleep(0.4)
            assert await at.refresh() == 0  # this asks for nothing
            assert (await at.found("invoice"))[0] == "shop/mail.py"
            at.meaning.failing = DOWN
            await at.found("invoice")
            assert len(at.notes) == 2  # it had worked in between

    async def test_as_long_as_it_does_not_work_nothing_more_is_said(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(semantic, "REST_SECONDS", 0.0)
        async with rig(root) as at:
            await at.refresh()
            at.meaning.failing = DOWN
            for _ in range(3):
                assert await at.found("invoice") == []
                assert await at.refresh() == 0  # there is nothing to embed
            assert len(at.notes) == 1

    async def test_what_was_done_before_it_failed_stays(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(semantic, "PORTION", 2)
        async with rig(root) as at:
            await at.index.refresh()
            whole = at.meaning.embed

            async def fails_later(texts: list[str]) -> list[list[float]]:
                if len(at.meaning.asked) > 4:
                    raise DOWN
                return await whole(texts)

            monkeypatch.setattr(at.meaning, "embed", fails_later)
            assert await at.semantic.refresh() == 0
            before = len(at.memory.kept)
            monkeypatch.setattr(at.meaning, "embed", whole)
            embedded = await at.semantic.refresh()

            assert before > 0
            assert len(at.memory.kept) == before + embedded

    async def test_a_text_that_is_too_long_is_cut(self, root: Path) -> None:
        class Short(Meaning):
            async def embed(self, texts: object) -> list[list[float]]:
                assert isinstance(texts, list)
                if max(map(len, texts)) > 600:
                    raise ContextOverflow("model.overflow", reason="512 tokens")
                return await super().embed(texts)

        write(root, {"shop/wide.py": "walnut = [" + "1, " * 2000 + "]\n"})
        settle()
        async with rig(root, Short()) as at:
            assert await at.refresh() > 0
            assert max(map(len, at.meaning.asked)) <= MAX_CHARS // 4
            assert (await at.found("walnut"))[0] == "shop/wide.py"

    @pytest.mark.parametrize("error", [VectorsUnusable("full"), sqlite3.OperationalError("locked"), OSError("gone")])
    async def test_a_place_that_does_not_work(self, root: Path, error: Exception) -> None:
        class Broken(Memory):
            def add(self, vectors: object) -> None:
                raise error

        async with rig(root, memory=Broken()) as at:
            assert await at.refresh() == 0
            assert at.notes == [str(error)]

    async def test_a_server_that_is_slow_to_answer_is_not_waited_for(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with rig(root) as at:
            await at.refresh()
            monkeypatch.setattr(semantic, "ASK_SECONDS", 0.05)

            async def never(texts: list[str]) -> list[list[float]]:
                await asyncio.sleep(30)
                return []

            monkeypatch.setattr(at.meaning, "embed", never)
            assert await asyncio.wait_for(at.semantic.search("invoice", 5), 3) == ()
            assert len(at.notes) == 1

    async def test_what_fails_by_closing_it_is_no_news(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        async with rig(root) as at:
            await at.refresh()
            closing = asyncio.Event()

            async def until_closed(text: str) -> list[float]:
                await closing.wait()
                raise DOWN

            monkeypatch.setattr(at.meaning, "embed_query", until_closed)
            task = asyncio.create_task(at.semantic.search("invoice", 5))
            await asyncio.sleep(0)
            await at.semantic.close()
            closing.set()
            assert await task == ()
            assert at.notes == []

    async def test_cancelled_it_is_cancelled(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        async with rig(root) as at:
            await at.index.refresh()

            async def never(texts: list[str]) -> list[list[float]]:
                await asyncio.sleep(30)
                return []

            monkeypatch.setattr(at.meaning, "embed", never)
            task = asyncio.create_task(at.semantic.refresh())
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert at.notes == []


async def test_requests_are_bounded(root: Path) -> None:
    write(root, {f"shop/m{n}.py": f"def walnut_{n}():\n    return {n}\n" for n in range(150)})
    settle()
    async with rig(root) as at:
        assert await at.refresh() > 150
        assert at.meaning.largest <= BATCH < PORTION
        assert at.memory.tidied == 1


@pytest.mark.parametrize("query", ["", "  \n"])
async def test_nothing_to_look_for(root: Path, query: str) -> None:
    async with rig(root) as at:
        assert await at.semantic.search(query, 5) == ()
        assert at.meaning.asked == []


@pytest.mark.parametrize(
    ("path", "worth"),
    [("a.py", True), ("docs/a.md", True), ("a.json", False), ("a.min.js", False), ("vendor/a.py", False), ("b", False)],
)
def test_what_is_embedded(path: str, worth: bool) -> None:
    assert is_worth_it(path) is worth


@pytest.mark.slow  # LanceDB takes a second to load
@pytest.mark.skipif(not is_installed(), reason="the extra `semantic` (LanceDB) is not installed")
class TestLance:
    def test_kept_and_found_also_by_another_process(self, tmp_path: Path) -> None:
        vectors = Vectors(str(tmp_path / "vectors"), "m")
        keys = {f"{n:032x}": vector(word) for n, word in enumerate(("walnut", "hazelnut", "almond"))}
        assert vectors.known(keys, SIZE) == set()
        vectors.add(keys)
        vectors.add(keys)  # another writer had them, too
        vectors.tidy(SIZE)

        again = Vectors(str(tmp_path / "vectors"), "m")
        assert again.known([*keys, "ff"], SIZE) == set(keys)
        best, *rest = again.nearest(vector("hazelnut"), 6)
        assert best[0] == f"{1:032x}"
        assert best[1] == pytest.approx(1.0, abs=1e-4)
        assert len({key for key, _ in (best, *rest)}) == len(rest) + 1

    def test_models_and_sizes_do_not_mix(self, tmp_path: Path) -> None:
        one, other = Vectors(str(tmp_path), "one"), Vectors(str(tmp_path), "other")
        one.add({"aa": [1.0, 0.0]})

        assert other.known(["aa"], 2) == set()
        assert one.known(["aa"], 3) == set()
        assert one.known(["aa"], 2) == {"aa"}

    def test_a_place_that_cannot_be(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(VectorsUnusable):
            Vectors(str(tmp_path / "file" / "in"), "m").add({"aa": [1.0]})

    async def test_the_whole_way(self, root: Path, tmp_path: Path) -> None:
        notes: list[str] = []
        async with service(root, store=tmp_path / "state" / "index.sqlite") as index:
            await index.refresh()

            def place(model: str) -> Vectors:
                return Vectors(str(tmp_path / "vectors"), model)

            search = Semantic(index.store, index.folders, Meaning(), place, notes.append)
            assert await search.refresh() > 4
            assert (await search.search("bills by post", 3))[0].path == "shop/mail.py"
            await search.close()
        assert notes == []
