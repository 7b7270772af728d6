"""What is offered about the user's own edits: seen at its line, gone to, taken, refused, in several files."""

from __future__ import annotations

from pathlib import Path

from tests.clients.neovim.support import MARKS
from tests.clients.neovim_plugin.support import play, run_lua

pytestmark = MARKS

CALLS = "from lib import load\n\n\ndef one():\n    return load('a')\n\n\ndef two():\n    return load('b')\n\n\n"
MORE = "def three():\n    return load('c')\n"
FILES = {"a.py": CALLS + MORE, "b.py": CALLS.replace("'a'", "'x'"), "lib.py": "def load(name):\n    return name\n"}
EDITS = """
local offers = require("codeagent.offers")
local function strict(buffer, row)
  vim.api.nvim_buf_set_text(buffer, row, 19, row, 19, { ", strict=True" })
  vim.api.nvim_exec_autocmds("TextChanged", { buffer = buffer })
end
local function shown(buffer)
  local space = vim.api.nvim_get_namespaces()["codeagent.offers"]
  local marks = vim.api.nvim_buf_get_extmarks(buffer, space, 0, -1, { details = true })
  return vim.tbl_map(function(mark) return { mark[2], mark[4].virt_text[1][1], mark[4].virt_text[2][1] } end, marks)
end
"""


def test_it_is_seen_gone_to_and_put_up_for_review(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        EDITS
        + """
        local a = rig.open("a.py")
        strict(a, 4)
        strict(a, 8)
        rig.wait("the offer", 30000, function() return offers.count(a) == 1 end)
        local seen = shown(a)
        vim.cmd("CodeAgent offer go")
        local row = vim.api.nvim_win_get_cursor(0)[1]
        vim.cmd("CodeAgent offer accept")
        rig.ended("completed")
        rig.wait("no offer", 8000, function() return offers.count(a) == 0 end)
        local asked = #rig.prompts
        vim.cmd("CodeAgent offer")
        return { more = #rig.prompts - asked, seen = seen, row = row, text = rig.text(a) }
        """,
        files=FILES,
        script=[],
    )
    assert played.found["seen"] == [[12, " load(…) → load(…, strict=True): 1 more place ", ":CodeAgent offer"]]
    assert played.found["row"] == 13
    assert played.found["text"].count(", strict=True") == 3
    assert [prompt["titles"] for prompt in played.prompts] == [["Review", "Apply", "Discard"]]
    assert "Nothing is offered now." in played.told
    assert played.found["more"] == 0, "there is nothing to choose"
    assert played.disk("a.py") == FILES["a.py"]


def test_it_is_seen_in_each_file_and_refused_in_all(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        EDITS
        + """
        local a = rig.open("a.py")
        vim.cmd.split()
        local b = rig.open("b.py")
        strict(a, 4)
        strict(b, 4)
        rig.wait("both offers", 30000, function() return offers.count(a) == 1 and offers.count(b) == 1 end)
        vim.cmd.only()
        rig.open("lib.py")
        vim.cmd("CodeAgent offer go")
        local there = vim.fs.basename(vim.api.nvim_buf_get_name(0))
        vim.cmd("CodeAgent offer dismiss")
        rig.wait("no offer", 8000, function() return offers.count(a) + offers.count(b) == 0 end)
        return { there = there }
        """,
        files=FILES,
        script=[],
    )
    assert played.found["there"] in ("a.py", "b.py"), "where something is offered"
    assert played.disk("b.py") == FILES["b.py"]


def test_switched_off_nothing_is_shown(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        EDITS
        + """
        local a = rig.open("a.py")
        local refreshed = false
        local changed = rig.client.handlers["workspace/codeLens/refresh"]
        rig.client.handlers["workspace/codeLens/refresh"] = function(...)
          refreshed = true
          return changed(...)
        end
        strict(a, 4)
        strict(a, 8)
        rig.wait("the offer", 30000, function() return refreshed end)
        vim.wait(300)
        return { seen = #shown(a) }
        """,
        files=FILES,
        script=[],
        options={"offers": False},
    )
    assert played.found["seen"] == 0


def test_the_keys_of_the_user_are_named() -> None:
    code = """
    vim.keymap.set("n", "<Leader>o", "<Plug>(codeagent-offer-accept)")
    io.write(tostring(require("codeagent.keymaps").key("offer-accept")))
    """
    assert run_lua(code) == "\\o"
