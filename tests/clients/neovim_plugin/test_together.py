"""The plugin in a real Neovim: words to a run at work, a queued task, the list of runs, the search, going back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.neovim.support import MARKS, SOURCE, call, edit, with_hook_and_picture
from tests.clients.neovim_plugin.support import Editor, play

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


@pytest.mark.volume
def test_words_to_a_run_and_a_task_that_waits(tmp_path: Path) -> None:
    look = call("list_dir", path=".") | {"delay": 3.0}
    played = play(
        tmp_path,
        """
        rig.open("a.py")
        vim.cmd("CodeAgent run look around")
        rig.wait("the run", 20000, function() return require("codeagent").status() == "working" end)
        vim.cmd("CodeAgent steer and be brief")
        vim.cmd("CodeAgent run the next thing")
        rig.wait("both to be acknowledged", 2500, function()
          local page = rig.page("transcript")
          return page:find("> and be brief\\n  … heard with its next step", 1, true)
            and page:find("## the next thing\\n  … queued", 1, true)
        end)
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
    places = [page.index(words) for words in ("look around", "> and be brief", "Short.", "the next thing", "Next.")]
    assert places == sorted(places) and "…" not in page


def test_trust_in_what_the_workspace_brings(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        CHOOSE
        + """
        rig.open("a.py")
        choosing("Trust all of this")
        vim.cmd("CodeAgent trust")
        rig.ended("completed")
        local rows
        require("codeagent.client").call("trust.list", {}, function(found) rows = found end)
        rig.wait("the list", 8000, function() return rows end)
        rig.heard("Trusted: the skill pdf, the command /fix.")
        return { rows = rows }
        """,
        files={
            "a.py": SOURCE,
            ".claude/skills/pdf/SKILL.md": "---\nname: pdf\ndescription: reads PDF files\n---\nDo it well.\n",
            ".claude/commands/fix.md": "Fix it.\n",
        },
        script=[],
    )
    assert [(row["name"], row["trusted"]) for row in played.found["rows"]] == [("pdf", True), ("fix", True)]


@pytest.mark.volume
def test_found_and_gone_back_to_before(editor: Editor) -> None:
    played = editor.play(
        CHOOSE
        + """
        local buffer = rig.open("a.py")
        vim.cmd("CodeAgent run change the number")
        rig.ended("completed")
        local changed = rig.text(buffer)
        choosing("change the number", "Go back to before it", "Changes and talk")
        vim.cmd("CodeAgent search number")
        rig.wait("the old text", 10000, function() return rig.text(buffer):find("return 1\\n", 1, true) end)
        rig.wait("the mark", 5000, function() return rig.page("transcript"):find("↶", 1, true) end)
        return { changed = changed, text = rig.text(buffer), page = rig.page("transcript") }
        """,
        files={"a.py": SOURCE},
        script=[edit("return 1", "return 10"), {"text": "Changed."}],
    )
    assert "return 10" in played.found["changed"]
    assert "## change the number\n  ↶ taken back: its changes and its talk\n" in played.found["page"]
    assert played.found["text"] == SOURCE
    assert played.disk("a.py") == SOURCE


@pytest.mark.volume
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


def test_a_hook_a_mention_a_background_server_and_a_picture(tmp_path: Path) -> None:
    """The formatter of a project, trusted once; what it formats is in the buffer, the disk is as it was."""
    with_hook_and_picture(tmp_path / "ws")
    played = play(
        tmp_path,
        """
        rig.choose = function(_, titles)
          for _, wanted in ipairs({ "Trust this content", "Apply" }) do
            if vim.tbl_contains(titles, wanted) then return wanted end
          end
        end
        local buffer = rig.open("a.py")
        vim.cmd("CodeAgent run serve what @a.py:1-2 says")
        rig.ended("completed")
        rig.wait("the text", 8000, function() return rig.text(buffer):find("x = 4", 1, true) end)
        local page = rig.page("transcript")
        vim.cmd("CodeAgent run what is in @shot.png")
        rig.wait("the second", 8000, function() return #rig.state().order == 2 end)
        rig.ended("failed")
        return { text = rig.text(buffer), page = page, failed = rig.page("transcript") }
        """,
        files={"a.py": SOURCE + "x = 3\n"},
        script=[
            call("run_cmd", command="echo serving; sleep 76.5", background=True, ready="serving")
            | {"expect": "a.py, lines 1-2, as they are now"},
            call("run_beside", command="cat a.py", id="bg1"),
            edit("x = 3", "x=4"),
            {"text": "Served."},
        ],
    )
    assert played.found["text"] == SOURCE + "x = 4\n"
    assert played.disk("a.py") == SOURCE + "x = 3\n"
    assert ["Trust this content" in prompt["titles"] for prompt in played.prompts] == [True, False]
    assert "sed -i" in played.prompts[0]["prompt"]
    page = played.found["page"]
    assert page.index("run_cmd") < page.index("run_beside") < page.index("Served.")
    assert "serving" in page, "what it printed is in the transcript"
    assert "does not see pictures" in played.found["failed"]


def test_a_session_from_before_a_run(editor: Editor) -> None:
    played = editor.play(
        CHOOSE
        + """
        rig.open("a.py")
        vim.cmd("CodeAgent run the first")
        rig.ended("completed")
        vim.cmd("CodeAgent run the second")
        rig.wait("both", 10000, function() return #rig.state().order == 2 and rig.newest().status == "completed" end)
        choosing("the second")
        vim.cmd("CodeAgent fork")
        rig.heard("Continued: ")
        local page = rig.page("transcript")
        vim.cmd("CodeAgent run and on")
        rig.wait("all", 10000, function() return #rig.state().order == 4 and rig.newest().status == "completed" end)
        local sessions = {}
        for _, id in ipairs(rig.state().order) do table.insert(sessions, rig.state().runs[id].session_id) end
        return { forked = page, page = rig.page("transcript"), sessions = sessions }
        """,
        files={"a.py": SOURCE},
        script=[{"text": "One."}, {"text": "Two."}, {"text": "Three."}],
    )
    forked, page = played.found["forked"], played.found["page"]
    assert "One." in forked and "Two." not in forked, "what it began with is shown, and nothing later"
    assert "One." in page and "Three." in page
    assert len(set(played.found["sessions"])) == 2
