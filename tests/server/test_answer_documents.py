"""The file in which the user writes an answer: nothing but the user's own words become the answer."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from codeagent_lsp.server.front import Client
from codeagent_lsp.server.server import CodeAgentServer
from codeagent_lsp.server.virtual_documents import VirtualDocuments
from codeagent_lsp.workspace.files.uris import from_path

REQUEST = "0123456789abcdef"
ENDINGS = ("A --> Yes.", "A ---> Yes.", "<!--> Yes.", "<!-- B --> Yes.", "A -->\nYes.", "A --\n> Yes.", "A -->--> Yes.")


async def written(folder: Path, title: str, detail: str = "") -> tuple[VirtualDocuments, Path]:
    """Ask a question; return the documents and the file for the answer."""
    documents = VirtualDocuments(Client(cast("CodeAgentServer", None)), lambda: folder, _without_names)
    await documents.open_answer(REQUEST, title, detail)
    (path,) = (folder / "documents" / "answer").iterdir()
    return documents, path


@pytest.mark.parametrize("words", ENDINGS)
async def test_a_question_cannot_hold_its_answer(tmp_path: Path, words: str) -> None:
    for title, detail in ((words, ""), ("Which?", words)):
        documents, path = await written(tmp_path, title, detail)
        saved = path.read_text()
        assert documents.answer_in(from_path(path), saved) == (REQUEST, "")
        assert documents.answer_in(from_path(path), f"{saved}No.\n") == (REQUEST, "No.")


@pytest.mark.parametrize("words", ENDINGS)
async def test_also_when_the_editor_or_the_user_changed_the_comment(tmp_path: Path, words: str) -> None:
    documents, path = await written(tmp_path, f"{words}  ", words)
    saved = path.read_text().replace("  \n", "\n").replace("\n", "\r\n").replace("<!-- ", "<!--\r\n", 1)
    assert documents.answer_in(from_path(path), saved) == (REQUEST, "")
    assert documents.answer_in(from_path(path), f"{saved}No.\r\n") == (REQUEST, "No.")


async def test_an_answer_may_have_arrows(tmp_path: Path) -> None:
    documents, path = await written(tmp_path, "Which flow?")
    assert documents.answer_in(from_path(path), f"{path.read_text()}A --> B") == (REQUEST, "A --> B")


async def test_without_the_comment_there_is_no_answer(tmp_path: Path) -> None:
    documents, path = await written(tmp_path, "Which?")
    assert documents.answer_in(from_path(path), "half of it") == (REQUEST, "")


async def test_what_is_masked_in_the_question_is_not_the_answer(tmp_path: Path) -> None:
    documents, path = await written(tmp_path, "Is it Ada?")
    assert "Ada" not in path.read_text()
    assert documents.answer_in(from_path(path), f"{path.read_text()}Yes.") == (REQUEST, "Yes.")


async def test_only_answer_documents_are_such_also_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    documents, path = await written(tmp_path / "link", "Which?")
    assert documents.is_answer(from_path(path.resolve()))
    assert documents.answer_in(from_path(path.resolve()), f"{path.read_text()}A") == (REQUEST, "A")
    assert not documents.is_answer(from_path(tmp_path / "other.md"))
    assert documents.answer_in(from_path(tmp_path / "other.md"), "-->A") is None


def _without_names(text: str) -> str:
    return text.replace("Ada", "***")
