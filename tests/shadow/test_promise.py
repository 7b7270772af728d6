"""The promise: whatever commands do, the disk is byte for byte the same, and what they did can be reviewed."""

from __future__ import annotations

import random
import shlex
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.errors import FileRefused
from codeagent_lsp.shadow.base import Command, CommandResult, Layer, Level, Shell
from codeagent_lsp.shadow.probe import Isolator
from codeagent_lsp.shadow.workspace import ShadowWorkspace, executing
from codeagent_lsp.workspace.changeset import Changeset, Current
from codeagent_lsp.workspace.encoding import decode
from tests.shadow.fakes import Desk, desk, frozen

LEVELS: tuple[Level, ...] = ("overlay", "copy")
COMMANDS = 250  # for each of the two levels
ODD = ("plain.txt", "with space.txt", "quo'te\".txt", "-dash.txt", "ünï.txt", "new\nline.txt", "$HOME.txt", "*.txt", "日本.py")


@dataclass
class Bench:
    """A desk with a real shadow workspace at one level."""

    desk: Desk
    shadow: ShadowWorkspace
    shell: Shell
    layers: list[Layer] = field(default_factory=list)

    async def run(self, script: str) -> CommandResult:
        return await self.shell.run(Command(script, str(self.desk.root), seconds=60))


async def yes(paths: tuple[str, ...]) -> bool:
    return True


@pytest.fixture(params=LEVELS)
async def bench(request: pytest.FixtureRequest, workspace: Path, tmp_path: Path) -> AsyncIterator[Bench]:
    settings = ShellSettings(isolation=request.param)
    isolator = Isolator(str(tmp_path / "state"))
    isolation = isolator_gives(isolator, settings, workspace)
    ws = desk(workspace)
    layers: list[Layer] = []

    def opened(folders: tuple[str, ...]) -> Layer:
        layers.append(isolator.open(settings, folders))
        return layers[-1]

    shadow = ShadowWorkspace(isolation, opened, executing(lambda: settings, tmp_path / "spool"))
    yield Bench(ws, shadow, shadow.bind(ws.view, ws.staging, yes), layers)
    await shadow.close()
