"""Runs the steps of the CI templates as a runner does: each script by bash, in the variables that its step is given."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.batch.forge import TOKEN, Forge
from tests.batch.rig import MENDING, PASSES, PROGRAM
from tests.server.warm import quick_starts
from tests.tidy.source import ROOT

CI = ROOT / "examples" / "ci"
MODEL_KEY = "-".join(("a", "key", "of", "the", "model"))
SECONDS = 240


def template(name: str) -> dict[str, Any]:
    """A template, read as its forge reads it; YAML 1.1 takes GitHub's `on` for a truth value."""
    found = yaml.safe_load((CI / name).read_text("utf-8"))
    return {"on" if key is True else key: value for key, value in found.items()}


def holds(condition: str, event: Mapping[str, Any]) -> bool:
    """Evaluate an `if` of GitHub's, as far as the template uses that language."""

    def value(path: str) -> Any:
        found: Any = {"event": event, "event_name": event["event_name"]}
        for part in path.split(".")[1:]:
            found = (found or {}).get(part)
        return found

    python = re.sub(r"github(\.\w+)+", lambda match: f"value({match[0]!r})", condition)
    python = re.sub(r"!(?!=)", " not ", python.replace("&&", " and ").replace("||", " or "))
    names = {
        "value": value,
        "startsWith": lambda words, start: str(words or "").lower().startswith(start.lower()),
        "contains": lambda items, item: item in items,
        "fromJSON": json.loads,
    }
    return bool(eval(f"({python})", {"__builtins__": {}}, names))  # the template is ours


