"""The commands of a task: its setup, which is the user's own, and its check, which runs what the agent wrote.

The setup runs in the task's folder as any command of the user, but without our keys. The check runs as the agent's own
commands do: in a private view of the folder, without network unless `shell.allowNetwork` is set, its files dropped.
Not here: how they are kept from the disk (`shadow/`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from codeagent_lsp.config import Settings
from codeagent_lsp.errors import CodeAgentError
from codeagent_lsp.session.shadows import SessionShadows
from codeagent_lsp.shadow.environment import scrubbed
from codeagent_lsp.shadow.process import ProcessLimits, run_process
from codeagent_lsp.shadow.shell import Command, Finished, Launch
from codeagent_lsp.state import state_root
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, NothingStaged
from codeagent_lsp.workspace.files.paths import Roots

COMMAND_SECONDS = 1800.0
_NAME = "check"


class Unisolated(Exception):
    """Raised if commands cannot be kept from the user's files here, and that was not allowed; the message says why."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The end of a command: whether it went well, its exit code, its output, and one line that says how it ended."""

    ok: bool
    code: int
    output: str
    said: str


async def set_up(script: str, folder: Path) -> Ran:
    """Run the setup of a task in its folder. ToolFailed if it cannot be started."""
    launch = Launch(("bash", "-c", script), str(folder), scrubbed(os.environ), "")
    limits = ProcessLimits(seconds=COMMAND_SECONDS, disk_folder=str(folder))
    return _ran(await run_process(launch, limits, spool_folder=None))


async def check(script: str, folder: Path, settings: Settings, *, accept_all: bool) -> Ran:
    """Run the check of a task on its folder. Unisolated, or ToolFailed if it cannot be started."""
    view = FileView(Roots([str(folder)]), NoBuffers(), NothingStaged())
    shadows = SessionShadows(lambda: settings.shell, state_root(), folder.parent)
    try:
        shell = await shadows.shell(_NAME, view, Staging(lambda path: None), _never)
        if not shell.isolation.complete and not accept_all:
            raise Unisolated(shell.isolation.reason)
        network = settings.shell.allow_network
        command = Command(script, str(folder), seconds=COMMAND_SECONDS, network=network, proposes=False)
        return _ran((await shell.run(command)).finished)
    finally:
        await shadows.close()


def failed(error: CodeAgentError) -> Ran:
    """Return the end of a command that could not be started."""
    return Ran(ok=False, code=-1, output="", said=str(error))


def _ran(finished: Finished) -> Ran:
    ok = finished.ending == "exited" and finished.exit_code == 0
    how = f"exit code {finished.exit_code}" if finished.ending == "exited" else f"stopped at a limit: {finished.ending}"
    last = next((line.strip() for line in reversed(finished.output.splitlines()) if line.strip()), "")
    return Ran(ok, finished.exit_code, finished.output, f"{how}. {last}"[:300].strip())


async def _never(paths: tuple[str, ...]) -> bool:
    return False
