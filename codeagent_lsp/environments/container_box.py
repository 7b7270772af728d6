"""One container: started with the least privileges, runs commands, transfers files in and out.

Its first process waits on a connection that this process holds. When this process ends, however it ends, the engine
closes it, the process ends, and the engine removes the container. Not here: which files travel (`container_files.py`),
what becomes of what a command wrote (`container.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import IO, Any

from codeagent_lsp.environments.container_engine import VERSION, Engine, Piped
from codeagent_lsp.environments.environment import EnvironmentProblem
from codeagent_lsp.errors import ErrorCode
from codeagent_lsp.shadow.process import run_to_end
from codeagent_lsp.shadow.shell import Stdin, Stream, in_pieces

USER = 1001
LABEL = "codeagent.state"
OWNER_LABEL = "codeagent.owner"
REPORTS = "/run/codeagent"

# Until its standard input ends. A shell that waits reaps whatever ends, and begins anew when all others are killed.
_WAITS = "exec 3<&0; while :; do cat <&3 > /dev/null & wait $!; [ $? -gt 128 ] || exit 0; done"
_MERGED = 'exec "$@" 2>&1'
_EITHER_SHELL = 'if command -v bash > /dev/null; then exec bash -c "$1"; else exec sh -c "$1"; fi'
_REMOVED = 'cd "$0" && exec rm -rf -- "$@"'
# First, all processes are killed except the first one and the shell itself.
_ARCHIVED = 'kill -9 -1 2> /dev/null; exec tar -c -f - -C / "$0" "$@"'
_OUT_OF_MEMORY = "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control 2> /dev/null"
_CHUNK = 1 << 16
_HEADER = 8
_AT_ONCE = 500

Pieces = AsyncGenerator[tuple[Stream, bytes], None]
"""The output of a program in order, in pieces with their stream."""


@dataclass(frozen=True, slots=True)
class BoxLimits:
    """Limits of one container: bytes of memory including swap, number of processes, processors (2.0: two of them);
    bytes of each writable folder (`disk`), of `/tmp` (`temporary`) and of the reports.
    """

    memory: int = 2 << 30
    processes: int = 512
    processors: float = 2.0
    disk: int = 512 << 20
    temporary: int = 256 << 20
    reports: int = 64 << 20


@dataclass(frozen=True, slots=True)
class Plan:
    """The specification of a container: its image, writable folders, labels, network and limits.

    `owner` labels it for the removal of containers that a dead server has left; `state` is the label of the state
    folder.
    """

    image: str
    folders: tuple[str, ...]
    state: str
    owner: str = ""
    network: bool = False
    limits: BoxLimits = BoxLimits()


@dataclass(frozen=True, slots=True)
class Task:
    """A program to run in a container, in the absolute folder `cwd` there, with `environment` over the image's. Its
    output is `stdout`, in exact order; with `apart` the streams are separate. It may read `stdin`.
    """

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    apart: bool = False
    stdin: Stdin = b""


class Box:
    """A running container, created by `started`, which the caller must `remove`. Methods raise EnvironmentProblem."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._name = name
        self._hold: Piped | None = None
        self._oom_kills = 0
        self._last = ""

    @staticmethod
    async def started(engine: Engine, plan: Plan) -> Box:
        """Create and start a container, and return it. Nothing is left of it if that fails (EnvironmentProblem) or is
        cancelled.
        """
        making = asyncio.ensure_future(engine.post("/containers/create", _request(plan)))
        try:
            made = await asyncio.shield(making)
        except asyncio.CancelledError:  # the engine may have made it all the same
            with suppress(EnvironmentProblem):
                await run_to_end(Box(engine, str((await making)["Id"])).remove())
            raise
        box = Box(engine, str(made["Id"]))
        try:
            # Before the start, or its first process would find its input closed and end.
            box._hold = await engine.hijacked(f"/containers/{box._name}/attach?stream=1&stdin=1")
            await engine.post(f"/containers/{box._name}/start")
        except BaseException:
            await run_to_end(box.remove())
            raise
        return box

    async def run(self, task: Task) -> Pieces:
        """Run a program and yield its output as pairs of stream and bytes; afterwards `code` returns its exit code.
        There is no time limit.
        """
        argv = task.argv if task.apart else ("sh", "-c", _MERGED, "sh", *task.argv)
        self._last = await self._create_exec(argv, task, stdin=bool(task.stdin))
        async with aclosing(self._pieces(self._last, task.stdin or None)) as pieces:
            async for found in pieces:
                yield found

    async def announced(self, task: Task) -> str:
        """Register a program with a terminal, without starting it, and return its path in the engine's API
        (`/VERSION/exec/ID`), by which a client starts it.
        """
        return f"/{VERSION}/exec/{await self._create_exec(task.argv, task, stdin=True, terminal=True)}"

    async def code(self) -> int:
        """Wait for the program that ran last to end, without a time limit, and return its exit code."""
        return await self._exit_code(self._last)

    async def ran_out_of_memory(self) -> bool:
        """Return whether the kernel killed a process for memory since the last call, by the counts of the container's
        control group; False if it has none.
        """
        said = b"".join([data async for _, data in self.run(Task(("sh", "-c", _OUT_OF_MEMORY), "/", {}, apart=True))])
        counts = [line.split() for line in said.decode("utf-8", "replace").splitlines()]
        kills = max((int(words[1]) for words in counts if len(words) == 2 and words[0] == "oom_kill"), default=0)
        # The kernel counts since the container's start.
        before, self._oom_kills = self._oom_kills, kills
        return kills > before

    async def send(self, archive: IO[bytes], folder: str, gone: Sequence[str] = ()) -> None:
        """Remove the relative paths `gone` below the absolute `folder` of the container, then unpack a tar archive
        there, read from its present position, with the image's tar.
        """
        # A command line has a limit.
        for start in range(0, len(gone), _AT_ONCE):
            script = ("sh", "-c", _REMOVED, folder, *gone[start : start + _AT_ONCE])
            await self._done(await self._create_exec(script))
        await self._done(
            await self._create_exec(("tar", "-x", "-p", "-o", "-f", "-", "-C", folder), stdin=True), archive
        )

    async def fetch(self, folders: Sequence[str], target: IO[bytes], limit: int) -> None:
        """Kill all programs in the container, then write a tar archive of its absolute `folders` to `target`.
        EnvironmentProblem if it has more than `limit` bytes.
        """
        name = await self._create_exec(("sh", "-c", _ARCHIVED, *(folder.lstrip("/") for folder in folders)))
        said, left = b"", limit
        async with aclosing(self._pieces(name)) as pieces:
            async for stream, data in pieces:
                if stream == "stderr":
                    said = (said + data)[:_CHUNK]
                    continue
                left -= len(data)
                if left < 0:
                    raise EnvironmentProblem("What the command left is too large.", ErrorCode.EXECUTION_ERROR)
                await asyncio.to_thread(target.write, data)
        await self._run_checked(name, said)

    async def runs(self) -> bool:
        """Return whether the container is running; False if it is gone. EnvironmentProblem if the engine does not
        answer.
        """
        try:
            told = await self._engine.get(f"/containers/{self._name}/json")
        except EnvironmentProblem as problem:
            if problem.code in (ErrorCode.SANDBOX_NOT_FOUND, ErrorCode.SANDBOX_TERMINATED):
                return False
            raise
        return bool(told["State"]["Running"])

    async def remove(self) -> None:
        """Kill and remove the container. Never raises: if the engine does not answer, the container ends when this
        process does.
        """
        with suppress(EnvironmentProblem):  # an engine that is gone has taken it along; else its end is the hold's
            await self._engine.delete(f"/containers/{self._name}", force="true", v="true")
        if self._hold is not None:
            self._hold.writer.close()
            self._hold = None

    async def _create_exec(
        self, argv: Sequence[str], task: Task | None = None, *, stdin: bool = False, terminal: bool = False
    ) -> str:
        """Register a program with the engine and return its id."""
        environment = task.environment if task else {}
        made = await self._engine.post(
            f"/containers/{self._name}/exec",
            {
                "Cmd": list(argv),
                "WorkingDir": task.cwd if task else "/",
                "Env": [f"{name}={value}" for name, value in environment.items()],
                "User": f"{USER}:{USER}",
                "AttachStdin": stdin,
                "AttachStdout": True,
                "AttachStderr": True,
                "Tty": terminal,
            },
        )
        return str(made["Id"])

    async def _pieces(self, name: str, stdin: IO[bytes] | Stdin | None = None) -> Pieces:
        """Start a program and yield its output while `stdin` is sent to it."""
        pipes = await self._engine.hijacked(f"/exec/{name}/start", {"Detach": False, "Tty": False})
        feeding = None if stdin is None else asyncio.ensure_future(_feed_stdin(pipes.writer, stdin))
        try:
            async for found in _unframed(pipes.reader):
                yield found
            if feeding is not None:
                await feeding
        except OSError as error:
            raise _ended_problem() from error
        finally:
            if feeding is not None:
                feeding.cancel()
                await asyncio.wait([feeding])
            pipes.writer.close()

    async def _done(self, name: str, stdin: IO[bytes] | None = None) -> None:
        """Run a program of our own. EnvironmentProblem with its output if it fails."""
        said = b""
        async with aclosing(self._pieces(name, stdin)) as pieces:
            async for _, data in pieces:
                said = (said + data)[:_CHUNK]
        await self._run_checked(name, said)

    async def _run_checked(self, name: str, said: bytes) -> None:
        if code := await self._exit_code(name):
            words = said.decode("utf-8", "replace").strip()[:300] or f"exit code {code}"
            message = f"Files could not be carried between the workspace and the container: {words}"
            raise EnvironmentProblem(message, ErrorCode.EXECUTION_ERROR)

    async def _exit_code(self, name: str) -> int:
        """Wait for the exit code, which the engine may learn after the pipes end; the caller limits the time."""
        wait = 0.01
        while True:
            told = await self._engine.get(f"/exec/{name}/json")
            if not told.get("Running") and told.get("ExitCode") is not None:
                return int(told["ExitCode"])
            await asyncio.sleep(wait)
            wait = min(1.0, 2 * wait)


