"""Execution of one command to its end: streaming output, limits, and no process left, however it ends.

Not here: what guards the process tree (`guarded.py`, on Windows `job.py`), how the command is kept from the disk
(`Launch` says how it is started), what its output becomes (`output.py`), what it wrote.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from codeagent_lsp.shadow.output import KeptOutput, Output
from codeagent_lsp.shadow.shell import (
    Ending,
    Finished,
    Launch,
    OnOutput,
    ProcessLimits,
    Stdin,
    Stream,
    in_pieces,
    no_output,
)
from codeagent_lsp.system import open_reading

if sys.platform == "win32":
    from codeagent_lsp.shadow.job import Guarded as Guarded
else:
    from codeagent_lsp.shadow.guarded import Guarded as Guarded

MAX_REPORTS = 64
MAX_REPORT_BYTES = 16 << 20

_CHUNK = 1 << 16
_DRAINING_SECONDS = 2.0
_ENDINGS: Mapping[str, Ending] = {name: name for name in ("timeout", "processes", "memory", "disk")}

T = TypeVar("T")


async def run_process(
    launch: Launch,
    limits: ProcessLimits,
    on_output: OnOutput = no_output,
    *,
    spool_folder: Path | None,
    apart: bool = False,
    stdin: Stdin = b"",
    keywords: Sequence[str] = (),
) -> Finished:
    """Run a command to its end or to a limit. When this returns or raises, also when cancelled, no process of it is
    left. `on_output` gets each new piece of text and the stream it is of, in the event loop.

    Both streams share one pipe, so that their order is exact, and all output is `stdout`; with `apart` each has its
    own, and their relative order is approximate. Output too long for `Finished.output` goes to a file in
    `spool_folder`, which the caller removes; without a folder its middle is lost, except for lines with errors or with
    one of `keywords`, in lower case.

    ToolFailed if the command cannot be started.
    """
    output = Output(spool_folder, keywords, apart=apart)
    guarded = Guarded()
    try:
        started = time.monotonic()
        # Cancelled halfway, a process would run that nobody knows of.
        await run_to_end(guarded.start(launch, limits, apart=apart, talk=bool(stdin)))
        async with _feed(guarded.stdin, stdin):
            over = await _follow(guarded, output, on_output, limits.output_bytes)
        seconds = time.monotonic() - started
        answer = guarded.answer(launch)
        kept, reports = await run_to_end(asyncio.to_thread(_gather, output, launch.reports))
        ending = "output" if over else _ENDINGS.get(answer["ending"], "exited")
        return Finished(answer["code"], kept.text, output.size, ending, seconds, kept.whole, reports, kept.streams)
    except BaseException:
        output.discard()
        raise
    finally:
        await run_to_end(guarded.close())


def read_reports(folder: str) -> dict[str, bytes]:
    """Return the bytes of the regular files directly in `folder` by name: at most 64 files of together 16 MiB; {} if
    there is no such folder. Others are left out, unreadable ones and links too. Blocks.
    """
    found: dict[str, bytes] = {}
    room = MAX_REPORT_BYTES
    for name in _names(folder):
        data = _regular(os.path.join(folder, name), room)  # noqa: PTH118 - a name may be any bytes
        if data is not None:
            found[name] = data
            room -= len(data)
        if len(found) == MAX_REPORTS:
            break
    return found


async def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run work that ends soon to its end even when this is cancelled, and return its result; then CancelledError is
    raised in place of the result.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        # An exception of the work that nobody retrieves would be logged by asyncio.
        raise cancelled from (None if task.cancelled() else task.exception())
    return task.result()


@dataclass(slots=True)
class _Pump:
    """Moves data from one pipe to the output, with backpressure. `over`: the limit was exceeded."""

    stream: Stream
    reader: asyncio.StreamReader
    output: Output
    on_output: OnOutput
    most: int
    stop: Callable[[], None]
    over: bool = False

    async def run(self) -> None:
        while data := await self.reader.read(_CHUNK):
            room = self.most - self.output.size
            # The whole tree is ended by the watchdog; what comes until then is read and dropped.
            if len(data) > room and not self.over:
                self.over = True
                self.stop()
            if room <= 0:
                continue  # until the end: the writers die meanwhile
            if text := self.output.feed(self.stream, data[:room]):
                self.on_output(self.stream, text)
            if self.output.wants_flush:
                # The file must not be closed while a thread writes to it.
                await run_to_end(asyncio.to_thread(self.output.flush))
            await asyncio.sleep(0)  # a pipe that is always full must not keep others waiting


async def _follow(guarded: Guarded, output: Output, on_output: OnOutput, most: int) -> bool:
    """Wait until the watchdog has ended and the pipes are read; return whether there was too much output."""
    pumps = [_Pump(stream, reader, output, on_output, most, guarded.stop) for stream, reader in guarded.streams]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(pump.run()) for pump in pumps]
        await guarded.ended()
        _, open_still = await asyncio.wait(tasks, timeout=_DRAINING_SECONDS)
        for task in open_still:  # a process outside of the tree has the pipe
            task.cancel()
    return any(pump.over for pump in pumps)


@asynccontextmanager
async def _feed(stdin: asyncio.StreamWriter | None, data: Stdin) -> AsyncIterator[None]:
    """Send `data` to the command's standard input, and then its end, as long as it reads."""

    async def feed(to: asyncio.StreamWriter) -> None:
        try:
            async for piece in in_pieces(data):
                to.write(piece)
                await to.drain()
        except OSError:  # it does not read to the end, which is its own affair
            pass
        finally:
            to.close()

    feeding = asyncio.ensure_future(feed(stdin)) if stdin is not None else None
    try:
        yield
    finally:
        if feeding is not None:
            feeding.cancel()
            await asyncio.wait([feeding])


def _gather(output: Output, reports: str) -> tuple[KeptOutput, dict[str, bytes]]:
    return output.finish(), read_reports(reports) if reports else {}


def _names(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry, _ in zip(entries, range(MAX_REPORTS * 16), strict=False))
    except OSError:
        return []


def _regular(path: str, room: int) -> bytes | None:
    """Return the bytes of a regular file of at most `room` bytes; None for any other."""
    try:
        descriptor = open_reading(path)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > room:
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(room)
    finally:
        os.close(descriptor)
