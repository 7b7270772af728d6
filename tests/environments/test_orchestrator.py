"""The orchestrator over environments that run nothing: names, kinds, what runs, and what a stopped one says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.environments.environment import EnvironmentKind, EnvironmentProblem, Info
from codeagent_lsp.environments.orchestrator import Orchestrator
from codeagent_lsp.errors import ErrorCode, SettingError
from codeagent_lsp.shadow.shell import Approve, Command, CommandResult, Finished, Isolation, OnOutput, Shell, no_output
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView
from tests.tools.fakes import Bench
from tests.tools.shells import OPEN_COPY, OVERLAY

SETTINGS = ShellSettings(container_image="image:1")
FOLDERS = ("/w",)


class Waiting:
    """A shell whose commands end when they are let."""

    isolation = OVERLAY

    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        await self.go.wait()
        return CommandResult(Finished(0, "ran"), OVERLAY)


class Fake:
    """An environment."""

    def __init__(self, isolation: Isolation) -> None:
        self.isolation = isolation
        self.shell = Waiting()
        self.closed = 0

    def bind(self, view: FileView, staging: Staging, approve: Approve) -> Shell:
        return self.shell

    async def close(self) -> None:
        self.closed += 1


class FakeAdapter:
    """Makes them, or cannot."""

    def __init__(self, kind: EnvironmentKind, problem: Exception | None = None) -> None:
        self.kind: EnvironmentKind = kind
        self.made: list[Fake] = []
        self.problem = problem

    async def create(self, settings: ShellSettings, folders: Sequence[str]) -> Fake:
        if self.problem is not None:
            raise self.problem
        self.made.append(Fake(OVERLAY if self.kind == "container" else OPEN_COPY))
        return self.made[-1]


async def no(paths: tuple[str, ...]) -> bool:
    return False


class Rig:
    """An orchestrator over both kinds."""

    def __init__(self, folder: Path, problem: Exception | None = None) -> None:
        self.local, self.container = FakeAdapter("local"), FakeAdapter("container", problem)
        self.loaded: list[str] = []
        self.bench = Bench(folder)
        self.service = Orchestrator({"local": self._local, "container": self._container})

    def _local(self) -> FakeAdapter:
        self.loaded.append("local")
        return self.local

    def _container(self) -> FakeAdapter:
        self.loaded.append("container")
        return self.container

    def shell(self, name: str) -> Shell:
        return self.service.shell(name, self.bench.view, self.bench.staging, no)


async def test_one_service_over_both_kinds(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    assert rig.loaded == [] and rig.service.list() == ()
    one = await rig.service.create("one", "local", SETTINGS, FOLDERS)
    two = await rig.service.create("two", "container", SETTINGS, FOLDERS)
    assert one == Info("one", "local", "ready", OPEN_COPY, FOLDERS)
    assert two == Info("two", "container", "ready", OVERLAY, FOLDERS, "image:1")
    assert rig.service.list() == (one, two)
    await rig.service.create("three", "local", SETTINGS, FOLDERS)
    assert rig.loaded == ["local", "container"]
    await rig.service.stop()
    assert rig.service.list() == ()
    assert [fake.closed for fake in (*rig.local.made, *rig.container.made)] == [1, 1, 1]


async def test_what_runs_is_told(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    await rig.service.create("one", "local", SETTINGS, FOLDERS)
    shell = rig.shell("one")
    assert shell.isolation == OVERLAY
    running = asyncio.create_task(shell.run(Command("x", "/w")))
    await asyncio.sleep(0)
    assert [info.status for info in rig.service.list()] == ["running"]
    rig.local.made[0].shell.go.set()
    assert (await running).finished.output == "ran"
    assert [info.status for info in rig.service.list()] == ["ready"]


async def test_a_cancelled_command_does_not_run_for_ever(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    await rig.service.create("one", "local", SETTINGS, FOLDERS)
    running = asyncio.create_task(rig.shell("one").run(Command("x", "/w")))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [info.status for info in rig.service.list()] == ["ready"]


async def test_another_of_the_same_name_takes_its_place(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    await rig.service.create("one", "local", SETTINGS, FOLDERS)
    await rig.service.create("one", "container", SETTINGS, FOLDERS)
    assert rig.local.made[0].closed == 1
    assert [info.kind for info in rig.service.list()] == ["container"]


async def test_what_is_not_there_and_what_was_stopped(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    with pytest.raises(EnvironmentProblem) as caught:
        rig.shell("one")
    assert caught.value.code == ErrorCode.SANDBOX_NOT_FOUND
    await rig.service.create("one", "local", SETTINGS, FOLDERS)
    shell = rig.shell("one")
    await rig.service.stop("one")
    await rig.service.stop("one")
    with pytest.raises(EnvironmentProblem) as caught:
        await shell.run(Command("x", "/w"))
    assert caught.value.code == ErrorCode.SANDBOX_TERMINATED


async def test_one_that_cannot_be_is_not_kept(tmp_path: Path) -> None:
    rig = Rig(tmp_path, SettingError("container.no_image", image="image:1"))
    with pytest.raises(SettingError, match="no image"):
        await rig.service.create("one", "container", SETTINGS, FOLDERS)
    assert rig.service.list() == ()
