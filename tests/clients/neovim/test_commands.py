"""A real Neovim as a stock client: code actions, lenses, cancelling, questions, leaving."""

from __future__ import annotations

import time
from pathlib import Path

from tests.clients.neovim.support import (
    MARKS,
    ROOT,
    SOURCE,
    Neovim,
    call,
    edit,
    play,
    with_hook_and_picture,
)
from tests.clients.scenarios import left_behind

pytestmark = MARKS


def test_the_actions_of_a_selection_are_listed_and_one_is_run(neovim: Neovim) -> None:
    played = neovim.play(
        """
        local buffer = rig.open("a.py")
        vim.api.nvim_win_set_cursor(0, { 5, 0 })
        vim.lsp.buf.code_action({
          range = { start = { 5, 0 }, ["end"] = { 6, 12 } },
          filter = function(action) return action.command.command == "codeagent.refactor" end,
          apply = true,
        })
        rig.wait("the new text", 10000, function() return rig.text(buffer):find("22", 1, true) end)
        local listed = {}
        rig.choose = function(_, titles) listed = titles end
        vim.lsp.buf.code_action()
        rig.wait("the list", 3000, function() return #listed > 0 end)
        return { text = rig.text(buffer), listed = listed }
        """,
        files={"a.py": SOURCE},
        script=[{"text": "```python\ndef two():\n    return 22\n```"}],
    )
    assert played.found["text"] == SOURCE.replace("return 2\n", "return 22\n")
    listed = " ".join(played.found["listed"])
    for title in ("Explain", "Fix", "Refactor", "Add documentation", "Add tests", "Edit with an instruction"):
        assert title in listed, played.found["listed"]


def test_a_diagnostic_offers_its_own_fix(neovim: Neovim) -> None:
    played = neovim.play(
        """
        local buffer = rig.open("a.py")
        local listed = {}
        local diagnostic = {
          range = { start = { line = 1, character = 4 }, ["end"] = { line = 1, character = 10 } },
          message = "unused\\nvalue",
        }
        rig.choose = function(_, titles) listed = titles end
        vim.lsp.buf.code_action({ context = { diagnostics = { diagnostic }, only = { "quickfix" } } })
        rig.wait("the list", 3000, function() return #listed > 0 end)
        return { listed = listed }
        """,
        files={"a.py": SOURCE},
        script=[],
    )
    assert any("unused value" in title for title in played.found["listed"])
    assert not any("Refactor" in title for title in played.found["listed"])


def test_pending_changes_are_a_lens_that_applies_them(neovim: Neovim) -> None:
    played = neovim.play(
        """
        local buffer = rig.open("a.py")
        rig.choose = function() return nil end
        local sentence = rig.run("run", { task = "change it" })
        local lenses
        rig.wait("lenses", 5000, function()
          vim.lsp.codelens.refresh({ bufnr = buffer })
          vim.wait(100)
          lenses = vim.lsp.codelens.get(buffer)
          return #lenses == 5 -- for all of it, and at the hunk
        end)
        local titles = vim.tbl_map(function(lens) return lens.command.title end, lenses)
        for _, lens in ipairs(lenses) do
          if lens.command.title == "Apply" then rig.client:exec_cmd(lens.command) end
        end
        rig.told("Applied 1")
        return { text = rig.text(buffer), titles = titles, sentence = sentence }
        """,
        files={"a.py": SOURCE},
        script=[edit("return 3", "return 4"), {"text": "Changed."}],
    )
    assert played.found["text"] == SOURCE.replace("return 3", "return 4")
    assert "wait for your decision" in played.found["sentence"]
    here = ["Agent: apply this change", "Agent: discard this change"]
    assert played.found["titles"][1:] == ["Apply", "Discard", *here]


def test_a_cancel_from_the_editor_ends_the_run_within_a_second(neovim: Neovim) -> None:
    played = neovim.play(
        """
        local buffer = rig.open("a.py")
        local run = rig.command("run", { task = "change it" }).runId
        rig.wait("the begin of the progress", 5000, function() return rig.progress[rig.token(run)] end)
        rig.wait("the words after the edit", 20000, function()
          for _, value in ipairs(rig.progress[rig.token(run)]) do
            if (value.message or ""):find("riting") then return true end
          end
        end)
        local before = vim.uv.hrtime()
        rig.client:notify("window/workDoneProgress/cancel", { token = rig.token(run) })
        local sentence = rig.ended(run)
        return {
          seconds = (vim.uv.hrtime() - before) / 1e9,
          sentence = sentence,
          text = rig.text(buffer),
          pending = rig.command("pending"),
        }
        """,
        files={"a.py": SOURCE},
        script=[edit("return 3", "return 4"), {"text": "Slow. " * 60, "chunks": 60, "delay": 0.3}],
    )
    assert played.found["seconds"] < 9.0, "it does not wait for the words, which take 18 s"
    assert played.found["sentence"] == "Cancelled."
    assert played.found["text"] == SOURCE
    assert [item["kind"] for item in played.found["pending"]] == ["changes"]


def test_a_question_of_the_agent_is_answered_by_selection(neovim: Neovim) -> None:
    played = neovim.play(
        """
        rig.open("a.py")
        rig.choose = function(_, titles) return "Blue" end
        rig.run("run", { task = "ask me" })
        return {}
        """,
        files={"a.py": SOURCE},
        script=[
            call("AskUser", questions=[{"text": "Which colour?", "options": ["Red", "Blue"]}], format="single"),
            {"text": "Fine."},
        ],
    )
    assert played.prompts[0]["titles"] == ["Red", "Blue", "Something else…"]
    assert "Which colour?" in played.prompts[0]["prompt"]


