"""Real agents of others at work in a real Neovim by `editor-mcp`, with their models on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.clients.neovim.support import MARKS, SOURCE
from tests.clients.neovim_plugin.support import play
from tests.editor_mcp.other_agents import EVERY, OPENCODE, OtherAgent, seen

pytestmark = MARKS


def agents() -> list[Any]:
    """Those that are here; all but opencode are hundreds of megabytes, and left to volumes."""
    return [
        pytest.param(
            agent,
            id=agent.name,
            marks=[
                *([] if agent is OPENCODE else [pytest.mark.volume]),
                pytest.mark.skipif(bool(agent.missing()), reason=agent.missing()),
            ],
        )
        for agent in EVERY
    ]


SCENARIO = """
local buffer = rig.open("a.py")
vim.api.nvim_buf_set_lines(buffer, 0, 0, true, { "# typed, not saved" })
local before = rig.text(buffer)
rig.choose = function(prompt, titles)
  return prompt:find("CLIENT wants to use this editor", 1, true) and "Allow" or nil
end
local ended
vim.system({ "sh", vim.fs.dirname(rig.workspace) .. "/agent.sh" }, { text = true }, function(done) ended = done end)
local hunks = require("codeagent.hunks")
rig.wait("two hunks", 60000, function() return hunks.count(buffer) == 2 or ended end)
local staged, session = rig.text(buffer), rig.state().session_id
vim.api.nvim_win_set_cursor(0, { 1, 0 })
vim.cmd("CodeAgent hunk next")
vim.cmd("CodeAgent hunk accept")
rig.wait("one hunk", 10000, function() return hunks.count(buffer) == 1 end)
vim.cmd("CodeAgent hunk next")
vim.cmd("CodeAgent hunk discard")
rig.wait("the end of the agent", 60000, function() return ended ~= nil end)
local accepted, run = rig.text(buffer), rig.newest()
rig.wait("the end of the run", 10000, function() return rig.newest().status ~= "running" end)
vim.cmd("CodeAgent undo")
rig.wait("the undo", 10000, function() return rig.text(buffer) == before end)
return { before = before, staged = staged, accepted = accepted, code = ended.code, said = ended.stdout,
  errors = ended.stderr, title = run.title, own = session == run.session_id, undone = rig.text(buffer),
  tools = vim.iter(run.blocks):map(function(block) return block.tool or block.name or block.kind end):totable() }
"""


@pytest.mark.parametrize("agent", agents())
def test_what_an_agent_edits_is_reviewed_by_hunk_and_undone(tmp_path: Path, agent: OtherAgent) -> None:
    steps: list[dict[str, Any]] = [
        agent.calls("open_files"),
        agent.calls("read", path="a.py"),
        agent.calls("edit", path="a.py", old_str="return 1", new_str="return 10"),
        agent.calls("edit", path="a.py", old_str="return 3", new_str="return 30"),
        agent.calls("run", command="cat a.py"),
        agent.calls("propose"),
        {"text": "Changed both."},
    ]
    agent.prepare(tmp_path, steps)
    played = play(tmp_path, SCENARIO.replace("CLIENT", agent.client), files={"a.py": SOURCE}, script=[])
    found, before = played.found, "# typed, not saved\n" + SOURCE
    assert found["code"] == 0, found["errors"]
    assert found["before"] == found["staged"] == found["undone"] == before
    assert found["accepted"] == before.replace("return 1\n", "return 10\n")
    assert found["title"] == f"The editor lent to {agent.client}" and not found["own"]
    assert played.disk("a.py") == SOURCE
    answers = seen(tmp_path)[1:]
    assert "a.py (not saved)" in answers[0] and "# typed, not saved" in answers[1]
    assert "# typed, not saved" in answers[4] and "return 10" in answers[4] and "return 30" in answers[4]
    assert "accepted a part" in answers[5]


BY_ITSELF = """
local buffer = rig.open("a.py")
vim.api.nvim_buf_set_lines(buffer, 4, 4, true, { "# typed, not saved" })
local copies = vim.fn.getcwd() .. "/../state/**/before/*/*"
rig.wait("the server to follow the files", 30000, function() return #vim.fn.glob(copies, true, true) == 2 end)
vim.wait(1000)
local ended
vim.system({ "sh", vim.fs.dirname(rig.workspace) .. "/agent.sh" }, { text = true }, function(done) ended = done end)
rig.wait("the end of the agent", 60000, function() return ended ~= nil end)
local id
local function run() return rig.state().runs[id] end
rig.wait("the run", 30000, function()
  for key, each in pairs(rig.state().runs) do
    if each.proposal and next(each.staged) then id = key end
  end
  return id and run().proposal.summary:find("+2", 1, true)
end)
local client = vim.lsp.get_clients({ name = "codeagent" })[1]
local function call(command, arguments)
  return client:request_sync("workspace/executeCommand", { command = command, arguments = { arguments } }, 10000).result
end
local function diff() return call("codeagent.review", { runId = id }).diff end
local title, first = run().proposal.summary, diff():match("@@ (a.py#%x+)")
call("codeagent.discard", { runId = id, hunks = { first } })
rig.wait("one hunk less", 10000, function() return not diff():find(first, 1, true) end)
call("codeagent.prove", { runId = id })
rig.wait("the proof", 60000, function() return run().proposal.summary:find("passed", 1, true) end)
local proof = run().proposal.summary
call("codeagent.apply", { runId = id })
rig.wait("the merge", 10000, function() return rig.text(buffer):find("return 30", 1, true) end)
return { code = ended.code, errors = ended.stderr, title = title, proof = proof, text = rig.text(buffer) }
"""


@pytest.mark.volume
@pytest.mark.parametrize("agent", agents())
def test_what_an_agent_writes_to_the_disk_by_itself_is_gathered_and_merged(tmp_path: Path, agent: OtherAgent) -> None:
    """One hunk is taken back, the rest is proved, and merged with what was typed meanwhile."""
    edits = agent.edits(tmp_path / "ws" / "a.py", [("return 1", "return 10"), ("return 3", "return 30")])
    agent.prepare(tmp_path, [*edits, {"text": "Changed both."}])
    test = (
        "import unittest\nimport a\n\n\nclass T(unittest.TestCase):\n"
        "    def test_three(self):\n        self.assertEqual(a.three(), 30)\n"
    )
    files = {"a.py": SOURCE, "test_a.py": test}
    played = play(tmp_path, BY_ITSELF, files=files, script=[], settings={"foreign": {"watch": "auto"}})
    found = played.found
    assert found["code"] == 0, found["errors"]
    assert found["title"].startswith("Changed outside: 1 file, +2 −2.")
    lines = SOURCE.replace("return 3", "return 30").splitlines(keepends=True)
    assert found["text"] == "".join([*lines[:4], "# typed, not saved\n", *lines[4:]])
    assert played.disk("a.py") == SOURCE.replace("return 1", "return 10").replace("return 3", "return 30")
