"""An agent of the second door and its servers in the test's own process: thousands of sessions without a process each.

All is real from the client's messages to the model's script but what carries them: they are handed over in memory, each
as the text that would have been sent. Not here: processes that die (`test_journey.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest
from acp import PROTOCOL_VERSION, connect_to_agent, run_agent

from codeagent_lsp.acp_agent import session_server
from codeagent_lsp.acp_agent.agent import Agent
from codeagent_lsp.app import create_server
from codeagent_lsp.language_servers.json_rpc import Refused
from codeagent_lsp.llm import survey
from codeagent_lsp.lsp_client.connection import Connection, ConnectionLost
from codeagent_lsp.server import server as server_module
from codeagent_lsp.server.server import CodeAgentServer
from codeagent_lsp.server.wire import lifecycle
from codeagent_lsp.server.wire.framing import make_converter, read
from codeagent_lsp.state import STATE_VARIABLE, workspace_state
from tests.acp_agent.editor import Editor

LEAVE_SECONDS = 60.0
QUIET = {
    "index.enabled": False,
    "trace.enabled": False,
    "foreign.watch": "off",
    "lend.editor": "off",
    "edits.diagnostics": "off",
    "languageServers": {"basedpyright": False, "pyright": False},
    "shell.isolation": "direct",
}
"""Settings without what takes processes or time and says nothing to the client."""


def all_in_process(monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    """Have sessions take servers of this process, all with one state folder."""
    monkeypatch.setenv(STATE_VARIABLE, str(state))
    monkeypatch.setattr(session_server, "Connection", InProcessConnection)
    monkeypatch.setattr(survey, "PORTS", {})  # models of this machine are no matter here
    # Each server has its own, which is made in a tenth of the time that the rest of an order takes.
    monkeypatch.setattr(server_module, "make_converter", functools.cache(make_converter))
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: None)  # this machine does not lose power


class InProcessEditor(Editor):
    """As `Editor`, once `all_in_process` was called."""

    seconds = 300.0  # dozens of them share a processor, which may have other work

    async def __aenter__(self) -> Self:
        to_agent, to_client = asyncio.Queue[str](), asyncio.Queue[str]()
        self._in_process = Agent("C.UTF-8", {"model.provider": "scripted", "model.name": str(self._place), **QUIET})
        self._end = functools.partial(to_agent.put_nowait, "")
        transport = _Memory(to_agent, to_client)
        self._serving = asyncio.ensure_future(run_agent(self._in_process, transport, use_unstable_protocol=True))
        client: Any = self
        self.agent = connect_to_agent(
            client, _Memory(to_client, to_agent), use_unstable_protocol=True, observers=[self._observe]
        )
        self.hello = await self.agent.initialize(
            protocol_version=PROTOCOL_VERSION, client_capabilities=self._offers, client_info=self._info
        )
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self._in_process.close()
        self._end()
        await self._serving
        await self.agent.close()
        kept = workspace_state([str(self.workspace)])
        await asyncio.to_thread(shutil.rmtree, kept, ignore_errors=True)
        assert not self.wrong, "\n".join(self.wrong)


class InProcessConnection(Connection):
    """A connection to a server in this process."""

    _server: CodeAgentServer | None = None

    async def start(self) -> None:
        self._server = create_server()
        outgoing: Any = _Delivery(asyncio.get_running_loop(), self._arrives)
        self._server.protocol.outgoing = outgoing

    async def close(self, seconds: float = 0.0) -> None:
        server = self._server
        if server is None:
            return
        with contextlib.suppress(Refused, ConnectionLost):  # another one ends it, too
            await self.request("shutdown", seconds=LEAVE_SECONDS)  # there is no process that could be killed
        self._server = None
        server.protocol.close()
        await lifecycle.run_callbacks(server._on_close)
        server._tasks.cancel()
        self._lose()
        for task in tuple(self._answering.values()):
            task.cancel()

    def _write(self, body: bytes) -> None:
        if self._server is not None and not self.lost.is_set():
            self._server.protocol.receive(read(body)[0])

    def _arrives(self, body: bytes) -> None:
        if self._server is not None:
            self._peer.take(json.loads(body))


class _Delivery:
    """Takes the place of a server's queue to its client, and of the thread that writes it."""

    waiting = 0

    def __init__(self, loop: asyncio.AbstractEventLoop, deliver: Callable[[bytes], None]) -> None:
        self._loop = loop
        self._deliver = deliver

    def send(self, body: bytes, **_: object) -> None:
        """Hand a message over with the next turn of the loop; from any thread."""
        self._loop.call_soon_threadsafe(self._deliver, body)


class _Memory:
    """A transport of the library to one side, by two queues of messages; "" ends it."""

    def __init__(self, incoming: asyncio.Queue[str], outgoing: asyncio.Queue[str]) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def receive(self) -> dict[str, Any] | None:
        line = await self._incoming.get()
        return json.loads(line) if line else None

    async def send(self, message: dict[str, Any]) -> None:
        self._outgoing.put_nowait(json.dumps(message))

    async def close(self) -> None:
        self._incoming.put_nowait("")
