"""The check of a change against the files without it: what is staged stays staged all the time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.shadow.shell import Approve, Command, CommandResult, Isolation, OnOutput, Shell, no_output
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView
from tests.session.fakes import MIDDLING, World, say, world, write
from tests.session.solving.test_direct_path import NOW, RIGHT, TASK, put, settings
from tests.tools.shells import OVERLAY
from tests.tools.testing.rig import CopyShell

TESTS = (
    "import unittest\n\nfrom stats import first, mean\n\n\nclass StatsTest(unittest.TestCase):\n"
    "    def test_mean(self):\n        self.assertEqual(mean([2, 4]), 3)\n\n"
    "    def test_first(self):\n        self.assertEqual(first([7, 8]), 8)\n"
)


@dataclass
class Copies:
    """Shadows whose shells run in copies of the files; `before` is called before every run of tests."""

    root: Path
    before: Callable[[FileView], None]

    async def shell(self, session_id: str, view: FileView, staging: Staging, approve: Approve) -> Shell:
        return Watched(CopyShell(self.root, view, isolation=OVERLAY), self.before)

    async def close(self, session_id: str | None = None) -> None:
        pass


@dataclass
class Watched:
    """A shell that tells before each run of tests which files it is on."""

    shell: CopyShell
    before: Callable[[FileView], None]

    @property
    def isolation(self) -> Isolation:
        return self.shell.isolation

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        if "unittest" in "".join(command.script):
            self.before(self.shell.view)
        return await self.shell.run(command, on_output)


def shop(folder: Path, before: Callable[[FileView], None]) -> World:
    """A world in which a run mends one of two failing tests with the tools for edits."""
    made = world(
        folder,
        write("stats.py", RIGHT),
        say(),
        settings=settings("tools"),
        environments=Copies(folder, before),
        deadline=0.01,
        info=MIDDLING,
    )
    put(made, "stats.py", NOW)
    put(made, "test_stats.py", TESTS)
    return made


@pytest.mark.slow
async def test_the_staged_change_stays_while_the_tests_run_without_it(tmp_path: Path) -> None:
    ran_on: list[tuple[str, tuple[str, ...]]] = []

    def watch(view: FileView) -> None:
        staged = made.manager.runs.all()[-1].proposal.changeset
        ran_on.append((view.read(made.path("stats.py")).text, staged.paths))

    made = shop(tmp_path / "w", watch)
    done = await made.run(TASK)
    path = made.path("stats.py")
    assert ran_on == [(RIGHT, (path,)), (NOW, (path,))]
    assert done.status == "completed"  # one test fails in both, the other is mended
    assert not [event for event in made.events if isinstance(event, events.FileChanged) and event.change is None]


@pytest.mark.slow
async def test_what_is_discarded_meanwhile_stays_discarded(tmp_path: Path) -> None:
    def decide(view: FileView) -> None:
        proposal = made.manager.runs.all()[-1].proposal
        if view.read(made.path("stats.py")).text == NOW and proposal.changeset:
            proposal.discard()

    made = shop(tmp_path / "w", decide)
    await made.run(TASK)
    assert not made.manager.runs.all()[-1].proposal.changeset
