"""One child process that makes vectors of texts, and the reading of its answers.

It has its own session, so that no key pressed in a terminal reaches it, and ends with its stdin, also when this process
is killed. Not here: the program (`embedding_worker.py`), when it is started and what follows a failure
(`builtin_embeddings.py`).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import math
import os
import signal
import sys
import time
from array import array
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from codeagent_lsp.errors import ModelReplyInvalid, ModelUnreachable
from codeagent_lsp.system import OWN_GROUP

# -P: modules of the current folder, such as the user's own "json.py", are not found. -X utf8: whatever the locale.
COMMAND = (sys.executable, "-P", "-X", "utf8", str(Path(__file__).with_name("embedding_worker.py")))
_MOST_THREADS = 4

Vector = tuple[float, ...]


class ChildEnded(Exception):
    """Raised when the process has ended; the message says how."""


class EmbeddingChild:
    """A running process. `model` and `size` (the dimension) are known with its first answer."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.model = ""
        self.size = 0
        self._process = process
        self._number = 0
        self._waiting_since: float | None = None

    @classmethod
    async def start(cls, command: Sequence[str]) -> EmbeddingChild:
        """Start a process, without waiting for its model. Raises ChildEnded if it cannot be started."""
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                # No folder of the user is kept busy by it.
                cwd="/",
                env=os.environ | _threads(),
                **OWN_GROUP,
            )
        except OSError as error:
            raise ChildEnded(str(error)) from error
        return cls(process)

    @property
    def silent_seconds(self) -> float:
        """The time since the first of the requests that it has not answered; 0.0 if there is none."""
        return 0.0 if self._waiting_since is None else time.monotonic() - self._waiting_since

    async def vector(self, text: str, *, is_query: bool) -> Vector:
        """Return the vector of a text; one call at a time. May be cancelled: its answer is then skipped later.

        Raises ChildEnded, ModelReplyInvalid, ModelUnreachable.
        """
        self._number += 1
        self._waiting_since = self._waiting_since or time.monotonic()
        await self._write({"id": self._number, "query": is_query, "text": text})
        while True:
            reply = await self._reply()
            if not self.model:
                self._introduced(reply)
            # Answers with other numbers are those of requests that were cancelled.
            elif reply.get("id") == self._number:
                self._waiting_since = None
                return self._understood(reply)

    def kill(self) -> None:
        """Kill the process, which holds nothing that could be lost."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def stop(self) -> None:
        """Kill the process and wait for its end."""
        self.kill()
        await self._process.wait()

    async def _write(self, request: dict[str, object]) -> None:
        assert self._process.stdin is not None, "piped"
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            await self._process.stdin.drain()
        except (ConnectionError, RuntimeError):  # the latter for a closed pipe
            pass  # what it said last, and how it ended, is read next

    async def _reply(self) -> dict[str, Any]:
        assert self._process.stdout is not None, "piped"
        try:
            line = await self._process.stdout.readline()
            # A line without its end: the process died while it wrote.
            reply = json.loads(line) if line.endswith(b"\n") else None
        except (ValueError, RecursionError) as error:
            raise _odd("it is no JSON") from error
        if reply is None:
            raise ChildEnded(await self._end())
        if not isinstance(reply, dict):
            raise _odd("it is no object")
        return reply

    async def _end(self) -> str:
        """Return how the process ended; one that closed its output and goes on is killed."""
        try:
            async with asyncio.timeout(1.0):
                code = await self._process.wait()
        except TimeoutError:
            self.kill()
            code = await self._process.wait()
        with suppress(ValueError):
            return signal.Signals(-code).name
        return f"exit {code}"

    def _introduced(self, reply: dict[str, Any]) -> None:
        """Take the first line for what the process says of itself."""
        model, size, error = reply.get("model"), reply.get("size"), reply.get("error")
        if error:
            raise ModelUnreachable("model.embedder_failed", reason=str(error)[:300])
        if not isinstance(model, str) or not model or type(size) is not int or size <= 0:
            raise _odd("it does not say its model")
        self.model, self.size = model, size

    def _understood(self, reply: dict[str, Any]) -> Vector:
        if "error" in reply:
            raise _odd(str(reply["error"])[:300])
        try:
            numbers = array("f", base64.b64decode(reply["vector"], validate=True))
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            raise _odd("it holds no vector") from error
        if sys.byteorder == "big":
            numbers.byteswap()
        if len(numbers) != self.size:
            raise _odd(f"{len(numbers)} numbers instead of {self.size}")
        if not all(math.isfinite(number) for number in numbers):
            raise _odd("it holds what is no number")
        return tuple(numbers)


def _threads() -> dict[str, str]:
    """Return the variables that leave half of the machine alone, and idle threads asleep."""
    threads = max(1, min(_MOST_THREADS, (os.cpu_count() or 1) // 2))
    return {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive", "OPENBLAS_NUM_THREADS": "1"}


def _odd(reason: str) -> ModelReplyInvalid:
    return ModelReplyInvalid("model.embedder_odd", reason=reason)
