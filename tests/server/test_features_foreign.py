"""A stock client whose files another program changes: gathered, reviewed, tried, taken back, merged."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.workspace.files.uris import from_path
from tests.foreign.outside import git, repository
from tests.living import files_below
from tests.server import hurried
from tests.server.conftest import StartEditor
from tests.server.hurried import SETTLED
from tests.server.replies import edit, say
from tests.server.stock_editor import STOCK, StockEditor

pytestmark = pytest.mark.slow  # whole servers, which follow the files after some seconds

GAP = "# far enough\n" * 8
CART = f"def total(items):\n    return 0\n\n\n{GAP}def name():\n    return 'cart'\n"
TESTS = """\
from cart import name, total


def test_total():
    assert total([2, 3]) == 5


def test_name():
    assert name()
"""
CHANGED = CART.replace("return 0", "return sum(items)").replace("'cart'", "'basket'")
TOLD = "Another program changed"
FOLLOWS: dict[str, Any] = {"foreign": {"watch": "auto"}}


def program(folder: Path, **files: str | None) -> None:
    """Another program writes these files, or deletes them for None; `a_py` is a.py."""
    named = {name.replace("_py", ".py"): text for name, text in files.items()}
    script = (
        "import os, pathlib\n"
        f"for name, text in {named!r}.items():\n"
        "    os.remove(name) if text is None else pathlib.Path(name).write_bytes(text.encode())\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=folder, check=True)


def follows(start: StartEditor, workspace: Path, *script: dict[str, Any], **options: Any) -> StockEditor:
    """An editor whose server has begun to follow the files."""
    (workspace / "untracked.py").write_text("a copy of it is kept\n")
    editor = start(*script, settings=FOLLOWS, main=hurried.MAIN, **options)
    state = workspace.parent / "state"
    many = sum(1 for each in workspace.iterdir() if each.is_file()) if not (workspace / ".git").exists() else 1
    editor.wait_until(lambda: len(files_below(state, "before/*/*")) >= many, 60.0)
    time.sleep(0.5)
    return editor


def waiting(editor: StockEditor) -> str:
    """The run about whose changes nobody has decided."""
    (item,) = (item for item in editor.command("codeagent.pending") if item["kind"] == "changes")
    assert item["title"].startswith("Changed outside:")
    return str(item["runId"])


def nothing_waits(editor: StockEditor) -> bool:
    return not [item for item in editor.command("codeagent.pending") if item["kind"] == "changes"]


def told(editor: StockEditor) -> int:
    said = editor.notifications("window/showMessage")
    return sum(TOLD in each["message"] for each in said)


def save(editor: StockEditor, path: Path) -> None:
    """What an editor does when the user saves."""
    path.write_text(editor.text(path))
    editor.client.notify("textDocument/didSave", {"textDocument": {"uri": from_path(str(path))}})


def test_changes_are_told_once_and_decided_about_by_hunk(start: StartEditor, workspace: Path) -> None:
    repository(workspace, cart_py=CART)
    (workspace / "test_cart.py").write_text(TESTS)
    editor = follows(start, workspace)
    uri = editor.open(workspace / "cart.py")
    program(workspace, cart_py=CHANGED)
    assert "cart.py" in editor.told(TOLD, 60.0)
    run = waiting(editor)
    lenses = editor.client.result("textDocument/codeLens", {"textDocument": {"uri": uri}})
    titles = [lens["command"]["title"] for lens in lenses]
    assert titles[:3] == ["Changed outside: 1 file · Review", "Keep", "Revert"]
    assert titles.count("Changed outside: keep this change") == 2
    review = editor.command("codeagent.review", runId=run)
    editor.run("codeagent.prove", seconds=120.0, runId=run)
    proof = editor.command("codeagent.review", runId=run)["proof"]
    assert proof == ["Tests: 2 passed, on your unsaved text and these changes. Failed before and pass now: 1."]
    editor.run("codeagent.minimize", seconds=120.0, runId=run)
    (unneeded,) = editor.command("codeagent.review", runId=run)["unneeded"]
    assert review["diff"].index(unneeded) > review["diff"].index("return sum(items)")
    answer = editor.command("codeagent.discard", runId=run, hunks=[unneeded])
    assert answer["files"] == [str((workspace / "cart.py").resolve())]
    editor.told("Reverted in 1")
    assert (workspace / "cart.py").read_text() == CHANGED
    editor.command("codeagent.apply", runId=run)
    editor.told("Kept in 1")
    mended = CART.replace("return 0", "return sum(items)")
    assert editor.text(workspace / "cart.py") == mended
    save(editor, workspace / "cart.py")
    time.sleep(SETTLED)
    assert nothing_waits(editor)
    editor.command("codeagent.undo", runId=run)
    editor.told("Undone in 1")
    assert editor.text(workspace / "cart.py") == CHANGED
    assert told(editor) == 0
    assert not editor.prompts


def test_unsaved_text_is_merged_and_conflicts_have_three_ways_out(start: StartEditor, workspace: Path) -> None:
    repository(workspace, a_py="one\n2\n3\nfour\n", b_py="one\n2\n3\nfour\n")
    answers = iter(["Take the other program's"])
    editor = follows(start, workspace, choose=lambda params: next(answers))
    for name in ("a.py", "b.py"):
        editor.open(workspace / name)
    editor.type(from_path(str(workspace / "a.py")), (3, 0), (3, 0), "typed\n")
    editor.type(from_path(str(workspace / "b.py")), (0, 0), (0, 3), "mine")
    program(workspace, a_py="ONE\n2\n3\nfour\n", b_py="ONE\n2\n3\nFOUR\n")
    editor.told(TOLD, 60.0)
    editor.command("codeagent.apply", runId=waiting(editor))
    editor.wait_until(lambda: len(editor.prompts) == 1)
    assert "You and another program changed the same lines, in b.py:1" in editor.prompts[0]["message"]
    assert [each["title"] for each in editor.prompts[0]["actions"]] == [
        "Keep mine",
        "Take the other program's",
        "Ask the agent again",
    ]
    editor.told("Kept in 1")
    assert editor.text(workspace / "a.py") == "ONE\n2\n3\ntyped\nfour\n"
    assert editor.text(workspace / "b.py") == "ONE\n2\n3\nFOUR\n"
    assert nothing_waits(editor)


def test_what_is_not_from_outside(start: StartEditor, workspace: Path) -> None:
    repository(workspace, a_py="one\n", b_py="b\n")
    git(workspace, "checkout", "-q", "-b", "other")
    (workspace / "a.py").write_text("other\n")
    git(workspace, "commit", "-qam", "other")
    git(workspace, "checkout", "-q", "main")
    editor = follows(start, workspace, edit("b.py", "b\n", "by the agent\n"), say("Done."))
    git(workspace, "checkout", "-q", "other")
    editor.run("codeagent.run", task="change b")
    assert editor.text(workspace / "b.py") == "by the agent\n"
    save(editor, workspace / "b.py")
    time.sleep(0.3)
    (workspace / "b.py").write_text("by the agent, formatted\n")
    (workspace / "node_modules").mkdir()
    (workspace / "node_modules" / "x.js").write_text("x\n")
    time.sleep(SETTLED)
    git(workspace, "stash", "-q")
    git(workspace, "checkout", "-q", "main")
    git(workspace, "stash", "pop", "-q")
    time.sleep(SETTLED)
    assert told(editor) == 0
    assert nothing_waits(editor)


def test_new_deleted_and_renamed_files(start: StartEditor, workspace: Path) -> None:
    for name, text in (("old.py", "name\n"), ("gone.py", "bye\n")):
        (workspace / name).write_text(text)
    editor = follows(start, workspace)
    program(workspace, old_py=None, renamed_py="name\n", gone_py=None)
    editor.told(TOLD, 60.0)
    run = waiting(editor)
    editor.command("codeagent.discard", runId=run, files=["old.py", "renamed.py"])
    editor.told("Reverted in 2")
    assert editor.text(workspace / "old.py") == "name\n"
    assert not (workspace / "renamed.py").exists()
    assert not (workspace / "gone.py").exists()
    time.sleep(SETTLED)
    program(workspace, gone_py="bye\n")  # changed back: there is nothing to decide about
    editor.wait_until(lambda: nothing_waits(editor), 60.0)
    assert told(editor) == 0


@pytest.mark.volume
def test_many_files_are_told_once(start: StartEditor, workspace: Path) -> None:
    for number in range(500):
        (workspace / f"f{number}.py").write_text("one\n")
    editor = follows(start, workspace)
    program(workspace, **{f"f{number}_py": "two\n" for number in range(500)})
    assert "500 files: " in editor.told(TOLD, 60.0)
    run = waiting(editor)
    program(workspace, f0_py="three\n", f501_py="new\n")
    editor.wait_until(lambda: "f501.py" in editor.command("codeagent.review", runId=run)["diff"], 60.0)
    assert told(editor) == 0
    editor.command("codeagent.discard", runId=run, files=["f0.py"])
    editor.told("Reverted in 1")
    assert editor.text(workspace / "f0.py") == "one\n"


def test_a_client_that_reports_files_is_asked_once(start: StartEditor, workspace: Path) -> None:
    repository(workspace, a_py="one\n")
    reports = {**STOCK, "workspace": {**STOCK["workspace"], "didChangeWatchedFiles": {"dynamicRegistration": True}}}
    editor = start(settings=FOLLOWS, capabilities=reports, main=hurried.MAIN)
    time.sleep(SETTLED)
    (workspace / "a.py").write_text("two\n")
    params = {"changes": [{"uri": from_path(str(workspace / "a.py")), "type": 2}]}
    editor.client.notify("workspace/didChangeWatchedFiles", params)
    editor.told(TOLD, 60.0)
    editor.command("codeagent.discard", runId=waiting(editor))
    editor.told("Reverted in 1")
    assert editor.text(workspace / "a.py") == "one\n"


def test_a_run_waits_for_the_next_start(start: StartEditor, workspace: Path) -> None:
    (workspace / "a.py").write_text("one\n")
    editor = follows(start, workspace)
    program(workspace, a_py="two\n")
    editor.told(TOLD, 60.0)
    run = waiting(editor)
    assert editor.close() == 0
    again = start(settings=FOLLOWS, main=hurried.MAIN)
    again.told("Changed outside: 1 file (1)", 60.0)
    assert waiting(again) == run
    again.command("codeagent.discard", runId=run)
    again.told("Reverted in 1")
    assert again.text(workspace / "a.py") == "one\n"


def test_off_follows_nothing(start: StartEditor, workspace: Path, tmp_path: Path) -> None:
    (workspace / "a.py").write_text("one\n")
    editor = start(settings={"foreign": {"watch": "off"}}, main=hurried.MAIN)
    time.sleep(SETTLED)
    program(workspace, a_py="two\n")
    time.sleep(SETTLED)
    assert told(editor) == 0
    assert nothing_waits(editor)
    assert not files_below(tmp_path / "state", "before/*/*")


def test_what_the_user_saves_in_another_editor_is_not_from_outside(start: StartEditor, workspace: Path) -> None:
    repository(workspace, cart_py=CART, other_py="x = 1\n")
    editor = follows(start, workspace)
    second = start(settings={"foreign": {"watch": "off"}})
    uri = second.open(workspace / "cart.py")
    second.command("codeagent.pending")
    second.type(uri, (0, 0), (0, 0), "# typed in the second editor\n")
    save(second, workspace / "cart.py")
    program(workspace, other_py="x = 2\n")
    editor.told(TOLD, 60.0)
    assert "cart.py" not in editor.command("codeagent.review", runId=waiting(editor))["diff"]
    program(workspace, cart_py=CHANGED)
    editor.wait_until(lambda: "cart.py" in editor.command("codeagent.review", runId=waiting(editor))["diff"], 60.0)
