"""A command runs although what bubblewrap was to mount is gone when it mounts, and never twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.shadow.mounts import TRIES, HeldOutput
from codeagent_lsp.shadow.probe import Isolator
from codeagent_lsp.shadow.shell import Command, Finished, Launch, OnOutput, Stream
from codeagent_lsp.shadow.workspace import ShadowWorkspace, executing
from tests.shadow.fakes import desk
from tests.shadow.rig import needs_overlay

GONE = "/usr/of-a-service-that-ended.sock"  # where no overlay is laid over the system
Lists = Callable[[int], None]


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch) -> Lists:
    """So many of the next listings of sockets name one that is gone by the time of the mount; the others name none, as
    those of other tests come and go.
    """
    left = 0

    def listed() -> tuple[str, ...]:
        nonlocal left
        left -= 1
        return (GONE,) if left >= 0 else ()

    def name_it(times: int) -> None:
        nonlocal left
        left = times

    for layer in ("overlay", "copying"):
        monkeypatch.setattr(f"codeagent_lsp.shadow.{layer}.services", listed)
    return name_it


@pytest.mark.slow
@needs_overlay
@pytest.mark.parametrize("level", ["overlay", "copy"])
async def test_a_command_that_was_not_begun_is_started_again(
    level: Literal["overlay", "copy"], lists: Lists, workspace: Path, tmp_path: Path
) -> None:
    at, settings = desk(workspace), ShellSettings(isolation=level)
    isolator = Isolator(str(tmp_path / "state"), environ={"PATH": "/usr/bin:/bin"})
    started: list[Launch] = []
    told: list[str] = []
    execute = executing(lambda: settings, tmp_path / "spool")

    async def counted(launch: Launch, command: Command, on_output: OnOutput) -> Finished:
        started.append(launch)
        return await execute(launch, command, on_output)

    folder = str(at.root)
    lists(1)  # an overlay is tried when it is opened
    shadow = ShadowWorkspace(
        isolator.isolation(settings, [folder]), lambda folders: isolator.open(settings, folders), counted
    )
    shell = shadow.bind(at.view, at.staging, approve)
    script = "echo more >> log; chmod +x run.sh; echo bwrap: said; exit 1"

    async def run(words: str = script) -> tuple[int, str, int]:
        told.clear()
        before = len(started)
        result = await shell.run(Command(words, folder), lambda stream, text: told.append(text))
        return result.finished.exit_code, "".join(told), len(started) - before

    try:
        (workspace / "run.sh").write_text("#!/bin/sh\n")
        assert await run("true") == (0, "", 1 if level == "overlay" else 2)
        assert shell.isolation.level == level
        assert await run() == (1, "bwrap: said\n", 1)
        lists(TRIES - 1)
        assert await run() == (1, "bwrap: said\n", TRIES)
        log, run_sh = (at.staging.lookup(f"{folder}/{name}") for name in ("log", "run.sh"))
        assert log is not None and log.text == "more\nmore\n" and run_sh is not None
        lists(1000)
        code, words, times = await run()
        assert (code, times, words.count("\n")) == (1, TRIES, 1) and words.startswith(
            "bwrap: Can't create file at /usr"
        )
    finally:
        await shadow.close()


async def approve(paths: tuple[str, ...]) -> bool:
    return True


@pytest.mark.parametrize(
    "text", ["", "b", "bwrap", "bwrap: no", "bwrapped", "a\nbwrap: no", "bwrap: " + "x" * 5000, "äöü"]
)
@pytest.mark.parametrize("size", [1, 3, 6000])
def test_no_output_is_lost_by_holding_it(text: str, size: int) -> None:
    told: list[tuple[Stream, str]] = []
    held = HeldOutput(lambda stream, part: told.append((stream, part)))
    for start in range(0, len(text), size):
        held("stdout", text[start : start + size])
    early = "".join(part for _, part in told)
    assert text.startswith(early) and (not early or not "bwrap: ".startswith(text[:7]) or len(text) > 4096)
    held.release()
    held("stderr", ".")
    assert "".join(part for _, part in told) == f"{text}."
