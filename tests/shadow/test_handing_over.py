"""A command that outlives its run: what it wrote is the run's that takes it, and nobody's in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codeagent_lsp.shadow.shell import Approve, Command, CommandResult, Finished, Launch, OnOutput
from codeagent_lsp.shadow.workspace import BoundShell, ShadowWorkspace
from codeagent_lsp.workspace.changes.staging import Staging
from tests.shadow.fakes import Desk, FakeLayer, desk

HOOK = ".vscode/tasks.json"


class Run:
    """A run over the folder of a desk: what is staged for it, and a user who answers when `answer` is set."""

    def __init__(self, ws: Desk) -> None:
        self.staging = Staging(ws.view.base)
        self.asked: list[tuple[str, ...]] = []
        self.answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.asking = 0

    @property
    def approve(self) -> Approve:
        return self._ask

    def names(self) -> list[str]:
        return sorted(Path(path).name for path in self.staging.paths())

    async def _ask(self, paths: tuple[str, ...]) -> bool:
        self.asked.append(paths)
        self.asking += 1
        try:
            return await asyncio.shield(self.answer)
        finally:
            self.asking -= 1


class Screen:
    """A command that wrote two files, one of which runs code later, and ends when it is told to."""

    def __init__(self, folder: Path, ws: Desk) -> None:
        self.ws = ws
        self.over = asyncio.Event()
        self.first = Run(ws)
        layer = FakeLayer(ws.root, folder / "view")
        self.workspace = ShadowWorkspace(layer.isolation, lambda folders: layer, self._execute)
        self.shell: BoundShell = self.workspace.bind(ws.view, self.first.staging, self.first.approve)
        self.running: asyncio.Task[CommandResult] = asyncio.ensure_future(self.shell.run(Command("x", str(ws.root))))

    def given_to(self, run: Run) -> None:
        self.shell.hand_over(self.ws.view, run.staging, run.approve)

    async def close(self) -> None:
        self.running.cancel()
        await asyncio.wait([self.running])
        await self.workspace.close()

    async def _execute(self, launch: Launch, command: Command, on_output: OnOutput) -> Finished:
        _write(launch.cwd)
        await self.over.wait()
        return Finished(0, "")


def _write(folder: str) -> None:
    for name in ("a.txt", HOOK):
        path = Path(folder, name)
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}\n")


@pytest.fixture
async def screen(workspace: Path, tmp_path: Path) -> AsyncIterator[Screen]:
    made = Screen(tmp_path, desk(workspace))
    yield made
    await made.close()


async def until_asked(run: Run) -> None:
    async with asyncio.timeout(5):
        while not run.asked:  # noqa: ASYNC110 - a question is no event
            await asyncio.sleep(0.01)


async def test_a_run_that_lets_go_while_it_is_asked_gets_nothing_and_the_next_is_asked_anew(screen: Screen) -> None:
    other = Run(screen.ws)
    screen.over.set()
    await until_asked(screen.first)
    screen.shell.let_go()
    await asyncio.sleep(0.05)
    assert screen.first.asking == 0, "nobody is asked for a run that is over"
    assert not screen.running.done()
    screen.given_to(other)
    await until_asked(other)
    other.answer.set_result(True)
    result = await screen.running
    assert sorted(Path(path).name for path in result.staged) == other.names() == ["a.txt", "tasks.json"]
    assert screen.first.names() == []


async def test_what_ends_while_it_is_nobodys_waits(screen: Screen) -> None:
    screen.shell.let_go()
    screen.over.set()
    await asyncio.sleep(0.1)
    assert not screen.running.done() and screen.first.asked == []
    other = Run(screen.ws)
    other.answer.set_result(False)
    screen.given_to(other)
    result = await screen.running
    assert other.names() == ["a.txt"] and screen.first.names() == []
    assert [Path(path).name for path, _ in result.left_out] == ["tasks.json"]


async def test_an_answer_that_comes_too_late_stages_nothing(screen: Screen) -> None:
    screen.over.set()
    await until_asked(screen.first)
    screen.first.answer.set_result(True)
    screen.shell.let_go()  # in the same moment
    await asyncio.sleep(0.05)
    assert screen.first.names() == [] and not screen.running.done()


async def test_what_is_nobodys_is_dropped_at_the_end(screen: Screen) -> None:
    screen.shell.let_go()
    screen.over.set()
    await asyncio.sleep(0.05)
    async with asyncio.timeout(5):
        await screen.close()
    assert screen.running.cancelled() and screen.first.names() == []
