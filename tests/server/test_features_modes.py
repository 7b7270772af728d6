"""Whether a file can be executed: by a patch, with an undo and a rewind, in a stock editor."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.replies import call, say
from tests.server.stock_editor import StockEditor
from tests.shadow.rig import needs_overlay

pytestmark = pytest.mark.slow  # whole servers at work

TEXT = "#!/bin/sh\necho hi\n"
HEAD = "diff --git a/run.sh b/run.sh\n"
MODES = f"{HEAD}old mode 100644\nnew mode 100755\n"
HUNK = "--- a/run.sh\n+++ b/run.sh\n@@ -1,2 +1,2 @@\n #!/bin/sh\n-echo hi\n+echo bye\n"
NEW = (
    "diff --git a/new.sh b/new.sh\nnew file mode {}\n--- /dev/null\n+++ b/new.sh\n@@ -0,0 +1,2 @@\n+#!/bin/sh\n+true\n"
)
OFF = f"{HEAD}old mode 100755\nnew mode 100644\n"


def runs(path: Path) -> bool | None:
    return bool(path.stat().st_mode & 0o100) if path.exists() else None


@pytest.mark.parametrize(
    ("name", "patch", "before", "after", "text"),
    [
        ("run.sh", MODES, False, True, TEXT),
        ("run.sh", MODES + HUNK, False, True, TEXT.replace("hi", "bye")),
        ("run.sh", OFF, True, False, TEXT),
        ("run.sh", OFF + HUNK, True, False, TEXT.replace("hi", "bye")),
        ("run.sh", HEAD + HUNK, True, True, TEXT.replace("hi", "bye")),
        ("new.sh", NEW.format("100755"), None, True, "#!/bin/sh\ntrue\n"),
        ("new.sh", NEW.format("100644"), None, False, "#!/bin/sh\ntrue\n"),
    ],
    ids=["on", "on with an edit", "off", "off with an edit", "as it is", "new", "new and not"],
)
@pytest.mark.parametrize("way", ["undo", "rewind"])
def test_a_patch_sets_it_and_an_undo_takes_it_back(
    tmp_path: Path, name: str, patch: str, before: bool | None, after: bool, text: str, way: str
) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "run.sh").write_text(TEXT)
    (folder / "run.sh").chmod(0o755 if before else 0o644)
    with StockEditor(folder, tmp_path / "state", script=[call("apply_patch", patch=patch), say("Done.")]) as editor:
        run_id = editor.command("codeagent.run", task="change the script")["runId"]
        editor.ended(run_id)
        editor.wait_until(lambda: editor.text(folder / name) == text and runs(folder / name) is after)
        if way == "undo":
            editor.command("codeagent.undo", runId=run_id)
        else:
            editor.command("codeagent.session.rewind", runId=run_id, what="changes")
        editor.wait_until(lambda: runs(folder / name) is before)


def test_a_script_that_comes_back_can_be_executed_again(tmp_path: Path) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "run.sh").write_text(TEXT)
    (folder / "run.sh").chmod(0o755)
    script = [call("delete_file", path="run.sh"), say("Done.")]
    with StockEditor(folder, tmp_path / "state", script=script) as editor:
        run_id = editor.command("codeagent.run", task="delete the script")["runId"]
        editor.ended(run_id)
        editor.wait_until(lambda: not (folder / "run.sh").exists())
        editor.command("codeagent.undo", runId=run_id)
        editor.wait_until(lambda: runs(folder / "run.sh") is True)


@needs_overlay
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("run.sh", "chmod +x run.sh"),
        ("run.sh", "chmod +x run.sh; echo echo more >> run.sh"),
        ("made.sh", "printf '#!/bin/sh\\ntrue\\n' > made.sh; chmod +x made.sh"),
        ("sub/made.sh", "mkdir sub; printf '#!/bin/sh\\ntrue\\n' > sub/made.sh; chmod 755 sub/made.sh"),
    ],
)
def test_what_a_command_made_executable_is_so_once_it_is_accepted(tmp_path: Path, name: str, command: str) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "run.sh").write_text(TEXT)
    (folder / "run.sh").chmod(0o644)
    before = runs(folder / name)
    look = call("run_cmd", command=f"test -x {name} && ls")
    script = [call("run_cmd", command=command), look, say("Done.")]
    with StockEditor(folder, tmp_path / "state", script=script) as editor:
        run_id = editor.command("codeagent.run", task="make it a script")["runId"]
        editor.ended(run_id)
        editor.wait_until(lambda: runs(folder / name) is True)
        editor.command("codeagent.undo", runId=run_id)
        editor.wait_until(lambda: runs(folder / name) is before)


@pytest.mark.parametrize("patch", [MODES, MODES + HUNK], ids=["alone", "with an edit"])
def test_it_waits_over_a_restart_and_can_be_discarded(tmp_path: Path, patch: str) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()
    path = folder / "run.sh"
    path.write_text(TEXT)
    path.chmod(0o644)
    script = [call("apply_patch", patch=patch), say("Done.")] * 2
    with StockEditor(folder, tmp_path / "state", script=script, choose=lambda params: None) as editor:
        run_id = editor.command("codeagent.run", task="change the script")["runId"]
        editor.ended(run_id)
        assert runs(path) is False
    with StockEditor(folder, tmp_path / "state", choose=lambda params: "Discard") as editor:
        editor.wait_until(lambda: any(item.get("runId") == run_id for item in editor.command("codeagent.pending")))
        editor.command("codeagent.apply", runId=run_id)
        editor.wait_until(lambda: runs(path) is True)
        editor.command("codeagent.undo", runId=run_id)
        editor.wait_until(lambda: (runs(path), editor.text(path)) == (False, TEXT))
    with StockEditor(folder, tmp_path / "state", script=script, choose=lambda params: "Discard") as editor:
        editor.ended(editor.command("codeagent.run", task="change the script")["runId"])
        assert (runs(path), editor.text(path)) == (False, TEXT)
        assert editor.command("codeagent.pending") == []
