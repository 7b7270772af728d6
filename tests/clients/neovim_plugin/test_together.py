"""The plugin in a real Neovim: words to a run at work, a queued task, the list of runs, the search, going back."""

from __future__ import annotations

from pathlib import Path

from tests.clients.neovim.support import MARKS, SOURCE, call, edit
from tests.clients.neovim_plugin.support import play

pytestmark = MARKS

CHOOSE = """
local function choosing(...)
  local wanted = { ... }
  vim.ui.select = function(items, options, done)
    local word = table.remove(wanted, 1)
    for _, item in ipairs(items) do
      local shown = options.format_item and options.format_item(item) or item
      if shown:find(word, 1, true) then return done(item) end
    end
    error("not offered: " .. word .. " in " .. vim.inspect(items))
  end
end
"""


def test_words_to_a_run_and_a_task_that_waits(tmp_path: Path) -> None:
    look = call("list_dir", path=".") | {"delay": 1.0}
    played = play(
        tmp_path,
        """
        rig.open("a.py")
        vim.cmd("CodeAgent run look around")
        rig.wait("the run", 8000, function() return require("codeagent").status() == "working" end)
        vim.cmd("CodeAgent steer and be brief")
        vim.cmd("CodeAgent run the next thing")
        rig.wait("both", 15000, function()
          local done = 0
          for _, run in pairs(require("codeagent.store").state().runs) do
            if run.status == "completed" then done = done + 1 end
          end
          return done == 2
        end)
        local rows
        require("codeagent.client").call("runs", {}, function(found) rows = found end)
        rig.wait("the list", 8000, function() return rows end)
        return { rows = rows, page = rig.page("transcript") }
        """,
        files={"a.py": SOURCE},
        script=[look, {"text": "Short.", "expect": "and be brief"}, {"text": "Next.", "expect": "the next thing"}],
    )
    assert {row["title"]: row["state"] for row in played.found["rows"]} == {
        "look around": "completed",
        "the next thing": "completed",
    }
    page = played.found["page"]
    assert [page.index(words) for words in ("look around", "> and be brief", "Short.", "the next thing", "Next.")]


def test_found_and_gone_back_to_before(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        CHOOSE
        + """
        local buffer = rig.open("a.py")
        vim.cmd("CodeAgent run change the number")
        rig.ended("completed")
        local changed = rig.text(buffer)
        choosing("change the number", "Go back to before it", "Changes and talk")
        vim.cmd("CodeAgent search number")
        rig.wait("the old text", 10000, function() return rig.text(buffer):find("return 1\\n", 1, true) end)
        return { changed = changed, text = rig.text(buffer) }
        """,
        files={"a.py": SOURCE},
        script=[edit("return 1", "return 10"), {"text": "Changed."}],
    )
    assert "return 10" in played.found["changed"]
    assert played.found["text"] == SOURCE
    assert played.disk("a.py") == SOURCE


def test_a_command_of_the_user_s_own(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "commands"
    folder.mkdir(parents=True)
    (tmp_path / "state").chmod(0o700)
    (folder / "greet.md").write_text("Greet $ARGUMENTS warmly.")
    played = play(
        tmp_path,
        CHOOSE
        + """
        rig.open("a.py")
        vim.cmd("CodeAgent command greet Ann")
        rig.ended("completed")
        choosing("/greet")
        vim.ui.input = function(_, done) done("Bob") end
        vim.cmd("CodeAgent command")
        rig.wait("both", 10000, function() return #vim.tbl_keys(require("codeagent.store").state().runs) == 2 end)
        rig.wait("the second", 10000, function()
          for _, run in pairs(require("codeagent.store").state().runs) do
            if run.status ~= "completed" then return false end
          end
          return true
        end)
        return { page = rig.page("transcript") }
        """,
        files={"a.py": SOURCE},
        script=[{"text": "Hi Ann.", "expect": "Greet Ann warmly."}, {"text": "Hi Bob.", "expect": "Greet Bob warmly."}],
    )
    assert "Hi Ann." in played.found["page"] and "Hi Bob." in played.found["page"]
