"""A real client of the Agent Client Protocol, acpx, which drives agents from a command line."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acp_agent.editor import COMMAND
from tests.server.warm import quick_starts
from tests.terminal.scripts import call

PROGRAM = os.environ.get("CODEAGENT_ACPX", "")
SECONDS = 120.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM, reason="CODEAGENT_ACPX is no program; scripts/get-agent.sh acpx gets one"),
]

CALC = "def add(a, b):\n    return a - b\n"
FIXED = CALC.replace("a - b", "a + b")
FIX = [
    call("read_file", path="calc.py"),
    call("edit_file", path="calc.py", old_str="a - b", new_str="a + b"),
    {"text": "It is fixed."},
]


class CommandLine:
    """A user of acpx in one folder, with a home of their own; acpx keeps the agent between two commands."""

    def __init__(self, root: Path, script: list[object]) -> None:
        self.folder, self.file = root / "work", root / "work" / "calc.py"
        self.folder.mkdir()
        self.file.write_text(CALC)
        place = root / "script.json"
        place.write_text(json.dumps(script))
        self.agent = [*COMMAND, "--set", "model.provider=scripted", "--set", f"model.name={place}"]
        own = {"HOME": str(root / "home"), "CODEAGENT_STATE_DIR": str(root / "state"), "LANG": "C.UTF-8"}
        self._env = {**os.environ, **quick_starts(), **own}

    def acpx(self, *arguments: str) -> str:
        """Call acpx as nobody sits at a terminal, and return what it printed."""
        command = [PROGRAM, "--agent", shlex.join(self.agent), "--ttl", "60", *arguments]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        ).stdout

    def kill(self) -> None:
        """Kill the agent and its children, as the kernel does when memory is short."""
        script = self.agent[-1].encode()
        for place in (folder / "cmdline" for folder in Path("/proc").glob("[0-9]*")):
            try:
                line = place.read_bytes().split(b"\0")
            except OSError:
                continue
            if script in line and b"codeagent_lsp.cli" in line:
                os.kill(int(place.parent.name), signal.SIGKILL)


@pytest.fixture
def line(tmp_path: Path) -> Iterator[CommandLine]:
    (tmp_path / "home").mkdir()
    made = CommandLine(tmp_path, [*FIX, *FIX])
    made.acpx("sessions", "new")
    yield made
    made.acpx("sessions", "close")
    made.kill()


def test_a_task_refused_allowed_and_undone_after_a_kill(line: CommandLine) -> None:
    refused = line.acpx("Fix the sign")
    assert "It is fixed." in refused and "(failed)" in refused, refused
    assert line.file.read_text() == CALC
    allowed = line.acpx("--approve-all", "Fix the sign after all")
    assert "diff " in allowed and "[done] end_turn" in allowed, allowed
    assert line.file.read_text() == FIXED
    line.kill()
    undone = line.acpx("--approve-all", "/undo")
    assert "session/resume" in undone and "[done] end_turn" in undone, undone
    assert line.file.read_text() == CALC
