"""Changes that wait, shown in the code of a real Neovim: where they stand, how they look, and what keys do to them."""

from __future__ import annotations

from tests.clients.neovim.support import MARKS, SOURCE, call, edit
from tests.clients.neovim_plugin.support import Editor, run_lua

pytestmark = MARKS

SHOWN = """
local function shown(buffer)
  local found = {}
  local space = vim.api.nvim_get_namespaces()["codeagent.hunks"]
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buffer, space, 0, -1, { details = true })) do
    local details = mark[4]
    if details.line_hl_group then table.insert(found, { mark[2], "-" }) end
    for _, line in ipairs(details.virt_lines or {}) do
      local words = vim.iter(line):map(function(piece) return piece[1] end):join("")
      local groups = vim.iter(line):map(function(piece) return piece[2] end):flatten():totable()
      table.insert(found, { mark[2], "+" .. vim.trim(words), vim.tbl_contains(groups, "pythonNumber"),
        details.virt_lines_above or false })
    end
  end
  return found
end
local function waiting(buffer, count)
  rig.wait(count .. " hunks", 20000, function() return require("codeagent.hunks").count(buffer) == count end)
end
"""
TWO = [edit("def one", "# first\ndef one"), edit("return 3", "return 30"), {"text": "Changed."}]


def test_in_a_narrow_window_the_keys_hide_nothing_of_the_code(editor: Editor) -> None:
    played = editor.play(
        SHOWN
        + """
        local buffer = rig.open("a.py")
        rig.choose = function() return nil end
        vim.cmd("CodeAgent run change it")
        waiting(buffer, 2)
        rig.ended("completed")
        vim.cmd("only")
        local before = vim.o.columns
        vim.o.columns = 28
        vim.cmd("CodeAgent hunk next")
        vim.cmd.redraw()
        local rows = {}
        for row = 1, vim.o.lines do
          local line = {}
          for column = 1, vim.o.columns do
            line[column] = vim.fn.screenstring(row, column)
          end
          rows[row] = table.concat(line)
        end
        vim.o.columns = before
        return { screen = table.concat(rows, "\\n") }
        """,
        files={"a.py": SOURCE},
        script=TWO,
    )
    assert "    return 3 " in played.found["screen"], "and not only the line that would come"
    assert "2/2" in played.found["screen"]


def test_changes_stand_in_the_code_and_each_is_decided_where_it_stands(editor: Editor) -> None:
    played = editor.play(
        SHOWN
        + """
        vim.cmd("syntax on")
        local buffer = rig.open("a.py")
        rig.choose = function() return nil end
        vim.cmd("CodeAgent run change it")
        waiting(buffer, 2)
        local first, text = shown(buffer), rig.text(buffer)
        rig.ended("completed")
        vim.api.nvim_buf_set_lines(buffer, 0, 0, true, { "# mine", "" })
        vim.api.nvim_win_set_cursor(0, { 1, 0 })
        vim.cmd("CodeAgent hunk next")
        vim.cmd("CodeAgent hunk next")
        local second = vim.api.nvim_win_get_cursor(0)[1]
        vim.cmd("CodeAgent hunk accept")
        waiting(buffer, 1)
        local accepted = rig.text(buffer)
        vim.cmd("CodeAgent hunk next")
        local place = vim.api.nvim_win_get_cursor(0)[1]
        vim.cmd("CodeAgent hunk discard")
        waiting(buffer, 0)
        vim.cmd("CodeAgent hunk accept")
        rig.heard("no change under the cursor")
        return { first = first, text = text, second = second, accepted = accepted, place = place, left = shown(buffer),
          last = rig.text(buffer) }
        """,
        files={"a.py": SOURCE},
        script=TWO,
    )
    found = played.found
    assert found["text"] == SOURCE, "nothing is written before it is accepted"
    assert found["first"] == [[0, "+# first", False, True], [9, "-"], [9, "+return 30", True, False]]
    assert found["second"] == 12
    mine = "# mine\n\n"
    assert found["accepted"] == found["last"] == mine + SOURCE.replace("return 3", "return 30")
    assert found["place"] == 2, "the line that it stands below"
    assert not found["left"]


