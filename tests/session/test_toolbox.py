"""Commands in a run: the model knows where they run, their output streams, tests are told with the question."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.environments.container import CONTAINER
from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.messages import ToolCall
from codeagent_lsp.session.toolbox import AuditedShell, commands_line
from codeagent_lsp.shadow.guard_messages import KILLED
from codeagent_lsp.shadow.shell import Command, CommandResult, Finished, Isolation, OnOutput, no_output
from codeagent_lsp.tools.permissions.policy import Mode
from tests.session.fakes import World, call, calls, say, world
from tests.tools.shells import DIRECT, OPEN_COPY, OVERLAY, FakeEnvironments

RUN = call("run_cmd", command="make check")


def told_to_model(made: World) -> str:
    return made.manager.current().context.conversation[-2].content


@pytest.mark.parametrize(
    ("isolation", "words"),
    [
        (OVERLAY, ["private copy", "without network", "staged changes"]),
        (CONTAINER, ["private copy", "without network", "staged changes"]),
        (OPEN_COPY, ["copy", "not isolated"]),
        (DIRECT, ["real folder", "approval"]),
    ],
)
def test_the_prompt_says_where_commands_run(isolation: Isolation, words: list[str]) -> None:
    line = commands_line(isolation, "")
    assert [word for word in words if word not in line] == []
    assert "overlay" not in line
    assert "shadow" not in line


def test_the_prompt_says_why_nothing_can_run() -> None:
    assert "no bash" in commands_line(None, "no bash")


async def test_the_model_reads_output_and_exit_code(tmp_path: Path) -> None:
    environments = FakeEnvironments([Finished(2, "1 failed\n", seconds=0.5)])
    made = world(tmp_path / "w", calls(RUN), say("done"), environments=environments)
    await made.run()
    assert "1 failed" in told_to_model(made)
    assert "exit code 2" in told_to_model(made)


async def test_output_streams_as_events(tmp_path: Path) -> None:
    made = world(tmp_path / "w", calls(RUN), say("done"), environments=FakeEnvironments([Finished(0, "one\ntwo\n")]))
    await made.run()
    assert [event.content for event in made.of(events.StepOutput) if isinstance(event, events.StepOutput)] == [
        "one\ntwo\n"
    ]


async def test_a_command_in_full_isolation_needs_no_question(tmp_path: Path) -> None:
    made = world(tmp_path / "w", calls(RUN), say("done"), environments=FakeEnvironments())
    await made.run()
    assert made.user.shown == []


@pytest.mark.parametrize("isolation", [OPEN_COPY, DIRECT])
async def test_elsewhere_it_is_asked_and_a_no_holds(tmp_path: Path, isolation: Isolation) -> None:
    environments = FakeEnvironments(isolation=isolation)
    made = world(tmp_path / "w", calls(RUN), say("done"), environments=environments, says=["Deny"])
    await made.run()
    assert "make check" in made.user.shown[0].question.title
    assert environments.shells[0].commands == []
    assert "did not allow" in told_to_model(made)
    results = [event for event in made.events if isinstance(event, events.ToolFinished)]
    assert [result.summary for result in results] == ["You did not allow it."]


async def test_always_is_offered_and_kept_for_the_next_session(tmp_path: Path) -> None:
    made = world(
        tmp_path / "w",
        *(calls(RUN), say("done"), calls(RUN), say("done")),
        environments=FakeEnvironments(isolation=OPEN_COPY),
        says=["Always allow exactly this"],
    )
    await made.run()
    made.manager.new()
    await made.run()
    assert len(made.user.shown) == 1


async def test_in_the_real_folder_it_is_asked_every_time(tmp_path: Path) -> None:
    made = world(
        tmp_path / "w",
        *(calls(RUN), say("done"), calls(RUN), say("done")),
        environments=FakeEnvironments(isolation=DIRECT),
        says=["Allow once", "Allow once"],
    )
    await made.run()
    await made.run()
    assert [item.question.choices for item in made.user.shown] == [("Deny", "Allow once")] * 2


async def test_the_network_is_asked_for(tmp_path: Path) -> None:
    environments = FakeEnvironments()
    wants = ToolCall("run_cmd", {"command": "pip download x", "allow_network": True})
    made = world(tmp_path / "w", calls(wants), say("done"), environments=environments, says=["Allow once"])
    await made.run()
    assert len(made.user.shown) == 1
    assert environments.shells[0].commands[0].network


async def test_in_read_only_mode_no_command_runs(tmp_path: Path) -> None:
    environments = FakeEnvironments()
    made = world(tmp_path / "w", calls(RUN), say("done"), environments=environments, mode="readOnly")
    await made.run()
    assert environments.shells[0].commands == []


async def test_without_a_shell_the_model_learns_why(tmp_path: Path) -> None:
    made = world(
        tmp_path / "w", calls(RUN), say("done"), environments=FakeEnvironments(problem="bubblewrap is missing")
    )
    await made.run()
    assert "bubblewrap is missing" in told_to_model(made)


async def test_files_that_run_code_later_need_consent(tmp_path: Path) -> None:
    environments = FakeEnvironments()
    made = world(tmp_path / "w", say("done"), environments=environments, says=["Deny", "Allow once"])
    await made.run()
    approve = environments.approvals[0]
    assert not await approve((made.path(".vscode/tasks.json"),))
    assert await approve((made.path(".vscode/tasks.json"),))
    assert ".vscode/tasks.json" in made.user.shown[0].question.title


async def test_the_shadows_go_with_the_server(tmp_path: Path) -> None:
    environments = FakeEnvironments()
    made = world(tmp_path / "w", say("done"), environments=environments)
    await made.run()
    await made.manager.close()
    assert environments.closed == [None]


async def test_every_file_that_can_run_code_is_named_before_it_is_proposed(tmp_path: Path) -> None:
    environments = FakeEnvironments()
    made = world(tmp_path / "w", say("done"), environments=environments, says=["Allow once"] * 2 + ["Deny"])
    await made.run()
    names = [f".vscode/{'n' * 60}{number}.json" for number in range(40)]
    assert not await environments.approvals[0](tuple(made.path(name) for name in names))
    titles = [item.question.title for item in made.user.shown]
    assert len(titles) == 3 and max(map(len, titles)) < 1700
    assert [name for name in names if not any(name in title for title in titles)] == []


@pytest.mark.parametrize("mode", ["readOnly", "ask"])
async def test_the_mode_read_only_runs_no_program_of_the_workspace_either(tmp_path: Path, mode: Mode) -> None:
    environments = FakeEnvironments([Finished(0, "")])
    made = world(
        tmp_path / "w", calls(call("get_diagnostics", path="a.py")), say("done"), environments=environments, mode=mode
    )
    made.open("a.py", "import os\n")
    program = made.root / ".venv" / "bin" / "ruff"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (made.root / "ruff.toml").write_text("")
    await made.run()
    ran = [command.words for shell in environments.shells for command in shell.commands]
    assert bool(ran) is (mode == "ask"), ran
    assert ("The mode readOnly runs no programs" in told_to_model(made)) is (mode == "readOnly")


class Endless:
    """A shell whose commands never end; with `problem` they cannot even begin."""

    isolation = OVERLAY

    def __init__(self, problem: Exception | None = None) -> None:
        self._problem = problem

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        if self._problem is not None:
            raise self._problem
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.parametrize("problem", [None, ToolFailed("no room")])
async def test_a_command_that_does_not_end_by_itself_is_recorded_to_its_end(problem: Exception | None) -> None:
    seen: list[int | None] = []
    shell = AuditedShell(Endless(problem), lambda words, folder, level, code: seen.append(code))
    with pytest.raises(type(problem) if problem else TimeoutError):
        async with asyncio.timeout(0.05):
            await shell.run(Command("make", "/w"))
    assert seen == [None, KILLED]
