"""Environments that run nothing: names, kinds, what runs, and what a stopped one says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.environments.environment import EnvironmentKind, EnvironmentProblem, Info
from codeagent_lsp.environments.environments import Environments, Load
from codeagent_lsp.errors import ErrorCode, SettingError
from codeagent_lsp.shadow.shell import Approve, Command, CommandResult, Finished, Isolation, OnOutput, Shell, no_output
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView
from tests.tools.fakes import Bench
from tests.tools.shells import OPEN_COPY, OVERLAY

LOCAL, CONTAINER = ShellSettings(), ShellSettings(container_image="image:1")


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
    """Environments of both kinds, of that which is set."""

    def __init__(self, folder: Path, problem: Exception | None = None) -> None:
        self.local, self.container = FakeAdapter("local"), FakeAdapter("container", problem)
        self.loaded: list[str] = []
        self.bench = Bench(folder)
        self.folders = tuple(self.bench.view.roots.folders)
        self.settings = LOCAL
        adapters: dict[EnvironmentKind, Load] = {"local": self._local, "container": self._container}
        self.all = Environments(lambda: self.settings, folder / "state", folder / "spool", adapters)

    def _local(self) -> FakeAdapter:
        self.loaded.append("local")
        return self.local

    def _container(self) -> FakeAdapter:
        self.loaded.append("container")
        return self.container

    async def shell(self, name: str, settings: ShellSettings = LOCAL) -> Shell:
        self.settings = settings
        return await self.all.shell(name, self.bench.view, self.bench.staging, no)


async def test_environments_of_both_kinds(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    assert rig.loaded == [] and rig.all.list() == ()
    await rig.shell("one")
    await rig.shell("two", CONTAINER)
    assert rig.all.kind == "container"
    one = Info("one", "local", "ready", OPEN_COPY, rig.folders)
    two = Info("two", "container", "ready", OVERLAY, rig.folders, "image:1")
    assert rig.all.list() == (one, two)
    await rig.shell("three")
    assert rig.loaded == ["local", "container"]
    await rig.all.close()
    assert rig.all.list() == ()
    assert [fake.closed for fake in (*rig.local.made, *rig.container.made)] == [1, 1, 1]


async def test_what_runs_is_told(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    shell = await rig.shell("one")
    assert shell.isolation == OVERLAY
    running = asyncio.create_task(shell.run(Command("x", "/w")))
    await asyncio.sleep(0)
    assert [info.status for info in rig.all.list()] == ["running"]
    rig.local.made[0].shell.go.set()
    assert (await running).finished.output == "ran"
    assert [info.status for info in rig.all.list()] == ["ready"]


async def test_a_cancelled_command_does_not_run_for_ever(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    running = asyncio.create_task((await rig.shell("one")).run(Command("x", "/w")))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [info.status for info in rig.all.list()] == ["ready"]


async def test_another_kind_takes_its_place(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    await rig.shell("one")
    await rig.shell("one")
    await rig.shell("one", CONTAINER)
    assert [fake.closed for fake in rig.local.made] == [1]
    assert [info.kind for info in rig.all.list()] == ["container"]


async def test_what_was_stopped_says_so(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    shell = await rig.shell("one")
    await rig.all.close("one")
    await rig.all.close("one")
    await rig.all.close("never there")
    with pytest.raises(EnvironmentProblem) as caught:
        await shell.run(Command("x", "/w"))
    assert caught.value.code == ErrorCode.SANDBOX_TERMINATED
    await rig.shell("one")
    with pytest.raises(EnvironmentProblem):
        await shell.run(Command("x", "/w"))


async def test_closing_waits_for_one_that_is_being_made(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    making = asyncio.create_task(rig.shell("one"))
    await asyncio.sleep(0)
    await rig.all.close()
    await making
    assert rig.all.list() == () and [fake.closed for fake in rig.local.made] == [1]


async def test_one_that_cannot_be_is_not_kept(tmp_path: Path) -> None:
    rig = Rig(tmp_path, SettingError("container.no_image", image="image:1"))
    with pytest.raises(SettingError, match="no image"):
        await rig.shell("one", CONTAINER)
    assert rig.all.list() == ()
