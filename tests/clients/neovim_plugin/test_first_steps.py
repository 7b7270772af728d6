"""From nothing to a first accepted edit by the words of the README, counted and timed; and what packagers are given."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from codeagent_lsp import __version__
from tests.clients.neovim.support import MARKS, ROOT, SOURCE, edit, environment
from tests.clients.neovim_plugin.support import PACKAGING, PLUGIN, has_tmux, neovim
from tests.clients.scenarios import left_behind
from tests.clients.terminal.screen import Screen
from tests.llm.providers.fake_chat import FakeChat
from tests.llm.providers.fake_server import Said, serving_aside

pytestmark = MARKS

EXAMPLE = 'baseUrl = "http://127.0.0.1:8080/v1", name = "my-model"'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a project, a script for the model, and `codeagent-lsp` on PATH, as `pipx` leaves it."""
    for name in ("home/config/nvim", "ws/.git", "state", "bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "ws" / "a.py").write_text(SOURCE)
    (tmp_path / "script.json").write_text(json.dumps([edit("return 3", "return 4"), {"text": "Changed."}]))
    program = tmp_path / "bin" / "codeagent-lsp"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m codeagent_lsp.cli "$@"\n')
    program.chmod(0o755)
    return tmp_path


def variables_of(home: Path) -> dict[str, str]:
    variables = environment(home / "home", home / "state")
    variables.pop("VIRTUAL_ENV", None)
    return {**variables, "PATH": f"{home / 'bin'}:{variables['PATH']}", "TERM": "xterm-256color"}


def snippets(home: Path) -> list[str]:
    """What the README says to write into `init.lua`: the way by hand, and the model."""
    blocks = re.findall(r"```lua\n(.*?)```", (PLUGIN / "README.md").read_text(), re.DOTALL)
    by_hand, model = blocks[0], next(block for block in blocks if EXAMPLE in block)
    scripted = f'provider = "scripted", name = "{home / "script.json"}"'
    return [by_hand.replace("/path/to/codeagent-lsp", str(ROOT)), model.replace(EXAMPLE, scripted)]


@pytest.mark.journey
@pytest.mark.skipif(not has_tmux(), reason="no tmux here")
def test_from_nothing_to_a_first_accepted_edit(home: Path) -> None:
    written = "".join(snippets(home))
    (home / "home" / "config" / "nvim" / "init.lua").write_text(written)
    began = time.monotonic()
    screen = Screen(home, ["sh", "-c", f"cd {home / 'ws'} && exec {neovim()} -n a.py"], variables_of(home))
    try:
        screen.wait("def three")
        keys = [":CodeAgent run make three return four", "Enter"]
        screen.keys(*keys)
        screen.wait("2: Apply")
        keys += ["2", "Enter"]
        screen.keys("2", "Enter")
        screen.wait(lambda shown: "return 4" in shown and "return 3" not in shown)
        seconds = time.monotonic() - began
        screen.keys(":qa!", "Enter")
    finally:
        screen.close()
    lines = len([line for line in written.splitlines() if line.strip()])
    pressed = sum(len(key) if key.startswith(":") else 1 for key in keys)
    print(
        f"{lines} lines of configuration, {pressed} keys, 2 of them to decide, {seconds:.1f} s from the start of Neovim"
    )
    assert lines <= 6
    assert seconds < 60
    assert not left_behind(home / "state"), "the server outlived the editor"


INSTALLER = """#!/bin/sh
# A Python that "installs" at once what stands in for the server.
case "$2" in
*venv*) mkdir -p "$3/bin" && cp {program} "$3/bin/" && echo installed from "$5" ;;
*) exec {python} "$@" ;;
esac
"""


PYTHONS = re.findall(r'"(python[\d.]*)"', (PLUGIN / "lua" / "codeagent" / "setup.lua").read_text())


def newcomer(home: Path) -> dict[str, str]:
    """The variables of somebody without a server, whose Python installs one at once."""
    hidden = (home / "bin" / "codeagent-lsp").rename(home / "codeagent-lsp")
    # By every name that is looked for: on a busy machine the first may be passed over.
    for name in PYTHONS:
        python = home / "bin" / name
        python.write_text(INSTALLER.format(program=hidden, python=sys.executable))
        python.chmod(0o755)
    variables = variables_of(home)
    plain = [each for each in variables["PATH"].split(":") if not (Path(each) / "codeagent-lsp").exists()]
    (home / "home" / "config" / "nvim" / "init.lua").write_text(snippets(home)[0])
    return {**variables, "PATH": ":".join(plain), "CODEAGENT_CONFIG_DIR": str(home / "config")}


@pytest.mark.journey
@pytest.mark.skipif(not has_tmux(), reason="no tmux here")
def test_without_server_and_model_each_screen_leads_on_and_the_task_is_not_lost(home: Path) -> None:
    variables = newcomer(home)
    fake = FakeChat(Said("Rust"), Said("It is three."))
    screen = Screen(home, ["sh", "-c", f"cd {home / 'ws'} && exec {neovim()} -n a.py"], variables)
    try:
        with serving_aside(fake) as url:
            screen.wait(":CodeAgent install")
            screen.keys(":CodeAgent ask what is three?", "Enter")
            screen.wait("1: Install it now")
            screen.keys("1", "Enter")
            screen.wait("Number, or q to end")
            screen.keys("q", "Enter")
            screen.wait(":CodeAgent setup asks again")
            screen.keys(":CodeAgent run what is three?", "Enter")
            screen.wait(":CodeAgent setup chooses a model")
            screen.keys(":CodeAgent setup", "Enter")
            screen.wait("Number, or q to end")
            for words, following in (("7", "Its address"), (f"{url}/v1", "Key (not shown)"), ("k", "Model: [m]")):
                screen.keys(words, "Enter")
                screen.wait(following)
            screen.keys("Enter")
            screen.wait(lambda shown: shown.count("## what is three?") == 2)
            screen.wait("It is three.")
            screen.keys(":qa!", "Enter")
    finally:
        screen.close()
    assert not left_behind(home / "state"), "the server outlived the editor"


def test_the_configuration_for_nvim_lspconfig_works_without_the_plugin(home: Path) -> None:
    folder = home / "home" / "config" / "nvim" / "lsp"
    folder.mkdir()
    (folder / "codeagent.lua").write_text((PACKAGING / "nvim-lspconfig" / "codeagent.lua").read_text())
    code = (
        "vim.wait(15000, function() local c = vim.lsp.get_clients({ name = 'codeagent' })[1]"
        " return c and c.initialized end, 20)"
        " local c = vim.lsp.get_clients({ name = 'codeagent' })[1]"
        " io.stdout:write(c.root_dir .. ' ' .. c.server_info.name)"
    )
    command = [neovim(), "--headless", "-n", "--cmd", "lua vim.lsp.enable('codeagent')", "a.py", "-c", f"lua {code}"]
    done = subprocess.run(
        [*command, "-c", "qa!"], cwd=home / "ws", env=variables_of(home), capture_output=True, timeout=60, check=False
    )
    assert done.stdout.decode() == f"{home / 'ws'} codeagent-lsp", done.stderr.decode()
    assert not left_behind(home / "state")


DECIDING = """
local function wait(what, holds) assert(vim.wait(20000, holds, 20), what) end
local function current() return vim.lsp.get_clients({ name = "codeagent" })[1] end
local wanted, asked = { "Review", "apply this change" }, {}
vim.ui.select = function(items, options, done)
  for _, item in ipairs(items) do
    local title = options.format_item(item)
    if title:find(wanted[1] or "nothing", 1, true) then
      table.remove(wanted, 1)
      return done(item)
    end
  end
  table.insert(asked, options.prompt)
  done(nil)
end
wait("server", function() return current() and current().initialized end)
local code = vim.api.nvim_get_current_buf()
current():exec_cmd({ title = "go", command = "codeagent.run", arguments = { { task = "change it" } } })
wait("review", function() return #vim.fn.win_findbuf(vim.fn.bufnr("documents/review")) > 0 end)
vim.api.nvim_set_current_win(vim.fn.win_findbuf(vim.fn.bufnr("documents/review"))[1])
wait("its client", function() return #vim.lsp.get_clients({ bufnr = 0 }) > 0 end)
vim.fn.search("return 4")
local began
vim.lsp.buf.code_action()
wait("action", function() return #wanted == 0 end)
began = vim.uv.hrtime()
wait("new text", function() return table.concat(vim.api.nvim_buf_get_lines(code, 0, -1, true)):find("return 4") end)
io.stdout:write(vim.json.encode({ seconds = (vim.uv.hrtime() - began) / 1e9, asked = asked,
  servers = #vim.lsp.get_clients(), root = current().root_dir }))
"""


def test_with_the_shortest_configuration_one_server_serves_code_and_review(home: Path) -> None:
    (configuration,) = re.findall(r"```lua\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    model = {"provider": "scripted", "name": str(home / "script.json")}
    options = (
        f"vim.lsp.config('codeagent', {{ init_options = {{ model = vim.json.decode([[{json.dumps(model)}]]) }} }})"
    )
    (home / "home" / "config" / "nvim" / "init.lua").write_text(f"{configuration}\n{options}\n")
    (home / "deciding.lua").write_text(DECIDING)
    command = [neovim(), "--headless", "-n", "a.py", "-c", f"luafile {home / 'deciding.lua'}", "-c", "qa!"]
    done = subprocess.run(
        command, cwd=home / "ws", env=variables_of(home), capture_output=True, timeout=90, check=False
    )
    found = json.loads(done.stdout or done.stderr)
    print(f"an accepted hunk was in the buffer {found['seconds']:.2f} s after the choice")
    assert found["servers"] == 1
    assert found["root"] == str(home / "ws")
    assert found["asked"] == [], "no question comes over the review"
    assert found["seconds"] < 3
    assert not left_behind(home / "state")


def test_the_package_for_mason_is_the_one_that_is_released() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    package = (PACKAGING / "mason" / "package.yaml").read_text()
    assert f"id: pkg:pypi/{project['name']}@{__version__}" in package
    (program,) = project["scripts"]
    assert f"bin:\n  {program}: pypi:{program}\n" in package
    assert f"name: {project['name']}\n" in package
    assert f"  - {project['license']}\n" in package
    assert "neovim:\n  lspconfig: codeagent\n" in package
