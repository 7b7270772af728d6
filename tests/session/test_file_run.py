"""Running one file: which program, as it is in the editor, what is told, and never unasked where it could do harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.errors import UsageError
from codeagent_lsp.session.own_runs import command_for
from codeagent_lsp.session.request import RunRequest, Target
from codeagent_lsp.shadow.shell import Finished, Isolation
from codeagent_lsp.workspace.files.file_view import FileText, FileView
from codeagent_lsp.workspace.files.paths import Roots
from tests.session.fakes import World, world
from tests.tools.shells import DIRECT, OPEN_COPY, OVERLAY, FakeEnvironments
from tests.workspace.file_fakes import FakeBuffers, FakeStaged


def view(folder: Path) -> FileView:
    return FileView(Roots([str(folder)]), FakeBuffers(), FakeStaged())


def file(folder: Path, name: str, text: str = "") -> FileText:
    return FileText(str(folder / name), text, "buffer", 1)


async def run(made: World, name: str = "main.py", text: str = "print(1)\n", *args: str) -> events.RunCompleted:
    target = Target(FileText(made.path(name), text, "buffer", 1), 0, len(text))
    run_id = made.manager.start(RunRequest("runFile", "", f"Run: {name}", target, args=args))
    return await made.finished(run_id)


@pytest.mark.parametrize(
    ("name", "text", "program"),
    [
        ("a.py", "", ("python3",)),
        ("a.js", "", ("node",)),
        ("A.SH", "", ("bash",)),
        ("a.go", "", ("go", "run")),
        ("tool", "#!/usr/bin/env python3\nprint()", ("/usr/bin/env", "python3")),
        ("a.py", "#!/bin/sh -eu\n", ("/bin/sh", "-eu")),
    ],
)
def test_the_program(tmp_path: Path, name: str, text: str, program: tuple[str, ...]) -> None:
    given = file(tmp_path, name, text)
    assert command_for(given, ("x y", "-n"), view(tmp_path)) == (*program, given.path, "x y", "-n")


@pytest.mark.parametrize("folder", [".venv", "venv"])
def test_python_is_that_of_the_projects_environment(tmp_path: Path, folder: str) -> None:
    python = tmp_path / folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert command_for(file(tmp_path, "a.py"), (), view(tmp_path))[0] == str(python)


@pytest.mark.parametrize("name", ["notes.txt", "Makefile", "a"])
def test_what_nothing_runs_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="There is no known way to run"):
        command_for(file(tmp_path, name), (), view(tmp_path))


def test_a_document_without_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file yet"):
        command_for(FileText("untitled:Untitled-1", "print()", "buffer", 1), (), view(tmp_path))


async def test_started_output_and_exit_are_told(tmp_path: Path) -> None:
    environments = FakeEnvironments([Finished(3, "hello\n", seconds=0.25)])
    made = world(tmp_path / "w", environments=environments)
    done = await run(made, "main.py", "print(1)\n", "one")
    assert (done.status, done.error) == ("completed", None)
    assert "exit code 3" in done.summary
    kinds = [event.type for event in made.events if event.type in ("started", "stdout", "exit")]
    assert kinds == ["started", "stdout", "exit"]
    (exit_event,) = made.of(events.FileRunExit)
    assert isinstance(exit_event, events.FileRunExit)
    assert (exit_event.exit_code, exit_event.duration) == (3, 0.25)
    (command,) = environments.shells[0].commands
    assert command.script[-2:] == (made.path("main.py"), "one")
    assert not command.network


async def test_what_the_file_writes_is_proposed(tmp_path: Path) -> None:
    environments = FakeEnvironments([Finished(0, "")])
    made = world(tmp_path / "w", environments=environments, says=["Apply"])
    environments.writes = {made.path("out.txt"): "made\n"}
    done = await run(made)
    assert (done.status, done.outcome) == ("completed", "full")
    assert made.buffers.documents[made.path("out.txt")].text == "made\n"


async def test_in_isolation_nothing_is_asked(tmp_path: Path) -> None:
    made = world(tmp_path / "w", environments=FakeEnvironments(isolation=OVERLAY))
    await run(made)
    assert made.user.shown == []


@pytest.mark.parametrize("isolation", [DIRECT, OPEN_COPY])
async def test_elsewhere_the_user_is_asked_first(tmp_path: Path, isolation: Isolation) -> None:
    environments = FakeEnvironments(isolation=isolation)
    made = world(tmp_path / "w", environments=environments, says=["Deny"])
    done = await run(made)
    assert isolation.level in made.user.shown[0].question.title
    assert (done.status, done.summary) == ("completed", "Not run.")
    assert environments.shells[0].commands == []


async def test_with_consent_it_runs(tmp_path: Path) -> None:
    environments = FakeEnvironments(isolation=DIRECT)
    made = world(tmp_path / "w", environments=environments, says=["Allow once"])
    await run(made)
    assert len(environments.shells[0].commands) == 1


@pytest.mark.parametrize("ending", ["timeout", "output", "memory", "processes", "disk"])
async def test_a_limit_is_no_success(tmp_path: Path, ending: str) -> None:
    made = world(tmp_path / "w", environments=FakeEnvironments([Finished(137, "", ending=ending)]))  # type: ignore[arg-type]
    done = await run(made)
    assert done.status == "stopped"
    assert ending in done.summary


async def test_where_nothing_can_run_the_reason_is_told(tmp_path: Path) -> None:
    made = world(
        tmp_path / "w", environments=FakeEnvironments(problem="bubblewrap is missing: apt-get install bubblewrap")
    )
    done = await run(made)
    assert done.status == "failed"
    assert "apt-get install bubblewrap" in done.summary + (done.error or "")
