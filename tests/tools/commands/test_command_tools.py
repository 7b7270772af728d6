"""`run_cmd`: what the model is told of a command, and where it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.agent.loop import result_event
from codeagent_lsp.messages import ToolCall
from codeagent_lsp.shadow.shell import Ending, Finished
from codeagent_lsp.tools.commands.command_tools import MAX_NAMED, RunCmd
from codeagent_lsp.tools.outputs import OutputStore
from tests.tools.fakes import Bench
from tests.tools.shells import OPEN_COPY, OVERLAY, FakeShell


def made(folder: Path, *results: Finished, shell: FakeShell | None = None) -> tuple[Bench, FakeShell]:
    bench = Bench(folder / "work", [RunCmd()])
    used = shell or FakeShell(*results, isolation=OVERLAY, staging=bench.staging)
    bench.shell = used
    bench.configure(bench.context.settings)
    return bench, used


async def test_output_and_exit_code(tmp_path: Path) -> None:
    bench, _ = made(tmp_path, Finished(2, "first\nsecond\n", seconds=1.25), Finished(0, ""))
    result = await bench.call("run_cmd", command="make")
    assert (result.status, result.text) == ("ok", "first\nsecond\n[exit code 2, 1.2 s]")
    told = result_event(ToolCall("run_cmd", {}, "c"), result)
    assert (told.success, told.error) == (False, "exit code 2")
    assert result_event(ToolCall("run_cmd", {}, "c"), await bench.call("run_cmd", command="make")).success


async def test_no_output_is_said(tmp_path: Path) -> None:
    bench, _ = made(tmp_path, Finished(0, ""))
    assert (await bench.call("run_cmd", command="true")).text.startswith("(no output)")


async def test_the_project_s_own_programs_come_first(tmp_path: Path) -> None:
    bench, shell = made(tmp_path, Finished(0, ""))
    for name in ("api/.venv/bin/python", "web/node_modules/.bin/tsc"):
        bench.write(name, "#!/bin/sh\n")
    for folder in ("api", "web", "."):
        await bench.call("run_cmd", command="python -c 1", working_dir=folder)
    first = [command.environment.get("PATH", "").split(":")[0] for command in shell.commands]
    assert first == [bench.path("api/.venv/bin"), bench.path("web/node_modules/.bin"), ""]
    assert shell.commands[0].environment["VIRTUAL_ENV"] == bench.path("api/.venv")


async def test_where_commands_are_not_isolated_the_system_s_come_first(tmp_path: Path) -> None:
    bench, shell = made(tmp_path, shell=FakeShell(Finished(0, ""), isolation=OPEN_COPY))
    bench.write(".venv/bin/python", "#!/bin/sh\n")
    await bench.call("run_cmd", command="ls")
    assert not shell.commands[0].environment


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        ("timeout", "time limit"),
        ("output", "output"),
        ("memory", "memory"),
        ("processes", "processes"),
        ("disk", "disk"),
    ],
)
async def test_a_limit_is_named(tmp_path: Path, ending: Ending, words: str) -> None:
    bench, _ = made(tmp_path, Finished(137, "x", ending=ending))
    result = await bench.call("run_cmd", command="yes")
    assert words in result.text
    assert not result_event(ToolCall("run_cmd", {}, "c"), result).success


async def test_what_it_wrote_is_named_and_what_was_left_out(tmp_path: Path) -> None:
    bench, shell = made(tmp_path, Finished(0, ""))
    shell.writes = {str(bench.root / "a.txt"): "x\n"}
    shell.left_out = ((str(bench.root / "b.png"), "binary"),)
    text = (await bench.call("run_cmd", command="make")).text
    assert "Staged from what it wrote: a.txt" in text
    assert "Not staged: b.png (binary)" in text
    assert bench.staging.changeset.paths == (str(bench.root / "a.txt"),)


async def test_many_files_are_counted(tmp_path: Path) -> None:
    bench, shell = made(tmp_path, Finished(0, ""))
    shell.writes = {str(bench.root / f"{number:03}.txt"): "x\n" for number in range(MAX_NAMED + 5)}
    shell.left_out = tuple((str(bench.root / f"{number}.bin"), "binary") for number in range(MAX_NAMED + 7))
    text = (await bench.call("run_cmd", command="make")).text
    assert "and 5 more" in text
    assert "(and 7 more)" in text


async def test_a_weaker_isolation_is_said_in_the_result(tmp_path: Path) -> None:
    bench, _ = made(tmp_path, shell=FakeShell(Finished(0, ""), isolation=OPEN_COPY))
    assert "isolation: copy" in (await bench.call("run_cmd", command="ls")).text


async def test_it_runs_in_the_folder_that_is_named(tmp_path: Path) -> None:
    bench, shell = made(tmp_path)
    bench.write("src/a.py", "")
    await bench.call("run_cmd", command="make")
    await bench.call("run_cmd", command="make", working_dir="src", timeout=7)
    assert [(command.cwd, command.seconds) for command in shell.commands] == [
        (str(bench.root), None),
        (str(bench.root / "src"), 7),
    ]


@pytest.mark.parametrize("folder", ["missing", "a.txt", "../..", "/etc"])
async def test_another_place_is_refused(tmp_path: Path, folder: str) -> None:
    bench, shell = made(tmp_path)
    bench.write("a.txt", "")
    result = await bench.call("run_cmd", command="make", working_dir=folder)
    assert not result.ok
    assert shell.commands == []


@pytest.mark.parametrize(
    "arguments", [{"command": ""}, {"command": "x", "timeout": 0}, {"command": "x", "timeout": 601}]
)
async def test_bad_arguments_are_told(tmp_path: Path, arguments: dict[str, object]) -> None:
    bench, shell = made(tmp_path)
    result = await bench.call("run_cmd", **arguments)
    assert result.status == "retry"
    assert shell.commands == []


async def test_all_of_a_long_output_can_be_read(tmp_path: Path) -> None:
    whole = tmp_path / "spooled"
    whole.write_text("line\n" * 1000)
    bench, _ = made(tmp_path, Finished(0, "line\n...\nline\n", size=5000, whole=str(whole)))
    outputs = OutputStore(tmp_path / "outputs")
    bench.executor._context = bench.context.having((OutputStore, outputs))
    text = (await bench.call("run_cmd", command="make")).text
    assert text.endswith("All 5,000 bytes of output: read_file @output/1.txt")
    assert not whole.exists()


async def test_without_a_shell_nothing_runs(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "work", [RunCmd()])
    bench.shell = None
    bench.configure(bench.context.settings)
    result = await bench.call("run_cmd", command="ls")
    assert result.status == "denied"
