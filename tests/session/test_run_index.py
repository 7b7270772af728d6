"""The index as one run sees it: what it staged, what it may read, and every way to search in one answer."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp.config import PermissionsSettings, Settings
from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.index.answers import Answers
from codeagent_lsp.index.relevance import Chunk
from codeagent_lsp.session.run_index import RunIndex
from tests.index.workspaces import write
from tests.session.fakes import call, calls, say, world
from tests.session.fakes import write as writing
from tests.session.indexed import TAXES, RealIndexing, indexing
from tests.workspace.file_fakes import Workspace, workspace

OPEN = PermissionsSettings()


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    write(tmp_path / "w", {**TAXES, ".env": "TAX_OF_THE_CART=19\n", "keys/tax.py": "def tax_of_the_cart(): pass\n"})
    return workspace(tmp_path / "w")


@pytest.fixture
async def real(place: Workspace) -> AsyncIterator[RealIndexing]:
    async with indexing(place.root) as made:
        yield made


def run_index(real: RealIndexing, place: Workspace, permissions: PermissionsSettings = OPEN) -> RunIndex:
    return RunIndex(real, place.view, lambda: permissions)


@pytest.mark.slow
async def test_view_and_search_see_what_is_staged(place: Workspace, real: RealIndexing) -> None:
    index = run_index(real, place)
    place.stage("shop/vouchers.py", "def redeem_voucher(code):\n    return code\n")
    place.stage("shop/mail.py", None)
    view = await index.view()
    assert view.defining("redeem_voucher") == ("shop/vouchers.py",)
    assert "shop/mail.py" not in view.files()
    assert (await index.search("redeem a voucher", 1))[0].path == "shop/vouchers.py"


@pytest.mark.slow
async def test_a_run_begins_with_what_the_words_find_alone(place: Workspace, real: RealIndexing) -> None:
    async def other(query: str, limit: int) -> Sequence[Chunk]:
        raise AssertionError("a run does not wait for the embedder")

    real.others.append(other)
    place.stage("shop/vouchers.py", "def redeem_voucher(code):\n    return code\n")
    rules = replace(OPEN, deny=("read_file(keys/**)",))

    assert (await run_index(real, place).found("redeem a voucher", 1))[0].path == "shop/vouchers.py"
    assert "keys/tax.py" not in {each.path for each in await run_index(real, place, rules).found("tax of the cart", 20)}


@pytest.mark.slow
async def test_what_the_user_does_not_let_be_read_is_not_found(place: Workspace, real: RealIndexing) -> None:
    rules = replace(OPEN, deny=("read_file(keys/**)",))
    allowed = {chunk.path for chunk in await run_index(real, place).search("tax of the cart", 20)}
    denied = {chunk.path for chunk in await run_index(real, place, rules).search("tax of the cart", 20)}
    assert allowed - denied == {"keys/tax.py"}
    assert ".env" not in allowed


@pytest.mark.slow
async def test_other_finders_join_the_words(place: Workspace, real: RealIndexing) -> None:
    async def near(query: str, limit: int) -> Sequence[Chunk]:
        texts = {"lib/part1.py": 1, "shop/taxes.py": 1, "gone.py": 1, "keys/tax.py": 1, "../outside.py": 1}
        return [Chunk(path, at, at + 1, query) for path, at in texts.items()]

    real.others = [near]
    rules = replace(OPEN, deny=("read_file(keys/**)",))
    found = [chunk.path for chunk in await run_index(real, place, rules).search("value added tax", 20)]
    assert found[0] == "shop/taxes.py"
    assert "lib/part1.py" in found
    assert not {"gone.py", "keys/tax.py", "../outside.py"} & set(found)


@pytest.mark.slow
async def test_a_file_that_cannot_be_read_any_more_is_a_sentence(
    place: Workspace, real: RealIndexing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(Answers, "search", broken)
    with pytest.raises(ToolFailed, match=r"disk I/O error.*grep"):
        await run_index(real, place).search("tax", 5)


@pytest.mark.slow
async def test_maps_of_one_run_wait_no_longer_than_one(place: Workspace, real: RealIndexing) -> None:
    waited: list[float] = []
    ready = real.ready

    async def slow(seconds: float) -> Answers:
        waited.append(seconds)
        return await ready(seconds)

    real.ready = slow  # type: ignore[method-assign]
    index = run_index(real, place)
    for _ in range(3):
        await index.overview(200)
    assert waited == sorted(waited, reverse=True)
    assert waited[-1] < waited[0]


@pytest.mark.slow
async def test_in_a_run_the_tool_finds_what_the_run_wrote(tmp_path: Path) -> None:
    write(tmp_path / "w", TAXES)
    async with indexing(tmp_path / "w") as index:
        made = world(tmp_path / "w", indexing=index, settings=_denying, apply="auto")
        model = made.script(
            writing("shop/vouchers.py", "def redeem_voucher(code):\n    return code\n"),
            calls(call("search_semantic", query="redeem the voucher of a mailer", limit=3)),
            say(),
        )
        await made.run("Add vouchers")
    result = model.requests[-1].messages[-1].content
    assert "shop/vouchers.py:1-2 redeem_voucher (score" in result
    assert "def redeem_voucher(code):" in result
    assert "shop/mail.py" not in result


def _denying(value: Settings) -> Settings:
    return replace(value, permissions=replace(value.permissions, deny=("read_file(shop/mail.py)",)))
