"""After the model or the editor has failed, the next prompt works and nothing that was staged is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from acp import RequestError

from codeagent_lsp.llm.providers.scripted import ERRORS
from tests.acp_agent.editor import Editor
from tests.terminal.scripts import call

pytestmark = pytest.mark.slow

CALC, FIXED = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
EDIT = call("edit_file", path="calc.py", old_str="a - b", new_str="a + b")
NEW = call("write_file", path="new.py", content="x = 1\n")
HELLO: dict[str, Any] = {"text": "Hello."}


class ReadOnly(Editor):
    """An editor in which the files with this name cannot be written, as long as it has one."""

    refuses = ""

    async def write_text_file(self, session_id: str, path: str, content: str, **kwargs: Any) -> None:
        if self.refuses and path.endswith(self.refuses):
            raise RequestError(-32603, "read-only")
        await super().write_text_file(session_id, path, content, **kwargs)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "calc.py").write_text(CALC)
    return folder


@pytest.mark.parametrize("refuses", ["calc.py", ".py"])
@pytest.mark.parametrize("words", ["/apply", "Hello"])
async def test_what_the_editor_refused_waits(workspace: Path, tmp_path: Path, refuses: str, words: str) -> None:
    async with ReadOnly(workspace, tmp_path / "state", [NEW, EDIT, {"text": "Done."}, HELLO]) as editor:
        session_id = await editor.new()
        editor.refuses = refuses
        await editor.prompt(session_id, "Fix the sign")
        assert (workspace / "calc.py").read_text() == CALC
        assert (workspace / "new.py").exists() == (refuses == "calc.py")
        editor.refuses = ""
        await editor.prompt(session_id, words)
    assert (workspace / "calc.py").read_text() == FIXED
    assert (workspace / "new.py").read_text() == "x = 1\n"


@pytest.mark.parametrize("error", ERRORS)
async def test_what_was_staged_before_the_model_failed_is_offered(workspace: Path, tmp_path: Path, error: str) -> None:
    failing = {"error": error}
    async with Editor(workspace, tmp_path / "state", [EDIT, failing, failing, failing, failing, HELLO]) as editor:
        session_id = await editor.new()
        await editor.prompt(session_id, "Fix the sign")
        assert (workspace / "calc.py").read_text() == FIXED
        for _ in range(4):
            await editor.prompt(session_id, "Hello")
        assert editor.said().rstrip().endswith("Hello.") or "Done." in editor.said()
