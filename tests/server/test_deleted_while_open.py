"""A file that is deleted for an editor which cannot delete, and which goes on showing it: an undo brings the file back,
and not only in a window that is taken for saved.
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from tests.server.conftest import StartEditor
from tests.server.editor_client import connect, without
from tests.server.replies import call, calls, say
from tests.server.stock_editor import STOCK

TEXT = "a = '😀'\nb = 2\n"
MOVED = calls(
    ("move_file", {"path": "d.py", "new_path": "f.py"}),
    ("edit_file", {"path": "f.py", "old_str": "b = 2", "new_str": "b = 22"}),
)


@pytest.mark.parametrize("reply", [call("delete_file", path="d.py"), MOVED], ids=["deleted", "moved"])
def test_an_undo_brings_it_back(start: StartEditor, workspace: Path, reply: dict[str, Any]) -> None:
    (workspace / "d.py").write_text(TEXT)
    capabilities = deepcopy(STOCK)
    del capabilities["workspace"]["workspaceEdit"]["resourceOperations"]
    editor = start(reply, say("Done."), capabilities=capabilities)
    uri = editor.open(workspace / "d.py")
    assert editor.run("codeagent.run", task="change files")["message"].startswith("Applied")
    assert not (workspace / "d.py").exists()
    version = editor.buffers[uri].version
    editor.command("codeagent.undo")
    editor.told("Undone")
    assert (workspace / "d.py").is_file()
    assert editor.buffers[uri].text == TEXT
    assert editor.buffers[uri].version != version  # an edit came, so that the editor has it as unsaved


async def test_what_was_typed_since_is_not_taken_for_the_deleted_file(tmp_path: Path) -> None:
    path = tmp_path / "d"
    client, editor = connect(policy=without("creates", "deletes"))
    client.open(path, f"{TEXT}typed\n")
    applied = await editor.apply(Changeset((FileChange(str(path), None, TEXT),)), "label")
    assert (applied.outcome, client.sent, path.exists()) == ("none", [], False)
