"""Plays a scenario in a real Neovim with our plugin, installed as a user installs it, against the real server."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typing_extensions import override

from tests.clients.neovim.support import ENDING, HEAD, ROOT, environment, find_neovim
from tests.clients.scenarios import Scenarios, left_behind, plan_of, put

PLUGIN = ROOT / "editors" / "neovim"
PACKAGING = ROOT / "packaging"
RIG = Path(__file__).with_name("rig.lua")
SERVER = (sys.executable, "-m", "codeagent_lsp.cli", "serve")
SECONDS = 90.0


@dataclass(frozen=True)
class Played:
    """What a scenario left: `found` is what it returned, `told` the notifications, `prompts` what was asked."""

    workspace: Path
    found: dict[str, Any]
    told: list[str]
    prompts: list[dict[str, Any]]

    def disk(self, name: str) -> str:
        """The text of a file on disk afterwards."""
        return (self.workspace / name).read_text()


def play(
    folder: Path,
    scenario: str,
    *,
    files: Mapping[str, str],
    script: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Played:
    """Run the body of a Lua function of `rig` in a Neovim of its own and give what it returned. Fails when a process is
    left behind.
    """
    init = prepare(folder, files=files, script=script, settings=settings, options=options)
    plan = {"workspace": str(folder / "ws"), **plan_of(folder, "", scenario, ending=ENDING, head=HEAD)}
    done = subprocess.run(
        _start(folder, init, "play", plan),
        cwd=folder / "ws",
        env=environment(folder / "home", folder / "state"),
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    said = (done.stdout + done.stderr).decode(errors="replace")
    assert Path(plan["record"]).exists(), said
    assert not left_behind(folder / "state"), "the server outlived the editor"
    return _played(folder / "ws", Path(plan["record"]), said)


class Editor(Scenarios[Played]):
    """A Neovim with the plugin."""

    ending, head = ENDING, HEAD

    @override
    def start(self, folder: Path, script: Sequence[Mapping[str, Any]]) -> tuple[list[str], Mapping[str, str]]:
        init = prepare(folder, files={}, script=script)
        plan = {"workspace": str(folder / "ws"), "folder": str(folder)}
        return _start(folder, init, "play_all", plan), environment(folder / "home", folder / "state")

    @override
    def read(self, workspace: Path, record: Path, said: str) -> Played:
        return _played(workspace, record, said)


def _start(folder: Path, init: Path, how: str, plan: Mapping[str, str]) -> list[str]:
    (folder / "plan.json").write_text(json.dumps(plan))
    with init.open("a") as more:
        more.write(f"dofile([[{RIG}]]).{how}(vim.json.decode(io.open([[{folder / 'plan.json'}]]):read('a')))\n")
    return [neovim(), "--clean", "--headless", "-u", str(init)]


def _played(workspace: Path, path: Path, said: str) -> Played:
    record = json.loads(path.read_text())
    assert "problem" not in record, f"{record}\n{said}"
    return Played(workspace, record["found"], record["told"], record["prompts"])


def prepare(
    folder: Path,
    *,
    files: Mapping[str, str],
    script: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Path:
    """A workspace, a script for the model, and an `init.lua` as a user writes it; the path of the last."""
    for name in ("ws", "state", "home"):
        (folder / name).mkdir(exist_ok=True)
    put(folder / "ws", files)
    (folder / "script.json").write_text(json.dumps(list(script)))
    model = {"provider": "scripted", "name": str(folder / "script.json")}
    # Scenarios write their files from outside, one after the other in one editor.
    section = {"settings": {"codeagent": {"model": model, "foreign": {"watch": "off"}, **(settings or {})}}}
    init = folder / "init.lua"
    init.write_text(
        f"vim.o.swapfile = false\n"
        f"vim.opt.rtp:prepend([[{PLUGIN}]])\n"
        f"vim.g.codeagent = vim.json.decode([==[{json.dumps({'cmd': SERVER, **(options or {})})}]==])\n"
        f"vim.lsp.config('codeagent', vim.json.decode([==[{json.dumps(section)}]==]))\n"
        f"vim.lsp.enable('codeagent')\n"
    )
    return init


def run_lua(code: str, *, seconds: float = 20.0) -> str:
    """What Lua code with the plugin on its path prints, in a Neovim without a screen and without a server."""
    started = time.monotonic()
    done = subprocess.run(
        [neovim(), "--clean", "--headless", "--cmd", f"set rtp^={PLUGIN}", "-l", "-"],
        input=code,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr} after {time.monotonic() - started:.1f} s"
    return done.stdout + done.stderr


def neovim() -> str:
    """The editor; callers are marked to be skipped where there is none."""
    found = find_neovim()
    assert found is not None
    return found


def has_tmux() -> bool:
    """Whether screens can be looked at here."""
    return shutil.which("tmux") is not None
