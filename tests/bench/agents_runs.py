"""The agents that are compared, each as a command that is run in a project with a limit of time. No counting here."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.bench.agents_results import Ended
from tests.bench.tasks import Task
from tests.children import command_lines

ROOT = Path(__file__).parents[2]  # the checkout whose agent is measured, not the one that is installed
GRACE_SECONDS = 5.0
WINDOW = 8192
KEPT_OUT = ("CODEAGENT_", "OPENAI_", "AIDER_", "PYTHON")
SHORT = 300


@dataclass(frozen=True, slots=True)
class Run:
    """The end of a process: its exit code, what it printed, how long it took, whether it was ended at its limit."""

    code: int
    output: str
    seconds: float
    late: bool


class Agent(Protocol):
    """Something that works on a task in a folder."""

    @property
    def name(self) -> str:
        """As on the command line and in the results."""
        ...

    def work(self, task: Task, project: Path, limit_seconds: float) -> Ended:
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

    def work(self, task: Task, project: Path, limit_seconds: float) -> Ended:
        """See `Agent`."""
        settings = {"model.baseUrl": f"{self.url}/v1", "model.name": self.model}
        if self.form:
            settings["agent.answerForm"] = self.form
        command = [sys.executable, "-m", "codeagent_lsp.cli", "run", "--yes", "--json", "--workspace", str(project)]
        command += ["--attempts", str(self.attempts)]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        environment = {"CODEAGENT_STATE_DIR": str(self.home / "state"), "PYTHONPATH": str(ROOT)}
        return _of_ours(run([*command, task.words], project, environment, limit_seconds))


def _of_ours(ended: Run) -> Ended:
    events = [event for line in ended.output.splitlines() if (event := _event(line))]
    last = next((event for event in reversed(events) if event.get("type") == "run_completed"), None)
    if last is None:
        words = ended.output.strip().splitlines()[-1:] or [""]
        crashed = not ended.late
        return Ended("no end", False, ended.seconds, words[0][:SHORT], ended.output, late=ended.late, crashed=crashed)
    status = str(last.get("status"))
    return Ended(
        status=status,
        said_done=status == "completed" and ended.code == 0,
        seconds=ended.seconds,
        error=str(last.get("error") or ("" if status == "completed" else last.get("summary") or ""))[:SHORT],
        output=ended.output,
        late=ended.late,
        crashed=status == "failed" and ended.code not in (0, 1),
        refused=any(event.get("type") == "tool_result" and not event.get("success", True) for event in events),
    )


def _event(line: str) -> Mapping[str, object] | None:
    if not line.startswith("{"):
        return None
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


@dataclass(frozen=True, slots=True)
class Aider:
    """`aider-chat` in its own environment: whole files as answers, the project's tests after each edit.

    It is given the files that have to change, as its users add them to its chat; ours has to find them.
    """

    name: str
    url: str
    model: str
    home: Path
    python: str

    def work(self, task: Task, project: Path, limit_seconds: float) -> Ended:
        """See `Agent`."""
        _commit(project)
        self.home.mkdir(parents=True, exist_ok=True)
        window = {"max_tokens": WINDOW, "max_input_tokens": WINDOW, "max_output_tokens": WINDOW}
        costs = {"input_cost_per_token": 0, "output_cost_per_token": 0}
        about = {f"openai/{self.model}": {**window, **costs, "litellm_provider": "openai", "mode": "chat"}}
        (self.home / ".aider.model.metadata.json").write_text(json.dumps(about))
        environment = {"HOME": str(self.home), "LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_COLOR": "1"}
        return _of_aider(run(self._command(task), project, environment, limit_seconds))

    def _command(self, task: Task) -> list[str]:
        given = dict.fromkeys([task.place, *task.also, *named_files(task)])
        files = [word for name in given if name not in task.tests for word in ("--file", name)]
        files += [word for name in task.tests for word in ("--read", name)]  # so that it cannot change what judges it
        return [
            self.python, "-m", "aider", "--model", f"openai/{self.model}",
            "--openai-api-base", f"{self.url}/v1", "--openai-api-key", "none", "--edit-format", "whole",
            "--model-metadata-file", str(self.home / ".aider.model.metadata.json"),
            "--yes-always", "--no-auto-commits", "--no-dirty-commits", "--no-gitignore", "--no-pretty",
            "--no-check-update", "--no-show-release-notes", "--no-show-model-warnings", "--analytics-disable",
            "--no-suggest-shell-commands", "--no-detect-urls", "--no-fancy-input",
            "--chat-history-file", str(self.home / "chat.md"), "--input-history-file", str(self.home / "input"),
            "--auto-test", "--test-cmd", "python -m unittest", "--message", task.words, *files,
        ]  # fmt: skip


def _of_aider(ended: Run) -> Ended:
    verdicts = re.findall(r"^(OK|FAILED)\b", ended.output, re.MULTILINE)
    passed = bool(verdicts) and verdicts[-1] == "OK"
    status = ("tests passed" if passed else "tests failed") if verdicts else "no tests run"
    problem = re.search(r"^.*(?:conform to the edit format|litellm\.\w*Error).*$", ended.output, re.MULTILINE)
    return Ended(
        status=status,
        said_done=ended.code == 0 and passed,
        seconds=ended.seconds,
        error=problem[0][:SHORT] if problem else "",
        late=ended.late,
        output=ended.output,
        crashed=ended.code != 0 and not ended.late,
        refused="conform to the edit format" in ended.output,
    )


@dataclass(frozen=True, slots=True)
class MiniSwe:
    """`mini-swe-agent` with its prompts for models without native calls; in a sandbox, as it runs what they write."""

    name: str
    url: str
    model: str
    home: Path
    python: str

    def work(self, task: Task, project: Path, limit_seconds: float) -> Ended:
        """See `Agent`."""
        self.home.mkdir(parents=True, exist_ok=True)
        environment = {
            "HOME": str(self.home),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "MSWEA_CONFIGURED": "true",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "MSWEA_GLOBAL_CONFIG_DIR": str(self.home),
            "MSWEA_SILENT_STARTUP": "1",
            "OPENAI_API_KEY": "none",
        }
        self._trajectory.unlink(missing_ok=True)
        ended = run([*self._sandbox(project), *self._command(task)], project, environment, limit_seconds)
        return _of_mini(ended, self._trajectory)

    @property
    def _trajectory(self) -> Path:
        return self.home / "last.json"

    def _sandbox(self, project: Path) -> list[str]:
        """Only the project and its own home can be written; the model's server is on loopback."""
        writable = [word for place in (project, self.home) for word in ("--bind", str(place), str(place))]
        return ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *writable, "--die-with-parent"]

    def _command(self, task: Task) -> list[str]:
        settings = ["mini_textbased.yaml", f"model.model_kwargs.api_base={self.url}/v1"]
        return [
            str(Path(self.python).with_name("mini")), "--model", f"openai/{self.model}", "--task", task.words,
            "--yolo", "--exit-immediately", "--model-class", "litellm_textbased",
            "--output", str(self._trajectory), *(word for setting in settings for word in ("--config", setting)),
        ]  # fmt: skip


def _of_mini(ended: Run, trajectory: Path) -> Ended:
    try:
        status = str(json.loads(trajectory.read_text())["info"]["exit_status"])
    except (OSError, ValueError, LookupError):
        status = "no end"
    said_done = status == "Submitted" and not ended.late
    crashed = ended.code != 0 and not ended.late
    return Ended(status, said_done, ended.seconds, output=ended.output, late=ended.late, crashed=crashed)


def named_files(task: Task) -> list[str]:
    """The files of the project that the user's words name."""
    return [name for name in task.files if re.search(rf"(?<![\w/]){re.escape(name)}(?!\w)", task.words, re.ASCII)]


def _commit(project: Path) -> None:
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "begin"]):
        subprocess.run([*git, *arguments], cwd=project, check=True)


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str], limit_seconds: float) -> Run:
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
    try:
        said, _ = process.communicate(timeout=limit_seconds)
        late = False
    except subprocess.TimeoutExpired:
        late, said = True, end_tree(process)
    return Run(process.returncode, said.decode("utf-8", "replace"), time.monotonic() - begun, late)


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
