"""Starting and ending programs that start others, also in the moment of a cancel."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from codeagent_lsp.workspace.process_group import end_group, read_head, reap, start_group
from tests.children import command_lines

SLEEPS = "sleep 61 & sleep 61"


def sleeping(folder: Path) -> list[int]:
    return [pid for pid, command in command_lines().items() if str(folder) in command]


async def test_the_whole_group_is_ended(tmp_path: Path) -> None:
    script = f"sh -c 'sleep 61; : {tmp_path}' & echo; sleep 61"
    process = await start_group("sh", "-c", script, stdout=PIPE)
    assert process.stdout is not None
    await process.stdout.readline()
    assert sleeping(tmp_path)
    end_group(process)
    await process.wait()
    end_group(process)  # nobody is left, and that is fine
    await _none(tmp_path)


async def test_one_that_prints_what_nobody_reads_is_over_once_it_was_killed() -> None:
    process = await start_group(
        "sh", "-c", "while :; do echo 0123456789012345678901234567890123456789; done", stdout=PIPE
    )
    assert process.stdout is not None
    while len(process.stdout._buffer) <= 2 * process.stdout._limit:  # type: ignore[attr-defined]  # noqa: ASYNC110
        await asyncio.sleep(0.01)  # then the pipe is read no further
    end_group(process)
    async with asyncio.timeout(20):
        assert await reap(process) == -9
        assert await reap(process) == -9


async def test_who_reads_what_a_killed_one_prints_is_told_its_end() -> None:
    process = await start_group("sh", "-c", "echo begun; exec sleep 61", stdout=PIPE)
    assert process.stdout is not None
    reading = asyncio.ensure_future(process.stdout.read())
    await asyncio.sleep(0)
    end_group(process)
    async with asyncio.timeout(20):
        assert await reap(process) == -9
        assert await reading in (b"", b"begun\n")


@pytest.mark.parametrize("steps", range(4))
async def test_a_cancel_while_it_starts_leaves_nothing(tmp_path: Path, steps: int) -> None:
    task = asyncio.ensure_future(start_group("sh", "-c", f"{SLEEPS}; : {tmp_path}"))
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await _none(tmp_path)


@pytest.mark.parametrize(("most", "expected"), [(0, b""), (5, b"ababa"), (1 << 20, b"ab" * 100_000)])
async def test_all_that_is_said_is_read_and_the_head_is_kept(most: int, expected: bytes) -> None:
    process = await start_group("sh", "-c", "yes ab | head -100000 | tr -d '\\n'", stdout=PIPE)
    assert process.stdout is not None
    assert await read_head(process.stdout, most) == expected
    assert await process.wait() == 0


async def test_what_cannot_start_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await start_group(str(tmp_path / "nothing"))


async def _none(folder: Path) -> None:
    async with asyncio.timeout(10):
        while sleeping(folder):  # noqa: ASYNC110 - what has just been killed is given a moment
            await asyncio.sleep(0.02)
