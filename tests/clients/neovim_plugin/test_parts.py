"""The rest of the plugin in a real Neovim: places, diagnostics, sessions, pages, finding the server, help, health."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.neovim.support import MARKS, SOURCE, call, edit
from tests.clients.neovim_plugin.support import PLUGIN, Editor, neovim, play, run_lua

pytestmark = MARKS

LUA = sorted(PLUGIN.rglob("*.lua"))


def test_every_file_is_lua() -> None:
    run_lua("".join(f"assert(loadfile([[{path}]]))\n" for path in LUA))


@pytest.mark.parametrize("path", LUA, ids=lambda path: str(path.relative_to(PLUGIN)))
def test_every_file_is_small(path: Path) -> None:
    lines = path.read_text().splitlines()
    data = path.name in ("protocol.lua",)
    assert data or len(lines) <= 500
    long = [number for number, line in enumerate(lines, 1) if len(line) > 160]
    assert data or path.name == "texts.lua" or not long


def test_the_tags_of_the_help_page_are_unique_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    shutil.copytree(PLUGIN / "doc", tmp_path / "doc", ignore=shutil.ignore_patterns("tags"))
    command = [neovim(), "--clean", "--headless", "-c", f"helptags {tmp_path / 'doc'}", "-c", "qa"]
    made = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert not made.stderr, made.stderr
    tags = {line.split("\t")[0] for line in (tmp_path / "doc" / "tags").read_text().splitlines()}
    page = (PLUGIN / "doc" / "codeagent.txt").read_text()
    linked = {word for line in page.splitlines() for word in line.split("|")[1::2] if word.startswith("codeagent")}
    assert linked <= tags, linked - tags
    assert {":CodeAgent", "codeagent-:review", "codeagent-setting-model.baseUrl"} <= tags


def test_nothing_is_loaded_before_it_is_needed() -> None:
    said = run_lua(
        """
        vim.cmd("runtime plugin/codeagent.lua")
        local loaded = vim.tbl_filter(function(name) return vim.startswith(name, "codeagent") end,
          vim.tbl_keys(package.loaded))
        assert(#loaded == 0, vim.inspect(loaded))
        assert(vim.fn.exists(":CodeAgent") == 2)
        assert(vim.fn.maparg("<Plug>(codeagent-explain)", "x") ~= "")
        assert(vim.fn.maparg("<Leader>aa", "n") == "", "no mapping unless asked for")
        assert(require("codeagent").statusline() == "")
        require("codeagent").setup({ keymaps = true })
        assert(vim.fn.maparg("<Leader>aa", "n") ~= "")
        io.write("fine")
        """
    )
    assert said == "fine"


def test_options_that_are_wrong_are_named_and_not_used() -> None:
    said = run_lua(
        """
        vim.g.codeagent = { prompts = "loud", transcript = { size = 0.3, colour = 1 }, nonsense = true }
        local config = require("codeagent.config")
        assert(config.get("prompts") == "auto" and config.get("transcript.size") == 0.3)
        io.write(table.concat(config.problems(), "\\n"))
        """
    )
    for part in ("`prompts`", "`transcript.colour`", "`nonsense`"):
        assert part in said
    assert len(said.splitlines()) == 3


OWN = "data/nvim/codeagent/server/bin/codeagent-lsp"  # where `:CodeAgent install` puts it


def test_the_server_is_looked_for_in_this_order(tmp_path: Path) -> None:
    for name in ("venv/bin/codeagent-lsp", "path/codeagent-lsp", OWN, "tools/uvx", "more/pipx"):
        program = tmp_path / name
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    said = run_lua(
        f"""
        local base, found = "{tmp_path}", {{}}
        local function look()
          local server = require("codeagent.server").find()
          table.insert(found, server and server.how or "none")
        end
        vim.g.codeagent = {{ cmd = {{ "mine" }} }}
        vim.env.VIRTUAL_ENV = base .. "/venv"
        vim.env.PATH = base .. "/path:" .. base .. "/tools:" .. base .. "/more"
        look()
        vim.g.codeagent = nil
        look()
        vim.env.VIRTUAL_ENV = nil
        look()
        vim.env.PATH = base .. "/tools:" .. base .. "/more"
        vim.env.XDG_DATA_HOME = base .. "/data"
        look()
        vim.env.XDG_DATA_HOME = base
        look()
        vim.env.PATH = base .. "/more"
        look()
        vim.env.PATH = base
        look()
        io.write(table.concat(found, ","))
        """
    )
    assert said == "option,virtual environment,PATH,own,uvx,pipx,none"


def test_without_a_server_it_is_offered_to_whoever_needs_one_and_nothing_breaks(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SOURCE)
    said = run_lua(
        f"""
        local told, asked = {{}}, {{}}
        vim.notify = function(message) table.insert(told, message) end
        vim.ui.select = function(items, options, done)
          table.insert(asked, options.prompt .. ": " .. options.format_item(items[1]))
          done(items[2])
        end
        vim.env.PATH, vim.env.VIRTUAL_ENV = "{tmp_path}", nil
        vim.env.XDG_DATA_HOME = "{tmp_path}"
        vim.cmd("runtime plugin/codeagent.lua")
        vim.cmd("filetype on")
        vim.lsp.enable("codeagent")
        vim.cmd.edit("{tmp_path}/a.py")
        vim.cmd("doautoall nvim.lsp.enable FileType")
        vim.cmd("CodeAgent run x")
        vim.cmd("CodeAgent")
        vim.cmd("CodeAgent install")
        vim.cmd("CodeAgent setup")
        vim.wait(100)
        io.write(table.concat(asked, "\\n"), "\\n", table.concat(require("codeagent.notify").all(), "\\n"))
        """
    )
    assert said.count("not on this machine yet.: Install it now") == 2, "for the command and for the menu"
    assert said.count(":CodeAgent install` gets it") == 4, "when the file is opened, and where it was not wanted"
    assert "Python 3.11 or newer is needed" in said


def test_a_selection_of_a_part_of_a_line_and_the_symbol_under_the_cursor(editor: Editor) -> None:
    played = editor.play(
        """
        local buffer = rig.open("a.py")
        local sent = {}
        local exec = rig.client.exec_cmd
        rig.client.exec_cmd = function(self, command, ...)
          table.insert(sent, command.arguments[1])
          return exec(self, command, ...)
        end
        vim.api.nvim_win_set_cursor(0, { 2, 11 })
        vim.cmd("normal! viw\\27")
        vim.cmd("'<,'>CodeAgent explain")
        rig.ended("completed")
        vim.api.nvim_win_set_cursor(0, { 6, 4 })
        vim.cmd("CodeAgent refactor shorter")
        rig.wait("the second run", 8000, function() return #rig.state().order == 2 end)
        rig.ended("completed")
        vim.cmd("5,6CodeAgent ask why?")
        rig.wait("the third run", 8000, function() return #rig.state().order == 3 end)
        rig.ended("completed")
        return { sent = vim.tbl_filter(function(item) return item.uri end, sent), text = rig.text(buffer) }
        """,
        files={"a.py": SOURCE},
        script=[{"text": "It is one."}, {"text": "```python\ndef two():\n    return 22\n```"}, {"text": "Because."}],
    )
    ranges = [item["range"] for item in played.found["sent"]]
    assert ranges[0] == {"start": {"line": 1, "character": 11}, "end": {"line": 1, "character": 12}}
    assert ranges[1]["start"] == ranges[1]["end"] == {"line": 5, "character": 4}
    assert ranges[2] == {"start": {"line": 4, "character": 0}, "end": {"line": 5, "character": 13}}
    assert played.found["sent"][1]["instruction"] == "shorter"
    assert played.found["text"] == SOURCE.replace("return 2\n", "return 22\n")


def test_the_server_is_told_the_diagnostics_of_the_editor(editor: Editor) -> None:
    played = editor.play(
        """
        local buffer = rig.open("a.py")
        vim.diagnostic.set(vim.api.nvim_create_namespace("lint"), buffer, {
          { lnum = 1, col = 14, end_lnum = 1, end_col = 15, message = "no such thing", source = "lint", severity = 1 },
        })
        local method = "codeagent/diagnostics"
        local params, context = { uri = vim.uri_from_bufnr(buffer) }, { client_id = rig.client.id }
        local answer = rig.client.handlers[method](nil, params, context)
        vim.cmd("CodeAgent run look")
        local run = rig.ended("completed")
        return { answer = answer, blocks = run.blocks, version = vim.lsp.util.buf_versions[buffer] }
        """,
        files={"a.py": SOURCE.replace("return 1", 'return "ä"')},
        script=[call("get_diagnostics", path="a.py"), {"text": "Seen."}],
    )
    answer = played.found["answer"]
    assert answer["version"] == played.found["version"]
    (item,) = answer["diagnostics"]
    assert item["message"] == "no such thing"
    assert item["range"]["start"] == {"line": 1, "character": 14}


def test_sessions_are_listed_continued_shown_and_deleted(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        """
        rig.open("a.py")
        vim.cmd("CodeAgent ask why?")
        rig.ended("completed")
        vim.cmd("CodeAgent sessions new")
        rig.heard("new session")
        local listed
        rig.choose = function(_, titles) listed = listed or titles return titles[1] end
        vim.cmd("CodeAgent sessions")
        rig.heard("Continued")
        rig.wait("the history", 5000, function() return rig.page("transcript"):find("Because.", 1, true) end)
        vim.cmd("CodeAgent sessions delete " .. rig.state().session_id)
        rig.wait("the question", 5000, function() return rig.prompts[#rig.prompts].titles[2] == "Delete" end)
        return { listed = listed }
        """,
        files={"a.py": SOURCE},
        script=[{"text": "Because."}],
    )
    assert "why?" in played.found["listed"][0]


def test_a_session_of_an_earlier_time_is_shown_as_it_was_and_its_changes_can_be_decided(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        """
        local buffer = rig.open("a.py")
        rig.choose = function() return nil end
        vim.cmd("CodeAgent run change it")
        rig.ended("completed")
        vim.cmd("CodeAgent transcript")
        local before = rig.page("transcript")
        require("codeagent.store").reset()
        require("codeagent.store").flush()
        rig.choose = function(_, titles) return titles[1] end
        vim.cmd("CodeAgent sessions")
        rig.heard("Continued")
        local after = rig.page("transcript")
        vim.cmd("CodeAgent review")
        rig.wait("the review", 10000, function() return vim.api.nvim_get_current_buf() == rig.own("review") end)
        rig.press("a")
        rig.wait("the new text", 8000, function() return rig.text(buffer):find("return 4", 1, true) end)
        return { before = before, after = after }
        """,
        files={"a.py": SOURCE},
        script=[edit("return 3", "return 4"), {"text": "Changed **it**."}],
    )
    before, after = (re.sub(r"\d+\.\d s", "", played.found[name]) for name in ("before", "after"))
    assert "✓ edit_file a.py" in after
    assert after == before


def test_pages_modes_and_the_menu(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        """
        rig.open("a.py")
        vim.cmd("CodeAgent doctor")
        rig.wait("the report", 25000, function() return rig.own("doctor") ~= nil end)
        local report = rig.page("doctor")
        rig.press("q")
        vim.cmd("CodeAgent mode readOnly")
        rig.heard("Mode: readOnly")
        vim.cmd("CodeAgent nonsense")
        rig.heard("Unknown")
        vim.cmd("CodeAgent messages")
        local messages = rig.page("messages")
        rig.press("q")
        rig.choose = function() return nil end
        vim.cmd("CodeAgent")
        return { report = report, messages = messages, menu = rig.prompts[#rig.prompts].titles,
          windows = #vim.api.nvim_tabpage_list_wins(0) }
        """,
        files={"a.py": SOURCE},
        script=[],
    )
    assert "✓ client" in played.found["report"]
    assert "Mode: readOnly" in played.found["messages"]
    assert any(title.startswith("undo") for title in played.found["menu"])
    assert not [title for title in played.found["menu"] if title.startswith(("review", "cancel"))], (
        "nothing to do it to"
    )
    assert played.found["windows"] == 1


def test_files_are_saved_after_an_accepted_change_when_that_is_set(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        """
        local buffer = rig.open("a.py")
        vim.cmd("CodeAgent run change it")
        rig.ended("completed")
        rig.wait("the saved file", 5000, function() return not vim.bo[buffer].modified end)
        return { outcome = rig.newest().outcome }
        """,
        files={"a.py": SOURCE},
        script=[edit("return 3", "return 4"), {"text": "Changed."}],
        settings={"edits": {"saveAfterApply": True}},
    )
    assert played.disk("a.py") == SOURCE.replace("return 3", "return 4")


def test_checkhealth_tells_what_works(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        """
        rig.open("a.py")
        vim.cmd("checkhealth codeagent")
        return { text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\\n") }
        """,
        files={"a.py": SOURCE},
        script=[],
        options={"nonsense": 1},
    )
    text = played.found["text"]
    for part in ("unknown option `nonsense`", "from: option", "positions in utf-8", "Neovim 0.11"):
        assert part in text, text
