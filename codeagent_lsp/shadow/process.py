"""Execution of one command to its end: streaming output, limits, and no process left, however it ends.

A small program between the server and the command guards its process tree (`watchdog.py`), which also ends it if the
server is killed. Not here: how the command is kept from the disk (`Launch` says how it is started), what its output
becomes (`output.py`), what it wrote.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.shadow.control_group import parent_group
from codeagent_lsp.shadow.guard_messages import INTERVAL_SECONDS, KILLED, sent, told
from codeagent_lsp.shadow.output import KeptOutput, Output
from codeagent_lsp.shadow.shell import Ending, Finished, Launch, OnOutput, Stdin, Stream, in_pieces, no_output
from codeagent_lsp.system import OWN_GROUP, memory_bytes, open_reading

MARK_VARIABLE = "CODEAGENT_COMMAND"
MAX_REPORTS = 64
MAX_REPORT_BYTES = 16 << 20

_CHUNK = 1 << 16
_KILL = KILLED - 128
_STARTING_SECONDS = 10.0
_ENDING_SECONDS = 8.0  # longer than the watchdog takes to give up
_DRAINING_SECONDS = 2.0
_PACKAGE = Path(__file__).resolve().parents[2]
_WATCHDOG = (
    "import sys; sys.path.append(sys.argv[1]); import codeagent_lsp.shadow.watchdog as watchdog; watchdog.main()"
)
# What the interpreter may need to start; the watchdog gets nothing else of the user's environment.
_FOR_PYTHON = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME")

_ENDINGS: Mapping[str, Ending] = {name: name for name in ("timeout", "processes", "memory", "disk")}

T = TypeVar("T")


def half_of_memory() -> int:
    """Return half of the machine's memory in bytes."""
    return memory_bytes() // 2


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """The limits of one command; the first that is exceeded ends it.

    `memory_bytes` is for all processes together. `disk_bytes` is how much the free space of `disk_folder`'s file system
    (default: that of the reports) may shrink while the command runs, whatever the cause. `look_seconds` is the interval
    of the checks. `control_group` is the folder of the group in which each command gets its own; "" for none.
    """

    seconds: float = 300.0
    output_bytes: int = 16 << 20
    memory_bytes: int = field(default_factory=half_of_memory)
    processes: int = 512
    disk_bytes: int = 2 << 30
    disk_folder: str = ""
    look_seconds: float = INTERVAL_SECONDS
    control_group: str = field(default_factory=parent_group)


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
    """Run a command to its end. When this returns or raises, also by cancelling, no process of it is left.

    Both streams share one pipe, so that their order is exact, and all output is `stdout`; with `apart` each has its
    own, and their relative order is approximate. Output too long for `Finished.output` goes to a file in
    `spool_folder`, which belongs to the caller; without a folder its middle is lost, but for lines with errors or with
    one of `keywords`. ToolFailed if the command cannot be started.
    """
    output = Output(spool_folder, keywords, apart=apart)
    guarded = Guarded()
    try:
        started = time.monotonic()
        # Cancelled halfway, a process would run that nobody knows of.
        await settled(guarded.start(launch, limits, apart=apart, talk=bool(stdin)))
        async with _fed(guarded.stdin, stdin):
            over = await _followed(guarded, output, on_output, limits.output_bytes)
        seconds = time.monotonic() - started
        answer = guarded.answer(launch)
        kept, reports = await settled(asyncio.to_thread(_gathered, output, launch.reports))
        ending = "output" if over else _ENDINGS.get(answer["ending"], "exited")
        return Finished(answer["code"], kept.text, output.size, ending, seconds, kept.whole, reports, kept.streams)
    except BaseException:
        output.discard()
        raise
    finally:
        await settled(guarded.close())