async def sweep(engine: Engine, state: str, abandoned: Callable[[str], bool]) -> int:
    """Remove the containers of servers that have ended, and return how many. `abandoned` returns whether the server
    with an owner label has ended. EnvironmentProblem if the engine fails.
    """
    found = await engine.get("/containers/json", all="true", filters=f'{{"label":["{LABEL}={state}"]}}')
    lost = [item for item in found or () if abandoned((item.get("Labels") or {}).get(OWNER_LABEL, ""))]
    for item in lost:
        await Box(engine, item["Id"]).remove()
    return len(lost)


async def _feed_stdin(writer: asyncio.StreamWriter, stdin: IO[bytes] | Stdin) -> None:
    """Write all of `stdin`, then the end of the stream. A program need not read what a `Task` gives it."""
    if isinstance(stdin, bytes | AsyncIterable):
        with suppress(OSError):
            async for given in in_pieces(stdin):
                writer.write(given)
                await writer.drain()
            writer.write_eof()
        return
    while piece := await asyncio.to_thread(stdin.read, _CHUNK):
        writer.write(piece)
        await writer.drain()
    writer.write_eof()


def shell_words(script: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return a command as the words of a program: a script runs in bash if the image has it, else in sh; words stay."""
    return ("sh", "-c", _EITHER_SHELL, "sh", script) if isinstance(script, str) else script


def _request(plan: Plan) -> dict[str, Any]:
    limits = plan.limits
    own = "mode=0777,nosuid,nodev,exec"  # Podman knows no owner here, and the container has no other user
    tmpfs = dict.fromkeys(plan.folders, f"rw,size={limits.disk},{own}")
    tmpfs |= {"/tmp": f"rw,size={limits.temporary},mode=1777,nosuid,nodev,exec"}  # noqa: S108 - the container's
    if any(folder.startswith("/root/") for folder in plan.folders):  # images keep their own to root
        tmpfs |= {"/root": "rw,size=64k,mode=0755,nosuid,nodev"}
    tmpfs |= {REPORTS: f"rw,size={limits.reports},{own}"}
    return {
        "Image": plan.image,
        "Entrypoint": ["sh", "-c", _WAITS],
        "Cmd": [],
        "User": f"{USER}:{USER}",
        "WorkingDir": "/",
        "Labels": {LABEL: plan.state, OWNER_LABEL: plan.owner},
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "StopTimeout": 0,
        "StopSignal": "SIGKILL",
        "NetworkDisabled": not plan.network,
        "HostConfig": {
            "AutoRemove": True,
            "ReadonlyRootfs": True,
            "NetworkMode": "bridge" if plan.network else "none",
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "Memory": limits.memory,
            # Of memory and swap together: so there is no swap.
            "MemorySwap": limits.memory,
            "PidsLimit": limits.processes,
            "NanoCpus": round(limits.processors * 1e9),
            "IpcMode": "private",
            "Tmpfs": tmpfs,
            "Ulimits": [
                {"Name": "nproc", "Soft": 1024, "Hard": 1024},
                {"Name": "nofile", "Soft": 1024, "Hard": 1024},
                {"Name": "core", "Soft": 0, "Hard": 0},
            ],
        },
    }


async def _unframed(reader: asyncio.StreamReader) -> Pieces:
    """Yield the pieces of the two streams that share one connection (Docker's multiplexed format)."""
    try:
        # The header: one byte for the stream, three zero bytes, four for the length.
        while header := await reader.read(1):
            header += await reader.readexactly(_HEADER - 1)
            stream: Stream = "stderr" if header[0] == 2 else "stdout"
            left = int.from_bytes(header[4:], "big")
            while left:
                piece = await reader.read(min(left, _CHUNK))
                if not piece:
                    raise _ended_problem()
                left -= len(piece)
                yield stream, piece
    except (OSError, asyncio.IncompleteReadError) as error:
        raise _ended_problem() from error


def _ended_problem() -> EnvironmentProblem:
    return EnvironmentProblem("The container has ended.", ErrorCode.SANDBOX_TERMINATED)
