"""A real Emacs on a real screen, set up by `docs/editors.md`: the keys users press, and what they then see."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.clients.emacs.support import CLIENTS, MARKS, find_emacs, has_client, packages, prepare, variables_of
from tests.clients.neovim.support import SOURCE, edit
from tests.clients.scenarios import left_behind
from tests.clients.terminal.screen import Screen

pytestmark = [*MARKS, pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")]

# What is typed after M-x to start each client, what it then says, and how its prompt is cleared of what it proposes.
STARTED = {"eglot": ("eglot", "Connected!", ["C-a", "C-k"]), "lsp-mode": ("lsp", "initialized successfully", [])}


@pytest.mark.parametrize("client", [pytest.param(CLIENTS[0], marks=pytest.mark.volume), *CLIENTS[1:]])
def test_a_task_is_started_asked_about_and_applied_by_keys(tmp_path: Path, client: str) -> None:
    if not has_client(client):
        pytest.skip(f"this Emacs has no {client}")
    script = [edit("return 3", "return 4"), {"text": "Changed."}]
    init = prepare(tmp_path, client, files={"a.py": SOURCE}, script=script)
    emacs = find_emacs()
    assert emacs is not None
    command = [emacs, "-Q", "-nw", *packages(), "-l", str(init), str(tmp_path / "ws" / "a.py")]
    name, ready, clear = STARTED[client]
    screen = Screen(tmp_path, command, {**variables_of(tmp_path), "TERM": "xterm-256color"})
    try:
        screen.wait("def three")
        screen.keys("M-x", name, "Enter")
        screen.wait(ready)
        screen.keys("M-x", "codeagent-run", "Enter")
        screen.wait("Task:")
        screen.keys("change it", "Enter")
        screen.wait("Apply changes to a.py")
        screen.keys(*clear, "Apply", "Enter")
        changed = screen.wait("return 4")
        assert "return 3" not in changed
        assert (tmp_path / "ws" / "a.py").read_text() == SOURCE, "nothing is saved"
    finally:
        screen.close()
    assert not left_behind(tmp_path / "state"), "the server outlived the editor"
