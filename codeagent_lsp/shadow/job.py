"""A command in a job object of Windows: all its processes end with it, at its limits, and when the server ends, however
that happens. Linux and macOS have `guarded.py` with the same names.

The process starts suspended and enters the job before its first instruction, so that no child of it is outside. The
kernel limits memory and processes: what goes beyond fails in the command. Not here: which command it is.
"""

from __future__ import annotations

import asyncio
import ctypes
import shutil
import subprocess
import sys
from ctypes import wintypes
from typing import Any

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.shadow.guard_messages import KILLED
from codeagent_lsp.shadow.shell import Launch, ProcessLimits, Stream

assert sys.platform == "win32"

_CHUNK = 1 << 16
_ENDING_SECONDS = 8.0
_LOOK_SECONDS = 0.02
_SUSPENDED = 0x4  # CREATE_SUSPENDED
_FLAGS = _SUSPENDED | subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
_EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
_ACTIVE_PROCESSES, _JOB_MEMORY, _KILL_ON_CLOSE = 0x8, 0x200, 0x2000
_ENDED_BY_US = 1


class _Limits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION, with the counters that are not asked for as bytes."""

    _fields_ = (
        ("process_time", ctypes.c_int64),
        ("job_time", ctypes.c_int64),
        ("flags", wintypes.DWORD),
        ("least_memory", ctypes.c_size_t),
        ("most_memory", ctypes.c_size_t),
        ("processes", wintypes.DWORD),
        ("affinity", ctypes.c_size_t),
        ("priority", wintypes.DWORD),
        ("scheduling", wintypes.DWORD),
        ("counters", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peaks", ctypes.c_size_t * 2),
    )


class _Job:
    """A job object; closing it ends all that is in it."""

    def __init__(self, memory_bytes: int, processes: int) -> None:
        """Raises OSError."""
        self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        self._kernel.CreateJobObjectW.restype = wintypes.HANDLE
        self._handle = wintypes.HANDLE(self._kernel.CreateJobObjectW(None, None))
        limits = _Limits(
            flags=_ACTIVE_PROCESSES | _JOB_MEMORY | _KILL_ON_CLOSE, processes=processes, job_memory=memory_bytes
        )
        self._check(
            self._kernel.SetInformationJobObject(
                self._handle, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)
            )
        )

    def take(self, process: int) -> None:
        """Put a suspended process into the job, and let it run. OSError."""
        handle = wintypes.HANDLE(process)
        self._check(self._kernel.AssignProcessToJobObject(self._handle, handle))
        if ctypes.WinDLL("ntdll").NtResumeProcess(handle):
            raise OSError("the process could not be resumed")

    def end(self) -> None:
        """Kill every process in it."""
        self._kernel.TerminateJobObject(self._handle, _ENDED_BY_US)

    def close(self) -> None:
        """End it all, also for the kernel."""
        self._kernel.CloseHandle(self._handle)

    def _check(self, done: int) -> None:
        if not done:
            raise ctypes.WinError(ctypes.get_last_error())


class Guarded:
    """One command in a job object of Windows, for talking with it while it runs: `streams` are its outputs, `stdin` its
    input, if any. `start` it once, and `close` it. To run a command only for its result, use `run_process`.
    """

    def __init__(self) -> None:
        self.streams: list[tuple[Stream, asyncio.StreamReader]] = []
        self.stdin: asyncio.StreamWriter | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._job: _Job | None = None
        self._watching: asyncio.Task[None] | None = None
        self._ending = ""

    async def start(self, launch: Launch, limits: ProcessLimits, *, apart: bool, talk: bool = False) -> None:
        """Start the command; `close` must be called even if this fails. With `talk`, data written to `stdin` reaches
        the command; else its standard input is empty. ToolFailed if it does not start.
        """
        program = shutil.which(launch.argv[0], path=launch.environment.get("PATH")) or launch.argv[0]
        try:
            self._job = _Job(limits.memory_bytes, limits.processes)
            self._process = await asyncio.create_subprocess_exec(
                program,
                *launch.argv[1:],
                cwd=launch.cwd,
                env=launch.environment,
                stdin=subprocess.PIPE if talk else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if apart else subprocess.STDOUT,
                creationflags=_FLAGS,
                limit=_CHUNK,
            )
            self._job.take(_handle_of(self._process))
        except OSError as error:
            if self._process is not None:
                self._process.kill()  # suspended, and perhaps in no job that would end it
            raise ToolFailed(f"{launch.argv[0]} could not be started in {launch.cwd}: {error.strerror}.") from error
        self.stdin = self._process.stdin
        if self._process.stdout is not None:
            self.streams.append(("stdout", self._process.stdout))
        if self._process.stderr is not None:
            self.streams.append(("stderr", self._process.stderr))
        self._watching = asyncio.ensure_future(self._watch(limits, launch))

    async def ended(self) -> None:
        """Wait, without a time limit of its own, until the command has ended, then kill what it left running; at once
        if nothing was started.
        """
        # `wait` of asyncio would also wait for a child in the background that holds the pipes.
        while self._process is not None and self._process.returncode is None:  # noqa: ASYNC110 - as it says above
            await asyncio.sleep(_LOOK_SECONDS)
        self.stop()

    def stop(self) -> None:
        """Kill the whole process tree; returns at once, and does nothing if it has ended."""
        if self._job is not None:
            self._job.end()

    def answer(self, launch: Launch) -> dict[str, Any]:
        """Return how the command ended: `code` and `ending` (`exited` or the limit that ended it). ToolFailed if it did
        not start. Call it after `ended`.
        """
        if self._process is None or self._process.returncode is None:
            raise ToolFailed(f"{launch.argv[0]} could not be started in {launch.cwd}.")
        code = KILLED if self._ending else self._process.returncode
        return {"code": code, "ending": self._ending or "exited"}

    async def close(self) -> None:
        """Kill what still runs, waiting at most about 8 s, and close every handle."""
        self.stop()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        try:
            async with asyncio.timeout(_ENDING_SECONDS):
                await self.ended()
        except TimeoutError:
            pass  # closing the job is the kernel's own way to end it
        if self.stdin is not None:
            self.stdin.close()
        if self._job is not None:
            self._job.close()
            self._job = None

    async def _watch(self, limits: ProcessLimits, launch: Launch) -> None:
        """End the command at its time, or when the disk becomes full."""
        loop = asyncio.get_running_loop()
        until = loop.time() + limits.seconds
        disk = limits.disk_folder or launch.reports
        least = await asyncio.to_thread(_free, disk) - limits.disk_bytes if disk else 0
        while loop.time() < until:
            await asyncio.sleep(min(limits.look_seconds, max(0.0, until - loop.time())))
            if disk and await asyncio.to_thread(_free, disk) < least:
                self._ending = "disk"
                break
        else:
            self._ending = "timeout"
        self.stop()


def _handle_of(process: asyncio.subprocess.Process) -> int:
    transport = getattr(process, "_transport")  # noqa: B009 - the only way to its handle
    popen = transport.get_extra_info("subprocess")
    return int(popen._handle)


def _free(folder: str) -> int:
    return shutil.disk_usage(folder).free
