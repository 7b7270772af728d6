"""A command under a watchdog: a small program between the server and the command that guards its process tree
(`watchdog.py`), which also ends it if the server is killed. Linux and macOS; Windows has `job.py` with the same names.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.shadow.guard_messages import KILLED, pack_message, unpack_message
from codeagent_lsp.shadow.shell import Launch, ProcessLimits, Stream
from codeagent_lsp.system import OWN_GROUP

MARK_VARIABLE = "CODEAGENT_COMMAND"

_CHUNK = 1 << 16
_KILL = KILLED - 128
_STARTING_SECONDS = 10.0
_ENDING_SECONDS = 8.0  # longer than the watchdog takes to give up
_PACKAGE = Path(__file__).resolve().parents[2]
_WATCHDOG = (
    "import sys; sys.path.append(sys.argv[1]); import codeagent_lsp.shadow.watchdog as watchdog; watchdog.main()"
)
# What the interpreter may need to start; the watchdog gets nothing else of the user's environment.
_FOR_PYTHON = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME")


class Guarded:
    """One command under a watchdog, for talking with it while it runs: `streams` are its outputs, `stdin` its input, if
    any. `start` it once, and `close` it. To run a command only for its result, use `run_process`.
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
        """Start the watchdog and send it the command; `close` must be called even if this fails. With `apart`, stderr
        is a stream of its own, else it is a part of stdout. With `talk`, data written to `stdin` reaches the command;
        else its standard input is empty. A command that cannot be started is no error here: its answer says so.

        ToolFailed if the watchdog does not start within 10 s.
        """
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
        """Wait, without a time limit of its own, until the whole process tree has ended; at once if nothing was
        started.
        """
        if self._process is not None and await self._process.wait():  # killed: its children have other parents now
            await asyncio.to_thread(_kill_marked, self.mark)

    def stop(self) -> None:
        """Ask the watchdog to kill the whole process tree, and return at once; nothing if it has ended. `ended` waits
        for it.
        """
        try:
            self._control.shutdown(socket.SHUT_WR)
        except OSError:  # it has ended
            pass

    def answer(self, launch: Launch) -> dict[str, Any]:
        """Return how the command ended: `code` (128 + signal, or exit code) and `ending` (`exited`, `killed` or the
        limit that ended it). ToolFailed if it could not be started. Call it after `ended`.
        """
        try:
            answer = unpack_message(self._control.recv(_CHUNK))
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
        """Kill what still runs, waiting at most about 8 s, and close every descriptor; also to be called after a failed
        start.
        """
        self.stop()
        try:
            async with asyncio.timeout(_ENDING_SECONDS):
                await self.ended()
        except TimeoutError:
            await self._kill()
        for transport in self._transports:
            transport.close()
        self._control.close()
        self._other.close()
        await asyncio.sleep(0)  # transports close their pipes in the next turn of the loop

    async def _kill(self) -> None:
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
            await asyncio.get_running_loop().sock_sendall(self._control, pack_message(spec))


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
