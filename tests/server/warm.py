"""Servers that start in a few milliseconds: forks of a process that has imported everything a server needs.

A forked server is the real one, over real pipes, from `cli.main` on; only what it imports is ready. Tests of the
start itself use plain processes. `python -m tests.server.warm` is the process that forks; it ends with its parent.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
PREFIX = (sys.executable, "-m", "codeagent_lsp.cli")

_PARTS = (
    "codeagent_lsp.app",
    "codeagent_lsp.server.backend",
    "codeagent_lsp.server.commands.commands",
    "codeagent_lsp.server.inline",
    "codeagent_lsp.server.next_edits",
    "codeagent_lsp.llm.factory",
    "codeagent_lsp.llm.providers.scripted",
    "codeagent_lsp.doctor",
    "codeagent_lsp.index.enclosing",
    "codeagent_lsp.index.answers",
    "codeagent_lsp.index.service",
    "codeagent_lsp.index.places",
    "codeagent_lsp.index.semantic",
    "codeagent_lsp.inline.next_edit.proposals",
    "codeagent_lsp.inline.next_edit.search",
    "codeagent_lsp.language_servers.session_servers",
    "codeagent_lsp.terminal.run",
    # what the first run of a session loads
    "codeagent_lsp.session.redaction.records_factory",
    "codeagent_lsp.session.run",
    "codeagent_lsp.session.run",
    "codeagent_lsp.session.redaction.guarded_model",
    "codeagent_lsp.session.own_commands",
    "codeagent_lsp.session.plan.steering",
    "codeagent_lsp.direct.question",
    "codeagent_lsp.records.sanitizer",
    "codeagent_lsp.environments.local",
    "codeagent_lsp.shadow.workspace",
    "tree_sitter",
    "tree_sitter_python",
)
_SIZE = 1 << 20


class WarmProcess:
    """A forked server, with as much of `subprocess.Popen` as the tests use. `main` may name another function."""

    def __init__(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], main: str = "codeagent_lsp.cli:main"
    ) -> None:
        (stdin, self._in), (self._out, stdout), (self._err, stderr) = os.pipe(), os.pipe(), os.pipe()
        self._link, other = socket.socketpair()
        spec = json.dumps({"main": main, "arguments": list(arguments), "cwd": str(cwd), "env": dict(env)}).encode()
        socket.send_fds(_forker(), [spec], [stdin, stdout, stderr, other.fileno()])
        for descriptor in (stdin, stdout, stderr):
            os.close(descriptor)
        other.close()
        self.pid = int.from_bytes(self._link.recv(8), "big")
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = os.fdopen(self._in, "wb", buffering=0)
        self.stdout: IO[bytes] | None = os.fdopen(self._out, "rb", buffering=0)
        self.stderr: IO[bytes] | None = os.fdopen(self._err, "rb", buffering=0)

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, when it has ended."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("warm server", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._link], [], [], timeout)[0]:
            told = self._link.recv(8)
            self._link.close()
            self.returncode = int.from_bytes(told, "big", signed=True) if told else -signal.SIGKILL
        return self.returncode


@cache
def _forker() -> socket.socket:
    """The connection to the process that forks; one for each test process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SIZE)
    command, env = [sys.executable, "-m", "tests.server.warm"], {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stdin=theirs.fileno(), cwd=ROOT, env=env)
    theirs.close()
    atexit.register(_leave, ours, process)
    return ours


def _leave(link: socket.socket, process: subprocess.Popen[bytes]) -> None:
    link.close()
    process.wait(10)


def _serve(link: socket.socket) -> None:
    """Fork for each request, and tell each one's link how it ended."""
    children: dict[int, socket.socket] = {}
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready = select.select([link.fileno(), reading], [], [])[0]
        if reading in ready:
            os.read(reading, 4096)
            _reap(children)
        if link.fileno() in ready:
            data, descriptors, _, _ = socket.recv_fds(link, _SIZE, 4)
            if not data:
                return
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _become(json.loads(data), descriptors, (link, *children.values()))
            children[pid] = socket.socket(fileno=descriptors[3])
            children[pid].send(pid.to_bytes(8, "big"))
            for descriptor in descriptors[:3]:
                os.close(descriptor)


def _reap(children: dict[int, socket.socket]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with children.pop(pid) as link:
            try:
                link.send(os.waitstatus_to_exitcode(status).to_bytes(8, "big", signed=True))
            except OSError:  # the test is over
                continue


def _become(spec: Mapping[str, Any], descriptors: Sequence[int], others: Sequence[socket.socket]) -> None:
    """In the fork: be the server, and end with its exit code."""
    code = 1
    try:
        for other in others:
            other.close()
        for number, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, number)
        for descriptor in descriptors:
            if descriptor > 2:
                os.close(descriptor)
        os.environ.clear()
        os.environ.update(spec["env"])
        os.chdir(spec["cwd"])
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        module, _, name = spec["main"].partition(":")
        code = getattr(import_module(module), name)(spec["arguments"])  # in the fork: as a fresh process would
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass
        os._exit(code)


if __name__ == "__main__":
    for part in _PARTS:
        import_module(part)
    for tool in import_module("codeagent_lsp.tools.catalogue").BUILTIN:
        tool.parameters.model_json_schema()  # pydantic finishes a class when it is first used
    import_module("codeagent_lsp.server.wire.params").make_converter()  # and so does lsprotocol
    gc.freeze()
    _serve(socket.socket(fileno=os.dup(0)))
