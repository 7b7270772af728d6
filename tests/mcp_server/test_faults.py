"""Clients that misbehave, and ends in the middle of a call: nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client

from tests.children import command_lines
from tests.mcp_server.rig import COMMAND, Served, environment, served
from tests.mcp_server.test_transports import over_http, over_websocket
from tests.shadow.rig import needs_overlay

pytestmark = pytest.mark.slow  # whole servers

Way = Callable[[Served], AbstractAsyncContextManager[Client]]

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class Raw:
    """A client without a library, line by line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self.process, self.stdin, self.stdout = process, process.stdin, process.stdout

    def write(self, data: bytes) -> None:
        self.stdin.write(data)

    def send(self, method: str, number: int | None = None, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.write(json.dumps(message if number is None else {**message, "id": number}).encode() + b"\n")

    async def answer(self, number: int) -> dict[str, Any]:
        async with asyncio.timeout(20):
            while True:
                message: dict[str, Any] = json.loads(await self.stdout.readline())
                if message.get("id") == number:
                    return message

    async def hello(self) -> None:
        self.send("initialize", 1, **HELLO)
        await self.answer(1)
        self.send("notifications/initialized")


@asynccontextmanager
async def raw(folder: Path) -> AsyncGenerator[Raw, None]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *(*COMMAND, "--workspace", str(folder)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment(),
        limit=1 << 24,
    )
    try:
        yield Raw(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def layers(state: Path) -> list[str]:
    """Private views of workspaces that are there."""
    return [path.name for path in (state / "layers").glob("*") if path.is_dir()]


async def gone(mark: str, seconds: float = 10) -> bool:
    """Whether no process has this in its command line, now or soon."""
    end = time.monotonic() + seconds
    while any(mark in line for line in command_lines().values()):
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.05)
    return True


@pytest.mark.parametrize(
    "garbage",
    [
        b"no json\n",
        b"[]\n",
        b"\xff\xfe\x00\n",
        b'{"jsonrpc": "2.0"}\n',
        b'{"jsonrpc": "2.0", "id": 7, "method": 3}\n',
        b"\n",
    ],
)
async def test_garbage_is_survived(workspace: Path, state_dir: Path, garbage: bytes) -> None:
    async with raw(workspace) as client:
        client.write(garbage)
        await client.hello()
        client.write(garbage)
        client.send("tools/call", 2, name="list", arguments={})
        assert "result" in await client.answer(2)
        client.stdin.close()
        assert await asyncio.wait_for(client.process.wait(), 10) == 0


async def test_half_a_message_and_the_end(workspace: Path, state_dir: Path) -> None:
    async with raw(workspace) as client:
        await client.hello()
        client.write(b'{"jsonrpc": "2.0", "id": 2, "meth')
        client.stdin.close()
        assert await asyncio.wait_for(client.process.wait(), 10) == 0


async def started(client: Raw, workspace: Path, mark: str) -> None:
    await client.hello()
    client.send("tools/call", 2, name="bash", arguments={"command": f"echo x > {mark}.txt; exec -a {mark} sleep 300"})
    await seen(mark)
    assert not list(workspace.iterdir())  # noqa: ASYNC240


async def seen(mark: str) -> None:
    """Wait for a process of this name."""
    async with asyncio.timeout(20):
        while not any(line.startswith(mark) for line in command_lines().values()):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)


@needs_overlay
@pytest.mark.parametrize("end", ["close", "term", "kill", "cancel"])
async def test_the_end_in_the_middle_of_a_command(workspace: Path, state_dir: Path, end: str) -> None:
    mark = f"sandbox-{end}-{os.getpid()}"
    async with raw(workspace) as client:
        await started(client, workspace, mark)
        assert len(layers(state_dir)) == 1
        if end == "cancel":
            client.send("notifications/cancelled", requestId=2)
            assert await gone(mark)
            client.send("tools/call", 3, name="bash", arguments={"command": "ls"})  # the sandbox goes on
            assert mark not in json.dumps((await client.answer(3))["result"])
            client.stdin.close()
        elif end == "close":
            client.stdin.close()
        else:
            client.process.send_signal(signal.SIGTERM if end == "term" else signal.SIGKILL)
        code = await asyncio.wait_for(client.process.wait(), 15)
        assert code == (-signal.SIGKILL if end == "kill" else 0)
    assert await gone(mark)
    assert not list(workspace.iterdir())  # noqa: ASYNC240
    if end != "kill":  # what a killed server left is removed by the next one
        assert layers(state_dir) == []


async def test_a_message_without_an_end_is_not_kept(workspace: Path, state_dir: Path) -> None:
    async with raw(workspace) as client:
        await client.hello()
        client.write(b"x" * (5 << 20) + b"\n")
        client.send("tools/call", 2, name="list", arguments={})
        assert "result" in await client.answer(2)


async def test_a_client_that_does_not_read_cannot_keep_it(workspace: Path, state_dir: Path) -> None:
    async with raw(workspace) as client:
        await client.hello()
        for number in range(2, 200):
            client.send("tools/list", number)
        await asyncio.sleep(0.5)  # its answers fill the pipe
        client.process.terminate()
        assert await asyncio.wait_for(client.process.wait(), 15) == 0


@needs_overlay
@pytest.mark.parametrize("way", [over_http, over_websocket])
async def test_a_connection_that_breaks_ends_its_command(workspace: Path, state_dir: Path, way: Way) -> None:
    mark = f"sandbox-broken-{way.__name__}-{os.getpid()}"
    async with served(workspace, "--http", "127.0.0.1:0", "--ws", "127.0.0.1:0") as server:

        async def call() -> None:
            async with way(server) as client:
                await client.call_tool("bash", {"command": f"exec -a {mark} sleep 300"})

        calling = asyncio.create_task(call())
        await seen(mark)
        calling.cancel()
        await asyncio.wait([calling])
        assert await gone(mark)
        assert server.ended() is None
        async with way(server) as client:  # and the next one is served
            assert "x" in str(await client.call_tool("bash", {"command": "echo x"}))
