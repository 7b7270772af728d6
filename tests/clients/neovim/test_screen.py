"""A real Neovim on a real screen, with the prompt that users have by default and the keys they press."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.neovim.support import MARKS, SOURCE, edit, environment, find_neovim
from tests.clients.scenarios import left_behind
from tests.clients.terminal.screen import Screen
from tests.inline.fill_server import FillServer, fill_server

pytestmark = [*MARKS, pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")]

INIT = """
vim.o.swapfile = false
vim.lsp.config("codeagent", {{
  cmd = vim.json.decode([==[{command}]==]),
  root_dir = "{workspace}",
  init_options = {{ model = {{ provider = "scripted", name = "{script}", inline = "{inline}" }} }},
}})
vim.lsp.enable("codeagent")
vim.api.nvim_create_user_command("Go", function()
  vim.lsp.get_clients({{ name = "codeagent" }})[1]:exec_cmd({{
    title = "go", command = "codeagent.run", arguments = {{ {{ task = "change it" }} }},
  }})
end, {{}})
vim.api.nvim_create_autocmd("LspAttach", {{ callback = function() vim.o.statusline = "READY" end }})
vim.o.laststatus = 2
"""


@pytest.fixture
def fills() -> Iterator[FillServer]:
    with fill_server(lambda path, body: ["min(one,", "\n        two)", "\n\n"]) as server:
        yield server


@pytest.fixture
def screen(tmp_path: Path, fills: FillServer) -> Iterator[Screen]:
    workspace, state, home = tmp_path / "ws", tmp_path / "state", tmp_path / "home"
    for place in (workspace, state, home):
        place.mkdir()
    (workspace / "a.py").write_text(SOURCE)
    (tmp_path / "script.json").write_text(json.dumps([edit("return 3", "return 4"), {"text": "Changed."}]))
    command = json.dumps([sys.executable, "-m", "codeagent_lsp.cli", "serve"])
    init = INIT.format(
        command=command, workspace=workspace, script=tmp_path / "script.json", inline=f"qwen2.5-coder@{fills.url}"
    )
    (tmp_path / "init.lua").write_text(init)
    neovim = find_neovim()
    assert neovim is not None
    started = [neovim, "--clean", "-u", str(tmp_path / "init.lua"), str(workspace / "a.py")]
    shown = Screen(tmp_path, started, {**environment(home, state), "TERM": "xterm-256color"})
    yield shown
    shown.close()
    assert not left_behind(state), "the server outlived the editor"


def test_the_default_prompt_is_read_and_answered_by_keys(screen: Screen, tmp_path: Path) -> None:
    screen.wait("READY")
    screen.keys(":Go", "Enter")
    asked = screen.wait("Apply changes to a.py")
    assert "1: Review" in asked
    assert "2: Apply" in asked
    assert "3: Discard" in asked
    screen.keys("2", "Enter")
    screen.wait("return 4")
    assert (tmp_path / "ws" / "a.py").read_text() == SOURCE
    screen.keys("Escape", ":qa!", "Enter")


def test_escape_is_no_and_nothing_is_changed(screen: Screen, tmp_path: Path) -> None:
    screen.wait("READY")
    screen.keys(":Go", "Enter")
    screen.wait("2: Apply")
    screen.keys("Escape")
    time.sleep(0.5)
    screen.keys("Enter")
    screen.wait(lambda shown: "2: Apply" not in shown and "return 3" in shown)
    screen.keys(":qa!", "Enter")


def test_what_the_list_of_completions_offers_is_taken_whole(screen: Screen, fills: FillServer) -> None:
    screen.wait("READY")
    screen.keys("2GA", " + ")
    deadline = time.monotonic() + 20
    while "min(" not in screen.text():  # the server is loaded a moment after it has begun
        assert time.monotonic() < deadline, screen.text()
        screen.keys("C-x", "C-o")
        time.sleep(1)
    screen.wait(lambda shown: "return 1 + min(one,\n        two)" in "\n".join(map(str.rstrip, shown.splitlines())))
    screen.keys("Escape", "u")
    screen.wait(lambda shown: "min(" not in shown)
    screen.keys(":qa!", "Enter")
    assert fills.asked