def read_reports(folder: str) -> dict[str, bytes]:
    """Return the regular files directly in `folder` by name: at most `MAX_REPORTS` of together `MAX_REPORT_BYTES`.

    Others are left out; links are not followed.
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


async def settled(work: Coroutine[Any, Any, T]) -> T:
    """Run bounded work to its end even when cancelled, and raise CancelledError afterwards."""
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


class Guarded:
    """A watchdog with its command, and our ends of its socket and pipes.

    For talking with a command while it runs; `run_process` is for its result only.
    """

    def __init__(self) -> None:
        self.mark = os.urandom(16).hex()
        self.streams: list[tuple[Stream, asyncio.StreamReader]] = []
        self.stdin: asyncio.StreamWriter | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._control, self._other = socket.socketpair()
        self._control.setblocking(False)
        self._transports: list[asyncio.BaseTransport] = []

    async def start(self, launch: Launch, limits: ProcessLimits, *, apart: bool, talk: bool = False) -> None:
        """Start the watchdog and send it the command. `close` must be called, however this ends.

        With `talk`, data written to `stdin` reaches the command; else its standard input is empty. ToolFailed if it
        does not start.
        """
        if os.name != "posix":  # the watchdog lives on process groups
            raise ToolFailed("Commands do not run on this system yet. Use Linux, macOS or WSL for them.")
        with ExitStack() as writers:
            stdout = await self._pipe("stdout", writers)
            stderr = await self._pipe("stderr", writers) if apart else stdout
            stdin = await self._inlet(writers) if talk else None
            try:
                self._process = await asyncio.create_subprocess_exec(
                    # Isolated and without site-packages: it starts faster, and nothing of the workspace can be
                    # imported.
                    *(sys.executable, "-I", "-S", "-X", "utf8", "-c", _WATCHDOG, str(_PACKAGE)),
                    stdin=self._other.fileno(),
                    stdout=stdout,
                    stderr=stderr,
                    env={name: os.environ[name] for name in _FOR_PYTHON if name in os.environ},
                    cwd="/",
                    **OWN_GROUP,
                    pass_fds=() if stdin is None else (stdin,),
                )
                # Or the socket would stay open on this side and never tell that the watchdog has ended.
                self._other.close()
                await self._tell({**_spec(launch, limits, self.mark), "stdin": stdin})
            except OSError as error:  # TimeoutError too
                raise ToolFailed(f"The process that watches over commands did not start: {error}") from error

    async def ended(self) -> None:
        """Wait until the watchdog, and with it the whole process tree, has ended."""
        if self._process is not None and await self._process.wait():  # killed: its children have other parents now
            await asyncio.to_thread(_kill_marked, self.mark)

    def stop(self) -> None:
        """Have the watchdog kill the whole process tree."""
        try:
            self._control.shutdown(socket.SHUT_WR)
        except OSError:  # it has ended
            pass

    def answer(self, launch: Launch) -> dict[str, Any]:
        """Return the watchdog's last message: `code` and `ending`. ToolFailed if no command was started."""
        try:
            answer = told(self._control.recv(_CHUNK))
        except (OSError, ValueError, EOFError, TypeError) as error:
            # Killed by a signal, as by the kernel when memory is short, it could not answer: that is the command's end.
            if self._process is not None and (self._process.returncode or 0) >= 0:
                raise ToolFailed("The process that watches over commands failed.") from error
            answer = {"code": KILLED, "ending": "killed"}
        if "error" in answer:
            cause = OSError(answer["error"], os.strerror(answer["error"]))
            raise ToolFailed(f"{launch.argv[0]} could not be started in {launch.cwd}: {cause.strerror}.") from cause
        return answer

    async def close(self) -> None:
        """End what still runs, within seconds, and close every descriptor."""
        self.stop()
        try:
            async with asyncio.timeout(_ENDING_SECONDS):
                await self.ended()
        except TimeoutError:
            await self._killed()
        for transport in self._transports:
            transport.close()
        self._control.close()
        self._other.close()
        await asyncio.sleep(0)  # transports close their pipes in the next turn of the loop

    async def _killed(self) -> None:
        if self._process is not None:
            self._process.kill()
            await self.ended()

    async def _pipe(self, stream: Stream, writers: ExitStack) -> int:
        """Return the writing end of a new pipe, closed by `writers`; the other end is read with backpressure."""
        reading, writing = os.pipe()
        writers.callback(os.close, writing)
        reader = asyncio.StreamReader(limit=_CHUNK)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", buffering=0)
        )
        self._transports.append(transport)
        self.streams.append((stream, reader))
        return writing

    async def _inlet(self, readers: ExitStack) -> int:
        """Return the reading end of a new pipe, closed by `readers`; `stdin` writes to the other end."""
        reading, writing = os.pipe()
        readers.callback(os.close, reading)
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(writing, "wb", buffering=0)
        )
        self._transports.append(transport)
        self.stdin = asyncio.StreamWriter(transport, protocol, None, loop)
        return reading

    async def _tell(self, spec: dict[str, Any]) -> None:
        async with asyncio.timeout(_STARTING_SECONDS):
            await asyncio.get_running_loop().sock_sendall(self._control, sent(spec))


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
                await settled(asyncio.to_thread(self.output.flush))
            await asyncio.sleep(0)  # a pipe that is always full must not keep others waiting


async def _followed(guarded: Guarded, output: Output, on_output: OnOutput, most: int) -> bool:
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
async def _fed(stdin: asyncio.StreamWriter | None, data: Stdin) -> AsyncIterator[None]:
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


def _spec(launch: Launch, limits: ProcessLimits, mark: str) -> dict[str, Any]:
    return {
        "argv": launch.argv,
        "cwd": launch.cwd,
        "environment": {**launch.environment, MARK_VARIABLE: mark},
        "seconds": limits.seconds,
        "memory_bytes": limits.memory_bytes,
        "processes": limits.processes,
        "disk_bytes": limits.disk_bytes,
        "disk_folder": limits.disk_folder or launch.reports,
        "look_seconds": limits.look_seconds,
        "control_group": limits.control_group,
    }


def _gathered(output: Output, reports: str) -> tuple[KeptOutput, dict[str, bytes]]:
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


def _kill_marked(mark: str) -> None:
    """Kill the processes with our mark in their environment until there are none left; bounded."""
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    # Again and again, as a process may fork between the look and the signal.
    for _ in range(50):
        pids = [pid for pid in map(int, filter(str.isdigit, _proc())) if wanted in _environment(pid)]
        if not pids:
            return
        for pid in pids:
            try:
                os.kill(pid, _KILL)
            except OSError:  # gone meanwhile
                pass
        time.sleep(0.01)


def _proc() -> list[str]:
    try:
        return os.listdir("/proc")  # noqa: PTH208 - numbers, not paths
    except OSError:
        return []


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""
