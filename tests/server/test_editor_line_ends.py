"""Changes of files with CRLF in editors that show it as LF: no buffer gets CRs, by a change or by its undo."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from lsprotocol import types

from codeagent_lsp.server.editor import LspEditor
from codeagent_lsp.server.front import Client
from codeagent_lsp.tools.files.edit_tools import rewritten
from codeagent_lsp.workspace.files.uris import to_path
from codeagent_lsp.workspace.text.document import Document
from codeagent_lsp.workspace.text.position import with_newlines
from tests.server.editor_client import ALL, FakeClient, change, connect, obedient

if TYPE_CHECKING:
    from codeagent_lsp.server.server import CodeAgentServer

BASE = "one\r\ntwo\r\nthree\r\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with CRLF that is not open. The client opens it, with LF, to edit it."""
    path = tmp_path / "a"
    path.write_bytes(BASE.encode())
    return path


def shown(text: str) -> str:
    return text.replace("\r\n", "\n")


@pytest.mark.parametrize(
    "wanted",
    [
        BASE.replace("two", "two\r\nnew"),
        BASE + "new\r\n",
        "new\r\n" + BASE,
        BASE.replace("one\r\n", "").replace("three", "3\r\n4\r\n5"),
    ],
)
async def test_crs_of_inserted_lines_are_taken_out_again(path: Path, wanted: str) -> None:
    client, editor = connect()
    applied = await editor.apply(change(path, BASE, wanted), "label")
    assert (applied.outcome, client.text(path)) == ("full", shown(wanted))
    versions = [
        cast("types.TextDocumentEdit", (sent.edit.document_changes or [])[0]).text_document.version
        for sent in client.sent
    ]
    assert versions == [None, 1], "the second edit is for the text that it corrects"
    assert (await editor.apply(applied.done.inverse(), "undo")).outcome == "full"
    assert client.text(path) == shown(BASE)


async def test_nothing_is_corrected_where_no_line_ends_came(path: Path) -> None:
    client, editor = connect()
    applied = await editor.apply(change(path, BASE, BASE.replace("two\r\n", "")), "label")
    assert (applied.outcome, len(client.sent)) == ("full", 1)
    assert (await editor.apply(applied.done.inverse(), "undo")).outcome == "full"
    assert client.text(path) == shown(BASE)


async def test_an_editor_that_keeps_crlf_is_left_alone(path: Path) -> None:
    client, editor = connect()
    client.open(path, BASE)
    applied = await editor.apply(change(path, BASE, BASE + "new\r\n"), "label")
    assert (applied.outcome, client.text(path), len(client.sent)) == ("full", BASE + "new\r\n", 1)


@pytest.mark.slow
async def test_a_correction_that_is_refused_leaves_the_change_applied(path: Path) -> None:
    def once(client: FakeClient, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        return obedient(client, params) if len(client.sent) == 1 else types.ApplyWorkspaceEditResult(applied=False)

    client, editor = connect(once)
    applied = await editor.apply(change(path, BASE, "new\r\n" + BASE), "label")
    assert (applied.outcome, len(client.sent)) == ("full", 2)
    assert [part.text for part in applied.done] == ["new\r\n" + shown(BASE)]


class NormalizingClient(FakeClient):
    """Shows a file with one kind of line ends, as VS Code does, and gives them to what is inserted."""

    def __init__(self, newline: str) -> None:
        super().__init__(obedient)
        self.newline = newline

    def _edit(self, change: types.TextDocumentEdit) -> None:
        uri = change.text_document.uri
        if self.documents.get(uri) is None:
            text = Path(to_path(uri) or "").read_bytes().decode()
            self.documents.open(Document(uri, with_newlines(text, self.newline), 0))
        for edit in change.edits:
            assert isinstance(edit, types.TextEdit)
            edit.new_text = with_newlines(edit.new_text, self.newline)
        super()._edit(change)


@pytest.mark.slow
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_a_file_with_mixed_line_ends_in_an_editor_that_gives_it_one_kind(tmp_path: Path, newline: str) -> None:
    for seed in range(100):
        chance = random.Random(seed)
        lines = [chance.choice(("one", "two", "}", "", f"x = {number}")) for number in range(chance.randrange(2, 9))]
        base = "".join(line + chance.choice(("\n", "\r\n")) for line in lines)
        base = base.rstrip("\r\n") if chance.random() < 0.3 else base
        at = chance.randrange(len(lines))
        new = [*lines[:at], f"new {seed}", *lines[at + 1 :]]
        wanted = rewritten(base, "\n".join(new[: chance.randrange(at, len(new) + 1)] or ["new"]) + "\n")
        path = tmp_path / str(seed)
        path.write_bytes(base.encode())
        client = NormalizingClient(newline)
        editor = LspEditor(
            Client(cast("CodeAgentServer", client), policy=ALL), lambda name: Path(name).read_bytes().decode()
        )
        applied = await editor.apply(change(path, base, wanted), "label")
        assert (applied.outcome, client.text(path)) == ("full", with_newlines(wanted, newline)), (seed, base, wanted)
        undone = await editor.apply(applied.done.inverse(), "undo")
        assert (undone.outcome, client.text(path)) == ("full", with_newlines(base, newline)), (seed, base, wanted)
