"""Servers that start in a few milliseconds: forks of a process that has imported everything a server needs.

A forked server is the real one, over real pipes, from `cli.main` on; only what it imports is ready. Tests of the
start itself use plain processes. `python -m tests.server.warm` is the process that forks; it ends with its parent.
With `quick_starts()` in its environment a command line of ours is such a fork, too, whoever starts it
(`tests/warm_start/sitecustomize.py`), and so is the server that it starts.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
PREFIX = (sys.executable, "-m", "codeagent_lsp.cli")

COLD = {"CODEAGENT_TEST_FORKER": ""}
"""A variable with which a process is started as users start it, whatever `quick_starts` says."""

MAIN = "codeagent_lsp.cli:main"
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
    "codeagent_lsp.index.vectors",
    "codeagent_lsp.index.semantic",
    "codeagent_lsp.inline.next_edit.proposals",
    "codeagent_lsp.language_servers.session_servers",
    "codeagent_lsp.terminal.run",
    "codeagent_lsp.batch.command",
    "codeagent_lsp.mcp_server.command",
    "codeagent_lsp.acp_agent.agent",
    # what the first run of a session loads
    "codeagent_lsp.session.redaction.recording",
    "codeagent_lsp.session.run",
    "codeagent_lsp.session.own_runs",
    "codeagent_lsp.session.plan_execution",
    "codeagent_lsp.direct.question",
    "codeagent_lsp.records.sanitizer",
    "codeagent_lsp.environments.local",
    "codeagent_lsp.shadow.workspace",
    "tree_sitter",
    "tree_sitter_python",
)
_SIZE = 1 << 20
_ONE = threading.Lock()


class WarmProcess:
    """A forked server, with as much of `subprocess.Popen` as the tests use. `main` may name another function."""

    def __init__(self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], main: str = MAIN) -> None:
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


def quick_starts() -> dict[str, str]:
    """The variables with which a process, and each below it, that is to be `codeagent-lsp` becomes a fork."""
    _forker()
    paths = [str(ROOT / "tests" / "warm_start"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"CODEAGENT_TEST_FORKER": str(_address()), "PYTHONPATH": os.pathsep.join(paths)}


@cache
def _address() -> Path:
    """Where processes ask to become a fork. The folder has a short path, as sockets need."""
    return Path(tempfile.mkdtemp(prefix="forker-")) / "socket"


def _forker() -> socket.socket:
    """The connection to the process that forks; one for each test process, whichever of its threads asks first."""
    with _ONE:
        return _connected()


@cache
def _connected() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SIZE)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asked:
        asked.bind(str(_address()))
        asked.listen(64)
        os.set_inheritable(asked.fileno(), True)
        command = [sys.executable, "-m", "tests.server.warm", str(asked.fileno())]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(command, stdin=theirs.fileno(), cwd=ROOT, env=env, pass_fds=(asked.fileno(),))
    theirs.close()
    atexit.register(_leave, ours, process)
    return ours


def _leave(link: socket.socket, process: subprocess.Popen[bytes]) -> None:
    link.close()
    process.wait(10)
    shutil.rmtree(_address().parent)


def _serve(link: socket.socket, asked: socket.socket) -> None:
    """Fork for each request, and tell each one's link how it ended. A process that became a fork is on the link: when
    it is killed, so is the fork.
    """
    children: dict[int, socket.socket] = {}
    standing: dict[int, int] = {}  # the forks of processes that stand for them, by the descriptors of their links
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready = select.select([link.fileno(), asked.fileno(), reading, *standing], [], [])[0]
        for descriptor in standing.keys() & ready:
            os.kill(standing.pop(descriptor), signal.SIGKILL)
        if reading in ready:
            os.read(reading, 4096)
            for pid in _reap(children):
                standing = {each: of for each, of in standing.items() if of != pid}
        if link.fileno() in ready:
            data, descriptors, _, _ = socket.recv_fds(link, _SIZE, 4)
            if not data:
                return
            answer = socket.socket(fileno=descriptors.pop())
        elif asked.fileno() in ready:
            answer, _ = asked.accept()
            data, descriptors, _, _ = socket.recv_fds(answer, _SIZE, 3)
            if not data:  # it was killed before it could ask
                answer.close()
                continue
        else:
            continue
        spec = json.loads(data)
        if words := spec.get("words"):
            import_module(words[0])  # all that it needs, for the next ones
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _become(spec, descriptors, (link, asked, answer, *children.values()))
        children[pid] = answer
        if asked.fileno() in ready and link.fileno() not in ready:
            standing[answer.fileno()] = pid
        try:
            answer.send(pid.to_bytes(8, "big"))
        except OSError:  # it was killed meanwhile, which reading tells
            pass
        for descriptor in descriptors:
            os.close(descriptor)


def _reap(children: dict[int, socket.socket]) -> Iterator[int]:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        yield pid
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
        if spec.get("leads"):
            os.setsid()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        for descriptor in descriptors:
            if descriptor > 2:
                os.close(descriptor)
        os.environ.clear()
        os.environ.update(spec["env"])
        os.chdir(spec["cwd"])
        errors = spec.get("errors", "strict")
        sys.stdin, sys.stdout = open(0, errors=errors), open(1, "w", errors=errors)  # noqa: SIM115
        sys.stderr = open(2, "w", errors="backslashreplace")  # noqa: SIM115
        if words := spec.get("words"):
            sys.argv = ["", *words[1:]]
            sys.modules.pop(words[0])  # the fork is that module
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
            code = 0
        else:
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


def _prepare() -> None:
    """Make what each server makes once, when it is first used: the schemas of its tools, and how messages are read."""
    for part in _PARTS:
        import_module(part)
    for tool in import_module("codeagent_lsp.tools.catalogue").BUILTIN:
        for untold in (False, True):
            import_module("codeagent_lsp.tools.tool")._schema_of(tool.parameters, untold=untold)
    converter = import_module("codeagent_lsp.server.wire.framing").make_converter()
    for kinds in import_module("lsprotocol.types").METHOD_TO_TYPES.values():
        for kind in filter(None, kinds[:3]):
            converter.get_structure_hook(kind)
            converter.get_unstructure_hook(kind)
    setattr(import_module("codeagent_lsp.server.server"), "make_converter", lambda: converter)  # noqa: B010


if __name__ == "__main__":
    _prepare()
    gc.freeze()
    _serve(socket.socket(fileno=os.dup(0)), socket.socket(fileno=int(sys.argv[1])))
