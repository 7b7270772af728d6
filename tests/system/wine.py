"""A Windows to try the package in: a Python for Windows in Wine, with a disk of its own.

`scripts/get-windows-python.sh` makes it and prints its folder. Not here: what is tried (`test_on_windows.py`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.tidy.source import ROOT

MADE = Path(os.environ.get("CODEAGENT_WINDOWS", "nowhere"))
PYTHON = r"C:\python\python.exe"
SECONDS = 240.0


@dataclass(frozen=True)
class Windows:
    """A folder of its own on the disk C:. `folder` is where Linux finds it, `path` what Windows calls it."""

    folder: Path

    @classmethod
    def made(cls) -> Windows:
        """A new folder, with the state of the agent beside the workspace `ws`."""
        folder = MADE / "prefix" / "drive_c" / f"try-{uuid.uuid4().hex[:8]}"
        (folder / "ws").mkdir(parents=True)
        return cls(folder)

    @property
    def path(self) -> str:
        """The folder as Windows names it."""
        return f"C:\\{self.folder.name}"

    @property
    def workspace(self) -> Path:
        """The workspace, as Linux finds it."""
        return self.folder / "ws"

    def run(self, task: str, script: Sequence[Mapping[str, Any]], *more: str) -> str:
        """Do a task in the workspace with a scripted model; what the terminal showed."""
        (self.folder / "script.json").write_text(json.dumps(list(script)))
        name = f"model.name={self.path}\\script.json"
        return self.agent("run", *more, "--set", "model.provider=scripted", "--set", name, task)

    def agent(self, *words: str) -> str:
        """What our program prints, started in the workspace."""
        return self.python("-m", "codeagent_lsp.cli", *words)

    def python(self, *words: str) -> str:
        """What a Python program prints, started in the workspace."""
        environment = {
            **os.environ,
            "WINEPREFIX": str(MADE / "prefix"),
            "WINEDEBUG": "-all",
            "PYTHONPATH": f"Z:{ROOT}".replace("/", "\\"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "CODEAGENT_STATE_DIR": f"{self.path}\\state",
        }
        command = ["wine", PYTHON, *words]
        # Wine gives a program no file to print to, so a pipe.
        done = subprocess.run(
            command, cwd=self.workspace, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=SECONDS, check=False,
        )  # fmt: skip
        return done.stdout.decode("utf-8", "replace").replace("\r\n", "\n")

    def remove(self) -> None:
        """Remove the folder, and end what of Windows is left."""
        shutil.rmtree(self.folder, ignore_errors=True)


def missing() -> str | None:
    """What a machine lacks for these tests, None when nothing."""
    if not (MADE / "prefix" / "drive_c" / "python" / "python.exe").is_file():
        return "CODEAGENT_WINDOWS is no Python for Windows; scripts/get-windows-python.sh makes one"
    if shutil.which("wine") is None:
        return "wine is not installed"
    version = f"python{sys.version_info.major}{sys.version_info.minor}.dll"
    return None if (MADE / "prefix" / "drive_c" / "python" / version).is_file() else f"it has no {version}"
