"""Agents from PyPI beside ours, each as its users run it, in a box (`boxed.py`). Ours and `run`: `agents_runs.py`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from tests.bench.agents_results import Ended
from tests.bench.agents_runs import SHORT, Limit, ModelServer, Run, committed, programs_of, run
from tests.bench.tasks import Task


@dataclass(frozen=True, slots=True)
class Aider:
    """`aider-chat` in its own environment: whole files as answers, the project's tests after each edit.

    It is given the files that have to change, as its users add them to its chat; ours has to find them.
    """

    name: str
    server: ModelServer
    home: Path
    python: str

    def work(self, task: Task, project: Path, limit: Limit) -> Ended:
        """See `Agent`."""
        committed(project)
        self.home.mkdir(parents=True, exist_ok=True)
        names = ("max_tokens", "max_input_tokens", "max_output_tokens")
        window = dict.fromkeys(names, self.server.window)
        costs = {"input_cost_per_token": 0, "output_cost_per_token": 0}
        about = {f"openai/{self.server.model}": {**window, **costs, "litellm_provider": "openai", "mode": "chat"}}
        (self.home / ".aider.model.metadata.json").write_text(json.dumps(about))
        environment = {"HOME": str(self.home), "LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_COLOR": "1"}
        environment |= programs_of(task)
        command = self.server.box.command(self._command(task), [project, self.home])
        return _of_aider(run(command, project, environment, limit))

    def _command(self, task: Task) -> list[str]:
        given = dict.fromkeys([task.place, *task.also, *named_files(task)])
        files = [word for name in given if name not in task.tests for word in ("--file", name)]
        files += [word for name in task.tests for word in ("--read", name)]  # so that it cannot change what judges it
        return [
            self.python, "-m", "aider", "--model", f"openai/{self.server.model}",
            "--openai-api-base", f"{self.server.url}/v1", "--openai-api-key", "none", "--edit-format", "whole",
            "--model-metadata-file", str(self.home / ".aider.model.metadata.json"),
            "--yes-always", "--no-auto-commits", "--no-dirty-commits", "--no-gitignore", "--no-pretty",
            "--no-check-update", "--no-show-release-notes", "--no-show-model-warnings", "--analytics-disable",
            "--no-suggest-shell-commands", "--no-detect-urls", "--no-fancy-input",
            "--chat-history-file", str(self.home / "chat.md"), "--input-history-file", str(self.home / "input"),
            *(["--auto-test", "--test-cmd", "python -m unittest"] if task.tests else []),
            "--message", task.words, *files,
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
        spent=ended.spent,
        output=ended.output,
        crashed=ended.code != 0 and not ended.ended,
        refused="conform to the edit format" in ended.output,
    )


@dataclass(frozen=True, slots=True)
class MiniSwe:
    """`mini-swe-agent` with its prompts for models without native calls."""

    name: str
    server: ModelServer
    home: Path
    python: str

    def work(self, task: Task, project: Path, limit: Limit) -> Ended:
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
            **programs_of(task),
        }
        self._trajectory.unlink(missing_ok=True)
        command = self.server.box.command(self._command(task), [project, self.home])
        ended = run(command, project, environment, limit)
        return _of_mini(ended, self._trajectory)

    @property
    def _trajectory(self) -> Path:
        return self.home / "last.json"

    def _command(self, task: Task) -> list[str]:
        settings = ["mini_textbased.yaml", f"model.model_kwargs.api_base={self.server.url}/v1"]
        return [
            str(Path(self.python).with_name("mini")), "--model", f"openai/{self.server.model}", "--task", task.words,
            "--yolo", "--exit-immediately", "--model-class", "litellm_textbased",
            "--output", str(self._trajectory), *(word for setting in settings for word in ("--config", setting)),
        ]  # fmt: skip


def _of_mini(ended: Run, trajectory: Path) -> Ended:
    try:
        status = str(json.loads(trajectory.read_text())["info"]["exit_status"])
    except (OSError, ValueError, LookupError):
        status = "no end"
    said_done = status == "Submitted" and not ended.ended
    crashed = ended.code != 0 and not ended.ended
    return Ended(
        status, said_done, ended.seconds, output=ended.output, late=ended.late, spent=ended.spent, crashed=crashed
    )


def named_files(task: Task) -> list[str]:
    """The files of the project that the user's words name."""
    return [name for name in task.files if re.search(rf"(?<![\w/]){re.escape(name)}(?!\w)", task.words, re.ASCII)]
