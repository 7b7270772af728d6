"""Helper programs that may start others: each leads its own process group, and the whole group is ended with it.

Not here: commands of the agent and of the user, which run isolated (`shadow/process.py`).
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio import StreamReader
from asyncio.subprocess import Process
from contextlib import suppress
from typing import Any

_CHUNK = 1 << 16


async def start_group(*command: str, **options: Any) -> Process:
    """Start a program in a process group of its own; `options` are those of `asyncio.create_subprocess_exec`.

    Raises OSError when it cannot start. If this is cancelled, the program and its group are ended.
    """
    # A start that is cancelled halfway would leave a program that nobody can end.
    starting = asyncio.ensure_future(asyncio.create_subprocess_exec(*command, start_new_session=True, **options))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait([starting])
        if starting.exception() is None:
            end_group(starting.result())
            await starting.result().wait()
        raise


def end_group(process: Process) -> None:
    """Kill the program and its whole process group, also processes that outlived it."""
    with suppress(ProcessLookupError, PermissionError):  # no process is left
        os.killpg(process.pid, signal.SIGKILL)


async def read_head(source: StreamReader, most: int) -> bytes:
    """Return the first `most` bytes of a program's output.

    The rest is read and dropped, so that the program never blocks.
    """
    head = b""
    while piece := await source.read(_CHUNK):
        head += piece[: most - len(head)]
    return head
