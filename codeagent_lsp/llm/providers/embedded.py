"""The embedded model: a llama.cpp server in a child process, started with the first request.

The child has its own process group, no stdin, no access to our stdout, and exits with us: it watches a pipe.
Not here: the server itself (`embedded_server.py`) and downloading the weights (`llm/weights.py`).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from codeagent_lsp.errors import ModelNotFound, ModelUnreachable
from codeagent_lsp.llm.endpoint import Endpoint, TimeLimits, endpoint
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, StreamItem
from codeagent_lsp.llm.providers.llamacpp import LlamaCppModel
from codeagent_lsp.system import OWN_GROUP, end_tree

CONTEXT_WINDOW = 8192
AGENT_SLOT = 0
FILL_SLOT = 1
# Reading a gigabyte from a slow disk takes a minute and more.
START_SECONDS = 180.0
STOP_SECONDS = 5.0


def engine_installed() -> bool:
    """Return whether the llama.cpp engine of the extra `local` is installed."""
    return find_spec("xllamacpp") is not None


def not_started(reason: object) -> ModelUnreachable:
    """Return the error for a server that did not start; where a library of the system is missing, it says how that is
    installed.
    """
    lacks_library = "shared object file" in str(reason)
    return ModelUnreachable("model.embedded_library" if lacks_library else "model.embedded_failed", reason=reason)


class EmbeddedHost:
    """The child process of one file of weights, shared by all users that took it: started when first needed and again
    if it died, stopped when the last one releases it. Belongs to one event loop. `context_window` is in tokens; with
    `fills` its server has a second slot, for filling in.
    """

    def __init__(self, weights: Path, context_window: int = CONTEXT_WINDOW, *, fills: bool = False) -> None:
        self.weights = weights
        self.context_window = context_window
        self.fills = fills
        self._users = 0
        self._starting = asyncio.Lock()
        self._child: _Child | None = None
        self._where: Endpoint | None = None
        self._loading: asyncio.Task[Endpoint] | None = None

    def taken(self) -> EmbeddedHost:
        """Count one more user and return this host; each user has to call `release` once."""
        self._users += 1
        return self

    async def ready(self) -> Endpoint:
        """Return the endpoint of the child's server; start it if needed, which takes up to 180 s. ModelNotFound or
        ModelUnreachable if it cannot run. Cancelling a call does not cancel the start, so that the next request need
        not begin it again.
        """
        if self._loading is None or self._loading.done():
            self._loading = asyncio.ensure_future(self._ready())
            self._loading.add_done_callback(lambda done: done.cancelled() or done.exception())  # if nobody waits
        return await asyncio.shield(self._loading)

    async def release(self) -> None:
        """Count one user less; stop the child and wait for that if there is none left. A start that goes on is
        cancelled.
        """
        self._users -= 1
        if self._users > 0:
            return
        loading, self._loading = self._loading, None
        if loading is not None:
            loading.cancel()
            await asyncio.gather(loading, return_exceptions=True)
        async with self._starting:
            # Taken again while this waited for the lock.
            if self._users <= 0:
                await self._stop()

    async def _ready(self) -> Endpoint:
        async with self._starting:
            if self._where and self._child and self._child.running:
                return self._where
            await self._stop()
            self._check()
            self._child = child = await _Child.start(self.weights, self.context_window, fills=self.fills)
            self._where = endpoint(child.url, child.key)
            return self._where

    def _check(self) -> None:
        if not engine_installed():
            raise ModelNotFound("model.local_missing", python=sys.executable)
        if not self.weights.is_file():
            raise ModelNotFound("model.weights_missing", path=self.weights)

    async def _stop(self) -> None:
        child, self._child, self._where = self._child, None, None
        if child:
            await child.stop()


class EmbeddedHosts:
    """The hosts of one program: the same weights, window and slots get the same child process."""

    def __init__(self) -> None:
        self._hosts: dict[tuple[Path, int, bool], EmbeddedHost] = {}

    def take(self, weights: Path, context_window: int, *, fills: bool) -> EmbeddedHost:
        """Return the host for these weights and this window in tokens, with slots for filling in if it `fills`, taken
        once: the caller has to release it.
        """
        key = (weights, context_window, fills)
        host = self._hosts.setdefault(key, EmbeddedHost(weights, context_window, fills=fills))
        return host.taken()


class EmbeddedModel:
    """A `Model` over a child process that is started when first needed. It holds one use of `host`, which `close`
    releases.
    """

    def __init__(
        self,
        host: EmbeddedHost,
        *,
        limits: TimeLimits | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self._host = host
        facts = window_known(host.context_window)
        self._info = ModelInfo(host.weights.stem, "embedded", facts=facts, tool_calling="text", api_mode="completion")
        self._limits = limits or TimeLimits()
        self._max_tokens = max_tokens
        self._opening = asyncio.Lock()
        self._where: Endpoint | None = None
        self._model: LlamaCppModel | None = None

    @property
    def info(self) -> ModelInfo:
        """The description of the model; its URL is '' until the child runs."""
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield the answer of the child's server, started if needed. Its `Reply` comes last. ModelError if it cannot
        run or answer.
        """
        model = await self.ready()
        async with aclosing(model.stream(request)) as items:
            async for item in items:
                yield item

    async def count_tokens(self, text: str) -> int:
        """Return the exact number of tokens in `text` (an upper estimate as for `LlamaCppModel`); starts the child if
        needed. ModelError if it cannot run.
        """
        return await (await self.ready()).count_tokens(text)

    async def close(self) -> None:
        """Close the connections and release the child, which stops if nothing else uses it."""
        async with self._opening:
            await self._drop()
            await self._host.release()

    async def ready(self) -> LlamaCppModel:
        """Start the child if needed and return its model. Raises ModelNotFound or ModelUnreachable if it cannot run."""
        async with self._opening:
            where = await self._host.ready()
            if self._model is not None and self._where is where:
                return self._model
            await self._drop()
            self._where, self._info = where, replace(self._info, url=where.root)
            self._model = LlamaCppModel(
                where,
                self._info,
                api_mode="completion",  # its chat endpoint lets a code fence pass that it hides from us
                slot=AGENT_SLOT if self._host.fills else None,
                limits=self._limits,
                max_tokens=self._max_tokens,
            )
            return self._model

    async def _drop(self) -> None:
        model, self._model = self._model, None
        if model:
            await model.close()


