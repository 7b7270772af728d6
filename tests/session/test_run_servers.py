"""Whose language servers answer a run: the editor's while nothing is staged, and only for the text that was meant."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.language_servers.answers import ServerAnswer, ServerQuestion
from codeagent_lsp.session.code_knowledge import RunServers
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.paths import Roots
from codeagent_lsp.workspace.text.position import Encoding
from tests.workspace.file_fakes import FakeBuffers


class Answering:
    """Both kinds of servers: those of an editor, and our own, by name."""

    encoding: Encoding = "utf-16"

    def __init__(self, name: str, before: Any = lambda: None) -> None:
        self.name = name
        self.asked: list[Any] = []
        self._before = before

    async def ask(self, *given: Any) -> tuple[ServerAnswer, ...]:
        self.asked.append(given)
        self._before()
        return (ServerAnswer(self.name, 1, "utf-16"),)

    def take_troubles(self) -> list[str]:
        return ["own: it ended"]


class Rig:
    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "a.py")
        Path(self.path).write_text("😀 x\n")
        self.buffers = FakeBuffers()
        self.staging = Staging(lambda path: None)
        self.view = FileView(Roots([str(folder)]), self.buffers, self.staging)
        self.own = Answering("own")
        self.noted: list[str] = []

    async def asked(self, editor: Answering | None, question: Mapping[str, Any] | None = None) -> str:
        """The name of the server that answers."""
        servers = RunServers(self.view, self.staging, editor, self.own, self.noted.append)  # type: ignore[arg-type]
        (answer,) = await servers.ask(ServerQuestion("textDocument/hover", self.path, 2, 2, **(question or {})))
        return answer.server


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path.resolve())


async def test_the_editor_is_asked_first_in_its_own_counting(rig: Rig) -> None:
    editor = Answering("editor")
    assert await rig.asked(editor) == "editor"
    ((uri, method, params),) = editor.asked
    assert (uri, method) == (uris.from_path(rig.path), "textDocument/hover")
    assert params["position"] == {"line": 0, "character": 3}
    assert not rig.noted


async def test_staged_text_is_known_to_our_own_servers_only(rig: Rig) -> None:
    editor = Answering("editor")
    rig.staging.write({rig.path: "y\n"})
    assert await rig.asked(editor) == "own"
    assert not editor.asked
    assert rig.noted == ["own: it ended"]


async def test_an_answer_for_another_text_is_none(rig: Rig) -> None:
    editor = Answering("editor", lambda: rig.buffers.open(rig.path, "typed\n"))
    assert await rig.asked(editor) == "own"


async def test_without_an_editor_and_for_another_server(rig: Rig) -> None:
    assert await rig.asked(None) == "own"
    assert await rig.asked(Answering("editor"), {"server": "own"}) == "own"
