"""One editor that plays scenarios in turn: how a scenario reaches its rig, and what comes back. Each rig waits for
`1.json`, `2.json` and so on in a folder, with the paths of a scenario, a script and a record, until there is `end`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

P = TypeVar("P")


class Scenarios(ABC, Generic[P]):
    """An editor with a server that plays one scenario after the other, each on files, a script and a session of its
    own.

    One that could not play a scenario to its end is started anew for the next.
    """

    ending: ClassVar[str]
    head: ClassVar[str] = ""
    """The suffix and the first lines of a scenario's file."""
    seconds: ClassVar[float] = 90.0

    def __init__(self, folder: Path) -> None:
        self._root = folder
        self._starts = self._count = 0
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def start(self, folder: Path, script: Sequence[Mapping[str, Any]]) -> tuple[list[str], Mapping[str, str]]:
        """Make a workspace `ws` in an empty folder; return the command line of an editor in it, whose model follows the
        script at first, and its environment.
        """

    @abstractmethod
    def read(self, workspace: Path, record: Path, said: str) -> P:
        """Return what a scenario left; fail where it did. `said` is what the editor printed."""

    @property
    def _folder(self) -> Path:
        return self._root / str(self._starts)

    def play(self, scenario: str, *, files: Mapping[str, str], script: Sequence[Mapping[str, Any]]) -> P:
        """Run a scenario with the rig and give what it returned."""
        process = self._process or self._begin(script)
        self._count += 1
        folder, workspace = self._folder, self._folder / "ws"
        for entry in workspace.iterdir():
            if entry.name != ".git":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        put(workspace, files)
        plan = plan_of(folder, f"{self._count}-", scenario, ending=self.ending, head=self.head)
        Path(plan["script"]).write_text(json.dumps(list(script)))
        (folder / f"{self._count}.part").write_text(json.dumps(plan))
        (folder / f"{self._count}.part").rename(folder / f"{self._count}.json")
        record, deadline = Path(plan["record"]), time.monotonic() + 2 * self.seconds
        try:
            while not record.exists():
                assert process.poll() is None, self._said()
                assert time.monotonic() < deadline, "the scenario never ended"
                time.sleep(0.01)
            return self.read(workspace, record, self._said())
        except BaseException:
            process.kill()
            process.wait()
            self._process = None
            raise

    def close(self) -> None:
        """Leave it as a user does. Fails when a process is left behind."""
        if self._process is not None:
            (self._folder / "end").touch()
            assert self._process.wait(self.seconds) == 0
            assert not left_behind(self._folder / "state"), "the server outlived the editor"

    def _begin(self, script: Sequence[Mapping[str, Any]]) -> subprocess.Popen[bytes]:
        self._starts, self._count = self._starts + 1, 0
        self._folder.mkdir()
        command, variables = self.start(self._folder, script)
        self._process = subprocess.Popen(
            command,
            cwd=self._folder / "ws",
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=(self._folder / "said").open("wb"),
            stderr=subprocess.STDOUT,
        )
        return self._process

    def _said(self) -> str:
        return (self._folder / "said").read_text(errors="replace")


def plan_of(folder: Path, prefix: str, scenario: str, *, ending: str, head: str = "") -> dict[str, str]:
    """The paths of a scenario, which is written there, of its script and of its record."""
    plan = {
        "script": str(folder / f"{prefix}script.json"),
        "scenario": str(folder / f"{prefix}scenario.{ending}"),
        "record": str(folder / f"{prefix}record.json"),
    }
    Path(plan["scenario"]).write_text(f"{head}{scenario}")
    return plan


def put(workspace: Path, files: Mapping[str, str]) -> None:
    """Write files into a workspace, their line ends as they are."""
    for name, text in files.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_bytes(text.encode())


def left_behind(state: Path, seconds: float = 3.0) -> list[int]:
    """Processes that still carry the state folder of a scenario in their environment `seconds` later."""
    deadline = time.monotonic() + seconds
    while (found := _carrying(state)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def _carrying(state: Path) -> list[int]:
    mark = f"CODEAGENT_STATE_DIR={state}".encode()
    found = []
    for entry in (folder / "environ" for folder in Path("/proc").glob("[0-9]*")):
        try:
            variables = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if mark in variables:
            found.append(int(entry.parent.name))
    return found
