"""Helper programs that may start others: each leads its own process group, and the whole group is ended with it.

Not here: commands of the agent and of the user, which run isolated (`shadow/process.py`).
"""

from __future__ import annotations

import asyncio
from asyncio import StreamReader
from asyncio.subprocess import Process
from typing import Any

from codeagent_lsp.system import OWN_GROUP, end_tree

_CHUNK = 1 << 16


async def start_group(*command: str, **options: Any) -> Process:
    """Start a program in a process group of its own (on Windows a tree that `end_group` ends) and return it; `options`
    are those of `asyncio.create_subprocess_exec`. Raises OSError when it cannot start. If this is cancelled, the
    program and its group are ended.
    """
    # A start that is cancelled halfway would leave a program that nobody can end.
    starting = asyncio.ensure_future(asyncio.create_subprocess_exec(*command, **{**OWN_GROUP, **options}))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait([starting])
        if starting.exception() is None:
            end_group(starting.result())
            await reap(starting.result())
        raise


def end_group(process: Process) -> None:
    """Kill the program and its whole process group at once, also processes that outlived it, without waiting for them;
    nothing if they have ended.
    """
    end_tree(process.pid)


async def reap(process: Process) -> int:
    """Wait for the end of a program that was killed, and return its exit code (on POSIX minus the signal's number, as
    of `Process.wait`). Its output is closed, so a task that still reads it gets no more.

    Before Python 3.13, `wait` ends only when its pipes are closed, and a pipe that is not read stays open.
    """
    for number in (1, 2):
        # Closed, not read: where two read one stream, asyncio may wake only one of them.
        pipe = process._transport.get_pipe_transport(number)  # type: ignore[attr-defined]
        if pipe is not None:
            pipe.close()
    return await process.wait()


async def read_head(source: StreamReader, most: int) -> bytes:
    """Return the first `most` bytes of a program's output, all if it has fewer, once it has closed it.

    The rest is read and dropped, so that the program never blocks.
    """
    head = b""
    while piece := await source.read(_CHUNK):
        head += piece[: most - len(head)]
    return head
