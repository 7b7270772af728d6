"""Execution of a small helper program in a process of its own: a request as JSON in, an answer as JSON out.

Libraries that parse untrusted pages run there: the process is bounded in time and memory, its whole process tree ends
with ours, and it sees neither our environment nor our folders. Not here: the programs (`programs/`).
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.shadow.limits import ProcessLimits, half_of_memory
from codeagent_lsp.shadow.process import Guarded, settled
from codeagent_lsp.shadow.shell import Launch
from codeagent_lsp.tools.web.urls import not_installed
from codeagent_lsp.workspace.process_group import read_head

MAX_ANSWER = 16 << 20

_PROGRAMS = Path(__file__).with_name("programs")
_KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "TZ")
_MAX_COMPLAINT = 4096


@dataclass(frozen=True, slots=True)
class Program:
    """A helper program and the limits of one run; `what` names its work for error messages."""

    name: str
    what: str
    seconds: float
    memory: int = 1 << 30
    processes: int = 16


async def answer_of(program: Program, question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the program's answer. ToolFailed if it gives none, or reports a problem."""
    folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="codeagent-web-")
    try:
        answer = _understood(program, await _run(program, json.dumps(question).encode(), folder))
    finally:
        await settled(asyncio.to_thread(shutil.rmtree, folder, True))
    if "missing" in answer:
        raise not_installed(str(answer["missing"]))
    if "problem" in answer:
        raise ToolFailed(str(answer["problem"])[:500], ErrorCode(answer.get("code", ErrorCode.EXECUTION_ERROR)))
    return answer


async def _run(program: Program, question: bytes, folder: str) -> bytes:
    guarded = Guarded()
    launch = _launch(program, folder)
    limits = ProcessLimits(
        seconds=program.seconds,
        memory_bytes=min(program.memory, half_of_memory()),
        processes=program.processes,
        disk_folder=folder,
    )
    try:
        await settled(guarded.start(launch, limits, apart=True, talk=True))
        streams = dict(guarded.streams)
        async with asyncio.TaskGroup() as group:
            group.create_task(_told(guarded, question))
            saying = group.create_task(read_head(streams["stdout"], MAX_ANSWER))
            # Read although it is not used: a full pipe would stop the program.
            group.create_task(read_head(streams["stderr"], _MAX_COMPLAINT))
            await guarded.ended()
        if guarded.answer(launch)["ending"] == "timeout":
            message = f"{program.what} took longer than {program.seconds:g} s and was stopped."
            raise ToolFailed(message, ErrorCode.TIMEOUT)
        return saying.result()
    finally:
        await settled(guarded.close())


async def _told(guarded: Guarded, question: bytes) -> None:
    assert guarded.stdin is not None
    with suppress(OSError):  # it ended early; its output says why
        guarded.stdin.write(question)
        await guarded.stdin.drain()
        guarded.stdin.close()


def _launch(program: Program, folder: str) -> Launch:
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment |= {"PATH": os.defpath, "HOME": folder, "TMPDIR": folder, "LC_CTYPE": "C.UTF-8"}
    script = str(_PROGRAMS / f"{program.name}.py")
    # Isolated: no PYTHON* variables, no user site, nothing from the current folder.
    return Launch((sys.executable, "-I", "-X", "utf8", script), folder, environment, "")


def _understood(program: Program, said: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(said)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise ToolFailed(f"{program.what} failed: this page or answer cannot be read.")
    return answer
