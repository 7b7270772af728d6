"""What the user and the editor do while changes wait: nothing of the user's is lost, and what is told is true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.workspace.files.uris import from_path
from tests.server.conftest import StartEditor
from tests.server.replies import call, edit, say, write
from tests.server.stock_editor import StockEditor
from tests.server.test_features_decisions import LINES, TWO_HUNKS, held

pytestmark = pytest.mark.slow  # whole servers at work


@pytest.mark.parametrize("says", [True, False])
def test_a_hunk_that_lands_late_takes_no_line_of_the_users_with_it(
    start: StartEditor, workspace: Path, says: bool
) -> None:
    """The editor says something at once and does it after it was given up: what waits beside it is on other lines."""
    editor, run_id = held(start, workspace)
    uri = from_path(str(workspace / "a.py"))
    editor.type(uri, (28, 0), (28, 7), "mine")
    late = list[Any]()

    def apply(params: dict[str, Any]) -> dict[str, Any]:
        late.append(params)
        return {"applied": says} if says else {"applied": False, "failureReason": "busy"}

    whole, editor.client.answers["workspace/applyEdit"] = editor.client.answers["workspace/applyEdit"], apply
    editor.command("codeagent.apply", runId=run_id, hunks=["a.py#1"])
    editor.told("none of the changes" if says else "busy", 30)
    editor.client.answers["workspace/applyEdit"] = whole
    whole(late[0])
    editor.command("codeagent.apply", runId=run_id)
    editor.told("a.py:29", 30)
    wanted = LINES.replace("line 29\n", "mine\n").replace("line 2\n", "LINE 2\n")
    assert editor.text(workspace / "a.py") == wanted
    editor.command("codeagent.undo", runId=run_id)
    editor.told("Undone")
    assert editor.text(workspace / "a.py") == LINES.replace("line 29\n", "mine\n")


def rename_folder(editor: StockEditor, old: Path, new: Path) -> None:
    """Rename a folder as editors do: its open files are closed and opened under their new names."""
    inside = {uri: known.text for uri, known in editor.buffers.items() if uri.startswith(from_path(f"{old}/"))}
    old.rename(new)
    for uri, text in inside.items():
        del editor.buffers[uri]
        editor.client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        editor.open(new / uri.rpartition("/")[2], text)


@pytest.mark.parametrize("accepted", [True, False])
def test_all_goes_with_a_renamed_folder(start: StartEditor, workspace: Path, accepted: bool) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub" / "c.py").write_text(LINES)
    script = [edit("sub/c.py", "line 2\n", "LINE 2\n"), write("sub/new.py", LINES), say("Done.")]
    editor = start(*script, choose=lambda params: None)
    editor.open(workspace / "sub" / "c.py")
    run_id = editor.command("codeagent.run", task="change it")["runId"]
    editor.ended(run_id)
    if accepted:
        editor.command("codeagent.apply", runId=run_id)
        editor.told("Applied 2 files")
    rename_folder(editor, workspace / "sub", workspace / "lib")
    if not accepted:
        editor.command("codeagent.apply", runId=run_id)
        editor.told("Applied 2 files")
    assert not (workspace / "sub").exists()
    assert "LINE 2\n" in editor.text(workspace / "lib" / "c.py")
    editor.command("codeagent.undo", runId=run_id)
    editor.told("Undone in 2 files")
    assert editor.text(workspace / "lib" / "c.py") == LINES
    assert not (workspace / "lib" / "new.py").exists()


@pytest.mark.parametrize("choice", ["Keep mine", "Take the agent's"])
def test_a_file_that_the_user_has_deleted(start: StartEditor, workspace: Path, choice: str) -> None:
    (workspace / "a.py").write_text(LINES)
    editor = start(*TWO_HUNKS, choose=lambda params: choice if "same lines" in params["message"] else None)
    run_id = editor.command("codeagent.run", task="change it")["runId"]
    editor.ended(run_id)
    (workspace / "a.py").unlink()
    editor.command("codeagent.apply", runId=run_id)
    editor.wait_until(lambda: editor.command("codeagent.review", runId=run_id)["diff"] == "", 20)
    assert (workspace / "a.py").exists() == (choice == "Take the agent's")


def test_a_deletion_that_was_confirmed_is_done_and_undone(start: StartEditor, workspace: Path) -> None:
    (workspace / "a.py").write_text(LINES)
    pick = {"anyway": "Delete"}
    choose = lambda params: next((title for part, title in pick.items() if part in params["message"]), None)  # noqa: E731
    editor = start(call("delete_file", path="a.py"), say("Done."), choose=choose)
    uri = editor.open(workspace / "a.py")
    run_id = editor.command("codeagent.run", task="delete it")["runId"]
    editor.ended(run_id)
    editor.type(uri, (0, 0), (0, 0), "typed\n")
    editor.command("codeagent.apply", runId=run_id)
    editor.told("Applied 1 file")
    assert not (workspace / "a.py").exists()
    editor.command("codeagent.undo", runId=run_id)
    editor.told("Undone")
    assert editor.text(workspace / "a.py") == f"typed\n{LINES}"
