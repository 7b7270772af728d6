"""`run_cmd`: what the model is told of a command, and where it runs.

All of a long output is kept without secrets, wherever they lie in it, and the raw file is gone however it ends.
"""

from __future__ import annotations

import asyncio
import random
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp.agent.loop import result_event
from codeagent_lsp.messages import ToolCall
from codeagent_lsp.records.masking import Masking
from codeagent_lsp.shadow.shell import Ending, Finished
from codeagent_lsp.texts import text
from codeagent_lsp.tools.commands import command_tools
from codeagent_lsp.tools.commands.command_tools import MASKED_PIECE, MAX_NAMED, RunCmd, keep_whole
from codeagent_lsp.tools.context import Redaction, ToolContext
from codeagent_lsp.tools.outputs import OutputStore
from codeagent_lsp.tools.variables.variables import Variable, Variables
from tests.records.formats import TOKENS
from tests.tools.fakes import Bench
from tests.tools.shells import OPEN_COPY, OVERLAY, FakeShell

LINE = b"a line of an ordinary build, number 17\n"


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


async def test_an_exit_code_is_told_in_the_users_language(tmp_path: Path) -> None:
    bench, _ = made(tmp_path, Finished(2, ""))
    context = replace(bench.context, words=lambda key, **values: text(key, "zh-cn", **values))
    assert (await RunCmd().run(RunCmd.parameters.model_validate({"command": "make"}), context)).failed == "退出码 2"


async def test_no_output_is_said(tmp_path: Path) -> None:
    bench, _ = made(tmp_path, Finished(0, ""))
    assert (await bench.call("run_cmd", command="true")).text.startswith("(no output)")


@pytest.mark.parametrize("char", ["\0", "\x07", "\x1b", "\r", "\x7f", "\x9b"])
async def test_a_command_with_a_control_character_is_refused_and_not_asked_about(tmp_path: Path, char: str) -> None:
    bench, shell = made(tmp_path, Finished(0, ""))
    result = await bench.call("run_cmd", command=f"echo a{char}b")
    assert result.status != "ok" and f"<U+{ord(char):04X}>" in result.text
    assert shell.commands == [] and bench.asker.asked == []


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
    "arguments", [{"command": ""}, {"command": "x", "timeout": -1}, {"command": "x", "timeout": 601}]
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


def secret(seed: int = 1) -> bytes:
    return TOKENS["gitlab"](random.Random(seed)).encode()


def context(folder: Path, variables: Variables | None = None) -> ToolContext:
    kept = OutputStore(folder / "kept")
    parts = (Redaction, Redaction(Masking().hide)), (OutputStore, kept), (Variables, variables)
    return Bench(folder / "work", []).context.having(*parts)


def spooled(folder: Path, data: bytes) -> str:
    path = folder / "spool" / "command-1.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def kept(folder: Path) -> bytes:
    (path,) = (folder / "kept").rglob("*.txt")
    return path.read_bytes()


def spool(folder: Path) -> list[Path]:
    return list((folder / "spool").iterdir())


