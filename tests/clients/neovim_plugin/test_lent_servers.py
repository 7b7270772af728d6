"""Neovim lends its other language servers to the real server, which asks them about a buffer as a tool would."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.clients import lending_server, word_server
from tests.clients.neovim.support import MARKS, call, edit
from tests.clients.neovim_plugin.support import Played, play

pytestmark = MARKS

TEXT = "def total(): pass\n\n\nname = '😀'; total()\n"
ASK = """
local folder, count = "%s", 0
local function ask(method, params, name)
  count = count + 1
  local place = ("%%s/%%d"):format(folder, count)
  local uri = vim.uri_from_fname(rig.workspace .. "/" .. (name or "a.py"))
  params.textDocument = { uri = uri }
  vim.fn.writefile({ vim.json.encode({ uri = uri, method = method, params = params }) }, place .. ".part")
  vim.uv.fs_rename(place .. ".part", place .. ".question")
  rig.wait("an answer to " .. method, 20000, function() return vim.uv.fs_stat(place .. ".answer") end)
  return vim.json.decode(table.concat(vim.fn.readfile(place .. ".answer")))
end
local function start(name, command)
  local id = vim.lsp.start({ name = name, cmd = command, root_dir = rig.workspace })
  rig.wait(name, 20000, function() return vim.lsp.get_client_by_id(id).initialized end)
  return id
end
local function at(line, byte)
  assert(rig.client.offset_encoding == "utf-8")
  return { position = { line = line, character = byte } }
end
local fake = { "%s", "%s" }
local function odd(...) return vim.list_extend(vim.list_slice(fake), { ... }) end
"""


def program(name: str) -> str:
    """The path of a language server; the test is skipped visibly where it is not installed."""
    path = os.pathsep.join(filter(None, (os.environ.get("CODEAGENT_LANGUAGE_SERVERS"), os.environ.get("PATH"))))
    found = shutil.which(name, path=path)
    if found is None:
        pytest.skip(f"{name} is not installed; `sh scripts/get-language-servers.sh` installs it")
    return found


def lent(folder: Path, scenario: str, text: str = TEXT) -> Played:
    """Play a scenario in which `ask`, `start`, `at` and `odd` are there."""
    asked = folder / "asked"
    asked.mkdir()
    begin = ASK % (asked, sys.executable, word_server.__file__)
    options = {"cmd": [sys.executable, lending_server.__file__, str(asked)]}
    return play(folder, begin + scenario, files={"a.py": text, "b.py": "total\n"}, script=[], options=options)


def test_each_server_answers_in_its_own_counting(tmp_path: Path) -> None:
    played = lent(
        tmp_path,
        """
        rig.open("a.py")
        start("bytes", odd("utf-8"))
        start("units", odd())
        local found = ask("textDocument/references", at(3, 16))
        table.sort(found, function(one, other) return one[1] < other[1] end)
        return { found = found, hover = ask("textDocument/hover", at(3, 16)) }
        """,
    )
    (one, bytes_, eight), (other, units, sixteen) = played.found["found"]
    assert (one, eight, other, sixteen) == ("bytes", "utf-8", "units", "utf-16")
    assert [each["range"]["start"]["character"] for each in bytes_] == [4, 15]
    assert [each["range"]["start"]["character"] for each in units] == [4, 13]
    assert {each[1]["contents"]["value"] for each in played.found["hover"]} == {"hover of total"}


def test_a_run_renames_by_the_server_of_the_editor(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        """
        local buffer = rig.open("a.py")
        vim.api.nvim_buf_set_lines(buffer, 0, 0, true, { "# 😀 total, not saved" })
        local id = vim.lsp.start({ name = "words", cmd = { "PYTHON", "WORDS", "utf-8" }, root_dir = rig.workspace })
        rig.wait("words", 20000, function() return vim.lsp.get_client_by_id(id).initialized end)
        vim.cmd("CodeAgent run rename it")
        local run = rig.ended("completed")
        return { text = rig.text(buffer), outcome = run.outcome }
        """.replace("WORDS", word_server.__file__).replace("PYTHON", sys.executable),
        files={"a.py": TEXT, "b.py": "total\n"},
        script=[call("rename_symbol", path="a.py", symbol="total", new_name="sum"), {"text": "Renamed."}],
    )
    assert played.found["text"] == f"# 😀 total, not saved\n{TEXT}".replace("total", "sum"), "also in prose"
    assert played.found["outcome"] == "full"
    assert played.disk("a.py") == TEXT


def test_servers_that_hang_crash_and_lie_do_no_harm(tmp_path: Path) -> None:
    played = lent(
        tmp_path,
        """
        local buffer = rig.open("a.py")
        start("hangs", odd("hang:textDocument/hover"))
        start("crashes", odd("crash:textDocument/hover"))
        start("fine", odd())
        local hover = ask("textDocument/hover", at(0, 5))
        local commands = ask("workspace/executeCommand", { command = "fake.run" })
        local missing = ask("textDocument/hover", at(0, 1), "b.py")
        vim.api.nvim_buf_set_lines(buffer, 0, 0, true, { "# typed" })
        local typed
        rig.wait("an answer for the newest text", 20000, function() -- none while it changes
          typed = ask("textDocument/hover", at(1, 5))
          return #typed > 0
        end)
        local range = { start = { line = 1, character = 0 }, ["end"] = { line = 1, character = 3 } }
        local actions = ask("textDocument/codeAction", { range = range, context = { diagnostics = {} } })
        return { hover = hover, commands = commands, missing = missing, typed = typed, actions = actions,
                 loaded = vim.fn.bufloaded(rig.workspace .. "/b.py"), text = rig.text(buffer) }
        """,
    )
    found = played.found
    assert [each[0] for each in found["hover"]] == ["fine"]
    assert not found["commands"], "never a command"
    assert not found["missing"], "nothing is loaded to be asked about"
    assert not found["loaded"]
    assert found["typed"][0][1]["contents"]["value"] == "hover of total", "the buffer is the truth"
    assert {action["title"] for _, actions, _ in found["actions"] for action in actions} == {"Fix it"}
    assert all(not action.get("command") for _, actions, _ in found["actions"] for action in actions)
    assert found["text"] == f"# typed\n{TEXT}", "nothing was applied"


REAL = """\
import os


