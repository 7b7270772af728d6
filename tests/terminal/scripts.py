"""Starts `codeagent-lsp run` as a user does, on a small workspace and with a scripted model."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path
from typing import Any, Self

from tests.server.warm import quick_starts

COMMAND = (sys.executable, "-m", "codeagent_lsp.cli", "run")
SECONDS = 120.0

Script = Sequence[Mapping[str, Any]]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A reply that calls one tool."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


@dataclass(frozen=True)
class Desk:
    """A workspace, and a state folder and a script beside it."""

    root: Path

    @property
    def workspace(self) -> Path:
        folder = self.root / "work"
        folder.mkdir(exist_ok=True)
        return folder

    def file(self, name: str, content: bytes) -> Path:
        """A file of the workspace."""
        path = self.workspace / name
        path.write_bytes(content)
        return path

    def command(self, script: Script, *options: str, task: str = "Do it") -> list[str]:
        """The command line of a run."""
        place = self.root / "script.json"
        place.write_text(json.dumps(list(script)))
        model = ["--set", "model.provider=scripted", "--set", f"model.name={place}"]
        return [*COMMAND, "--workspace", str(self.workspace), *model, *options, task]

    def environ(self, **more: str) -> dict[str, str]:
        """An environment without a terminal's habits, in which our program starts quickly."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "NO_COLOR"))}
        state = {"CODEAGENT_STATE_DIR": str(self.root / "state"), "TERM": "xterm-256color"}
        return {**kept, **quick_starts(), **state, "LANG": "C.UTF-8", **more}

    def apply(self, run_id: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Decide about what a run has staged, without a terminal."""
        return self.done([*COMMAND[:-1], "apply", run_id, "--workspace", str(self.workspace), *options])

    def undo(self, run_id: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Take back what a run has changed, without a terminal."""
        return self.done([*COMMAND[:-1], "undo", run_id, "--workspace", str(self.workspace), *options])

    def run(
        self, script: Script, *options: str, stdin: str = "", task: str = "Do it", **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end without a terminal."""
        return self.done(self.command(script, *options, task=task), stdin, **env)

    def done(self, command: Sequence[str], stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command line to its end without a terminal."""
        return subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=SECONDS,
            env=self.environ(**env),
            check=False,
        )


class Terminal:
    """A run on a terminal of its own; `screen` is all that was written to it so far."""

    def __init__(
        self, desk: Desk, script: Script, *options: str, columns: int = 80, env: Mapping[str, str] | None = None
    ) -> None:
        self.screen = ""
        self._ours, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        command = desk.command(script, *options)
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=desk.environ(**(env or {})), start_new_session=True
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def wait_for(self, words: str, seconds: float = SECONDS) -> None:
        """Read until the words are on the screen."""
        deadline = time.monotonic() + seconds
        while words not in self.screen:
            if time.monotonic() > deadline or not self._read():
                raise TimeoutError(f"never saw {words!r} in {self.screen!r}")

    def type(self, keys: str) -> None:
        """What the user types."""
        os.write(self._ours, keys.encode())

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def end(self, seconds: float = SECONDS) -> int:
        """The exit code, once everything was read."""
        while self._read():
            pass
        return self.process.wait(seconds)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._ours], [], [], SECONDS)
        try:
            data = os.read(self._ours, 65536) if ready else b""
        except OSError:  # the other end is closed
            data = b""
        self.screen += data.decode("utf-8", "replace")
        return bool(data)
