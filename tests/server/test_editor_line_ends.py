"""Changes of files with CRLF in editors that show it as LF: no buffer gets CRs, by a change or by its undo."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from lsprotocol import types

from tests.server.editor_client import FakeClient, change, connect, obedient

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