@pytest.mark.slow
async def test_a_long_output_without_secrets_is_kept_as_it_is(tmp_path: Path) -> None:
    data = LINE * 20_000 + "ünï ✓ no newline at the end".encode()
    assert await keep_whole(spooled(tmp_path, data), context(tmp_path)) == "@output/1.txt"
    assert kept(tmp_path) == data
    assert spool(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("before", [0, 5, 39, 200])
async def test_a_secret_over_the_border_of_two_pieces_is_masked(tmp_path: Path, before: int) -> None:
    """`before` characters of it lie before the border."""
    frame = b"TOKEN=" + secret() + b"\n"
    filler = LINE * (MASKED_PIECE // len(LINE) + 1)
    data = filler[: MASKED_PIECE - before - 1] + b"\n" + frame + filler
    await keep_whole(spooled(tmp_path, data), context(tmp_path))
    text = kept(tmp_path)
    assert secret() not in text
    assert text.count(b"<secret:") == 1
    assert text.endswith(filler)


async def test_a_private_key_over_the_border_is_masked(tmp_path: Path) -> None:
    lines = [bytes(random.Random(7).choices(b"ABCDEFGHIJKLMNOPabcdefg0123456789+/", k=64)) for _ in range(24)]
    begin, end = (b"-----%s PRIVATE KEY-----\n" % word for word in (b"BEGIN", b"END"))
    block = begin + b"\n".join(lines) + b"\n" + end
    data = LINE * (MASKED_PIECE // len(LINE) - 10) + block + LINE * 20
    assert data.index(begin) < MASKED_PIECE < data.index(end)
    await keep_whole(spooled(tmp_path, data), context(tmp_path))
    text = kept(tmp_path)
    assert [line for line in lines if line in text] == []
    assert text.endswith(LINE * 20)


@pytest.mark.slow
async def test_values_of_variables_are_masked_too(tmp_path: Path) -> None:
    variables = Variables()
    variables.allow(Variable("DEPLOY", "session", "plain words of the user"), network=False)
    data = b"x" * (MASKED_PIECE - 7) + b"plain words of the user" + b"y" * 100
    await keep_whole(spooled(tmp_path, data), context(tmp_path, variables=variables))
    assert kept(tmp_path) == b"x" * (MASKED_PIECE - 7) + b"[$DEPLOY]" + b"y" * 100


@pytest.mark.slow
async def test_a_character_over_the_border_stays_whole(tmp_path: Path) -> None:
    data = b"x" * (MASKED_PIECE - 1) + "é".encode() + b"\xff end"
    await keep_whole(spooled(tmp_path, data), context(tmp_path))
    assert kept(tmp_path).decode() == "x" * (MASKED_PIECE - 1) + "é\ufffd end"


async def test_without_a_place_nothing_is_kept_and_nothing_stays(tmp_path: Path) -> None:
    nowhere = context(tmp_path).having((OutputStore, None))
    assert await keep_whole(spooled(tmp_path, b"TOKEN=" + secret()), nowhere) == ""
    assert spool(tmp_path) == []


async def test_a_disk_that_refuses_costs_only_the_file(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("not a folder")
    assert await keep_whole(spooled(tmp_path, LINE * 10), context(tmp_path)) == ""
    assert spool(tmp_path) == []


async def test_a_file_that_is_gone_already_is_no_error(tmp_path: Path) -> None:
    assert await keep_whole(str(tmp_path / "missing.txt"), context(tmp_path)) == ""


async def test_cancelled_in_the_middle_nothing_stays(tmp_path: Path) -> None:
    here, reached = context(tmp_path), asyncio.Event()
    loop, hide = asyncio.get_running_loop(), here.redaction.hide

    def slow(text: str) -> str:
        loop.call_soon_threadsafe(reached.set)
        return hide(text)

    work = asyncio.create_task(keep_whole(spooled(tmp_path, LINE * 200_000), here.having((Redaction, Redaction(slow)))))
    await reached.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert spool(tmp_path) == []
    assert not (tmp_path / "kept").exists()


async def test_what_is_kept_is_read_by_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_tools, "MASKED_PIECE", 100)  # pieces of any size give the same
    data = b"".join(b"key_%d = '%s'\n" % (seed, secret(seed)) for seed in range(50))
    await keep_whole(spooled(tmp_path, data), context(tmp_path))
    (path,) = (tmp_path / "kept").rglob("*.txt")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes().count(b"<secret:") == 50
    assert [seed for seed in range(50) if secret(seed) in path.read_bytes()] == []


@pytest.mark.slow
async def test_memory_does_not_grow_with_the_output(tmp_path: Path) -> None:
    here, file = context(tmp_path), spooled(tmp_path, LINE * ((8 << 20) // len(LINE)))
    tracemalloc.start()
    try:
        await keep_whole(file, here)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept(tmp_path)) > 7 << 20
    assert peak < 8 * MASKED_PIECE + (2 << 20)
