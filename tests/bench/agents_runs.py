"""Running an agent in a project to its end or to a limit, and our own agent. No counting here.

The others: `agents_peers.py` (from PyPI), `agents_node.py` (from npm).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tests.bench.agents_results import Ended
from tests.bench.boxed import Box
from tests.bench.tasks import Task
from tests.children import command_lines

ROOT = Path(__file__).parents[2]  # the checkout whose agent is measured, not the one that is installed
GRACE_SECONDS = 5.0
LOOK_SECONDS = 0.2  # how often the limit of tokens is looked at
WINDOW = 8192
KEPT_OUT = ("CODEAGENT_", "OPENAI_", "AIDER_", "OPENCODE_", "PI_", "XDG_", "PYTHON")
SHORT = 300


@dataclass(frozen=True, slots=True)
class Limit:
    """How long an agent may work: so many seconds, and until `spent` is set, which the proxy does at its tokens."""

    seconds: float
    spent: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class ModelServer:
    """What an agent is told of its model: the root of the proxy's URL, the name, the tokens of its window; and the box
    to run in.
    """

    url: str
    model: str
    window: int
    box: Box


@dataclass(frozen=True, slots=True)
class Run:
    """The end of a process: its exit code, what it printed, how long it took, whether it was ended at a limit: `late`
    at that of time, `spent` at that of tokens.
    """

    code: int
    output: str
    seconds: float
    late: bool
    spent: bool = False

    @property
    def ended(self) -> bool:
        """Whether it was ended."""
        return self.late or self.spent


class Agent(Protocol):
    """Something that works on a task in a folder."""

    @property
    def name(self) -> str:
        """As on the command line and in the results."""
        ...

    def work(self, task: Task, project: Path, limit: Limit) -> Ended:
        """Do the task in this folder."""
        ...


@dataclass(frozen=True, slots=True)
class Ours:
    """`codeagent-lsp run`; `form` is a value of agent.answerForm, '' for the default; `home` keeps state. Of several
    `attempts` the best is taken.
    """

    name: str
    url: str
    model: str
    home: Path
    form: str = ""
    attempts: int = 1

    def work(self, task: Task, project: Path, limit: Limit) -> Ended:
        """See `Agent`."""
        settings = {"model.baseUrl": f"{self.url}/v1", "model.name": self.model}
        if self.form:
            settings["agent.answerForm"] = self.form
        command = [sys.executable, "-m", "codeagent_lsp.cli", "run", "--yes", "--json", "--workspace", str(project)]
        command += ["--attempts", str(self.attempts)]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        environment = {"CODEAGENT_STATE_DIR": str(self.home / "state"), "PYTHONPATH": str(ROOT), **programs_of(task)}
        return _of_ours(run([*command, task.words], project, environment, limit))


def _of_ours(ended: Run) -> Ended:
    events = events_of(ended.output)
    last = next((event for event in reversed(events) if event.get("type") == "run_completed"), None)
    if last is None:
        words = ended.output.strip().splitlines()[-1:] or [""]
        return Ended(
            "no end", False, ended.seconds, words[0][:SHORT], ended.output,
            late=ended.late, spent=ended.spent, crashed=not ended.ended,
        )  # fmt: skip
    status = str(last.get("status"))
    return Ended(
        status=status,
        said_done=status == "completed" and ended.code == 0,
        seconds=ended.seconds,
        error=str(last.get("error") or ("" if status == "completed" else last.get("summary") or ""))[:SHORT],
        output=ended.output,
        late=ended.late,
        spent=ended.spent,
        crashed=status == "failed" and ended.code not in (0, 1),
        refused=any(event.get("type") == "tool_result" and not event.get("success", True) for event in events),
    )


def events_of(output: str) -> list[Mapping[str, Any]]:
    """Return the JSON objects among the lines of what an agent printed."""
    found: list[Mapping[str, Any]] = []
    for line in output.splitlines():
        try:
            event = json.loads(line) if line.startswith("{") else None
        except ValueError:
            continue
        if isinstance(event, dict):
            found.append(event)
    return found


def committed(project: Path) -> None:
    """Make a project a repository of git with one commit."""
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "begin"]):
        subprocess.run([*git, *arguments], cwd=project, check=True)


def programs_of(task: Task) -> dict[str, str]:
    """Return the variables by which a task's own programs come first, as in a user's terminal; {} if it has none."""
    if not task.programs:
        return {}
    path = os.pathsep.join([task.programs, str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {"PATH": path, "VIRTUAL_ENV": str(Path(task.programs).parent)}


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str], limit: Limit) -> Run:
    """Run a command to its end or to the limit, then end it and all that it started."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(KEPT_OUT)}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    begun = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**kept, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    said = None
    while said is None and not limit.spent.is_set() and (left := begun + limit.seconds - time.monotonic()) > 0:
        try:
            said, _ = process.communicate(timeout=min(left, LOOK_SECONDS))
        except subprocess.TimeoutExpired:
            continue
    spent = said is None and limit.spent.is_set()
    late = said is None and not spent
    said = end_tree(process) if said is None else said
    return Run(process.returncode, said.decode("utf-8", "replace"), time.monotonic() - begun, late, spent)


def end_tree(process: subprocess.Popen[bytes]) -> bytes:
    """Ask a process to end, then kill it with everything it started; what it still printed."""
    family = _descendants(process.pid)
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        pass  # killed below
    for pid in {*family, *_descendants(process.pid), process.pid}:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
    return process.communicate()[0] or b""


def _descendants(pid: int) -> set[int]:
    found, new = set[int](), {pid}
    while new:
        new = {child for parent in new for child in command_lines(parent=parent)} - found
        found |= new
    return found
