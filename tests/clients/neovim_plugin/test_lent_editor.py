"""A real agent of others, opencode, at work in a real Neovim by `editor-mcp`, with its model on loopback."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.clients.neovim.support import MARKS, ROOT, SOURCE
from tests.clients.neovim_plugin.support import play
from tests.editor_mcp.scripted_agent import PORT

PROGRAM = Path(os.environ.get("CODEAGENT_OPENCODE", "nowhere"))

pytestmark = [
    *MARKS,
    pytest.mark.skipif(
        not PROGRAM.is_file(), reason="CODEAGENT_OPENCODE is no program; scripts/get-opencode.sh gets one"
    ),
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("unshare") is None,
        reason="only the superuser can give a program a network of its own",
    ),
]

SCENARIO = """
local buffer = rig.open("a.py")
vim.api.nvim_buf_set_lines(buffer, 0, 0, true, { "# typed, not saved" })
local before = rig.text(buffer)
rig.choose = function(prompt, titles)
  return prompt:find("opencode wants to use this editor", 1, true) and "Allow" or nil
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
rig.wait("the end of opencode", 60000, function() return ended ~= nil end)
local accepted, run = rig.text(buffer), rig.newest()
rig.wait("the end of the run", 10000, function() return rig.newest().status ~= "running" end)
vim.cmd("CodeAgent undo")
rig.wait("the undo", 10000, function() return rig.text(buffer) == before end)
return { before = before, staged = staged, accepted = accepted, code = ended.code, said = ended.stdout,
  errors = ended.stderr, title = run.title, own = session == run.session_id, undone = rig.text(buffer),
  tools = vim.iter(run.blocks):map(function(block) return block.tool or block.name or block.kind end):totable() }
"""


def test_what_opencode_edits_is_reviewed_by_hunk_and_undone(tmp_path: Path) -> None:
    steps: list[dict[str, Any]] = [
        called("open_files"),
        called("read", path="a.py"),
        called("edit", path="a.py", old_str="return 1", new_str="return 10"),
        called("edit", path="a.py", old_str="return 3", new_str="return 30"),
        called("run", command="cat a.py"),
        called("propose"),
        {"text": "Changed both."},
    ]
    prepare(tmp_path, steps)
    played = play(tmp_path, SCENARIO, files={"a.py": SOURCE}, script=[])
    found, before = played.found, "# typed, not saved\n" + SOURCE
    assert found["code"] == 0, found["errors"]
    assert found["before"] == found["staged"] == found["undone"] == before
    assert found["accepted"] == before.replace("return 1\n", "return 10\n")
    assert found["title"] == "The editor lent to opencode" and not found["own"]
    assert played.disk("a.py") == SOURCE
    answers = [json.loads(line)["content"] for line in (tmp_path / "script_of_agent.seen").read_text().splitlines()[1:]]
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
rig.wait("the end of opencode", 60000, function() return ended ~= nil end)
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
def test_what_opencode_writes_to_the_disk_by_itself_is_gathered_and_merged(tmp_path: Path) -> None:
    """One hunk is taken back, the rest is proved, and merged with what was typed meanwhile."""
    path = str(tmp_path / "ws" / "a.py")
    steps: list[dict[str, Any]] = [
        {"tool": "read", "arguments": {"filePath": path}},
        {"tool": "edit", "arguments": {"filePath": path, "oldString": "return 1", "newString": "return 10"}},
        {"tool": "edit", "arguments": {"filePath": path, "oldString": "return 3", "newString": "return 30"}},
        {"text": "Changed both."},
    ]
    prepare(tmp_path, steps)
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


def called(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": f"editor_{tool}", "arguments": arguments}


def prepare(folder: Path, steps: list[dict[str, Any]]) -> None:
    """The agent's settings, its model's script and what starts it, in a network that has loopback alone."""
    home = folder / "agent_home"
    home.mkdir()
    (folder / "script_of_agent.json").write_text(json.dumps(steps))
    ours = [sys.executable, "-m", "codeagent_lsp.cli", "editor-mcp"]
    environment = {"CODEAGENT_STATE_DIR": str(folder / "state"), "PYTHONPATH": str(ROOT)}
    model = {"baseURL": f"http://127.0.0.1:{PORT}/v1", "apiKey": "none"}
    config = {
        "autoupdate": False,
        "share": "disabled",
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "provider": {
            "scripted": {"npm": "@ai-sdk/openai-compatible", "options": model, "models": {"scripted": {}}},
        },
        "mcp": {"editor": {"type": "local", "command": ours, "enabled": True, "environment": environment}},
    }
    (folder / "opencode.json").write_text(json.dumps(config))
    script = folder / "script_of_agent.json"
    (folder / "agent.sh").write_text(
        f"cd {folder}/ws && exec env -i PATH=$PATH HOME={home} PYTHONPATH={ROOT} "
        f"OPENCODE_CONFIG={folder}/opencode.json "
        f"OPENCODE_DISABLE_MODELS_FETCH=1 unshare -n {sys.executable} -m tests.editor_mcp.scripted_agent {script} "
        f"{PROGRAM} run 'make them larger'\n"
    )