def test_a_free_answer_is_written_into_a_document_and_saved(neovim: Neovim) -> None:
    played = neovim.play(
        """
        rig.open("a.py")
        local run = rig.command("run", { task = "ask me" }).runId
        local answer
        rig.wait("the answer document", 5000, function()
          for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
            if vim.api.nvim_buf_get_name(buffer):find("/answer/", 1, true) then answer = buffer end
          end
          return answer ~= nil
        end)
        vim.wait(200)
        vim.api.nvim_buf_set_lines(answer, -1, -1, true, { "Ada" })
        vim.api.nvim_buf_call(answer, function() vim.cmd("silent write") end)
        return { sentence = rig.ended(run) }
        """,
        files={"a.py": SOURCE},
        script=[call("AskUser", questions=[{"text": "Which name?"}], format="single"), {"text": "Fine."}],
    )
    assert played.found["sentence"] == "Done."
    assert "Fine." in played.messages


def test_a_review_is_not_covered_by_its_question_which_waits_beside_it(neovim: Neovim) -> None:
    played = neovim.play(
        """
        local buffer = rig.open("a.py")
        rig.choose = function(_, titles) return titles[1] end
        local id = rig.command("run", { task = "change it" }).runId
        local question
        rig.wait("the question beside the review", 20000, function()
          question = #rig.prompts > 0 and rig.command("pending")[1]
          return question and vim.deep_equal(question.choices, { "Apply", "Discard" })
        end)
        local diff
        for _, other in ipairs(vim.api.nvim_list_bufs()) do
          if vim.api.nvim_buf_get_name(other):find("%.diff$") then diff = rig.text(other) end
        end
        rig.command("respond", { requestId = question.requestId, answer = "Apply" })
        rig.ended(id)
        return { diff = diff, text = rig.text(buffer), prompts = #rig.prompts }
        """,
        files={"a.py": SOURCE},
        script=[edit("return 3", "return 4"), {"text": "Changed."}],
    )
    assert "-    return 3\n+    return 4\n" in played.found["diff"]
    assert played.found["prompts"] == 1
    assert played.found["text"] == SOURCE.replace("return 3", "return 4")


def test_leaving_while_a_run_works_leaves_nothing_behind(tmp_path: Path) -> None:
    started = time.monotonic()
    play(
        tmp_path,
        """
        rig.open("a.py")
        rig.command("run", { task = "think" })
        return {}
        """,
        files={"a.py": SOURCE},
        script=[{"text": "Slow.", "delay": 250}],
    )
    assert time.monotonic() - started < 120, "it does not wait for the model"
    assert not left_behind(tmp_path / "state", 0)


ACT = """
local function act(words)
  local found
  rig.choose = function(_, titles)
    for _, title in ipairs(titles) do
      if title:find(words, 1, true) then found = title return title end
    end
  end
  vim.lsp.buf.code_action()
  rig.wait("the action " .. words, 5000, function() return found end)
end
"""


def test_a_task_from_a_document_with_a_hook(tmp_path: Path) -> None:
    """All by code actions: a document is opened, written, and sent; the project's formatter is trusted once."""
    with_hook_and_picture(tmp_path / "ws")
    (tmp_path / "ws" / ".git").mkdir()
    written = (ROOT / "docs" / "editors.md").read_text().partition("`~/.config/nvim/lsp/codeagent.lua`:")[2]
    played = play(
        tmp_path,
        f"local documented = (function() {written.partition('```lua')[2].partition('```')[0]} end)()"
        + ACT
        + """
        vim.lsp.config("codeagent", {
          root_dir = function(buffer, done) done(vim.fs.root(buffer, documented.root_markers)) end,
          reuse_client = documented.reuse_client,
        })
        local buffer = rig.open("a.py")
        act("Write a task")
        local document
        rig.wait("the document", 5000, function()
          for _, each in ipairs(vim.api.nvim_list_bufs()) do
            if vim.api.nvim_buf_get_name(each):find("/prompt/", 1, true) then document = each end
          end
          return document ~= nil
        end)
        vim.api.nvim_set_current_buf(document)
        local last = vim.api.nvim_buf_line_count(document)
        vim.api.nvim_buf_set_lines(document, last - 1, last, true, { "make @a" })
        local offered
        rig.wait("completion", 8000, function()
          local here = vim.lsp.get_clients({ bufnr = document })[1]
          local params = vim.lsp.util.make_position_params(0, here.offset_encoding)
          params.position = { line = last - 1, character = 7 }
          local found = here:request_sync("textDocument/completion", params, 2000, document)
          offered = found and found.result and found.result.items or {}
          return #offered > 0
        end)
        vim.api.nvim_buf_set_lines(document, last - 1, last, true, { "make @a.py:1-2 say x is four" })
        act("Send to the agent")
        rig.choose = function(_, titles)
          for _, wanted in ipairs({ "Trust this content", "Apply" }) do
            if vim.tbl_contains(titles, wanted) then return wanted end
          end
        end
        rig.wait("the text", 15000, function() return rig.text(buffer):find("x = 4", 1, true) end)
        return { text = rig.text(buffer), clients = #vim.lsp.get_clients(), offered = offered[1].label,
          omni = vim.bo[document].omnifunc }
        """,
        files={"a.py": SOURCE + "x = 3\n"},
        script=[
            edit("x = 3", "x=4") | {"expect": "a.py, lines 1-2, as they are now"},
            {"text": "Done."},
        ],
    )
    assert played.found["text"] == SOURCE + "x = 4\n"
    assert played.disk("a.py") == SOURCE + "x = 3\n"
    assert (played.found["offered"], played.found["omni"]) == ("@a.py", "v:lua.vim.lsp.omnifunc")
    assert played.found["clients"] == 1, "the document belongs to the server of the project"
