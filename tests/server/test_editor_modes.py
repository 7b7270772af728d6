"""Files that are to be executable, in editors that write a new file at once, only when it is saved, or never: the bit
arrives with the file, and never on a file that the user did not accept.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Literal

import pytest
from lsprotocol import types

from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.workspace.changes.changeset import Applied, Changeset, FileChange
from codeagent_lsp.workspace.files.uris import from_path
from codeagent_lsp.workspace.text.document import Document
from tests.server.conftest import StartEditor
from tests.server.editor_client import FakeClient, connect, obedient
from tests.server.replies import call, say, write
from tests.server.stock_editor import STOCK
from tests.session.fakes import World, world
from tests.session.fakes import say as says
from tests.shadow.rig import needs_overlay

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such mode")

SCRIPT = "#!/bin/sh\necho hello\n"


def runs(path: Path) -> bool:
    return bool(path.stat().st_mode & stat.S_IXUSR)


def save(path: Path, text: str = SCRIPT) -> None:
    path.write_text(text)


def lazy(client: FakeClient, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
    """Make new files as buffers only, as some editors do: they are written when they are saved."""
    for each in params.edit.document_changes or []:
        if isinstance(each, types.CreateFile):
            client.documents.open(Document(each.uri, "", 0))
        elif isinstance(each, types.TextDocumentEdit):
            client._edit(each)
    return types.ApplyWorkspaceEditResult(applied=True)


@pytest.mark.parametrize("is_lazy", [False, True])
async def test_the_account_says_what_waits(tmp_path: Path, is_lazy: bool) -> None:
    path = tmp_path / "run.sh"
    _, editor = connect(lazy if is_lazy else obedient)
    wanted = Changeset((FileChange(str(path), None, SCRIPT, runs=True),))
    applied = await editor.apply(wanted, "label")
    assert applied.outcome == "full"
    assert [each.runs for each in applied.done] == [True]
    assert applied.mode_waits == ((str(path),) if is_lazy else ())
    if not is_lazy:
        assert runs(path)


async def test_a_mode_of_a_buffer_that_was_never_saved_waits_as_well(tmp_path: Path) -> None:
    client, editor = connect(lazy)
    path = tmp_path / "run.sh"
    client.open(path, SCRIPT)
    applied = await editor.apply(Changeset((FileChange(str(path), SCRIPT, SCRIPT, runs=True),)), "label")
    assert (applied.outcome, applied.mode_waits) == ("full", (str(path),))


@pytest.mark.parametrize("kind", ["file", "link", "folder", "nothing"])
def test_only_files_get_a_mode(tmp_path: Path, kind: str) -> None:
    _, editor = connect()
    path, other = tmp_path / "run.sh", tmp_path / "other"
    other.write_text("")
    if kind == "file":
        path.write_text(SCRIPT)
    elif kind == "link":
        path.symlink_to(other)
    elif kind == "folder":
        path.mkdir(mode=0o600)
    assert editor.set_mode(str(path), runs=True) is (kind == "file")
    assert not runs(other)


# --- what is remembered until the file is there


async def accepted(folder: Path) -> tuple[World, Proposal, Path]:
    """Return a world in which the user has accepted a script that the editor has not written yet."""
    made = world(folder, says())
    proposal = made.manager.runs.get((await made.run()).run_id).proposal
    path = Path(made.path("run.sh"))

    async def apply(changeset: Changeset, label: str, may_lose: frozenset[str] = frozenset()) -> Applied:
        for each in changeset:
            if each.text is None:
                made.buffers.documents.pop(each.path, None)
            else:
                made.buffers.open(each.path, each.text)
        return Applied("full", changeset, mode_waits=tuple(each.path for each in changeset if each.text is not None))

    made.editor.apply = apply  # type: ignore[method-assign]
    _, real = connect()
    made.editor.set_mode = real.set_mode  # type: ignore[method-assign]
    proposal.staging.reset(Changeset((FileChange(str(path), None, SCRIPT, runs=True),)))
    await proposal.apply()
    return made, proposal, path


def again(made: World, proposal: Proposal) -> RunRecord:
    """Return the run as another process reads it."""
    session = made.manager.current()
    known = Session(session.session_id, made.store)
    replay(known, made.store.load(session.session_id))
    return known.context.runs[proposal.record.run_id]


async def test_the_bit_comes_with_the_first_save_and_once(tmp_path: Path) -> None:
    made, proposal, path = await accepted(tmp_path / "w")
    proposal.files_written(frozenset((str(path),)))  # a report of something that is not there
    assert again(made, proposal).modes_due == {str(path): True}
    save(path)
    proposal.files_written(frozenset((str(path.parent / "run.sh~"),)))
    assert not runs(path)
    proposal.files_written(frozenset((str(path),)))
    assert runs(path)
    assert proposal.record.modes_due == again(made, proposal).modes_due == {}
    path.chmod(0o644)  # the user's own doing is not undone by the next save
    proposal.files_written(frozenset((str(path),)))
    assert not runs(path)


async def test_what_was_undone_gets_no_bit(tmp_path: Path) -> None:
    made, proposal, path = await accepted(tmp_path / "w")
    await proposal.undo()
    assert proposal.record.modes_due == again(made, proposal).modes_due == {}
    save(path, "mine\n")
    proposal.files_written(frozenset((str(path),)))
    assert not runs(path)


async def test_what_comes_late_gets_its_bit(tmp_path: Path) -> None:
    made, proposal, path = await accepted(tmp_path / "w")
    late = Path(made.path("late.sh"))
    change = Changeset((FileChange(str(late), None, SCRIPT, runs=True),))

    async def silent(changeset: Changeset, label: str, may_lose: frozenset[str] = frozenset()) -> Applied:
        return Applied("unknown", left=changeset, late=changeset, unconfirmed=changeset.paths)

    made.editor.apply = silent  # type: ignore[method-assign]
    proposal.staging.reset(change)
    await proposal.apply()
    made.open("late.sh", SCRIPT)
    save(late)
    assert proposal.note_late().paths == (str(late),)
    assert runs(late)
    assert proposal.record.modes_due == {str(path): True}


async def test_the_user_is_told_at_the_end(tmp_path: Path) -> None:
    _, proposal, _ = await accepted(tmp_path / "w")
    assert "run.sh" in proposal.modes_words()
    assert "chmod" in proposal.modes_words()


# --- a whole server


Writes = Literal["at once", "when saved", "when saved, and only the watcher tells"]


@pytest.mark.slow
@pytest.mark.journey
@needs_overlay
@pytest.mark.parametrize("writes", ["at once", "when saved", "when saved, and only the watcher tells"])
@pytest.mark.parametrize("made_by", ["tool", "command"])
def test_a_script_that_a_command_made_executable(
    start: StartEditor, workspace: Path, writes: Writes, made_by: str
) -> None:
    makes = write("run.sh", SCRIPT) if made_by == "tool" else call("run_cmd", command=f"printf '{SCRIPT}' > run.sh")
    editor = start(
        makes,
        call("run_cmd", command="chmod +x run.sh"),
        call("run_cmd", command="./run.sh"),
        say("Done."),
        capabilities={**STOCK, "experimental": {"codeagent": {"event": True}}},
    )
    path = workspace / "run.sh"
    if writes != "at once":
        editor._create = lambda uri: editor._open(uri, "")  # type: ignore[method-assign]
    editor.run("codeagent.run", task="write a script")
    assert editor.text(path) == SCRIPT
    if writes != "at once":
        ended = [each for each in editor.notifications("codeagent/event") if each["type"] == "run_completed"]
        assert "run.sh" in ended[-1]["summary"]
        assert not path.exists()
        path.write_text(editor.text(path))
        uri = from_path(str(path))
        told: dict[str, Any] = {"textDocument": {"uri": uri}}
        if writes == "when saved":
            editor.client.notify("textDocument/didSave", told)
        else:
            changes = {"changes": [{"uri": uri, "type": 1}]}
            editor.client.notify("workspace/didChangeWatchedFiles", changes)
    editor.wait_until(lambda: runs(path))
    assert os.access(path, os.X_OK)
    assert editor.close() == 0
