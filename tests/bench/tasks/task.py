"""A task as a value, its project on the disk, and the check that tells whether it was solved. No drawing here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

CHECK_SECONDS = 60.0
LEFT_OUT = shutil.ignore_patterns(".git", "__pycache__", "*.pyc", ".aider*", ".venv")


@dataclass(frozen=True, slots=True)
class Task:
    """What the user types, the files the project begins with, and the tests that decide.

    `tests` names those of `files` that are laid over the project again before the check; `place` is the file to change,
    `also` those that change with it; `cause` says what is wrong, for the record only. `hidden` are tests that the
    project lacks and that are laid over it for the check; `programs` is a folder that belongs first on PATH, `links`
    are symbolic links in the project, with what they lead to.
    """

    id: str
    kind: str
    size: str
    words: str
    files: Mapping[str, str]
    tests: tuple[str, ...]
    check: tuple[str, ...]
    place: str
    cause: str
    also: tuple[str, ...] = ()
    hidden: Mapping[str, str] = field(default_factory=dict)
    programs: str = ""
    links: Mapping[str, str] = field(default_factory=dict)


def unittest_command(tests: Sequence[str]) -> tuple[str, ...]:
    """The command that runs exactly these test files of a project's top folder."""
    return ("python", "-m", "unittest", *(name.removesuffix(".py") for name in tests))


def lay(task: Task, folder: Path) -> None:
    """Write the files that the project of a task begins with into a folder."""
    write_files(task.files, folder)
    for name, target in task.links.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)


def write_files(files: Mapping[str, str], folder: Path) -> None:
    """Write texts, by their names relative to a folder."""
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", newline="\n")


def save(task: Task, folder: Path) -> Path:
    """Write a task as FOLDER/ID/ and FOLDER/ID.json; the folder of its project."""
    project = folder / task.id
    project.mkdir(parents=True)
    lay(task, project)
    (folder / f"{task.id}.json").write_text(json.dumps(asdict(task), indent=1, ensure_ascii=False), encoding="utf-8")
    return project


def load(project: Path) -> Task:
    """The task of a project that `save` wrote."""
    project = project.resolve()
    values: dict[str, Any] = json.loads((project.parent / f"{project.name}.json").read_text(encoding="utf-8"))
    for name in ("tests", "check", "also"):
        values[name] = tuple(values[name])
    return Task(**values)


def solved(task: Task, project: Path) -> bool:
    """Whether the task's own tests pass on a copy of the project with these tests laid fresh."""
    return outcome(task, project).passed


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a check ended; `hung` when it ran into its limit."""

    passed: bool
    hung: bool
    output: str


def outcome(task: Task, project: Path, seconds: float = CHECK_SECONDS) -> Outcome:
    """Run the check of a task on a copy of its project, over which its tests are laid."""
    with tempfile.TemporaryDirectory(prefix="check-") as name:
        copy = Path(name) / "project"
        shutil.copytree(project, copy, ignore=LEFT_OUT, symlinks=True)
        write_files({**{test: task.files[test] for test in task.tests}, **task.hidden}, copy)
        return run_check(task.check, copy, seconds)


def run_check(command: Sequence[str], folder: Path, seconds: float = CHECK_SECONDS) -> Outcome:
    """Run a check command in a folder, "python" standing for this Python, in a session of its own that is ended."""
    arguments = [sys.executable if word == "python" else word for word in command]
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST"))}
    process = subprocess.Popen(
        arguments,
        cwd=folder,
        env={**inherited, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        said, _ = process.communicate()
        return Outcome(passed=False, hung=True, output=said.decode("utf-8", "replace"))
    return Outcome(passed=process.returncode == 0, hung=False, output=said.decode("utf-8", "replace"))
