"""The plugin in a real Neovim: a task from the first key to the last decision, and everything that can come between."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.clients.neovim.support import MARKS, SOURCE, call, edit
from tests.clients.neovim_plugin.support import Editor, play

pytestmark = MARKS

BOTH = [edit("return 1", "return 10"), edit("return 3", "return 30"), {"text": "I changed **two** functions."}]


def test_a_task_is_run_shown_and_applied(editor: Editor) -> None:
    played = editor.play(
        """
        local buffer = rig.open("a.py")
        local seen = {}
        vim.api.nvim_create_autocmd("User", { pattern = "CodeAgent*", callback = function(event)
          seen[event.match] = (seen[event.match] or 0) + 1
        end })
        vim.cmd("CodeAgent run change it")
        local run = rig.ended("completed")
        return {
          text = rig.text(buffer), page = rig.page("transcript"), outcome = run.outcome, seen = seen,
          focus = vim.api.nvim_get_current_buf() == buffer, windows = #vim.api.nvim_tabpage_list_wins(0),
          status = require("codeagent").status(), line = require("codeagent").statusline(),
        }
        """,
        files={"a.py": SOURCE},
        script=[{"text": "First I look."} | call("read_file", path="a.py"), *BOTH],
    )
    assert played.found["text"] == SOURCE.replace("return 1", "return 10").replace("return 3", "return 30")
    assert played.disk("a.py") == SOURCE
    assert played.found["outcome"] == "full"
    page = played.found["page"]
    said = ["## change it", "First I look.", "✓ read_file a.py", "✓ edit_file a.py", "I changed **two**", "✓ Applied"]
    places = [page.index(words) for words in said]
    assert places == sorted(places), page
    assert page.count("I changed") == 1
    assert played.found["focus"]
    assert played.found["windows"] == 2
    assert played.found["status"] == "idle"
    assert played.found["line"] == ""
    for pattern in ("RunStarted", "RunCompleted", "Waiting", "ChangesProposed", "ChangesApplied", "Changed"):
        assert played.found["seen"].get(f"CodeAgent{pattern}"), pattern
    assert [prompt["titles"] for prompt in played.prompts] == [["Review", "Apply", "Discard"]]


def test_a_review_accepts_one_hunk_and_discards_the_other_and_undo_takes_it_back(editor: Editor) -> None:
    played = editor.play(
        """
        local buffer = rig.open("a.py")
        rig.choose = function(_, titles) return titles[1] end
        vim.cmd("CodeAgent run change it")
        rig.wait("the review", 10000, function() return vim.api.nvim_get_current_buf() == rig.own("review") end)
        local first = rig.page("review")
        local waiting = require("codeagent").status()
        rig.press("a")
        rig.wait("one hunk less", 8000, function() return not rig.page("review"):find("return 10", 1, true) end)
        local second = rig.page("review")
        local between = rig.text(buffer)
        rig.press("x")
        rig.wait("the end of the review", 8000, function() return vim.api.nvim_get_current_buf() == buffer end)
        rig.ended("completed")
        local decided = rig.text(buffer)
        vim.cmd("CodeAgent undo")
        rig.wait("the undo", 8000, function() return rig.page("transcript"):find("Undone", 1, true) end)
        return { first = first, second = second, between = between, decided = decided, waiting = waiting,
          undone = rig.text(buffer), tabs = #vim.api.nvim_list_tabpages(), page = rig.page("transcript") }
        """,
        files={"a.py": SOURCE},
        script=BOTH,
    )
    assert "+    return 10" in played.found["first"]
    assert re.search(r"@@ a\.py#[0-9a-f]{8}$", played.found["first"], re.MULTILINE)
    assert "+    return 30" in played.found["second"]
    assert played.found["waiting"] == "waiting"
    assert played.found["between"] == played.found["decided"] == SOURCE.replace("return 1", "return 10")
    assert played.found["undone"] == SOURCE
    assert played.found["tabs"] == 1
    assert "✗ Discarded: a.py" in played.found["page"]
    assert "↶ Undone: a.py" in played.found["page"]


@pytest.mark.volume
def test_one_file_of_a_run_is_taken_back(editor: Editor) -> None:
    played = editor.play(
        """
        rig.choose = function(_, titles) return titles[2] end
        local one, other = rig.open("a.py"), rig.open("b c.py")
        vim.cmd("CodeAgent run change both")
        rig.ended("completed")
        vim.cmd("CodeAgent undo %")
        rig.wait("the undo", 8000, function() return rig.page("transcript"):find("Undone", 1, true) end)
        local first = { rig.text(one), rig.text(other) }
        vim.cmd("CodeAgent undo a.py")
        rig.wait("the other", 8000, function() return not rig.text(one):find("return 10", 1, true) end)
        return { first = first, second = { rig.text(one), rig.text(other) } }
        """,
        files={"a.py": SOURCE, "b c.py": SOURCE},
        script=[
            edit("return 1\n", "return 10\n"),
            edit("return 1\n", "return 10\n", "b c.py"),
            {"text": "Done."},
        ],
    )
    changed = SOURCE.replace("return 1", "return 10")
    assert played.found["first"] == [changed, SOURCE]
    assert played.found["second"] == [SOURCE, SOURCE]


def test_a_review_that_is_closed_keeps_the_changes_and_says_how_to_come_back(editor: Editor) -> None:
    played = editor.play(
        """
        local buffer = rig.open("a.py")
        rig.choose = function(_, titles) return titles[1] end
        vim.cmd("CodeAgent run change it")
        rig.wait("the review", 10000, function() return vim.api.nvim_get_current_buf() == rig.own("review") end)
        rig.press("q")
        rig.heard("still wait")
        rig.ended("completed")
        local line = require("codeagent").statusline()
        vim.cmd("CodeAgent review")
        rig.wait("the review again", 8000, function() return vim.api.nvim_get_current_buf() == rig.own("review") end)
        rig.press("]c")
        local row = vim.api.nvim_get_current_line()
        rig.press("<CR>")
        local place = { vim.api.nvim_buf_get_name(0), vim.api.nvim_win_get_cursor(0)[1] }
        vim.cmd("CodeAgent apply")
        rig.wait("the new text", 8000, function() return rig.text(buffer):find("return 30", 1, true) end)
        return { line = line, row = row, place = place, text = rig.text(buffer) }
        """,
        files={"a.py": SOURCE},
        script=BOTH,
    )
    assert played.found["line"].startswith("±")
    assert re.search(r" a\.py#[0-9a-f]{8}$", played.found["row"])
    assert played.found["place"][0].endswith("/a.py")
    assert played.found["place"][1] == 7
    assert played.found["text"] == SOURCE.replace("return 1", "return 10").replace("return 3", "return 30")


def test_a_review_is_opened_once_and_files_that_nobody_sees_are_told_and_written(editor: Editor) -> None:
    played = editor.play(
        """
        rig.open("a.py")
        rig.choose = function(_, titles) return titles[1] end
        vim.cmd("CodeAgent run change both")
        rig.wait("the review", 20000, function() return vim.api.nvim_get_current_buf() == rig.own("review") end)
        vim.cmd("tabprevious")
        vim.cmd("CodeAgent pending")
        rig.wait("the review again", 5000, function() return vim.api.nvim_get_current_buf() == rig.own("review") end)
        local tabs, windows = #vim.api.nvim_list_tabpages(), #vim.fn.win_findbuf(rig.own("review"))
        rig.press("ga")
        rig.ended("completed")
        rig.heard(":CodeAgent write or :wa saves: b.py")
        local line = require("codeagent").statusline()
        vim.cmd("CodeAgent write")
        rig.heard("Written: b.py, new.py")
        return { tabs = tabs, windows = windows, line = line, modified = vim.bo[vim.fn.bufnr("b.py")].modified }
        """,
        files={"a.py": SOURCE, "b.py": "x = 1\n"},
        script=[
            edit("return 1", "return 10"),
            edit("x = 1", "x = 2", "b.py"),
            call("write_file", path="new.py", content="y = 1\n"),
            {"text": "Three files."},
        ],
    )
    assert played.found == {"tabs": 2, "windows": 1, "line": "", "modified": False}
    assert (played.disk("a.py"), played.disk("b.py"), played.disk("new.py")) == (SOURCE, "x = 2\n", "y = 1\n")


@pytest.mark.volume
def test_failed_tests_are_a_failed_call_whose_output_is_opened_and_the_index_is_no_run(editor: Editor) -> None:
    played = editor.play(
        """
        rig.open("a.py")
        rig.choose = function() return nil end
        vim.api.nvim_exec_autocmds("LspProgress", { data = { client_id = rig.client.id, params = {
          token = "codeagent-index-1", value = { kind = "begin", title = "Indexing the code" } } } })
        local indexing = require("codeagent").statusline()
        vim.cmd("CodeAgent run try it")
        rig.ended("completed")
        local closed = rig.page("transcript")
        vim.api.nvim_set_current_win(vim.fn.bufwinid(rig.own("transcript")))
        vim.fn.search("run_tests")
        rig.press("<Tab>")
        local opened = rig.page("transcript")
        rig.press("<Tab>")
        return { indexing = indexing, closed = closed, opened = opened, again = rig.page("transcript"),
          line = require("codeagent").statusline() }
        """,
        files={"a.py": SOURCE, "test_a.py": "def test_it():\n    assert False\n"},
        script=[call("run_tests"), {"text": "They fail."}],
    )
    found = played.found
    assert found["indexing"] == found["line"] == ""
    assert "✗ run_tests\n      1 failed in" in found["closed"]
    assert "      │ FAILED test_a.py::test_it" in found["opened"]
    assert found["again"] == found["closed"]


def test_keys_pressed_while_a_decision_is_on_its_way_count(editor: Editor) -> None:
    lines = [f"line{number} = {number}" for number in range(1, 41)]
    places = (5, 15, 25, 35)
    played = editor.play(
        """
        local buffer = rig.open("a.py")
        rig.choose = function(_, titles) return titles[1] end
        vim.cmd("CodeAgent run change it")
        rig.wait("the review", 10000, function() return vim.api.nvim_get_current_buf() == rig.own("review") end)
        for _, keys in ipairs({ "a", "]c", "x", "]c", "a" }) do rig.press(keys) end
        rig.wait("one left", 8000, function()
          local page = rig.page("review")
          return not page:find("new5", 1, true) and not page:find("new15", 1, true) and not page:find("new25", 1, true)
        end)
        return { page = rig.page("review"), text = rig.text(buffer) }
        """,
        files={"a.py": "\n".join(lines) + "\n"},
        script=[
            {"tool_calls": [edit(f"line{at} = {at}", f"new{at} = {at}")["tool_calls"][0] for at in places]},
            {"text": "Four places."},
        ],
    )
    for at in (5, 25):
        lines[at - 1] = f"new{at} = {at}"
    assert played.found["text"] == "\n".join(lines) + "\n"
    assert "+new35 = 35" in played.found["page"]


@pytest.mark.volume
def test_whole_files_and_new_files_are_decided(editor: Editor) -> None:
    played = editor.play(
        """
        local buffer = rig.open("a.py")
        rig.choose = function(_, titles) return titles[1] end
        vim.cmd("CodeAgent run change it")
        rig.wait("the review", 10000, function() return vim.api.nvim_get_current_buf() == rig.own("review") end)
        rig.press("X")
        rig.wait("one file less", 8000, function() return not rig.page("review"):find("a.py", 1, true) end)
        rig.press("a")
        rig.heard("as a whole")
        rig.press("A")
        rig.wait("the end of the review", 8000, function() return vim.fn.bufwinid(rig.own("review")) < 0 end)
        rig.wait("the new file", 8000, function() return vim.fn.bufnr("new.py") > 0 end)
        return { text = rig.text(buffer), new = rig.text(vim.fn.bufnr("new.py")) }
        """,
        files={"a.py": SOURCE},
        script=[
            edit("return 1", "return 10"),
            call("write_file", path="new.py", content="x = 1\n"),
            {"text": "Two files."},
        ],
    )
    assert played.found == {"text": SOURCE, "new": "x = 1\n"}


@pytest.mark.volume
def test_questions_are_answered_by_choice_and_in_words(editor: Editor) -> None:
    played = editor.play(
        """
        rig.open("a.py")
        local answers = { "Blue", "Something else…" }
        rig.choose = function() return table.remove(answers, 1) end
        rig.write = function(prompt) return prompt:find("name", 1, true) and "Ada" or "Lilac" end
        vim.cmd("CodeAgent run ask me")
        rig.ended("completed")
        return { page = rig.page("transcript") }
        """,
        files={"a.py": SOURCE},
        script=[
            call("AskUser", questions=[{"text": "Which colour?", "options": ["Red", "Blue"]}], format="single"),
            call("AskUser", questions=[{"text": "Which name?"}], format="single"),
            call("AskUser", questions=[{"text": "Which shade?", "options": ["Light", "Dark"]}], format="single"),
            {"text": "Fine."},
        ],
    )
    assert "? The agent asks: Which shade?\n    → Lilac" in played.found["page"]
    assert "? The agent asks: Which colour?\n    → Blue" in played.found["page"]
    assert "? The agent asks: Which name?\n    → Ada" in played.found["page"]


def test_a_cancel_ends_the_run_within_a_second_and_keeps_what_was_staged(editor: Editor) -> None:
    played = editor.play(
        """
        local buffer = rig.open("a.py")
        vim.cmd("CodeAgent run change it")
        rig.wait("an edit", 8000, function() return rig.newest() and next(rig.newest().staged) end)
        local before = vim.uv.hrtime()
        vim.cmd("CodeAgent cancel")
        rig.ended("cancelled")
        local seconds = (vim.uv.hrtime() - before) / 1e9
        local line = require("codeagent").statusline()
        vim.cmd("CodeAgent discard")
        rig.heard("Discarded: change it")
        rig.wait("nothing staged", 5000, function() return not next(rig.newest().staged) end)
        return { seconds = seconds, line = line, text = rig.text(buffer), after = require("codeagent").statusline() }
        """,
        files={"a.py": SOURCE},
        script=[edit("return 3", "return 4"), {"text": "Slow.", "delay": 20}],
    )
    assert played.found["seconds"] < 10, "it does not wait for the words"
    assert played.found["line"] == "± changes to review (1)"
    assert played.found["after"] == ""
    assert played.found["text"] == SOURCE


def test_a_crash_is_told_and_a_restart_brings_the_session_back(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        """
        local buffer = rig.open("a.py")
        rig.choose = function() return nil end
        vim.cmd("CodeAgent run change it")
        rig.ended("completed")
        vim.api.nvim_buf_set_lines(buffer, 0, 0, true, { "# mine" })
        vim.uv.kill(rig.server_process(), "sigkill")
        rig.heard("ended unexpectedly (signal 9)")
        vim.cmd("CodeAgent restart")
        rig.heard("has been restarted")
        rig.heard("The session is back. Waiting for you: 1")
        rig.wait("the changes in the code", 8000, function() return require("codeagent.hunks").count(buffer) == 1 end)
        rig.choose = function(_, titles) return titles[1] end
        vim.cmd("CodeAgent review")
        rig.wait("the review", 10000, function() return vim.api.nvim_get_current_buf() == rig.own("review") end)
        rig.press("a")
        rig.wait("the new text", 8000, function() return rig.text(buffer):find("return 4", 1, true) end)
        return { text = rig.text(buffer), clients = #vim.lsp.get_clients({ name = "codeagent" }) }
        """,
        files={"a.py": SOURCE},
        script=[edit("return 3", "return 4"), {"text": "Changed."}],
    )
    assert played.found["text"] == "# mine\n" + SOURCE.replace("return 3", "return 4")
    assert played.found["clients"] == 1


def test_who_waits_for_an_answer_hears_that_the_server_has_ended(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        """
        rig.open("a.py")
        local heard
        vim.uv.kill(rig.server_process(), "sigstop")
        require("codeagent.client").call("pending", {}, nil, function(message) heard = message end)
        vim.uv.kill(rig.server_process(), "sigkill")
        rig.wait("word of it", 8000, function() return heard ~= nil end)
        return { heard = heard }
        """,
        files={"a.py": SOURCE},
        script=[],
    )
    assert played.found["heard"] == "The server does not answer."


def test_what_waits_from_before_the_start_stands_in_the_code_again(tmp_path: Path) -> None:
    script = [edit("return 3", "return 4"), {"text": "Changed."}]
    play(
        tmp_path,
        """
        rig.open("a.py")
        rig.choose = function() return nil end
        vim.cmd("CodeAgent run change it")
        rig.ended("completed")
        """,
        files={"a.py": SOURCE},
        script=script,
    )
    played = play(
        tmp_path,
        """
        local buffer = rig.open("a.py")
        rig.wait("the change in the code", 20000, function() return require("codeagent.hunks").count(buffer) == 1 end)
        local before = require("codeagent").statusline()
        vim.cmd("CodeAgent hunk next")
        vim.cmd("CodeAgent hunk accept")
        rig.wait("the new text", 8000, function() return rig.text(buffer):find("return 4", 1, true) end)
        rig.wait("the decision", 8000, function() return require("codeagent").statusline() == "" end)
        return { before = before }
        """,
        files={"a.py": SOURCE},
        script=[],
    )
    assert played.found["before"] == "± changes to review (1)"


def test_a_crash_in_the_middle_of_a_run_ends_it_here_too(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        """
        rig.open("a.py")
        vim.cmd("CodeAgent run change it")
        rig.wait("an edit", 8000, function() return rig.newest() and next(rig.newest().staged) end)
        vim.uv.kill(rig.server_process(), "sigkill")
        rig.ended("lost")
        return { page = rig.page("transcript"), status = require("codeagent").status() }
        """,
        files={"a.py": SOURCE},
        script=[edit("return 3", "return 4"), {"text": "Slow.", "delay": 20}],
    )
    assert "■ The server ended while this was at work." in played.found["page"]
    assert played.found["status"] == "error"


def test_a_restart_of_a_server_that_works_is_quiet_about_its_end(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        """
        local buffer = rig.open("a.py")
        local before = rig.client.id
        vim.cmd("CodeAgent restart")
        rig.heard("has been restarted")
        local now = vim.lsp.get_clients({ name = "codeagent" })
        return { changed = now[1].id ~= before, count = #now, attached = vim.lsp.buf_is_attached(buffer, now[1].id) }
        """,
        files={"a.py": SOURCE},
        script=[],
    )
    assert played.found == {"changed": True, "count": 1, "attached": True}
    assert not [words for words in played.told if "unexpectedly" in words]


def test_a_plan_is_shown_with_its_steps_as_they_go_and_reviewed_step_by_step(editor: Editor) -> None:
    steps = [{"title": "First thing", "description": "one"}, {"title": "Second thing", "description": "three"}]
    played = editor.play(
        """
        local buffer = rig.open("a.py")
        rig.choose = function(_, titles) return vim.tbl_contains(titles, "Start") and "Start" or titles[1] end
        vim.cmd("CodeAgent! run change it")
        rig.wait("the review of the first step", 15000, function()
          return vim.api.nvim_get_current_buf() == rig.own("review")
        end)
        local prompts = #rig.prompts
        rig.choose = function(_, titles) return vim.tbl_contains(titles, "Apply") and "Apply" or nil end
        rig.press("a")
        rig.wait("the second step", 15000, function() return rig.text(buffer):find("return 30", 1, true) end)
        vim.cmd("CodeAgent plan")
        local run = rig.ended("completed")
        return { prompts = prompts, text = rig.text(buffer), plan = rig.page("plan"), page = rig.page("transcript") }
        """,
        files={"a.py": SOURCE},
        script=[
            call("create_plan", goal="New values", steps=steps, estimated_complexity="low"),
            edit("return 1", "return 10"),
            {"text": "One."},
            edit("return 3", "return 30"),
            {"text": "Two."},
        ],
    )
    assert played.found["prompts"] == 2, "the review itself is not asked about again"
    assert played.found["text"] == SOURCE.replace("return 1", "return 10").replace("return 3", "return 30")
    assert "New values\n  ✓ 1. First thing\n  ✓ 2. Second thing" in played.found["plan"]
    assert "### First thing" in played.found["page"]


@pytest.mark.volume
def test_the_steps_of_a_plan_are_written_before_it_starts(editor: Editor) -> None:
    steps = [{"title": "First thing", "description": "one"}, {"title": "Second thing", "description": "three"}]
    played = editor.play(
        """
        local buffer = rig.open("a.py")
        local wanted = "Edit the steps"
        rig.choose = function(_, titles) return vim.tbl_contains(titles, wanted) and wanted or "Apply" end
        vim.cmd("CodeAgent plan change it")
        rig.wait("the page of the plan", 15000, function()
          return vim.api.nvim_buf_get_name(0):find("/plan/", 1, true) ~= nil
        end)
        vim.cmd([[silent %s/First thing/The third value/]])
        vim.cmd([[silent g/Second thing/.,+1d]])
        local page = vim.api.nvim_get_current_buf()
        wanted = "Start"
        rig.wait("the question beside the page", 15000, function()
          local question = rig.state().questions[1]
          return question ~= nil and not vim.tbl_contains(question.choices, "Edit the steps")
        end)
        local servers = #vim.lsp.get_clients({ name = "codeagent", _uninitialized = true })
        local asked = rig.state().questions[1].title
        vim.cmd("CodeAgent pending")
        rig.wait("the work in the page", 8000, function()
          return not rig.text(page):find("Nothing has begun.", 1, true)
        end)
        rig.ended("completed")
        rig.wait("the end in the page", 8000, function()
          return rig.text(page):find("- [x] 1. **The third value**", 1, true)
        end)
        local titles = vim.tbl_map(function(step) return step.title end, rig.newest().plan.steps)
        return { text = rig.text(buffer), titles = titles, servers = servers, asked = asked }
        """,
        files={"a.py": SOURCE},
        script=[
            call("create_plan", goal="New values", steps=steps, estimated_complexity="low"),
            {"expect": "Step 1 of 1: The third value"} | edit("return 3", "return 30"),
            {"text": "Three."},
        ],
    )
    assert played.found["servers"] == 1, "the page belongs to the workspace of its run"
    assert played.found["titles"] == ["The third value"]
    assert played.found["asked"] == "Start the plan as its page has it? New values", (
        "how many steps is yet to be written"
    )
    assert played.found["text"] == SOURCE.replace("return 3", "return 30")


def test_two_projects_have_a_server_each(tmp_path: Path) -> None:
    """A restart is for the project of the buffer, and what is about a run goes to the server of that run."""
    played = play(
        tmp_path,
        """
        rig.open("one/a.py")
        local first = rig.client
        vim.cmd("CodeAgent ask what is a")
        rig.ended("completed")
        local run_id = rig.newest().run_id
        rig.open("two/b.py")
        local second = rig.client
        local sent = {}
        for name, client in pairs({ first = first, second = second }) do
          local exec = client.exec_cmd
          client.exec_cmd = function(self, command, ...)
            table.insert(sent, name .. " " .. command.command)
            return exec(self, command, ...)
          end
        end
        require("codeagent.client").call("undo", { runId = run_id })
        vim.cmd("CodeAgent pending")
        rig.heard("Nothing waits for you")
        vim.cmd("CodeAgent restart")
        rig.heard("has been restarted")
        rig.open("two/b.py")
        return {
          sent = sent,
          apart = first.id ~= second.id,
          first_lives = not first:is_stopped(),
          second_is_new = rig.client.id ~= second.id and rig.client.root_dir == second.root_dir,
        }
        """,
        files={"one/a.py": SOURCE, "one/.git/HEAD": "", "two/b.py": SOURCE, "two/.git/HEAD": ""},
        script=[{"text": "It is a."}],
    )
    undone, *asked = played.found["sent"]
    assert undone == "first codeagent.undo"
    assert sorted(asked[:2]) == ["first codeagent.pending", "second codeagent.pending"]
    assert played.found["apart"] and played.found["first_lives"] and played.found["second_is_new"]


@pytest.mark.volume
def test_a_crash_of_one_project_leaves_the_other_alone(tmp_path: Path) -> None:
    """In a buffer of the project that has lost its server nothing goes to the other's, and a restart is for its own."""
    played = play(
        tmp_path,
        """
        local one = rig.open("one/a.py")
        local process = rig.server_process()
        vim.cmd("CodeAgent ask what is a")
        rig.ended("completed")
        local session = rig.newest().session_id
        rig.open("two/b.py")
        local second = rig.client
        vim.cmd("CodeAgent ask what is b")
        rig.wait("the second run", 8000, function() return #rig.state().order == 2 end)
        rig.ended("completed")
        vim.uv.kill(process, "sigkill")
        rig.heard("ended unexpectedly")
        vim.api.nvim_set_current_buf(one)
        local client = require("codeagent.client")
        local nobody = client.current() == nil
        vim.cmd("CodeAgent restart")
        rig.heard("has been restarted")
        rig.wait("the session", 8000, function() return rig.state().session_id == session end)
        local now = vim.lsp.get_clients({ name = "codeagent", bufnr = one })[1]
        return {
          nobody = nobody, second_lives = not second:is_stopped(), root = vim.fs.basename(now.root_dir),
          session = rig.state().sessions[now.id] == session,
        }
        """,
        files={"one/a.py": SOURCE, "one/.git/HEAD": "", "two/b.py": SOURCE, "two/.git/HEAD": ""},
        script=[{"text": "It is a."}, {"text": "It is b."}],
    )
    assert played.found == {"nobody": True, "second_lives": True, "root": "one", "session": True}


@pytest.mark.volume
def test_answers_words_and_prompts_stay_with_their_project(tmp_path: Path) -> None:
    """Also when the user has gone to a buffer of another one meanwhile, or to a window of ours."""
    played = play(
        tmp_path,
        """
        rig.open("one/a.py")
        local first = rig.client
        vim.ui.select = function() end -- the user takes their time
        vim.cmd("CodeAgent run ask me")
        rig.wait("the question", 10000, function() return #rig.state().questions == 1 end)
        rig.open("two/b.py")
        local second = rig.client
        local client, sent = require("codeagent.client"), {}
        for name, each in pairs({ first = first, second = second }) do
          each.exec_cmd = function(_, command) table.insert(sent, name .. " " .. command.command) end
        end
        client.call("respond", { requestId = rig.state().questions[1].request_id, answer = "Blue" })
        vim.cmd("CodeAgent steer be brief")
        local elsewhere = client.current().id == second.id
        require("codeagent.transcript").open()
        local of_transcript = client.current().id == first.id
        vim.cmd("CodeAgent steer be brief")
        local path = vim.fs.joinpath(rig.workspace, "prompt.md")
        client.opens(path, first.id)
        vim.cmd.split(path)
        return { sent = sent, elsewhere = elsewhere, of_transcript = of_transcript,
          root = vim.fs.basename(client.root_of(vim.fn.bufnr(path))) }
        """,
        files={"one/a.py": SOURCE, "one/.git/HEAD": "", "two/b.py": SOURCE, "two/.git/HEAD": ""},
        script=[call("AskUser", questions=[{"text": "Which?", "options": ["Red", "Blue"]}], format="single")],
    )
    assert played.found == {
        "sent": ["first codeagent.respond", "first codeagent.steer"],
        "elsewhere": True,
        "of_transcript": True,
        "root": "one",
    }
    assert "Nothing is at work." in played.told


@pytest.mark.volume
def test_several_attempts_are_one_run(editor: Editor) -> None:
    """The newest one, that of the transcript and the one that is applied; a look at an attempt is by choice."""
    played = editor.play(
        """
        local buffer = rig.open("a.py")
        vim.cmd("CodeAgent attempts 2 change it")
        local function whole()
          return vim.iter(vim.tbl_values(rig.state().runs)):find(function(run)
            return not run.attempt_of and run.status ~= "running"
          end)
        end
        rig.wait("the end of the whole run", 20000, whole)
        local queries = require("codeagent.queries")
        local titles = vim.iter(rig.state().order):map(function(run_id)
          return queries.title(rig.state(), rig.state().runs[run_id])
        end):totable()
        table.sort(titles)
        return { titles = titles, newest = queries.latest(rig.state()).run_id == whole().run_id,
          session = rig.state().session_id == whole().session_id, text = rig.text(buffer),
          page = rig.page("transcript") }
        """,
        files={"a.py": SOURCE},
        script=[*[edit("return 1", "return 10")] * 2, *[{"text": "Changed."}] * 2],  # they take them in turns
    )
    assert played.found["titles"] == ["change it", "change it – attempt 1", "change it – attempt 2"]
    assert played.found["newest"] and played.found["session"]
    assert played.found["text"] == SOURCE.replace("return 1", "return 10")
    assert played.found["page"].count("## ") == 1, "of the attempts nothing is in the transcript of the run"


def test_the_language_of_the_server_may_change_while_it_runs(editor: Editor) -> None:
    played = editor.play(
        """
        rig.open("a.py")
        local texts, before = require("codeagent.texts"), rig.client.settings
        local function say(language)
          rig.client.settings = vim.tbl_deep_extend("force", before, { codeagent = { language = language } })
          rig.client:notify("workspace/didChangeConfiguration", { settings = rig.client.settings })
          return texts.language()
        end
        local found = { say("zh-cn"), say("en") }
        rig.client.settings = before
        rig.client:notify("workspace/didChangeConfiguration", { settings = before })
        return { found = found }
        """,
        files={"a.py": SOURCE},
        script=[],
    )
    assert played.found["found"] == ["zh-cn", "en"]


def test_a_list_without_entries_is_not_shown(editor: Editor) -> None:
    played = editor.play(
        """
        rig.open("a.py")
        vim.cmd("CodeAgent model")
        rig.heard("lists no models")
        return {}
        """,
        files={"a.py": SOURCE},
        script=[],
    )
    assert played.prompts == []


def test_a_review_names_long_files_by_their_end(editor: Editor) -> None:
    name = "a_folder_of_a_long_name/with_another_one_below/文件_with_a_name.py"
    played = editor.play(
        """
        rig.open("a.py")
        local before = vim.o.columns
        vim.o.columns = 50
        rig.choose = function(_, titles) return vim.tbl_contains(titles, "Review") and "Review" or nil end
        vim.cmd("CodeAgent run change it")
        local space
        rig.wait("the review", 20000, function()
          space = vim.api.nvim_get_namespaces()["codeagent.review"]
          return rig.own("review") and #vim.api.nvim_buf_get_extmarks(rig.own("review"), space, 0, -1, {}) > 0
        end)
        local found = {}
        for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(rig.own("review"), space, 0, -1, { details = true })) do
          for _, line in ipairs(mark[4].virt_lines or {}) do
            table.insert(found, line[1][1])
          end
        end
        vim.o.columns = before
        rig.press("gx")
        rig.ended()
        return { found = found, width = vim.fn.strdisplaywidth(found[#found]) }
        """,
        files={"a.py": SOURCE, name: "x = 1\n"},
        script=[edit("x = 1", "x = 2", name), {"text": "Changed."}],
    )
    assert played.found["found"][-1].startswith(" ± …")
    assert played.found["found"][-1].endswith("_one_below/文件_with_a_name.py  +1 −1")
    assert played.found["width"] <= 50
