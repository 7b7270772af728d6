"""Batches of small tasks for a scripted model: their files, the command, what is left of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeagent_lsp.batch.results import RESULTS, TaskResult, parsed
from tests.children import command_lines
from tests.server.warm import COLD, quick_starts

COMMAND = (sys.executable, "-m", "codeagent_lsp.cli", "batch")
SECONDS = 240.0
PROGRAM = "def double(x):\n    return x + x + x\n"
MENDED = PROGRAM.replace("x + x + x", "x + x")
PASSES = "python3 -c 'import program; assert program.double(2) == 4'"
EDIT = {"path": "program.py", "old_str": "x + x + x", "new_str": "x + x"}
MENDING: tuple[Mapping[str, Any], ...] = (
    {"tool_calls": [{"name": "edit_file", "arguments": EDIT}]},
    {"text": "Mended."},
)


@dataclass(frozen=True)
class BatchRig:
    """A project to begin with, tasks, a script and the results, below `root`; `before` goes before each command."""

    root: Path
    before: tuple[str, ...] = ()

    @property
    def project(self) -> Path:
        """The folder that the tasks begin with."""
        folder = self.root / "project"
        if not folder.exists():
            folder.mkdir(parents=True)
            (folder / "program.py").write_text(PROGRAM)
        return folder

    @property
    def out(self) -> Path:
        return self.root / "out"

    @property
    def state(self) -> Path:
        return self.root / "state"

    def task(self, name: str = "one", **more: Any) -> dict[str, Any]:
        """A task that the script solves."""
        place = {} if "repo" in more else {"folder": str(self.project)}
        return {"id": name, **place, "task": "Mend double", "check": PASSES, **more}

    def command(self, tasks: Iterable[Mapping[str, Any]], *options: str, script: Any = MENDING) -> list[str]:
        """The command line of a batch."""
        given, replies = self.root / "tasks.jsonl", self.root / "script.json"
        given.write_text("".join(f"{json.dumps(task)}\n" for task in tasks))
        replies.write_text(json.dumps(list(script)))
        model = ("--set", "model.provider=scripted", "--set", f"model.name={replies}")
        return [*self.before, *COMMAND, str(given), "--out", str(self.out), *model, *options]

    def environ(self) -> dict[str, str]:
        """What our programs start quickly in, but not beyond `before`, where a fork would not be."""
        quick = COLD if self.before else quick_starts()
        return {**os.environ, **quick, "CODEAGENT_STATE_DIR": str(self.state), "LANG": "C.UTF-8"}

    def run(
        self, tasks: Iterable[Mapping[str, Any]], *options: str, script: Any = MENDING, seconds: float = SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """Run a batch to its end."""
        return subprocess.run(
            self.command(tasks, *options, script=script),
            capture_output=True,
            encoding="utf-8",
            timeout=seconds,
            env=self.environ(),
            check=False,
        )

    def start(
        self, tasks: Iterable[Mapping[str, Any]], *options: str, out: int = subprocess.PIPE
    ) -> subprocess.Popen[str]:
        """Start a batch as users start it, so that it can be killed; `out` gets what it says."""
        python, *words = self.command(tasks, *options)[len(self.before) :]
        command = [*self.before, python, "-I", *words]  # what is in PYTHONPATH is for the servers alone
        return subprocess.Popen(command, stdout=out, env=self.environ(), encoding="utf-8")

    def results(self) -> dict[str, TaskResult]:
        """The lines of `results.jsonl`, by id; none twice."""
        lines = (self.out / "results.jsonl").read_text().splitlines()
        found = {result.id: result for result in read_results(self.out)}
        assert len(lines) == len(found)
        return found

    def finished(self) -> set[str]:
        """The ids of the tasks that a kill would not undo any more."""
        return {path.parent.name for path in self.out.glob("*/result.json")}

    def left_over(self) -> list[Path]:
        """Folders of tasks, and our state of them, that should be gone."""
        return [*self.out.glob(".work/*"), *self.state.glob("workspaces/*")]


def workers_of(driver: int) -> list[int]:
    """The process ids of the local workers of a batch."""
    return [pid for pid, words in command_lines(parent=driver).items() if "spawn_main" in words]


def until(holds: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def read_results(path: Path) -> tuple[TaskResult, ...]:
    """Return the results in a folder's `results.jsonl`; of two with one id the later."""
    lines = (path / RESULTS).read_text(encoding="utf-8").split("\n") if (path / RESULTS).exists() else ()
    found = {result.id: result for line in lines if (result := parsed(line)) is not None}
    return tuple(found.values())