class _Child:
    """The child process and our end of the pipe that keeps it alive."""

    def __init__(self, process: asyncio.subprocess.Process, alive: int) -> None:
        self.url = ""
        self.key = ""
        self._process = process
        self._alive = alive

    @classmethod
    async def start(cls, weights: Path, context_window: int, *, fills: bool = False) -> _Child:
        """Start a child and wait until its server answers."""
        ready_read, ready_write = os.pipe()
        alive_read, alive_write = os.pipe()
        command = [sys.executable, "-P", "-m", "codeagent_lsp.llm.providers.embedded_server", "--model", str(weights)]
        command += ["--n-ctx", str(context_window), *(["--fills"] if fills else [])]
        command += ["--ready-fd", str(ready_write), "--alive-fd", str(alive_read)]
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                pass_fds=(ready_write, alive_read),
                **OWN_GROUP,
            )
        except BaseException:
            os.close(ready_read)
            os.close(alive_write)
            raise
        finally:
            # Our copies of the child's ends: with them open, its death would never be seen as the end of the pipe.
            os.close(ready_write)
            os.close(alive_read)
        child = cls(process, alive_write)
        try:
            await child._wait_ready(ready_read)
        except BaseException:
            await child.stop()
            raise
        return child

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    async def stop(self) -> None:
        """Close the pipe, wait up to `STOP_SECONDS`, then kill the process group."""
        with suppress(OSError):
            os.close(self._alive)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._process.wait()
        except BaseException as error:  # a cancelled stop must not leave the child either
            end_tree(self._process.pid)
            if not isinstance(error, TimeoutError):
                raise
            await self._process.wait()

    async def _wait_ready(self, descriptor: int) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        pipe = os.fdopen(descriptor, "rb", 0)
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        try:
            async with asyncio.timeout(START_SECONDS):
                line = await reader.readline()
            message = json.loads(line or b"{}")
        except (TimeoutError, ValueError) as error:
            raise not_started("it did not get ready") from error
        finally:
            transport.close()
        if not message.get("port"):
            raise not_started(message.get("error", "it ended at once"))
        self.url = f"http://127.0.0.1:{message['port']}"
        self.key = str(message.get("key", ""))