def test_where_changes_of_two_runs_stand_each_names_its_task(editor: Editor) -> None:
    played = editor.play(
        SHOWN
        + """
        local buffer = rig.open("a.py")
        rig.choose = function() return nil end
        local function hint(row)
          vim.api.nvim_win_set_cursor(0, { row, 0 })
          vim.api.nvim_exec_autocmds("CursorMoved", { buffer = buffer })
          local space = vim.api.nvim_get_namespaces()["codeagent.hunks.hint"]
          local mark = vim.api.nvim_buf_get_extmarks(buffer, space, 0, -1, { details = true })[1]
          return mark and mark[4].virt_text[1][1] or ""
        end
        vim.cmd("CodeAgent run the first")
        waiting(buffer, 1)
        rig.ended("completed")
        local alone = hint(2)
        vim.cmd("CodeAgent run the second")
        waiting(buffer, 2)
        rig.ended("completed")
        return { alone = alone, one = hint(2), two = hint(10) }
        """,
        files={"a.py": SOURCE},
        script=[edit("return 1", "return 10"), {"text": "1."}, edit("return 3", "return 30"), {"text": "2."}],
    )
    assert " ".join(played.found["alone"].split()) == "1/1 :CodeAgent hunk"
    assert " ".join(played.found["one"].split()) == "1/2 the first :CodeAgent hunk"
    assert " ".join(played.found["two"].split()) == "2/2 the second :CodeAgent hunk"


def test_a_file_that_is_opened_later_has_them_and_is_decided_about_whole(editor: Editor) -> None:
    played = editor.play(
        SHOWN
        + """
        local other = rig.open("a.py")
        rig.choose = function() return nil end
        vim.cmd("CodeAgent run change it")
        rig.ended("completed")
        vim.api.nvim_set_current_buf(other)
        vim.cmd.edit("b.py")
        local buffer = vim.api.nvim_get_current_buf()
        waiting(buffer, 2)
        vim.cmd("CodeAgent hunk next")
        vim.cmd("CodeAgent hunk accept-file")
        waiting(buffer, 0)
        rig.wait("the text", 5000, function() return rig.text(buffer):find("return 30", 1, true) end)
        vim.cmd.edit("gone.py")
        local gone = vim.api.nvim_get_current_buf()
        waiting(gone, 1)
        local marked = shown(gone)
        vim.cmd("CodeAgent hunk next")
        vim.cmd("CodeAgent hunk discard")
        waiting(gone, 0)
        return { text = rig.text(buffer), marked = marked, staged = require("codeagent").statusline() }
        """,
        files={"a.py": "x = 1\n", "b.py": SOURCE, "gone.py": "y = 1\nz = 2\n"},
        script=[
            edit("def one", "# first\ndef one", "b.py"),
            edit("return 3", "return 30", "b.py"),
            call("delete_file", path="gone.py"),
            {"text": "Changed."},
        ],
    )
    assert played.found["text"] == SOURCE.replace("def one", "# first\ndef one").replace("return 3", "return 30")
    assert played.found["marked"] == [[0, "-"], [1, "-"]]
    assert played.found["staged"] == ""


def test_with_the_option_off_nothing_is_shown_in_the_code(editor: Editor) -> None:
    played = editor.play(
        """
        vim.g.codeagent = vim.tbl_extend("force", vim.g.codeagent, { review = { inline = false } })
        local buffer = rig.open("a.py")
        rig.choose = function() return nil end
        vim.cmd("CodeAgent run change it")
        rig.ended("completed")
        vim.wait(400)
        local count = require("codeagent.hunks").count(buffer)
        vim.g.codeagent = vim.tbl_extend("force", vim.g.codeagent, { review = { inline = true } })
        return { count = count }
        """,
        files={"a.py": SOURCE},
        script=TWO,
    )
    assert played.found["count"] == 0


def test_lines_are_coloured_by_a_tree_or_by_a_syntax_file_and_never_too_many() -> None:
    said = run_lua(
        """
        vim.cmd("syntax on")
        local colours = require("codeagent.colours")
        local function first(lines, filetype)
          local span = (colours.of(lines, filetype)[1] or {})[1]
          return span and (span.from .. "-" .. span.to .. " " .. span.group) or "none"
        end
        local many = {}
        for number = 1, 2000 do many[number] = "local x = 1" end
        io.write(table.concat({ first({ "local x = 1" }, "lua"), first({ "import os" }, "python"),
          first({ "import os" }, ""), first(many, "lua"), first({ "x" }, "no such type") }, "|"))
        """
    )
    assert said == "0-5 @keyword.lua|0-6 pythonInclude|none|none|none"
