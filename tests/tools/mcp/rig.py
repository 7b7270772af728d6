"""Servers of MCP over a workbench: the faulty one, and any other by its settings."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.messages import ToolResult
from codeagent_lsp.tools.mcp.errors import McpProblem
from codeagent_lsp.tools.mcp.host import Logins
from codeagent_lsp.tools.mcp.listing import Pins
from codeagent_lsp.tools.mcp.servers import McpServers
from codeagent_lsp.tools.outputs import OutputStore
from tests.tools.fakes import Bench

FAULTY = str(Path(__file__).with_name("faulty_server.py"))


class Rig:
    """`given` is the setting `mcp.servers`; what the user is told gathers in `told`, notes in `notes`."""

    def __init__(
        self,
        folder: Path,
        given: Mapping[str, Any],
        environ: Mapping[str, str] | None = None,
        logins: Logins | None = None,
        network: NetworkSettings | None = None,
    ) -> None:
        self.folder = folder
        self.given = dict(given)
        self.told: list[McpProblem] = []
        self.notes: list[str] = []
        self.disabled: list[str] = []
        self.bench = Bench(folder / "work")
        outputs = OutputStore(folder / "outputs")
        self.bench.context = replace(self.bench.context, note=self.notes.append).having((OutputStore, outputs))
        self.bench.executor = type(self.bench.executor)(
            self.bench.registry, self.bench.context, lambda: self.bench.mode, self.bench.approvals
        )
        self.servers = McpServers(
            lambda: self.given,
            self.bench.registry,
            Pins(folder / "mcp.json"),
            lambda: [str(self.bench.root)],
            dict(os.environ) if environ is None else environ,
            self.told.append,
            lambda: self.disabled,
            logins,
            lambda: network or NetworkSettings(),
        )

    async def start(self) -> None:
        """Start all, and wait until it is known how they are."""
        self.servers.begin()
        await self.settled()

    async def settled(self) -> None:
        for server in self.servers.servers:
            await server.settled()
        await self.servers.status()

    async def row(self) -> dict[str, Any]:
        """The state of the first server."""
        return (await self.servers.status())[0]

    async def call(self, name: str, /, **arguments: Any) -> ToolResult:
        return await self.bench.call(name, **arguments)

    def tools(self) -> list[str]:
        return [name for name in self.bench.registry.names("active") if name.startswith("mcp.")]

    def seen(self) -> list[str]:
        """The lines that the faulty server noted."""
        file = self.folder / "notes"
        return file.read_text().splitlines() if file.exists() else []

    async def until_seen(self, part: str, seconds: float = 10.0) -> str:
        """The first line of its notes with `part` in it."""
        async with asyncio.timeout(seconds):
            while True:
                for line in self.seen():
                    if part in line:
                        return line
                await asyncio.sleep(0.02)

    async def until_tools(self, *names: str, seconds: float = 10.0) -> None:
        """Wait until exactly these tools can be called."""
        async with asyncio.timeout(seconds):
            while self.tools() != list(names):  # noqa: ASYNC110 - a registry is no event
                await asyncio.sleep(0.02)

    async def until_tool(self, name: str, other_than: object = None, seconds: float = 10.0) -> None:
        """Wait until there is such a tool, and not this one."""
        async with asyncio.timeout(seconds):
            while name not in self.tools() or self.bench.registry.get(name) is other_than:  # noqa: ASYNC110
                await asyncio.sleep(0.02)


def faulty(folder: Path, fault: str, **others: Any) -> dict[str, Any]:
    """The setting for the faulty server, allowed unasked and with little patience."""
    server = {"command": sys.executable, "args": [FAULTY, fault, str(folder / "notes")], "timeoutSeconds": 15}
    return {"f": {**server, "autoApprove": ["*"], **others}}


@asynccontextmanager
async def running(
    folder: Path,
    given: Mapping[str, Any],
    environ: Mapping[str, str] | None = None,
    logins: Logins | None = None,
) -> AsyncGenerator[Rig, None]:
    """A rig with its servers started, and stopped afterwards; no task of theirs is left."""
    before = asyncio.all_tasks()
    rig = Rig(folder, given, environ, logins)
    try:
        await rig.start()
        yield rig
    finally:
        await rig.servers.close()
    await asyncio.sleep(0.05)
    left = {
        task for task in asyncio.all_tasks() - before if "answering" not in repr(task) and "Issuer" not in repr(task)
    }  # not our own servers
    assert not left, left
