"""What the user types and saves in one file, while the files before it are applied, is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from lsprotocol import types

from codeagent_lsp.server.clients import ClientPolicy
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.text.document import Change
from tests.leaping import leaping
from tests.server.editor_client import ALL, TEXT, FakeClient, change, connect, obedient, without

OURS = TEXT.replace("three", "3")
PLAIN = ClientPolicy(applies_edits=True)


def typing(
    meanwhile: Callable[[FakeClient], None], after: int = 1
) -> Callable[[FakeClient, types.ApplyWorkspaceEditParams], types.ApplyWorkspaceEditResult]:
    """Return an obedient client whose user does something while the request `after` is carried out."""

    def behave(client: FakeClient, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        answer = obedient(client, params)
        if len(client.sent) == after:
            meanwhile(client)
        return answer

    return behave


def edits(*paths: Path) -> Changeset:
    return Changeset(tuple(FileChange(str(path), TEXT, OURS) for path in paths))


@pytest.mark.parametrize("policy", [ALL, PLAIN], ids=["versioned", "plain"])
@leaping
async def test_a_line_typed_in_the_next_file_shifts_the_edit(tmp_path: Path, policy: ClientPolicy) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    line = Change("typed\n", (0, 0), (0, 0))
    client, editor = connect(typing(lambda client: client.change(second, 1, line)), policy)
    client.open(first, TEXT)
    client.open(second, TEXT)
    applied = await editor.apply(edits(first, second), "label")
    assert applied.outcome == "full"
    assert client.text(second) == "typed\n" + OURS


@leaping
async def test_a_file_that_is_opened_meanwhile_gets_the_version_of_its_buffer(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    second.write_text(TEXT)
    client, editor = connect(typing(lambda client: client.open(second, "typed\n" + TEXT, 4)))
    client.open(first, TEXT)
    assert (await editor.apply(edits(first, second), "label")).outcome == "full"
    sent = cast("types.TextDocumentEdit", (client.sent[1].edit.document_changes or [])[0])
    assert sent.text_document.version == 4
    assert client.text(second) == "typed\n" + OURS


@leaping
async def test_the_same_line_typed_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    theirs = TEXT.replace("three", "drei")
    client, editor = connect(typing(lambda client: client.change(second, 1, Change(theirs))), PLAIN)
    client.open(first, TEXT)
    client.open(second, TEXT)
    applied = await editor.apply(edits(first, second), "label")
    assert (applied.outcome, applied.done.paths) == ("partial", (str(first),))
    assert [(conflict.path, conflict.line) for conflict in applied.conflicts] == [(str(second), 3)]
    assert client.text(second) == theirs


@pytest.mark.parametrize("policy", [ALL, PLAIN], ids=["deletes", "cannot delete"])
@leaping
async def test_a_file_that_was_changed_and_saved_meanwhile_is_not_deleted(tmp_path: Path, policy: ClientPolicy) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    second.write_text(TEXT)
    client, editor = connect(typing(lambda client: _write(second, TEXT + "more\n")), policy)
    client.open(first, TEXT)
    wanted = Changeset((*edits(first), *change(second, TEXT, None)))
    applied = await editor.apply(wanted, "label", frozenset({str(second)}))
    assert (applied.outcome, applied.left.paths) == ("partial", (str(second),))
    assert second.read_text() == TEXT + "more\n"


@leaping
async def test_the_old_file_of_a_move_stays_if_the_user_types_in_it_meanwhile(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text(TEXT)
    for policy in (without("renames"), without("renames", "deletes")):
        new.unlink(missing_ok=True)
        client, editor = connect(typing(lambda client: client.change(old, 1, Change(TEXT + "typed\n"))), policy)
        client.open(old, TEXT)
        applied = await editor.apply(change(new, TEXT, OURS, moved_from=str(old)), "label")
        assert (applied.outcome, applied.done.paths, applied.left.paths) == ("partial", (str(new),), (str(old),))
        assert [conflict.path for conflict in applied.conflicts] == [str(old)]
        assert (client.text(old), client.text(new), old.read_text()) == (TEXT + "typed\n", OURS, TEXT)


@leaping
async def test_unsaved_text_moves_along_and_its_old_file_goes(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("saved\n")
    client, editor = connect(policy=without("renames"))
    client.open(old, TEXT)
    applied = await editor.apply(change(new, TEXT, OURS, moved_from=str(old)), "label")
    assert (applied.outcome, old.exists(), client.text(new)) == ("full", False, OURS)


@pytest.mark.slow
@leaping
async def test_a_move_whose_new_file_does_not_come_is_left_as_a_move(tmp_path: Path) -> None:
    """Left as a new file and a deletion, the next attempt could delete the old file and still not make the new one."""
    old = tmp_path / "old"
    old.write_text(TEXT)
    no = types.ApplyWorkspaceEditResult(applied=False)
    _, editor = connect(lambda client, params: no, without("renames", "deletes"))
    wanted = change(tmp_path / "new", TEXT, OURS, moved_from=str(old))
    applied = await editor.apply(wanted, "label")
    assert (applied.outcome, applied.left) == ("none", wanted)
    assert (await editor.apply(applied.left, "label")).outcome == "none"
    assert old.read_text() == TEXT


def _write(path: Path, text: str) -> None:
    path.write_text(text)
