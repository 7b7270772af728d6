"""Programs of ours that may start others: each leads a process group of its own and is ended with the whole of it.

Not here: commands of the agent and of the user, which are isolated (`shadow/process.py`).
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
    """Start a program; `options` are those of `asyncio.create_subprocess_exec`. OSError when it cannot start.

    Cancelled meanwhile, what had begun is ended: the program may have started others by then.
    """
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
    """End the program and all of its group, also those that it left behind."""
    with suppress(ProcessLookupError, PermissionError):  # nobody is left
        os.killpg(process.pid, signal.SIGKILL)


async def read_head(source: StreamReader, most: int) -> bytes:
    """The first `most` bytes of what a program says; the others are read, so that nobody waits, and dropped."""
    head = b""
    while piece := await source.read(_CHUNK):
        head += piece[: most - len(head)]
    return head
