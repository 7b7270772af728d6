"""Small helper programs, each in a process of its own (a request as JSON in, an answer as JSON out), and the HTTP proxy
on the loopback interface through which they reach public addresses only.

Libraries that parse untrusted pages run there: the process is bounded in time and memory, its whole process tree ends
with ours, and it sees neither our environment nor our folders. The proxy has a token, resolves and checks each host
itself and connects to the checked address, so its clients are bound by the same rules as our own requests, even if a
name later resolves differently. It lives as long as its one client. Not here: the programs (`programs.py`), which
address is public (`dialing.py`).
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from codeagent_lsp.background_tasks import BackgroundTasks, until_first
from codeagent_lsp.errors import AgentError, ErrorCode, ToolFailed
from codeagent_lsp.shadow.process import Guarded, run_to_end
from codeagent_lsp.shadow.shell import Launch, ProcessLimits, half_of_memory
from codeagent_lsp.tools.web.dialing import Dialer
from codeagent_lsp.tools.web.urls import PORTS, BadUrl, Target, not_installed, parse_url
from codeagent_lsp.workspace.process_group import read_head

USER = "codeagent"
HEAD_BYTES = 64 << 10
HEAD_SECONDS = 10.0
SILENCE_SECONDS = 30.0
MAX_CONNECTIONS = 64
MAX_BYTES = 64 << 20
_PIECE = 1 << 16
_OWN_HEADERS = (b"proxy-authorization", b"proxy-connection", b"connection", b"keep-alive", b"upgrade")
MAX_ANSWER = 16 << 20

_PROGRAMS = str(Path(__file__).with_name("programs.py"))
_KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "TZ")
_MAX_COMPLAINT = 4096


class CheckingProxy:
    """The running proxy, as an async context manager; its client needs `address` and `token`. It connects to public
    addresses only and passes at most 64 MiB in all.
    """

    def __init__(self, dialer: Dialer, *, max_bytes: int = MAX_BYTES) -> None:
        self.token = secrets.token_urlsafe(24)
        self.refused: list[str] = []
        self._dialer = dialer
        # For all connections and both directions together.
        self._left = max_bytes
        self._server: asyncio.Server | None = None
        self._tasks = BackgroundTasks()

    @property
    def address(self) -> str:
        """The address on which it listens, as `http://127.0.0.1:PORT`; only while it is open."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> CheckingProxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=HEAD_BYTES)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        await self._tasks.end()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        self._tasks.start(self._serve(reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve_request(reader, writer)
        except (OSError, EOFError, asyncio.LimitOverrunError):  # TimeoutError too: the connection is dropped
            pass
        finally:
            writer.close()

    async def _serve_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        line, *headers = head[:-4].split(b"\r\n")
        method, _, rest = line.partition(b" ")
        wanted = rest.rpartition(b" ")[0].decode("latin-1")
        if not self._is_known(headers):
            await _say(writer, "407 Proxy Authentication Required", 'Proxy-Authenticate: Basic realm="codeagent"\r\n')
            return
        try:
            tunnel = method == b"CONNECT"
            target = parse_url(f"https://{wanted}/" if tunnel else wanted)
            if target.port not in PORTS.values():
                raise BadUrl("only the usual ports are reached")
            there = await self._dialer.connect(target.host, target.port)
        except (BadUrl, AgentError) as error:
            self.refused.append(wanted[:200])
            await _say(writer, "403 Forbidden", f"X-Reason: {str(error).encode('ascii', 'replace').decode()}\r\n")
            return
        try:
            if tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                there[1].write(_origin_form(method, target, headers))
            await self._join((reader, writer), there)
        finally:
            there[1].transport.abort()

    def _is_known(self, headers: list[bytes]) -> bool:
        expected = b"Basic " + base64.b64encode(f"{USER}:{self.token}".encode())
        given = [
            value.strip()
            for name, _, value in (header.partition(b":") for header in headers)
            if name.strip().lower() == b"proxy-authorization"
        ]
        return len(given) == 1 and hmac.compare_digest(given[0], expected)

    async def _join(
        self,
        here: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        there: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Copy data in both directions until one side ends or the limit is reached."""
        await until_first(self._pass_data(here[0], there[1]), self._pass_data(there[0], here[1]))

    async def _pass_data(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while self._left > 0:
            async with asyncio.timeout(SILENCE_SECONDS):
                data = await reader.read(min(_PIECE, self._left))
                if not data:
                    return
                self._left -= len(data)
                writer.write(data)
                await writer.drain()


@dataclass(frozen=True, slots=True)
class Program:
    """A helper program and the limits of one run: time in seconds, memory in bytes; `what` names its work for error
    messages.
    """

    name: str
    what: str
    seconds: float
    memory: int = 1 << 30
    processes: int = 16


async def answer_of(program: Program, question: Mapping[str, Any]) -> dict[str, Any]:
    """Run the program in a child process with the JSON object `question` and return its answer, a JSON object.
    ToolFailed if it gives none within its limits, reports a problem, or lacks a library. Cancelling ends the process.
    """
    folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="codeagent-web-")
    try:
        answer = _understood(program, await _run(program, json.dumps(question).encode(), folder))
    finally:
        await run_to_end(asyncio.to_thread(shutil.rmtree, folder, True))
    if "missing" in answer:
        raise not_installed(str(answer["missing"]))
    if "problem" in answer:
        raise ToolFailed(str(answer["problem"])[:500], ErrorCode(answer.get("code", ErrorCode.EXECUTION_ERROR)))
    return answer


def _origin_form(method: bytes, target: Target, headers: list[bytes]) -> bytes:
    """Return the request head in origin form (RFC 9112), without proxy headers and with `Connection: close`."""
    kept = [
        header
        for header in headers
        # Above all, the token must not leave this machine.
        if header.partition(b":")[0].strip().lower() not in (*_OWN_HEADERS, b"host") and b":" in header
    ]
    first = b"%s %s HTTP/1.1" % (method, target.rest.encode("ascii"))
    lines = [first, b"Host: " + target.authority.encode("ascii"), *kept, b"Connection: close"]
    return b"\r\n".join(lines) + b"\r\n\r\n"


async def _say(writer: asyncio.StreamWriter, status: str, headers: str) -> None:
    writer.write(f"HTTP/1.1 {status}\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n".encode("latin-1"))
    await writer.drain()


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
        await run_to_end(guarded.start(launch, limits, apart=True, talk=True))
        streams = dict(guarded.streams)
        async with asyncio.TaskGroup() as group:
            group.create_task(_tell(guarded, question))
            saying = group.create_task(read_head(streams["stdout"], MAX_ANSWER))
            # Read although it is not used: a full pipe would stop the program.
            group.create_task(read_head(streams["stderr"], _MAX_COMPLAINT))
            await guarded.ended()
        if guarded.answer(launch)["ending"] == "timeout":
            message = f"{program.what} took longer than {program.seconds:g} s and was stopped."
            raise ToolFailed(message, ErrorCode.TIMEOUT)
        return saying.result()
    finally:
        await run_to_end(guarded.close())


async def _tell(guarded: Guarded, question: bytes) -> None:
    assert guarded.stdin is not None
    with suppress(OSError):  # it ended early; its output says why
        guarded.stdin.write(question)
        await guarded.stdin.drain()
        guarded.stdin.close()


def _launch(program: Program, folder: str) -> Launch:
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment |= {"PATH": os.defpath, "HOME": folder, "TMPDIR": folder, "LC_CTYPE": "C.UTF-8"}
    # Isolated: no PYTHON* variables, no user site, nothing from the current folder.
    return Launch((sys.executable, "-I", "-X", "utf8", _PROGRAMS, program.name), folder, environment, "")


def _understood(program: Program, said: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(said)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise ToolFailed(f"{program.what} failed: this page or answer cannot be read.")
    return answer
