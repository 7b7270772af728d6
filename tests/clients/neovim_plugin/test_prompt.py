"""The plugin in a real Neovim: a task written in a prompt buffer, with completion, sent from there."""

from __future__ import annotations

from tests.clients.neovim.support import MARKS, SOURCE, edit
from tests.clients.neovim_plugin.support import Editor

pytestmark = MARKS


def test_written_completed_and_sent(editor: Editor) -> None:
    played = editor.play(
        """
        rig.open("a.py")
        vim.cmd("1,2CodeAgent prompt Look at")
        rig.wait("the buffer", 8000, function() return vim.api.nvim_buf_get_name(0):find("/prompt/") end)
        local opened = vim.api.nvim_buf_get_lines(0, 0, -1, false)
        local buffer, last = vim.api.nvim_get_current_buf(), vim.api.nvim_buf_line_count(0)
        rig.wait("the server", 8000, function() return #vim.lsp.get_clients({ bufnr = buffer }) > 0 end)
        vim.api.nvim_buf_set_lines(buffer, last - 1, last, false, { "What is in @a" })
        vim.api.nvim_win_set_cursor(0, { last, 13 })
        local items
        rig.wait("completion", 8000, function()
          local here = vim.lsp.get_clients({ bufnr = buffer })[1]
          local params = vim.lsp.util.make_position_params(0, here.offset_encoding)
          params.position.character = 13
          local found = here:request_sync("textDocument/completion", params, 2000, buffer)
          items = found and found.result and found.result.items or {}
          return #items > 0
        end)
        vim.lsp.util.apply_text_edits({ items[1].textEdit }, buffer, "utf-8")
        local written = vim.api.nvim_buf_get_lines(buffer, last - 1, last, false)[1]
        vim.cmd("CodeAgent send")
        rig.wait("the run", 15000, function()
          for _, run in pairs(require("codeagent.store").state().runs) do
            if run.status == "completed" then return true end
          end
        end)
        return { opened = opened, written = written, label = items[1].label, page = rig.page("transcript") }
        """,
        files={"a.py": SOURCE},
        script=[{"text": "A function.", "expect": "What is in @a.py"}],
    )
    assert played.found["opened"][-1].startswith("Look at @a.py#L1-L2")
    assert (played.found["label"], played.found["written"]) == ("@a.py", "What is in @a.py")
    assert "A function." in played.found["page"]


def test_the_better_of_two_attempts(editor: Editor) -> None:
    played = editor.play(
        """
        local buffer = rig.open("a.py")
        vim.cmd("CodeAgent attempts 2 make it four")
        rig.wait("four", 20000, function() return rig.text(buffer):find("return 4", 1, true) end)
        return { text = rig.text(buffer), prompts = #rig.prompts }
        """,
        files={"a.py": SOURCE},
        script=[*[edit("return 3", "return 4")] * 2, *[{"text": "Changed."}] * 2],
    )
    assert played.found["text"] == SOURCE.replace("return 3", "return 4")
    assert played.found["prompts"] == 1
