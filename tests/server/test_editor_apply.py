"""Bringing changes into the buffers of clients that are slow, stubborn, forgetful or silent."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from lsprotocol import types

from codeagent_lsp.errors import EditorError
from codeagent_lsp.server import editor as editor_module
from codeagent_lsp.server.clients import ClientPolicy
from codeagent_lsp.server.editor import LspEditor
from codeagent_lsp.server.front import Client
from codeagent_lsp.server.server import CodeAgentServer
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.files.uris import from_path
from codeagent_lsp.workspace.text.document import Change, Document
from tests.server.editor_client import ALL, TEXT, FakeClient, change, connect, obedient, without


async def test_an_obedient_client(tmp_path: Path) -> None:
    client, editor = connect()
    client.open(tmp_path / "a", TEXT, 3)
    applied = await editor.apply(change(tmp_path / "a", TEXT, TEXT.replace("two", "2")), "label")
    assert applied.outcome == "full"
    sent = client.sent[0]
    assert sent.label == "label"
    edit = cast("types.TextDocumentEdit", (sent.edit.document_changes or [])[0])
    assert edit.text_document.version == 3
    assert cast("types.TextEdit", edit.edits[0]).new_text == "2"


@pytest.mark.slow
async def test_yes_without_doing_anything_is_none(tmp_path: Path) -> None:
    client, editor = connect(lambda client, params: types.ApplyWorkspaceEditResult(applied=True))
    client.open(tmp_path / "a", TEXT)
    applied = await editor.apply(change(tmp_path / "a", TEXT, "new\n"), "label")
    assert (applied.outcome, applied.left.paths) == ("none", (str(tmp_path / "a"),))


@pytest.mark.slow
async def test_no_with_a_reason_is_none_and_the_reason_is_kept(tmp_path: Path) -> None:
    no = types.ApplyWorkspaceEditResult(applied=False, failure_reason="read-only buffer")
    client, editor = connect(lambda client, params: no)
    client.open(tmp_path / "a", TEXT)
    applied = await editor.apply(change(tmp_path / "a", TEXT, "new\n"), "label")
    assert (applied.outcome, applied.reason) == ("none", "read-only buffer")


async def test_no_although_it_was_done_is_full(tmp_path: Path) -> None:
    def liar(client: FakeClient, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        client.carry_out(params)
        return types.ApplyWorkspaceEditResult(applied=False)

    client, editor = connect(liar)
    client.open(tmp_path / "a", TEXT)
    assert (await editor.apply(change(tmp_path / "a", TEXT, "new\n"), "label")).outcome == "full"


@pytest.mark.slow
async def test_an_error_is_none_and_silence_is_unknown(tmp_path: Path) -> None:
    for key, outcome in (("editor.error", "none"), ("editor.timeout", "unknown")):

        def fail(client: FakeClient, params: Any, key: str = key) -> None:
            raise EditorError(key, method="workspace/applyEdit", message="no", seconds=30)

        client, editor = connect(fail)
        client.open(tmp_path / "a", TEXT)
        applied = await editor.apply(change(tmp_path / "a", TEXT, "new\n"), "label")
        assert applied.outcome == outcome
        assert applied.reason


@pytest.mark.slow
async def test_a_didchange_that_comes_after_the_answer_is_waited_for(tmp_path: Path) -> None:
    def late(client: FakeClient, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        asyncio.get_running_loop().call_later(0.15, client.carry_out, params)
        return types.ApplyWorkspaceEditResult(applied=True)

    client, editor = connect(late)
    client.open(tmp_path / "a", TEXT)
    assert (await editor.apply(change(tmp_path / "a", TEXT, "new\n"), "label")).outcome == "full"


async def test_typing_right_after_the_edit_does_not_hide_it(tmp_path: Path) -> None:
    path = tmp_path / "a"

    def typing(client: FakeClient, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        client.carry_out(params)
        client.documents.change(from_path(str(path)), 9, [Change("typed\n", (0, 0), (0, 0))])
        return types.ApplyWorkspaceEditResult(applied=True)

    client, editor = connect(typing)
    client.open(path, TEXT)
    wanted = TEXT.replace("five", "5")
    applied = await editor.apply(change(path, TEXT, wanted), "label")
    assert applied.outcome == "full"
    client.behaviour = obedient
    assert (await editor.apply(applied.done.inverse(), "undo")).outcome == "full"
    assert client.documents.all()[0].text == "typed\n" + TEXT


async def test_one_file_a_request_unless_all_or_nothing(tmp_path: Path) -> None:
    names = ("a", "b", "c")
    wanted = Changeset(tuple(FileChange(str(tmp_path / name), TEXT, "new\n") for name in names))
    for policy, requests in ((ALL, 3), (replace(ALL, transactional=True), 1)):
        client, editor = connect(policy=policy)
        for name in names:
            client.open(tmp_path / name, TEXT)
        assert (await editor.apply(wanted, "label")).outcome == "full"
        assert len(client.sent) == requests


async def test_creations_go_alone_even_where_edits_go_together(tmp_path: Path) -> None:
    policy = replace(ALL, transactional=True)
    client, editor = connect(policy=policy)
    client.open(tmp_path / "a", TEXT)
    files = (FileChange(str(tmp_path / "a"), TEXT, "new\n"), FileChange(str(tmp_path / "n"), None, "x\n"))
    assert (await editor.apply(Changeset(files), "label")).outcome == "full"
    assert [len(params.edit.document_changes or []) for params in client.sent] == [1, 2]


@pytest.mark.slow
async def test_one_refused_file_of_three_is_partial(tmp_path: Path) -> None:
    def picky(client: FakeClient, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        if len(client.sent) == 2:
            return types.ApplyWorkspaceEditResult(applied=False, failure_reason="locked")
        return obedient(client, params)

    names = ("a", "b", "c")
    client, editor = connect(picky)
    for name in names:
        client.open(tmp_path / name, TEXT)
    wanted = Changeset(tuple(FileChange(str(tmp_path / name), TEXT, "new\n") for name in names))
    applied = await editor.apply(wanted, "label")
    assert (applied.outcome, applied.reason) == ("partial", "locked")
    assert applied.left.paths == (str(tmp_path / "b"),)


@pytest.mark.slow
@pytest.mark.parametrize("refused", [("a",), ("b",), ("c",), ("a", "c"), ("a", "b", "c")], ids=" ".join)
@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
async def test_a_change_that_is_named_as_refused_keeps_no_other_out(
    tmp_path: Path, refused: tuple[str, ...], *, named: bool
) -> None:
    def picky(client: FakeClient, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        sent = [Path(each.text_document.uri).name for each in params.edit.document_changes or []]  # type: ignore[union-attr]
        found = next((at for at, name in enumerate(sent) if name in refused), None)
        if found is None:
            return obedient(client, params)
        return types.ApplyWorkspaceEditResult(False, f"{sent[found]} is locked", found if named else None)

    names = ("a", "b", "c")
    client, editor = connect(picky, policy=replace(ALL, transactional=True))
    for name in names:
        client.open(tmp_path / name, TEXT)
    wanted = Changeset(tuple(FileChange(str(tmp_path / name), TEXT, "new\n") for name in names))
    applied = await editor.apply(wanted, "label")
    left = refused if named else names
    assert [Path(path).name for path in applied.left.paths] == [*left]
    assert applied.outcome == ("none" if left == names else "partial")
    assert applied.reason == f"{refused[0]} is locked"
    assert len(client.sent) == (min(len(refused) + 1, 3) if named else 1)


async def test_text_that_moved_is_merged_and_goes_against_the_new_version(tmp_path: Path) -> None:
    client, editor = connect()
    client.open(tmp_path / "a", "zero\n" + TEXT, 7)
    applied = await editor.apply(change(tmp_path / "a", TEXT, TEXT.replace("five", "5"), version=3), "label")
    assert applied.outcome == "full"
    assert client.documents.all()[0].text == "zero\n" + TEXT.replace("five", "5")
    edit = cast("types.TextDocumentEdit", (client.sent[0].edit.document_changes or [])[0])
    assert edit.text_document.version == 7


async def test_a_conflict_keeps_the_users_lines_and_the_change(tmp_path: Path) -> None:
    client, editor = connect()
    client.open(tmp_path / "a", TEXT.replace("two", "zwei"))
    wanted = change(tmp_path / "a", TEXT, TEXT.replace("two", "2").replace("five", "5"))
    applied = await editor.apply(wanted, "label")
    assert applied.outcome == "partial"
    assert client.documents.all()[0].text == TEXT.replace("two", "zwei").replace("five", "5")
    assert [conflict.line for conflict in applied.conflicts] == [2]
    rest = wanted.get(str(tmp_path / "a"))
    assert rest is not None  # of the two hunks, the one that has come waits no more
    assert list(applied.left) == [replace(rest, base=TEXT.replace("five", "5"))]
    again = await editor.apply(applied.left, "label")
    assert (again.outcome, len(client.sent)) == ("none", 1)


async def test_a_file_that_came_meanwhile_is_never_overwritten(tmp_path: Path) -> None:
    for content in (b"precious", b"\0\xff binary"):
        (tmp_path / "n").write_bytes(content)
        client = FakeClient(obedient)
        editor = LspEditor(Client(cast("CodeAgentServer", client), policy=ALL), lambda path: None)
        applied = await editor.apply(change(tmp_path / "n", None, "x\n"), "label")
        assert (applied.outcome, client.sent) == ("none", [])
        assert (tmp_path / "n").read_bytes() == content


async def test_a_dirty_buffer_is_not_deleted_without_leave(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("saved\n")
    client, editor = connect()
    client.open(path, TEXT)
    wanted = change(path, TEXT, None)
    assert (await editor.apply(wanted, "label")).outcome == "none"
    assert path.exists()
    assert (await editor.apply(wanted, "label", frozenset({str(path)}))).outcome == "full"
    assert not path.exists()


async def test_a_rename_with_an_edit_is_one_request_and_can_be_undone(tmp_path: Path) -> None:
    (tmp_path / "old").write_text(TEXT)
    client, editor = connect()
    moved = change(tmp_path / "sub" / "new", TEXT, TEXT.replace("two", "2"), moved_from=str(tmp_path / "old"))
    applied = await editor.apply(moved, "label")
    assert applied.outcome == "full"
    assert len(client.sent) == 1
    assert not (tmp_path / "old").exists()
    client.documents.close(from_path(str(tmp_path / "sub" / "new")))
    (tmp_path / "sub" / "new").write_text(TEXT.replace("two", "2"))
    assert (await editor.apply(applied.done.inverse(), "undo")).outcome == "full"
    assert (tmp_path / "old").exists()


@pytest.mark.slow
async def test_a_client_without_creation_finds_an_empty_file_and_it_goes_when_refused(tmp_path: Path) -> None:
    policy = without("creates")
    client, editor = connect(policy=policy)
    assert (await editor.apply(change(tmp_path / "d" / "n", None, "x\n"), "label")).outcome == "full"
    assert len(client.sent[0].edit.document_changes or []) == 1
    refusing, editor = connect(lambda client, params: types.ApplyWorkspaceEditResult(applied=False), policy)
    assert (await editor.apply(change(tmp_path / "m", None, "x\n"), "label")).outcome == "none"
    assert refusing.sent
    assert not (tmp_path / "m").exists()


async def test_a_client_without_renames_gets_a_new_file_and_then_loses_the_old(tmp_path: Path) -> None:
    for more in (("renames",), ("renames", "deletes"), ("renames", "creates")):
        origin, target = tmp_path / "old", tmp_path / "new"
        origin.write_text(TEXT)
        client, editor = connect(policy=without(*more))
        applied = await editor.apply(change(target, TEXT, "new\n", moved_from=str(origin)), "label")
        assert (applied.outcome, origin.exists()) == ("full", False)
        assert client.documents.all()[0].text == "new\n"
        client.documents.close(from_path(str(target)))
        target.write_text("new\n")
        assert (await editor.apply(applied.done.inverse(), "undo")).outcome == "full"
        assert (origin.exists(), target.exists()) == (True, False)


@pytest.mark.slow
async def test_the_old_file_stays_when_the_new_one_did_not_come(tmp_path: Path) -> None:
    (tmp_path / "old").write_text(TEXT)
    policy = without("renames", "deletes")
    _, editor = connect(lambda client, params: types.ApplyWorkspaceEditResult(applied=False), policy)
    applied = await editor.apply(change(tmp_path / "new", TEXT, TEXT, moved_from=str(tmp_path / "old")), "label")
    assert applied.outcome == "none"
    assert (tmp_path / "old").read_text() == TEXT
    assert not (tmp_path / "new").exists()


async def test_a_client_without_deletion_has_it_done_but_not_with_unsaved_text(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(TEXT)
    client, editor = connect(policy=without("deletes"))
    client.open(path, TEXT + "unsaved\n")
    assert (await editor.apply(change(path, TEXT + "unsaved\n", None), "label")).outcome == "none"
    assert path.exists()
    client.open(path, TEXT)
    assert (await editor.apply(change(path, TEXT, None), "label")).outcome == "full"
    assert (path.exists(), client.sent) == (False, [])


async def test_a_new_file_that_is_there_but_empty_is_filled(tmp_path: Path) -> None:
    (tmp_path / "n").touch()
    client, editor = connect()
    assert (await editor.apply(change(tmp_path / "n", None, "x\n"), "label")).outcome == "full"
    assert len(client.sent[0].edit.document_changes or []) == 1
    assert client.documents.all()[0].text == "x\n"


@pytest.mark.slow
async def test_a_client_that_applies_nothing_is_asked_for_nothing(tmp_path: Path) -> None:
    client, editor = connect(policy=ClientPolicy())
    applied = await editor.apply(change(tmp_path / "d" / "n", None, "x\n"), "label")
    assert (applied.outcome, client.sent, (tmp_path / "d").exists()) == ("none", [], False)


async def test_an_empty_file_is_created(tmp_path: Path) -> None:
    client, editor = connect()
    assert (await editor.apply(change(tmp_path / "__init__.py", None, ""), "label")).outcome == "full"
    assert (tmp_path / "__init__.py").read_text() == ""
    assert len(client.sent[0].edit.document_changes or []) == 1


async def test_a_file_that_is_not_open_gets_no_version(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(TEXT)
    client, editor = connect()
    assert (await editor.apply(change(tmp_path / "a", TEXT, "new\n"), "label")).outcome == "full"
    edit = cast("types.TextDocumentEdit", (client.sent[0].edit.document_changes or [])[0])
    assert edit.text_document.version is None
    assert (tmp_path / "a").read_text() == TEXT


async def test_what_is_there_already_is_not_sent_again(tmp_path: Path) -> None:
    client, editor = connect()
    client.open(tmp_path / "a", "new\n")
    applied = await editor.apply(change(tmp_path / "a", TEXT, "new\n"), "label")
    assert (applied.outcome, client.sent) == ("full", [])


async def test_a_buffer_without_a_path(tmp_path: Path) -> None:
    client, editor = connect()
    client.documents.open(Document("untitled:Untitled-1", TEXT, 1))
    applied = await editor.apply(Changeset((FileChange("untitled:Untitled-1", TEXT, "new\n", 1),)), "label")
    assert applied.outcome == "full"
    assert client.documents.all()[0].text == "new\n"


async def test_a_cancel_while_waiting_is_not_swallowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editor_module, "SETTLE_SECONDS", 20.0)
    client, editor = connect(lambda client, params: types.ApplyWorkspaceEditResult(applied=True))
    client.open(tmp_path / "a", TEXT)
    task = asyncio.ensure_future(editor.apply(change(tmp_path / "a", TEXT, "new\n"), "label"))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
