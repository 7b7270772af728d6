"""A change made by hand is finished: as a stock editor meets it, with the real language servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.language_servers.real import missing, path_with_servers
from tests.server.conftest import StartEditor
from tests.server.stock_editor import StockEditor

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.skipif(missing("basedpyright") is not None, reason=str(missing("basedpyright"))),
]

LIB = "def load(name: str) -> int:\n    return len(name)\n"
USE = (
    "from lib import load\n\n\ndef one(folder: str) -> int:\n    return load('a')\n\n\n"
    "def two() -> int:\n    return load('b')\n"
)
AGAIN = "import lib\n\n\ndef three(folder: str) -> int:\n    return lib.load(name='c')\n"


@pytest.fixture
def editor(start: StartEditor, workspace: Path) -> StockEditor:
    (workspace / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    for name, text in (("lib.py", LIB), ("use.py", USE), ("again.py", AGAIN)):
        (workspace / name).write_text(text)
    editor = start(env={"PATH": path_with_servers()})
    editor.command("codeagent.pending")
    return editor


def changed(editor: StockEditor, workspace: Path, word: str = ", folder: str") -> str:
    """Add a parameter, key by key."""
    uri = editor.open(workspace / "lib.py")
    for number, char in enumerate(word):
        editor.type(uri, (0, 18 + number), (0, 18 + number), char)
    return uri


def finished(editor: StockEditor) -> str:
    """Run the command, and return what it said at its end."""
    return str(editor.run("codeagent.finishChange", 120.0))


def test_callers_are_repaired_and_reviewed(editor: StockEditor, workspace: Path) -> None:
    changed(editor, workspace)
    ended = finished(editor)
    assert editor.prompts, "the user was asked"
    assert "load('a', folder)" in editor.text(workspace / "use.py"), ended
    assert "load('b')" in editor.text(workspace / "use.py"), "nothing is in scope there"
    assert "lib.load(name='c', folder=folder)" in editor.text(workspace / "again.py")
    assert (workspace / "lib.py").read_text() == LIB, "nothing is written to disk"