@dataclass
class Runner:
    """A machine of a CI: a folder, a forge, and a scripted model."""

    root: Path
    forge: Forge
    script: Sequence[Mapping[str, Any]] = MENDING
    variables: dict[str, str] = field(default_factory=lambda: {"CODEAGENT_CHECK": PASSES})
    run_id: str = "1001"
    log: str = ""

    @property
    def work(self) -> Path:
        """The results of the job that worked."""
        return self.root / "runner" / "work-temp" / "codeagent" / "results"

    def project(self) -> None:
        """Give the forge a repository with a program and the template's script."""
        folder = self.root / "first"
        for place in (".github", ".gitlab"):
            (folder / place / "codeagent").mkdir(parents=True)
            shutil.copy(CI / "propose.py", folder / place / "codeagent" / "propose.py")
        (folder / "program.py").write_text(PROGRAM)
        self.commit(folder, "main", "first")

    def commit(self, folder: Path, branch: str, words: str) -> None:
        """Commit all of a folder as a person, and push it to a branch of the forge."""
        git = ["git", "-C", str(folder), "-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", words, "--allow-empty"]):
            subprocess.run([*git, *command], check=True)
        subprocess.run([*git, "push", "-q", str(self.forge.repository), f"HEAD:refs/heads/{branch}"], check=True)

    def github(self, event: Mapping[str, Any]) -> bool:
        """Do both jobs of the workflow; return whether there was something to do."""
        jobs = template("github/codeagent.yml")["jobs"]
        if not holds(jobs["work"]["if"], event):
            return False
        outputs = self.steps("work", jobs["work"]["steps"], event, {})
        if outputs.get("go") != "true":
            return False
        self.steps("propose", jobs["propose"]["steps"], event, outputs)
        return True

    def steps(
        self, job: str, steps: Sequence[Mapping[str, Any]], event: Mapping[str, Any], outputs: dict[str, str]
    ) -> dict[str, str]:
        """Do the steps of a job on a machine of its own; return the outputs of `task`."""
        temp, workspace = self.root / "runner" / f"{job}-temp", self.root / "runner" / f"{job}-checkout"
        for folder in (temp, workspace):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        for step in steps:
            uses = str(step.get("uses"))
            if uses.startswith("actions/checkout@"):
                self.checkout(workspace)
            elif uses.startswith("actions/download-artifact@") and self.work.exists():
                shutil.copytree(self.work, temp / "codeagent" / "results")
            elif "run" in step and (outputs.get("go") == "true" or "if" not in step):
                given = {name: self.expression(words) for name, words in step.get("env", {}).items()}
                outputs |= self.step(str(step["run"]), workspace, {**self.of_github(event, temp), **given})
        return outputs

    def checkout(self, workspace: Path) -> None:
        """Fetch the newest commit alone, as runners do; the address is that of the forge, without a key."""
        source = self.forge.repository.as_uri()
        subprocess.run(["git", "clone", "-q", "--depth=1", "-b", "main", source, str(workspace)], check=True)
        address = f"{self.forge.url}/team/project.git"
        subprocess.run(["git", "-C", str(workspace), "remote", "set-url", "origin", address], check=True)

    def expression(self, words: str) -> str:
        """Fill in the expressions of a step's variables; others than these are an error."""
        known = {"github.token": TOKEN, "secrets.CODEAGENT_API_KEY": MODEL_KEY}
        return re.sub(
            r"\$\{\{ (?:vars\.(\w+)(?: \|\| '([^']*)')?|([\w.]+)) \}\}",
            lambda match: known[match[3]] if match[3] else self.all_variables().get(match[1], match[2] or ""),
            words,
        )

    def all_variables(self) -> dict[str, str]:
        """The variables that the project has set, and the scripted model as options."""
        place = self.root / "script.json"
        place.write_text(json.dumps(list(self.script)))
        options = f"--set model.provider=scripted --set model.name={place}"
        return {"CODEAGENT_OPTIONS": options, **self.variables}

    def of_github(self, event: Mapping[str, Any], temp: Path) -> dict[str, str]:
        """The variables that GitHub sets itself."""
        (temp / "event.json").write_text(json.dumps({k: v for k, v in event.items() if k != "event_name"}))
        return {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": f"{self.forge.url}/api/v3",
            "GITHUB_EVENT_NAME": event["event_name"],
            "GITHUB_EVENT_PATH": str(temp / "event.json"),
            "GITHUB_OUTPUT": str(temp / "output"),
            "GITHUB_REF_NAME": "main",
            "GITHUB_REPOSITORY": "team/project",
            "GITHUB_RUN_ID": self.run_id,
            "GITHUB_SERVER_URL": self.forge.url,
            "GITHUB_STEP_SUMMARY": str(temp / "summary.md"),
            "RUNNER_TEMP": str(temp),
        }

    def step(self, script: str, workspace: Path, given: Mapping[str, str]) -> dict[str, str]:
        """Run one script as `bash -e`, with nothing in its environment but this; return the outputs that it set."""
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=workspace,
            env={**self.machine(), **given},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
        )
        self.log += done.stdout
        assert done.returncode == 0, done.stdout
        output = Path(given.get("GITHUB_OUTPUT", os.devnull))
        lines = output.read_text().splitlines() if output.is_file() else []
        return dict(line.split("=", 1) for line in lines)

    def machine(self) -> dict[str, str]:
        """The machine's own variables; what would install something on it only notes that in a file."""
        tools = self.root / "tools"
        tools.mkdir(exist_ok=True)
        for name in ("sudo", "pip", "apt-get"):
            (tools / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "{self.root}/installed"\n')
            (tools / name).chmod(0o755)
        path = os.pathsep.join((str(tools), str(Path(sys.executable).parent), os.environ["PATH"]))
        home = {"HOME": str(self.root), "CODEAGENT_STATE_DIR": str(self.root / "state"), "LANG": "C.UTF-8"}
        return {"PATH": path, **home, **quick_starts()}

    def gitlab(self, payload: Mapping[str, Any] | None = None, **variables: str) -> None:
        """Do the three jobs of the template, each with the secrets of its environment alone."""
        jobs = template("gitlab/codeagent.gitlab-ci.yml")
        workspace = self.root / "runner" / "gitlab"
        shutil.rmtree(workspace, ignore_errors=True)
        workspace.mkdir(parents=True)
        self.checkout(workspace)
        secrets = {
            "codeagent/forge": {"CODEAGENT_GITLAB_TOKEN": TOKEN},
            "codeagent/model": {"CODEAGENT_API_KEY": MODEL_KEY},
        }
        given = {**self.all_variables(), **variables}
        if payload is not None:
            (self.root / "payload.json").write_text(json.dumps(payload))
            given["TRIGGER_PAYLOAD"] = str(self.root / "payload.json")
        for name in ("codeagent-task", "codeagent-work", "codeagent-propose"):
            own = {**jobs[".codeagent"]["variables"], **jobs[name].get("variables", {})}
            self.step(
                "\n".join(jobs[name]["script"]),
                workspace,
                {**self.of_gitlab(), **own, **given, **secrets[jobs[name]["environment"]["name"]]},
            )

    def of_gitlab(self) -> dict[str, str]:
        """The variables that GitLab sets itself."""
        return {
            "CI": "true",
            "GITLAB_CI": "true",
            "CI_API_V4_URL": f"{self.forge.url}/api/v4",
            "CI_COMMIT_REF_NAME": "main",
            "CI_PIPELINE_ID": self.run_id,
            "CI_PIPELINE_URL": f"{self.forge.url}/team/project/-/pipelines/{self.run_id}",
            "CI_PROJECT_ID": "7",
        }
