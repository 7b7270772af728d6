"""A raw JSON-RPC client over the pipes of a child process: sends any bytes, keeps whatever comes back.

It knows nothing of LSP but `initialize` and `shutdown`, so that tests can be as wrong as clients can be. Not
here: in-process tests of the dispatcher (`loopback.py`).
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.server.warm import MAIN, PREFIX, WarmProcess

ROOT = Path(__file__).resolve().parents[2]
DEMO_SERVER = (sys.executable, "-m", "tests.server.demo_server")
SECONDS = 10.0 if sys.platform != "win32" else 60.0  # a server starts slowly there
NO_ANSWER = object()  # what an entry of `answers` gives to leave a request open

Answer = Callable[[Any], Any]


@dataclass(frozen=True)
class Refusal:
    """An answer that is an error."""

    code: int
    message: str = "refused"


def frame(message: Any) -> bytes:
    """A message with its header. Bytes are taken as the body they are."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


class RawClient:
    """Starts `command` and talks to it. `answers` maps methods of server requests to functions of params.

    `warm`: the command is our server, to be forked from one that has been imported (`warm.py`), which then runs `main`.
    A server request without an entry stays unanswered. `stderr` holds what the server wrote there.
    """

    def __init__(
        self,
        command: Sequence[str] = DEMO_SERVER,
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        answers: Mapping[str, Answer] | None = None,
        reading: bool = True,
        warm: bool = False,
        main: str = MAIN,
    ) -> None:
        self.answers: dict[str, Answer] = dict(answers or {})
        self.messages: list[dict[str, Any]] = []
        self.stray = b""  # what came on stdout and is no message
        self._changed = threading.Condition()
        self._ended = False
        self._next = 0
        variables = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
        self.process = _started(command, cwd or ROOT, variables, main if warm else None)
        self.stderr = bytearray()
        threading.Thread(target=self._read_stderr, daemon=True).start()
        self._reader = threading.Thread(target=self._read, daemon=True)
        if reading:
            self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start_reading(self) -> None:
        """Begin to read what the server sends, if `reading` was False."""
        self._reader.start()

    def send_bytes(self, data: bytes) -> None:
        """Write bytes as they are; raises OSError when the server is gone."""
        assert self.process.stdin is not None
        view = memoryview(data)
        while view:
            view = view[self.process.stdin.write(view) :]

    def send(self, message: Any) -> None:
        """Send a JSON value, or bytes as a body, with a header."""
        self.send_bytes(frame(message))

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        self.send(_with_params({"jsonrpc": "2.0", "method": method}, params))

    def start(self, method: str, params: Any = None) -> int:
        """Send a request and give its id."""
        self._next += 1
        self.send(_with_params({"jsonrpc": "2.0", "id": self._next, "method": method}, params))
        return self._next

    def response(self, identity: Any, seconds: float = SECONDS) -> dict[str, Any]:
        """The answer to a request."""
        return self.wait(lambda m: "method" not in m and m.get("id") == identity, seconds)

    def request(self, method: str, params: Any = None, seconds: float = SECONDS) -> dict[str, Any]:
        """Send a request and wait for the answer, result or error."""
        return self.response(self.start(method, params), seconds)

    def result(self, method: str, params: Any = None, seconds: float = SECONDS) -> Any:
        """The result of a request that must not fail."""
        answer = self.request(method, params, seconds)
        assert "error" not in answer, answer
        return answer["result"]

    def wait(self, wanted: Callable[[dict[str, Any]], bool], seconds: float = SECONDS) -> dict[str, Any]:
        """The first message, old or new, that is wanted; it is taken out. TimeoutError when none comes."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while True:
                for place, message in enumerate(self.messages):
                    if wanted(message):
                        return self.messages.pop(place)
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    raise TimeoutError(f"no such message; exit code {self.process.poll()}; {self.tail()}")
                self._changed.wait(left)

    def notification(self, method: str, seconds: float = SECONDS) -> dict[str, Any]:
        """The next notification or request of the server with this method."""
        return self.wait(lambda m: m.get("method") == method, seconds)

    def initialize(self, **params: Any) -> dict[str, Any]:
        """Do the handshake and give the server's `InitializeResult`."""
        defaults: dict[str, Any] = {"processId": os.getpid(), "rootUri": None, "capabilities": {}}
        result: dict[str, Any] = self.result("initialize", {**defaults, **params})
        self.notify("initialized", {})
        return result

    def shutdown(self) -> int:
        """Do the farewell and give the exit code."""
        self.result("shutdown")
        self.notify("exit")
        return self.exit_code()

    def exit_code(self, seconds: float = SECONDS) -> int:
        """Wait for the end of the process."""
        return self.process.wait(seconds)

    def close_input(self) -> None:
        """Let the server see the end of its input."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def kill(self) -> None:
        """End the process at once and close the pipes."""
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            self.close_input()
        if self._reader.ident is not None:
            self._reader.join(SECONDS)

    def tail(self) -> str:
        """The end of what the server wrote to stderr."""
        return bytes(self.stderr[-2000:]).decode("utf-8", "replace")

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        buffer = bytearray()
        while chunk := stream.read(65536):
            buffer += chunk
            while (message := self._cut(buffer)) is not None:
                self._take(message)
        stream.close()
        with self._changed:
            self.stray += bytes(buffer)
            self._ended = True
            self._changed.notify_all()

    def _cut(self, buffer: bytearray) -> dict[str, Any] | None:
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        start = buffer.find(b"Content-Length: ", 0, end)
        if start != 0:
            self.stray += bytes(buffer[: start if start > 0 else end])
        length = int(bytes(buffer[start:end]).split(b"\r\n")[0].split(b":")[1])
        if len(buffer) < end + 4 + length:
            return None
        body = bytes(buffer[end + 4 : end + 4 + length])
        del buffer[: end + 4 + length]
        message: dict[str, Any] = json.loads(body)
        return message

    def _take(self, message: dict[str, Any]) -> None:
        with self._changed:
            self.messages.append(message)
            self._changed.notify_all()
        answer = self.answers.get(message.get("method", "")) if "id" in message else None
        if answer is not None:
            result = answer(message.get("params"))
            if result is NO_ANSWER:
                return
            with contextlib.suppress(OSError, ValueError):  # the server is gone, or our side of it is closed
                self.send({"jsonrpc": "2.0", "id": message["id"], **_outcome(result)})

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        while chunk := self.process.stderr.read(65536):
            self.stderr += chunk


def _outcome(result: Any) -> dict[str, Any]:
    if isinstance(result, Refusal):
        return {"error": {"code": result.code, "message": result.message}}
    return {"result": result}


def _started(
    command: Sequence[str], cwd: Path, env: Mapping[str, str], main: str | None
) -> subprocess.Popen[bytes] | WarmProcess:
    if main and sys.platform != "win32":  # nothing forks there
        return WarmProcess(command[len(PREFIX) :], cwd=cwd, env=env, main=main)
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, env=env, bufsize=0)


def _with_params(message: dict[str, Any], params: Any) -> dict[str, Any]:
    return message if params is None else {**message, "params": params}
