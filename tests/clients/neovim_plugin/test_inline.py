"""Completion while typing in a real Neovim: shown at the cursor, typed along, taken whole or in parts, switched off."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.clients.neovim.support import MARKS
from tests.clients.neovim_plugin.support import run_lua
from tests.clients.neovim_plugin.typist import Typist, typist
from tests.inline.fill_server import FillServer, fill_server

pytestmark = MARKS

TEXT = "def add(a, b):\n    return\n"
SHOWN = ["sum(", "        a, b)"]
MAPPED = """
vim.o.expandtab, vim.o.softtabstop = true, 2
vim.keymap.set("i", "<Tab>", function()
  return require("codeagent.inline").visible() and "<Plug>(codeagent-inline-accept)" or "<Tab>"
end, { expr = true, remap = true })
vim.keymap.set("i", "<C-w>", "<Plug>(codeagent-inline-accept-word)")
vim.keymap.set("i", "<C-l>", "<Plug>(codeagent-inline-accept-line)")
vim.keymap.set("i", "<C-d>", "<Plug>(codeagent-inline-dismiss)")
vim.keymap.set("i", "<C-t>", "<Plug>(codeagent-inline-trigger)")
"""


@pytest.fixture
def server() -> Iterator[FillServer]:
    with fill_server(lambda path, body: ["sum(", "\n        a, b)", "\n\n"]) as server:
        yield server


def editor_on(folder: Path, server: FillServer, text: str = TEXT, early: str = "") -> AbstractContextManager[Typist]:
    model = {"provider": "llamacpp", "baseUrl": server.url, "name": "qwen2.5-coder"}
    return typist(folder, text, {"model": model, "inline": {"debounceMs": 5}}, MAPPED, early)


def shows(editor: Typist, wanted: list[str]) -> None:
    """Wait until exactly this is shown."""
    end = time.monotonic() + 10
    while (found := editor.shown()) != wanted:
        assert time.monotonic() < end, found
        time.sleep(0.02)


def test_shown_typed_along_and_hidden(tmp_path: Path, server: FillServer) -> None:
    with editor_on(tmp_path, server) as editor:
        editor.press("jA ")
        shows(editor, SHOWN)
        editor.press("s")
        shows(editor, ["um(", "        a, b)"])
        editor.press("um")
        shows(editor, ["(", "        a, b)"])
        assert len(server.asked) == 1, "typing along asks nobody"
        editor.press("<Esc>")
        shows(editor, [])
        assert editor.text() == "def add(a, b):\n    return sum\n"


def test_shown_where_typing_began_before_the_server_was_ready(tmp_path: Path, server: FillServer) -> None:
    with editor_on(tmp_path, server, early="jA ") as editor:
        shows(editor, SHOWN)


def test_taken_whole_and_undone_at_once(tmp_path: Path, server: FillServer) -> None:
    with editor_on(tmp_path, server) as editor:
        editor.press("i<Tab><Esc>")
        assert editor.text().startswith("    def add"), "where nothing is shown the key is what it was"
        editor.press("jA ")
        shows(editor, SHOWN)
        editor.press("<Tab>")
        editor.wait("vim.api.nvim_buf_line_count(0)", 3)
        assert editor.text().endswith("    return sum(\n        a, b)\n")
        editor.press("<Esc>u")
        assert editor.text().endswith("    return \n"), "what was typed stays"


@pytest.mark.volume
def test_taken_by_words_and_lines(tmp_path: Path, server: FillServer) -> None:
    with editor_on(tmp_path, server) as editor:
        editor.press("jA ")
        shows(editor, SHOWN)
        editor.press("<C-w>")
        shows(editor, ["(", "        a, b)"])
        editor.press("<C-l>")
        shows(editor, ["", "        a, b)"])
        assert editor.text().endswith("    return sum(\n")
        editor.press("<C-l>")
        editor.wait("vim.api.nvim_buf_line_count(0)", 3)
        assert editor.text().endswith("    return sum(\n        a, b)\n")


@pytest.mark.volume
def test_hidden_when_the_cursor_moves_and_dismissed(tmp_path: Path, server: FillServer) -> None:
    with editor_on(tmp_path, server) as editor:
        editor.press("jA ")
        shows(editor, SHOWN)
        editor.press("<Left>")
        shows(editor, [])
        editor.press("<Right>")
        assert editor.shown() == []
        editor.press("<C-t>")
        shows(editor, SHOWN)
        editor.press("<C-d>")
        shows(editor, [])


def test_nothing_is_shown_beside_the_popup_menu(tmp_path: Path, server: FillServer) -> None:
    with editor_on(tmp_path, server, "alpha\nalbum\n\n") as editor:
        editor.press("Gial<C-n>")
        editor.wait("vim.fn.pumvisible()", 1)
        time.sleep(0.5)
        assert editor.shown() == []


def test_signs_of_several_bytes(tmp_path: Path) -> None:
    with (
        fill_server(lambda path, body: ["'größe 𝔘'", "\n"]) as server,
        editor_on(tmp_path, server, "é, 𝔘 =\n") as editor,
    ):
        editor.press("A ")
        shows(editor, ["'größe 𝔘'"])
        editor.press("'g")
        shows(editor, ["röße 𝔘'"])
        editor.press("<C-w>")
        shows(editor, [" 𝔘'"])
        editor.press("<Tab><Esc>")
        editor.wait("vim.api.nvim_get_current_line()", "é, 𝔘 = 'größe 𝔘'")


@pytest.mark.volume
def test_an_answer_for_a_text_that_is_gone_is_not_shown(tmp_path: Path) -> None:
    with (
        fill_server(lambda path, body: ["late", "\n"], pause=0.4) as server,
        editor_on(tmp_path, server) as editor,
    ):
        editor.press("jA ")
        end = time.monotonic() + 10
        while not server.asked:
            assert time.monotonic() < end
            time.sleep(0.02)
        editor.press("<Esc>")
        time.sleep(1.5)
        assert editor.shown() == []


@pytest.mark.volume
def test_switched_off_and_on_again(tmp_path: Path, server: FillServer) -> None:
    with editor_on(tmp_path, server) as editor:
        editor.press(":CodeAgent inline<CR>")
        editor.wait('require("codeagent.inline").status().state', "off")
        editor.press("jA ")
        time.sleep(0.5)
        assert server.asked == []
        editor.press("<Esc>:CodeAgent inline on<CR>")
        editor.wait('require("codeagent.inline").status().state', "ready")
        editor.wait('require("codeagent.inline").offered(0)', wanted=True)
        editor.press("A ")
        shows(editor, SHOWN)


def test_tabs_are_as_wide_as_they_will_be() -> None:
    code = """
    vim.bo.tabstop, vim.bo.shiftwidth = 8, 4
    vim.api.nvim_buf_set_lines(0, 0, -1, true, { "\\t宽 = " })
    vim.api.nvim_win_set_cursor(0, { 1, 6 })
    require("codeagent.suggestion").show("\\tx\\n\\t\\ty")
    local space = vim.api.nvim_get_namespaces()["codeagent.suggestion"]
    local details = vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })[1][4]
    io.write(("[%s][%s]"):format(details.virt_text[1][1], details.virt_lines[1][1][1]))
    """
    assert run_lua(code) == f"[{' ' * 4}x][{' ' * 16}y]"


def part(text: str, name: str) -> Any:
    code = f'io.write(require("codeagent.suggestion").part({text}, "{name}"))'
    return run_lua(code)


@pytest.mark.parametrize(
    ("text", "word", "line"),
    [
        ('"foo(bar)"', "foo", "foo(bar)"),
        ('" + b"', " +", " + b"),
        ('"(x)"', "(", "(x)"),
        ('"\\n    a = 1\\nb"', "\n    a", "\n    a = 1"),
        ('"größe x"', "größe", "größe x"),
    ],
)
def test_the_parts_of_a_text(text: str, word: str, line: str) -> None:
    assert part(text, "word") == word
    assert part(text, "line") == line
