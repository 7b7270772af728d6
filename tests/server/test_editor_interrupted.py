"""An apply that fails or is cancelled in the middle gives an account of what had been applied, and leaves nothing of
its own behind.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from codeagent_lsp.server.editor import LspEditor
from codeagent_lsp.workspace.changes.changeset import Applied, Changeset, FileChange
from tests.server.editor_client import ALL, TEXT, FakeClient, change, connect, obedient, without

NO = types.ApplyWorkspaceEditResult(applied=False)


@pytest.mark.parametrize("name", ["file/new", "n" * 300, f"d/{'n' * 300}/new"])
@pytest.mark.parametrize("policy", [ALL, without("creates")], ids=["creates", "cannot create"])
async def test_a_file_that_cannot_be_made_is_left_and_the_others_are_applied(
    tmp_path: Path, name: str, policy: Any
) -> None:
    (tmp_path / "file").touch()
    client, editor = connect(policy=policy)
    for place in ("a", "b"):
        client.open(tmp_path / place, TEXT)
    names = (("a", TEXT), (name, None), ("b", TEXT))
    wanted = Changeset(tuple(FileChange(str(tmp_path / place), base, "new\n") for place, base in names))
    applied = await editor.apply(wanted, "label")
    assert (applied.outcome, applied.left.paths) == ("partial", (str(tmp_path / name),))
    assert applied.done.paths == (str(tmp_path / "a"), str(tmp_path / "b"))
    assert str(tmp_path) in applied.reason
    assert not (tmp_path / "d").exists()
    assert (await editor.apply(applied.done.inverse(), "undo")).outcome == "full"
    assert client.text(tmp_path / "a") == TEXT


async def test_a_file_that_cannot_be_deleted_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "a").write_text(TEXT)
    _, editor = connect(policy=without("deletes"))
    monkeypatch.setattr(Path, "unlink", refuse)
    applied = await editor.apply(change(tmp_path / "a", TEXT, None), "label")
    assert (applied.outcome, applied.left.paths) == ("none", (str(tmp_path / "a"),))
    assert "Permission denied" in applied.reason


@pytest.mark.slow
@pytest.mark.parametrize("policy", [ALL, without("creates")], ids=["creates", "cannot create"])
async def test_a_refused_file_leaves_no_folders(tmp_path: Path, policy: Any) -> None:
    (tmp_path / "there").mkdir()
    _, editor = connect(lambda client, params: NO, policy)
    for wanted in (
        change(tmp_path / "there" / "d" / "e" / "n", None, "x\n"),
        change(tmp_path / "d" / "n", TEXT, TEXT, moved_from=str(tmp_path / "old")),
    ):
        (tmp_path / "old").write_text(TEXT)
        assert (await editor.apply(wanted, "label")).outcome == "none"
        assert not (tmp_path / "d").exists()
        assert not (tmp_path / "there" / "d").exists()


async def test_an_empty_file_made_for_the_client_stays(tmp_path: Path) -> None:
    _, editor = connect(policy=without("creates"))
    assert (await editor.apply(change(tmp_path / "__init__.py", None, ""), "label")).outcome == "full"
    assert (tmp_path / "__init__.py").exists()


async def test_a_cancelled_apply_tells_what_had_come_and_cancels_its_caller(tmp_path: Path) -> None:
    second = asyncio.Event()

    async def hanging(client: FakeClient, params: types.ApplyWorkspaceEditParams) -> Any:
        if len(client.sent) == 2:
            second.set()
            await asyncio.Event().wait()
        return obedient(client, params)

    client, editor = connect(hanging)
    paths = [tmp_path / name for name in ("a", "b", "c")]
    for path in paths:
        client.open(path, TEXT)
    wanted = Changeset(tuple(FileChange(str(path), TEXT, "new\n") for path in paths))
    taken: list[Applied] = []
    caller = asyncio.ensure_future(_take(editor, wanted, taken))
    await _cancel_at(second, caller)
    (applied,) = taken
    assert (applied.outcome, applied.done.paths) == ("partial", (str(paths[0]),))
    assert applied.left.paths == tuple(map(str, paths[1:]))
    assert [client.text(path) for path in paths] == ["new\n", TEXT, TEXT]


async def test_a_move_that_is_cancelled_after_its_new_file_came_leaves_the_deletion(tmp_path: Path) -> None:
    deleting = asyncio.Event()

    async def hanging(client: FakeClient, params: types.ApplyWorkspaceEditParams) -> Any:
        if len(client.sent) == 2:
            deleting.set()
            await asyncio.Event().wait()
        return obedient(client, params)

    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text(TEXT)
    _, editor = connect(hanging, without("renames"))
    taken: list[Applied] = []
    caller = asyncio.ensure_future(_take(editor, change(new, TEXT, TEXT, moved_from=str(old)), taken))
    await _cancel_at(deleting, caller)
    assert (taken[0].done.paths, taken[0].left.paths) == ((str(new),), (str(old),))
    assert old.read_text() == TEXT


async def _take(editor: LspEditor, wanted: Changeset, taken: list[Applied]) -> None:
    """Do with the account what a proposal does, then go on waiting as a run does."""
    taken.append(await editor.apply(wanted, "label"))
    await asyncio.Event().wait()


async def _cancel_at(moment: asyncio.Event, caller: asyncio.Future[None]) -> None:
    async with asyncio.timeout(10):
        await moment.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
