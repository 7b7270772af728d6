"""`:CodeAgent finish`: a signature is changed by hand in Neovim, and its callers follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.neovim.support import MARKS
from tests.clients.neovim_plugin.support import play
from tests.language_servers.real import missing, path_with_servers

pytestmark = [
    *MARKS,
    pytest.mark.skipif(missing("basedpyright") is not None, reason=str(missing("basedpyright"))),
]

LIB = "def load(name: str) -> int:\n    return len(name)\n"
USE = "from lib import load\n\n\ndef one(folder: str) -> int:\n    return load('a')\n"


def test_callers_follow_a_signature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", path_with_servers())
    played = play(
        tmp_path,
        """
        local use = rig.open("use.py")
        local lib = rig.open("lib.py")
        vim.api.nvim_buf_set_text(lib, 0, 18, 0, 18, { ", folder: str" })
        vim.api.nvim_exec_autocmds("TextChanged", { buffer = lib })
        vim.cmd("CodeAgent finish")
        local run = rig.ended("completed")
        local now = table.concat(vim.api.nvim_buf_get_lines(use, 0, -1, true), "\\n")
        return { said = run.summary or "", use = now }
        """,
        files={"lib.py": LIB, "use.py": USE, "pyproject.toml": "[project]\nname = 'x'\n"},
        script=[],
    )
    assert "return load('a', folder)" in played.found["use"], played.found["said"]
    assert (played.disk("lib.py"), played.disk("use.py")) == (LIB, USE)
