"""A command that is talked with: it hears us, ends at the end of its input, and is killed with its tree."""

from __future__ import annotations

import asyncio
import math
import sys
import time
from pathlib import Path

import pytest

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.shadow.process import Guarded
from codeagent_lsp.shadow.shell import Launch, ProcessLimits
from tests.children import command_lines

LIMITS = ProcessLimits(seconds=math.inf, look_seconds=1.0)
ECHO = "import sys\nfor line in sys.stdin: print('heard', line.strip(), flush=True)\nprint('bye', flush=True)"


async def started(script: str, folder: Path, program: str = sys.executable) -> tuple[Guarded, Launch]:
    guarded, launch = Guarded(), Launch((program, "-c", script), str(folder), {"PATH": "/usr/bin:/bin"}, "")
    await guarded.start(launch, LIMITS, apart=True, talk=True)
    return guarded, launch


async def test_it_hears_us_and_ends_with_its_input(tmp_path: Path) -> None:
    guarded, launch = await started(ECHO, tmp_path)
    out = dict(guarded.streams)["stdout"]
    assert guarded.stdin is not None
    for word in (b"one", b"two"):
        guarded.stdin.write(word + b"\n")
        assert await out.readline() == b"heard " + word + b"\n"
    guarded.stdin.close()
    assert await out.readline() == b"bye\n"
    async with asyncio.timeout(10):
        await guarded.ended()
    assert guarded.answer(launch)["code"] == 0
    await guarded.close()


async def test_closing_kills_its_tree_within_moments(tmp_path: Path) -> None:
    script = "import subprocess, sys, time\nsubprocess.Popen(['sleep', '3567'], start_new_session=True)\n"
    guarded, _ = await started(script + "print('on', flush=True)\ntime.sleep(3567)", tmp_path)
    assert await dict(guarded.streams)["stdout"].readline() == b"on\n"
    began = time.monotonic()
    await guarded.close()
    assert time.monotonic() - began < 3
    assert not [line for line in command_lines().values() if line.endswith("sleep 3567")]


async def test_what_cannot_be_started_says_why(tmp_path: Path) -> None:
    guarded, launch = await started("", tmp_path, "no-such-program")
    async with asyncio.timeout(10):
        await guarded.ended()
    with pytest.raises(ToolFailed, match="no-such-program could not be started") as caught:
        guarded.answer(launch)
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    await guarded.close()


async def test_without_talk_its_input_is_empty(tmp_path: Path) -> None:
    guarded, launch = Guarded(), Launch((sys.executable, "-c", ECHO), str(tmp_path), {}, "")
    await guarded.start(launch, LIMITS, apart=False)
    assert guarded.stdin is None
    assert await dict(guarded.streams)["stdout"].readline() == b"bye\n"
    await guarded.close()
