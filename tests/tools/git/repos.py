"""Real repositories under a temporary folder, with git as nobody has configured it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

IDENTITY = ("-c", "user.name=Ann Example", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path | str, *arguments: str, data: bytes = b"") -> str:
    """What git prints; an error when it says no."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    clean |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run(
        ["git", "-C", str(folder), *IDENTITY, *arguments], input=data, capture_output=True, check=False, env=clean
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8", "surrogateescape")


def start(folder: Path, **files: str) -> Path:
    """A repository with these files committed; `__` in a keyword stands for a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    if files:
        commit(folder, "Begin")
    return folder


def commit(folder: Path, message: str) -> str:
    """Commit everything; the hash."""
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD").strip()