def total(count: int) -> int:
    return count


print("😀", total(1), total(2))
"""


def test_basedpyright_and_ruff_of_the_editor(tmp_path: Path) -> None:
    played = lent(
        tmp_path,
        f"""
        local buffer = rig.open("a.py")
        vim.bo[buffer].filetype = "python"
        start("basedpyright", {{ "{program("basedpyright-langserver")}", "--stdio" }})
        start("ruff", {{ "{program("ruff")}", "server" }})
        local range = {{ start = {{ line = 0, character = 0 }}, ["end"] = {{ line = 0, character = 9 }} }}
        local asked = {{ range = range, context = {{ diagnostics = {{}} }} }}
        local actions
        rig.wait("a fix", 30000, function()
          actions = ask("textDocument/codeAction", vim.deepcopy(asked))
          return vim.inspect(actions):find("Remove unused import", 1, true)
        end)
        local rename
        rig.wait("a rename", 30000, function()
          rename = ask("textDocument/rename", vim.tbl_extend("force", at(7, 16), {{ newName = "sum" }}))
          return #rename > 0
        end)
        return {{ actions = actions, rename = rename, hover = ask("textDocument/hover", at(7, 16)),
                 references = ask("textDocument/references",
                   vim.tbl_extend("force", at(7, 16), {{ context = {{ includeDeclaration = true }} }})) }}
        """,
        REAL,
    )
    found: dict[str, Any] = played.found
    fixes = [action for name, actions, _ in found["actions"] if name == "ruff" for action in actions]
    assert any(action["title"].startswith("Ruff (F401)") and action["edit"] for action in fixes)
    [(name, edit, encoding)] = found["rename"]
    (changes,) = [each["edits"] for each in edit["documentChanges"]]
    assert (name, encoding) == ("basedpyright", "utf-16")
    assert sorted(each["range"]["start"]["character"] for each in changes) == [4, 12, 22]
    assert "(count: int) -> int" in found["hover"][0][1]["contents"]["value"]
    [(_, places, _)] = found["references"]
    assert len(places) == 3
    assert played.disk("a.py") == REAL


@pytest.mark.volume
def test_runs_over_fifty_files_by_the_basedpyright_of_the_editor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = program("basedpyright-langserver")
    monkeypatch.setenv("PATH", f"{Path(server).parent}{os.pathsep}{os.environ['PATH']}")
    files = {f"use{number}.py": f"from a import total\n\nprint(total({number}))\n" for number in range(50)}
    played = play(
        tmp_path,
        """
        local buffer = rig.open("a.py")
        vim.bo[buffer].filetype = "python"
        local id = vim.lsp.start({ name = "basedpyright", cmd = { "SERVER", "--stdio" }, root_dir = rig.workspace })
        local client = vim.lsp.get_client_by_id(id)
        rig.wait("basedpyright", 20000, function() return client.initialized end)
        local place = { textDocument = { uri = vim.uri_from_bufnr(buffer) }, position = { line = 3, character = 5 },
                        context = { includeDeclaration = false } }
        rig.wait("all files", 60000, function()
          local answer = client:request_sync("textDocument/references", place, 5000, buffer)
          return answer and answer.result and #answer.result == 102
        end)
        vim.cmd("CodeAgent run rename it")
        local outcome = rig.ended("completed").outcome
        local found = {}
        for _, loaded in ipairs(vim.api.nvim_list_bufs()) do
          local name = vim.fs.basename(vim.api.nvim_buf_get_name(loaded))
          if name:find("^use") then found[name] = rig.text(loaded) end
        end
        vim.cmd("CodeAgent run change the type")
        rig.wait("the second run", 60000, function() return #rig.state().order == 2 end)
        rig.ended("completed")
        return { outcome = outcome, text = rig.text(buffer), files = found }
        """.replace("SERVER", server),
        files={"a.py": REAL, "b.py": "total\n", "pyproject.toml": "", **files},
        script=[
            call("rename_symbol", path="a.py", symbol="total", new_name="tally"),
            {"text": "Renamed."},
            edit("return count\n", "return str(count)\n"),
            {"text": "Changed."},
        ],
    )
    assert played.found["outcome"] == "full"
    assert played.found["files"] == {name: text.replace("total", "tally") for name, text in files.items()}
    assert played.found["text"] == REAL.replace("total", "tally").replace("return count", "return str(count)")
    assert "1 new" in played.prompts[-1]["prompt"], "an error of our own servers, on the staged text"
    assert played.disk("a.py") == REAL


@pytest.fixture(autouse=True)
def _nothing_is_written(tmp_path: Path) -> Any:
    yield
    if (tmp_path / "ws").exists():  # else the test was left out
        assert (tmp_path / "ws" / "b.py").read_text() == "total\n"
