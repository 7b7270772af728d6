"""All servers together, without a process: a library that is missing, when they start, faults of a WebSocket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from codeagent_lsp import events
from codeagent_lsp.tools.mcp import server as one_server
from codeagent_lsp.tools.mcp import servers as all_servers
from codeagent_lsp.tools.mcp.settings import names_server
from tests.tools.mcp.rig import Rig, faulty, running

Reply = Callable[[ServerConnection, dict[str, Any]], Awaitable[None]]
SHAKE = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "x", "version": "1"}, "capabilities": {"tools": {}}}


async def send(socket: ServerConnection, message: dict[str, Any], **body: Any) -> None:
    await socket.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}))


@asynccontextmanager
async def websocket(reply: Reply) -> AsyncGenerator[dict[str, Any], None]:
    """The setting of a server of the older era with one tool, whose calls `reply` answers."""

    async def serving(socket: ServerConnection) -> None:
        async for data in socket:
            message = json.loads(data)
            if message["method"] == "initialize":
                await send(socket, message, result=SHAKE)
            elif message["method"] == "tools/list":
                await send(socket, message, result={"tools": [{"name": "work", "inputSchema": {"type": "object"}}]})
            elif message["method"] == "tools/call":
                await reply(socket, message)
            elif "id" in message:
                await send(socket, message, error={"code": -32601, "message": "Method not found"})

    async with serve(serving, "127.0.0.1", 0) as listening:
        port = next(iter(listening.sockets)).getsockname()[1]
        url = f"ws://127.0.0.1:{port}/mcp"
        yield {"w": {"url": url, "headers": {"X-Who": "me"}, "autoApprove": ["*"], "timeoutSeconds": 10}}


async def huge(socket: ServerConnection, message: dict[str, Any]) -> None:
    await send(socket, message, result={"content": [{"type": "text", "text": "x" * (9 << 20)}]})


async def hang_up(socket: ServerConnection, message: dict[str, Any]) -> None:
    await socket.close()


async def noise(socket: ServerConnection, message: dict[str, Any]) -> None:
    for _ in range(150):
        await socket.send(b"\x00\xff no message")


async def noise_first(socket: ServerConnection, message: dict[str, Any]) -> None:
    await socket.send("hello?")
    await send(socket, message, result={"content": [{"type": "text", "text": "well"}]})


@pytest.mark.parametrize(
    ("reply", "code", "words"),
    [
        (huge, "MCP_PARSE_ERROR", "more than 8 MiB"),
        (hang_up, "MCP_NETWORK_ERROR", "cannot be reached"),
        (noise, "MCP_PARSE_ERROR", "no message"),
    ],
)
async def test_a_websocket_that_goes_wrong_is_opened_again(tmp_path: Path, reply: Reply, code: str, words: str) -> None:
    replies = [reply, noise_first]

    async def next_one(socket: ServerConnection, message: dict[str, Any]) -> None:
        await replies.pop(0)(socket, message)

    async with websocket(next_one) as given, running(tmp_path, given) as rig:
        result = await rig.call("mcp.w.work")
        assert result.error is not None and result.error.code == code, result.text
        assert words in result.text
        assert (await rig.call("mcp.w.work")).text.endswith("well")


async def test_without_the_library_every_server_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_server, "_MODULE", "codeagent_lsp.tools.mcp.nothing_here")
    async with running(tmp_path, {"a": {"command": "x"}}) as rig:
        assert "pip install 'codeagent-lsp[mcp]'" in str(rig.told[0])
        result = await rig.call("mcp.a.look")
        assert result.error is not None and result.error.code == "MCP_NOT_FOUND"


async def test_nothing_starts_before_it_is_needed(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {"a": {"command": "no-such-program-here"}})
    rig.servers.observe(events.RunStarted(task="x", title="x", kind="runFile"))
    rig.servers.observe(events.ToolCalls(calls=()))
    await asyncio.sleep(0)
    assert not rig.servers.servers
    rig.servers.observe(events.RunStarted(task="x", title="x", kind="run"))
    assert [server.state for server in rig.servers.servers] == ["starting"]
    await rig.servers.close()
    assert not rig.servers.servers


async def test_entries_that_cannot_be_used_are_told_once_and_forgotten_when_mended(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {"a": {"comand": "x"}})
    for _ in range(3):
        rows = await rig.servers.status()
    assert [row["state"] for row in rows] == ["failed"] and len(rig.told) == 1
    assert list(rig.bench.registry.missing) == ["mcp.a"]
    rig.given = {"a": {"command": "x", "disabled": True}}
    assert [row["state"] for row in await rig.servers.status()] == ["disabled"]
    assert rig.bench.registry.missing == {}
    await rig.servers.close()


def test_names_of_servers() -> None:
    assert names_server("mcp.time") and not names_server("mcp.time.now") and not names_server("read_file")


def listings(rig: Rig) -> int:
    return sum("tools/list" in line for line in rig.seen())


@pytest.mark.slow
async def test_who_does_not_tell_of_changes_is_asked_when_a_run_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(all_servers, "LOOK_SECONDS", 0.0)
    async with running(tmp_path, faulty(tmp_path, "changes-quietly")) as rig:
        before = rig.tools()
        await rig.call("mcp.f.work")
        await asyncio.sleep(0.5)
        assert rig.tools() == before == ["mcp.f.echo", "mcp.f.work"]
        rig.servers.observe(events.RunStarted(kind="run"))
        await rig.until_tool("mcp.f.more")
        assert "sends it to me" in rig.bench.registry.get("mcp.f.echo").traits.description


@pytest.mark.slow
async def test_it_is_not_asked_at_every_run(tmp_path: Path) -> None:
    async with running(tmp_path, faulty(tmp_path, "changes-quietly")) as rig:
        first = listings(rig)
        for _ in range(5):
            rig.servers.observe(events.RunStarted(kind="run"))
            await rig.call("mcp.f.echo", text="hello")
        assert listings(rig) == first + 1
        await rig.servers.reload()
        await rig.settled()
        rig.servers.observe(events.RunStarted(kind="run"))
        async with asyncio.timeout(10):
            while listings(rig) < first + 3:  # noqa: ASYNC110 - another connection, another list
                await asyncio.sleep(0.02)


@pytest.mark.slow
async def test_who_tells_of_changes_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_servers, "LOOK_SECONDS", 0.0)
    async with running(tmp_path, faulty(tmp_path, "none")) as rig:
        first = listings(rig)
        rig.servers.observe(events.RunStarted(kind="run"))
        await rig.call("mcp.f.echo", text="hello")
        await asyncio.sleep(0.3)  # it would be asked beside the call
        assert listings(rig) == first


@pytest.mark.slow
async def test_a_list_that_does_not_come_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_servers, "LOOK_SECONDS", 0.0)
    async with running(tmp_path, faulty(tmp_path, "mute-later", timeoutSeconds=1)) as rig:
        before = rig.tools()
        for _ in range(2):
            rig.servers.observe(events.RunStarted(kind="run"))
            await asyncio.sleep(1.5)
        assert listings(rig) >= 2
        assert rig.tools() == before and (await rig.row())["state"] == "ready"
        assert (await rig.call("mcp.f.echo", text="hello")).text.endswith("hello")
