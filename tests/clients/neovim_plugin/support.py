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

from tests.clients.neovim.support import ROOT, environment, find_neovim, left_behind

PLUGIN = ROOT / "editors" / "neovim"
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
    plan = {"workspace": str(folder / "ws"), **_plan(folder, "", scenario)}
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


class Editor:
    """A Neovim with the plugin: plays one scenario after the other, each on files, a script and a session of its own.

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
            self._folder.mkdir()
            init = prepare(self._folder, files={}, script=script)
            start = {"workspace": str(self._folder / "ws"), "folder": str(self._folder)}
            self._process = subprocess.Popen(
                _start(self._folder, init, "play_all", start),
                cwd=self._folder / "ws",
                env=environment(self._folder / "home", self._folder / "state"),
                stdin=subprocess.DEVNULL,
                stdout=(self._folder / "said").open("wb"),
                stderr=subprocess.STDOUT,
            )
        self._count += 1
        folder, workspace = self._folder, self._folder / "ws"
        for entry in workspace.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        _write(workspace, files)
        plan = _plan(folder, f"{self._count}-", scenario)
        Path(plan["script"]).write_text(json.dumps(list(script)))
        (folder / f"{self._count}.part").write_text(json.dumps(plan))
        (folder / f"{self._count}.part").rename(folder / f"{self._count}.json")
        record, deadline = Path(plan["record"]), time.monotonic() + 2 * SECONDS
        try:
            while not record.exists():
                assert self._process.poll() is None, (folder / "said").read_text(errors="replace")
                assert time.monotonic() < deadline, "the scenario never ended"
                time.sleep(0.01)
            return _played(workspace, record, (folder / "said").read_text(errors="replace"))
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


def _plan(folder: Path, prefix: str, scenario: str) -> dict[str, str]:
    plan = {
        "script": str(folder / f"{prefix}script.json"),
        "scenario": str(folder / f"{prefix}scenario.lua"),
        "record": str(folder / f"{prefix}record.json"),
    }
    Path(plan["scenario"]).write_text(f"local rig = ...\n{scenario}")
    return plan


def _start(folder: Path, init: Path, how: str, plan: Mapping[str, str]) -> list[str]:
    (folder / "plan.json").write_text(json.dumps(plan))
    with init.open("a") as more:
        more.write(f"dofile([[{RIG}]]).{how}(vim.json.decode(io.open([[{folder / 'plan.json'}]]):read('a')))\n")
    return [neovim(), "--clean", "--headless", "-u", str(init)]


def _played(workspace: Path, path: Path, said: str) -> Played:
    record = json.loads(path.read_text())
    assert "problem" not in record, f"{record}\n{said}"
    return Played(workspace, record["found"], record["told"], record["prompts"])


def _write(workspace: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


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
    _write(folder / "ws", files)
    (folder / "script.json").write_text(json.dumps(list(script)))
    model = {"provider": "scripted", "name": str(folder / "script.json")}
    section = {"settings": {"codeagent": {"model": model, **(settings or {})}}}
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
