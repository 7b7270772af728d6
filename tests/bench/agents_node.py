"""Agents from npm beside ours, pi and opencode, each as its users run it without a person, in a box (`boxed.py`).

Each gets a fresh home for every task, with its own prompts and tools and nothing of ours; what they are told is the
model's URL, name and window. The scripts that fetch them are in `scripts/`. Ours and `run`: `agents_runs.py`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.agents_results import Ended
from tests.bench.agents_runs import ROOT, SHORT, Limit, ModelServer, Run, committed, events_of, programs_of, run
from tests.bench.tasks import Task

FETCH_SECONDS = 600.0
LOOKING = {"read", "grep", "glob", "find", "ls", "list"}
"""Their tools that change nothing. Neither has a word for done: who only looked and talked has not said so."""
REPLY_SHARE = 4
"""A reply may take this part of the window."""


class NotFetched(Exception):
    """An agent could not be fetched; the text says why and which script tries again."""


def fetched(name: str) -> str:
    """Return the path of a program that `scripts/get-NAME.sh` fetches. NotFetched if it cannot."""
    script = ROOT / "scripts" / f"get-{name}.sh"
    try:
        done = subprocess.run(["sh", str(script)], capture_output=True, text=True, timeout=FETCH_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", "") or "").strip().splitlines()[-1:] or [str(error)]
        raise NotFetched(f"{name} could not be fetched: {said[0]}. Try: sh scripts/{script.name}") from error
    return done.stdout.strip().splitlines()[-1]


@dataclass(frozen=True, slots=True)
class Pi:
    """`pi` in its mode for programs, which prints its events."""

    name: str
    server: ModelServer
    home: Path
    program: str

    def work(self, task: Task, project: Path, limit: Limit) -> Ended:
        """See `Agent`."""
        committed(project)
        _fresh(self.home)
        settings = self.home / ".pi" / "agent"
        settings.mkdir(parents=True)
        window = self.server.window
        model = {"id": self.server.model, "contextWindow": window, "maxTokens": window // REPLY_SHARE}
        provider = {"baseUrl": f"{self.server.url}/v1", "api": "openai-completions", "apiKey": "none"}
        (settings / "models.json").write_text(json.dumps({"providers": {"bench": {**provider, "models": [model]}}}))
        # Its defaults are for windows of 128,000 tokens and more: a small one would be compacted at every turn.
        kept = {"reserveTokens": min(16384, window // REPLY_SHARE), "keepRecentTokens": min(20000, window // 2)}
        (settings / "settings.json").write_text(json.dumps({"compaction": kept}))
        command = [self.program, "--mode", "json", "--model", f"bench/{self.server.model}", "--", task.words]
        environment = {**_places(self.home), **programs_of(task), "PI_OFFLINE": "1", "PI_TELEMETRY": "0"}
        return _of_pi(run(self.server.box.command(command, [project, self.home]), project, environment, limit))


def _of_pi(ended: Run) -> Ended:
    events = events_of(ended.output)
    said = [event["message"] for event in events if event.get("type") == "message_end"]
    last: Mapping[str, Any] = next((each for each in reversed(said) if each.get("role") == "assistant"), {})
    ran = [event for event in events if event.get("type") == "tool_execution_end"]
    settled = any(event.get("type") == "agent_settled" and not event.get("aborted") for event in events)
    status = str(last.get("stopReason") or "no end")
    return Ended(
        status=status,
        said_done=settled
        and status == "stop"
        and ended.code == 0
        and not ended.ended
        and any(event.get("toolName") not in LOOKING for event in ran),
        seconds=ended.seconds,
        error=_short(last.get("errorMessage")),
        output=ended.output,
        late=ended.late,
        spent=ended.spent,
        crashed=not settled and not ended.ended,
        refused=any(event.get("isError") for event in ran),
    )


@dataclass(frozen=True, slots=True)
class OpenCode:
    """`opencode run`, which prints its events, with all permissions, as nobody is there to be asked."""

    name: str
    server: ModelServer
    home: Path
    program: str

    def work(self, task: Task, project: Path, limit: Limit) -> Ended:
        """See `Agent`."""
        committed(project)
        _fresh(self.home)
        window = self.server.window
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{self.server.url}/v1", "apiKey": "none"},
            "models": {self.server.model: {"limit": {"context": window, "output": window // REPLY_SHARE}}},
        }
        name = f"bench/{self.server.model}"
        settings: dict[str, object] = {"provider": {"bench": provider}, "model": name, "small_model": name}
        settings |= {"autoupdate": False, "share": "disabled"}
        place = self.home / ".config" / "opencode"
        place.mkdir(parents=True)
        (place / "opencode.json").write_text(json.dumps(settings))
        environment = {**_places(self.home), **programs_of(task)}
        environment["PWD"] = str(project)  # opencode 1.18 takes its folder from there
        environment |= {f"OPENCODE_DISABLE_{what}": "1" for what in ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD")}
        command = [self.program, "run", "--auto", "--format", "json", "--", task.words]
        return _of_opencode(run(self.server.box.command(command, [project, self.home]), project, environment, limit))


def _of_opencode(ended: Run) -> Ended:
    events = events_of(ended.output)
    parts: list[Mapping[str, Any]] = [event["part"] for event in events if isinstance(event.get("part"), dict)]
    finished = [str(part.get("reason")) for part in parts if part.get("type") == "step-finish"]
    errors = [event.get("error") for event in events if event.get("type") == "error"]
    ran = [part for part in parts if part.get("type") == "tool" and isinstance(part.get("state"), dict)]
    status = "error" if errors else finished[-1] if finished else "no end"
    return Ended(
        status=status,
        said_done=status == "stop"
        and ended.code == 0
        and not ended.ended
        and any(part.get("tool") not in LOOKING for part in ran),
        seconds=ended.seconds,
        error=_short(errors[-1]) if errors else "",
        output=ended.output,
        late=ended.late,
        spent=ended.spent,
        crashed=not finished and not ended.ended,
        refused=any(part["state"].get("status") == "error" for part in ran),
    )


def _fresh(home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    (home / "tmp").mkdir(parents=True)


def _places(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "TMPDIR": str(home / "tmp"), "NO_COLOR": "1"}


def _short(error: object) -> str:
    text = error if isinstance(error, str) else json.dumps(error) if error else ""
    return text[:SHORT]
