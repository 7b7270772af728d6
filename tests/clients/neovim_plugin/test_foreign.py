"""What another program changes while Neovim is open: shown by the plugin, one hunk taken back, the rest kept."""

from __future__ import annotations

from pathlib import Path

from tests.clients.neovim.support import MARKS
from tests.clients.neovim_plugin.support import play

pytestmark = MARKS

TEXT = "one\n2\n3\n4\nfive\n"
OUTSIDE = "ONE\n2\n3\n4\nFIVE\n"


def test_another_program_changes_a_file_with_unsaved_text(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        """
        local buffer = rig.open("a.py")
        vim.api.nvim_buf_set_lines(buffer, 2, 2, true, { "typed" })
        local store, run = require("codeagent.store"), nil
        local copies = vim.fn.getcwd() .. "/../state/**/before/*/*"
        rig.wait("the server to follow the files", 30000, function() return #vim.fn.glob(copies, true, true) == 2 end)
        vim.wait(1000)
        vim.system({ "cp", "theirs.txt", "a.py" }, { cwd = vim.fn.getcwd() }):wait()
        rig.wait("the run", 30000, function()
          for _, each in pairs(store.state().runs) do
            if each.proposal and next(each.staged) then run = each end
          end
          return run
        end)
        local client = vim.lsp.get_clients({ name = "codeagent" })[1]
        local function call(command, arguments)
          local given = { command = command, arguments = { arguments } }
          return client:request_sync("workspace/executeCommand", given, 10000).result
        end
        local function diff() return call("codeagent.review", { runId = run.run_id }).diff end
        local first = diff():match("@@ (a.py#%x+)")
        call("codeagent.discard", { runId = run.run_id, hunks = { first } })
        local function text() return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), "\\n") end
        rig.wait("the decision", 10000, function() return not diff():find(first, 1, true) end)
        local reverted = text()
        call("codeagent.apply", { runId = run.run_id })
        rig.wait("the merge", 10000, function() return text():find("FIVE", 1, true) end)
        return { title = run.proposal.summary, reverted = reverted, kept = text(), modified = vim.bo[buffer].modified }
        """,
        files={"a.py": TEXT, "theirs.txt": OUTSIDE},
        script=[{"text": "Nothing to do."}],
        settings={"foreign": {"watch": "auto"}},
    )
    assert played.found["title"] == "Changed outside: 1 file, +2 −2."
    assert played.found["reverted"] == "one\n2\ntyped\n3\n4\nfive"
    assert played.found["kept"] == "one\n2\ntyped\n3\n4\nFIVE"
    assert played.found["modified"]
    assert played.disk("a.py") == OUTSIDE
    assert sum("Another program changed" in each for each in played.told) == 1
    assert not played.prompts
