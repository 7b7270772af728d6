"""`search_semantic` and `code_index_build` over a fake index: what the model reads and programs get."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from pydantic import ValidationError

from codeagent_lsp.errors import AgentError, PathRefused, ToolFailed
from codeagent_lsp.index.port import CodeIndex
from codeagent_lsp.index.relevance import Chunk
from codeagent_lsp.index.service import Status
from codeagent_lsp.index.store import Reader
from codeagent_lsp.index.view import View
from codeagent_lsp.tools.code.reading_tools import (
    BuildParameters,
    CodeIndexBuild,
    SearchParameters,
    SearchSemantic,
)
from codeagent_lsp.tools.context import ToolContext
from tests.tools.fakes import Bench

FOUND = (
    Chunk("shop/taxes.py", 1, 2, "def value_added_tax(items):\n    return 19", 1.234, "value_added_tax"),
    Chunk("README.md", 4, 4, "Taxes are 19.", 0.5),
)


class FakeIndex:
    """Finds what it is told to; `status` is what a refresh ends with."""

    def __init__(self, found: Sequence[Chunk] = FOUND, status: Status | None = None) -> None:
        self.asked: list[tuple[str, int]] = []
        self.refreshed = 0
        self._found = tuple(found)
        self._status = status or Status("ready", files=3)

    async def view(self) -> View:
        return View(cast("Reader", self))

    def files(self) -> dict[str, bytes]:
        return {"a.py": b"", "shop/taxes.py": b"", "shopping.py": b""}

    async def search(self, query: str, limit: int) -> tuple[Chunk, ...]:
        self.asked.append((query, limit))
        return self._found[:limit]

    async def refresh(self) -> Status:
        self.refreshed += 1
        return self._status


def test_the_search_is_for_every_model_and_the_build_is_not() -> None:
    assert (SearchSemantic.traits.group, CodeIndexBuild.traits.group) == ("core", "code")
    assert {SearchSemantic.traits.effect, CodeIndexBuild.traits.effect} == {"read"}


def knowing(tmp_path: Path, index: CodeIndex | None) -> ToolContext:
    return Bench(tmp_path / "work").context.having((CodeIndex, index))


async def test_pieces_come_with_their_place_score_and_text(tmp_path: Path) -> None:
    index = FakeIndex()
    output = await SearchSemantic().run(SearchParameters(query="tax", limit=5), knowing(tmp_path, index))
    assert index.asked == [("tax", 5)]
    assert output.text == (
        "shop/taxes.py:1-2 value_added_tax (score 1.23)\ndef value_added_tax(items):\n    return 19\n\n"
        "README.md:4-4 (score 0.50)\nTaxes are 19."
    )
    assert output.data[0] == {
        "path": "shop/taxes.py", "start_line": 1, "end_line": 2, "score": 1.234,
        "text": "def value_added_tax(items):\n    return 19",
    }  # fmt: skip


async def test_nothing_found_is_an_answer(tmp_path: Path) -> None:
    output = await SearchSemantic().run(SearchParameters(query="tax", limit=2), knowing(tmp_path, FakeIndex(())))
    assert (output.text, output.data) == ("Nothing fits 'tax'.", [])


@pytest.mark.parametrize("given", [{}, {"query": ""}, {"query": "x", "limit": 0}, {"query": "x", "limit": 21}])
def test_wrong_arguments_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SearchParameters.model_validate(given)


@pytest.mark.parametrize("tool", ["search", "build"])
async def test_without_an_index_the_model_learns_what_to_use_instead(tmp_path: Path, tool: str) -> None:
    work = knowing(tmp_path, None)
    with pytest.raises(ToolFailed, match="grep"):
        if tool == "search":
            await SearchSemantic().run(SearchParameters(query="tax", limit=5), work)
        else:
            await CodeIndexBuild().run(BuildParameters(path=None), work)


@pytest.mark.parametrize(
    ("path", "told"),
    [(None, "The index is ready: 3 files."), (".", "The index is ready: 3 files."),
     ("shop", "The index is ready: 1 files below shop."), ("a.py", "The index is ready: 1 files below a.py.")],
)  # fmt: skip
async def test_a_build_says_how_many_files_there_are(tmp_path: Path, path: str | None, told: str) -> None:
    index = FakeIndex()
    output = await CodeIndexBuild().run(BuildParameters(path=path), knowing(tmp_path, index))
    assert (output.text.replace(" below .", ""), index.refreshed) == (told, 1)
    assert output.data["state"] == "ready"


async def test_a_build_that_fails_says_why(tmp_path: Path) -> None:
    index = FakeIndex(status=Status("failed", problem="disk full"))
    with pytest.raises(ToolFailed, match="disk full"):
        await CodeIndexBuild().run(BuildParameters(path=None), knowing(tmp_path, index))


async def test_a_folder_outside_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    index = FakeIndex()
    with pytest.raises(AgentError) as refusal:
        await CodeIndexBuild().run(BuildParameters(path="/etc"), knowing(tmp_path, index))
    assert isinstance(refusal.value, PathRefused)
    assert index.refreshed == 0
