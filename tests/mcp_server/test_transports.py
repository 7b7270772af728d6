"""Streamable HTTP and WebSocket on loopback, and clients that are in the wrong place or without the token."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from codeagent_lsp.tools.mcp.settings import ServerSettings
from codeagent_lsp.tools.mcp.stdio import Health
from codeagent_lsp.tools.mcp.transports import Socket, websocket_transport
from tests.mcp_server.calls import disk, make_workspace
from tests.mcp_server.rig import COMMAND, Served, code_of, served, text_of

pytestmark = pytest.mark.slow  # whole servers

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@asynccontextmanager
async def over_http(server: Served) -> AsyncGenerator[Client, None]:
    http = httpx2.AsyncClient(headers=server.headers, timeout=30)
    async with http, Client(streamable_http_client(server.urls["http"], http_client=http)) as client:
        yield client


@asynccontextmanager
async def over_websocket(server: Served) -> AsyncGenerator[Client, None]:
    settings = ServerSettings("sandbox", "websocket", url=server.urls["ws"], headers=server.headers, seconds=10.0)
    async with Client(websocket_transport(settings, Health())) as client:
        yield client


@pytest.mark.journey
async def test_both_at_once_are_one_sandbox(workspace: Path) -> None:
    before = disk(make_workspace(workspace))
    async with served(workspace, "--http", "127.0.0.1:0", "--ws", "127.0.0.1:0") as server:
        async with over_http(server) as http, over_websocket(server) as socket:
            assert len((await http.list_tools()).tools) == len((await socket.list_tools()).tools) > 20
            await http.call_tool("write", {"path": "a.txt", "content": "from http\n"})
            assert "from http" in text_of(await socket.call_tool("read", {"path": "a.txt"}))
            assert code_of(await http.call_tool("read", {"path": "b.txt"})) == "PARAMETER_ERROR"
            assert code_of(await socket.call_tool("read", {})) == "VALIDATION_ERROR"
        await asyncio.sleep(0.1)
        assert server.ended() is None  # clients come and go
    assert server.ended() == 0
    assert disk(workspace) == before


STRANGERS: tuple[tuple[dict[str, str], int], ...] = (
    ({}, 401),
    ({"Authorization": "Bearer wrong"}, 401),
    ({"Authorization": "{token}"}, 401),
    ({"Authorization": "Bearer {token}", "Origin": "https://evil.example"}, 403),
    ({"Authorization": "Bearer {token}", "Host": "evil.example"}, 421),
    ({"Authorization": "Bearer {token}", "Host": "[::1"}, 421),
    ({"Authorization": "Bearer {token}", "Origin": "null"}, 403),
)


async def test_strangers_are_refused(workspace: Path) -> None:
    async with served(workspace, "--http", "127.0.0.1:0", "--ws", "127.0.0.1:0") as server:
        for headers, status in STRANGERS:
            filled = {name: value.replace("{token}", server.token) for name, value in headers.items()}
            assert await asyncio.to_thread(_posted, server, filled) == status, headers
            assert await _opened(server, filled) == status, headers


def test_only_loopback_is_served(workspace: Path) -> None:
    command = [sys.executable, *COMMAND, "--workspace", str(workspace), "--http", "0.0.0.0:0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "0.0.0.0 is not this machine" in ended.stderr


async def test_a_port_that_is_taken(workspace: Path) -> None:
    async with served(workspace, "--http", "127.0.0.1:0") as server:
        port = urlsplit(server.urls["http"]).port
        command = [sys.executable, *COMMAND, "--workspace", str(workspace), "--ws", f"127.0.0.1:{port}"]
        ended = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=30)
        assert ended.returncode == 1
        assert f"Cannot listen on 127.0.0.1:{port}" in ended.stderr


async def test_garbage_and_a_message_that_is_too_large(workspace: Path) -> None:
    async with served(workspace, "--http", "127.0.0.1:0", "--ws", "127.0.0.1:0") as server:
        async with _socket(server) as socket:
            await socket.send("no json {")
            await socket.send(json.dumps(HELLO))
            while "result" not in (answer := json.loads(await asyncio.wait_for(socket.recv(), 10))):
                assert "error" in answer
            with suppress(ConnectionClosed):  # it may be refused while it is still being sent
                await socket.send("x" * (5 << 20))
            await asyncio.wait_for(socket.wait_closed(), 10)
        body = b"x" * (5 << 20)
        assert await asyncio.to_thread(_posted, server, server.headers, body) in (400, 413)
        async with over_websocket(server) as client:
            assert code_of(await client.call_tool("list", {})) == ""


def _posted(server: Served, headers: dict[str, str], body: bytes | None = None) -> int:
    parts = urlsplit(server.urls["http"])
    connection = HTTPConnection(str(parts.hostname), parts.port, timeout=10)
    given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    connection.request("POST", parts.path, body or json.dumps(HELLO), given)
    return connection.getresponse().status


def _socket(server: Served, headers: dict[str, str] | None = None) -> Any:
    given = server.headers if headers is None else headers
    return connect(server.urls["ws"], create_connection=Socket, additional_headers=given)


async def _opened(server: Served, headers: dict[str, str]) -> int:
    """The status with which a WebSocket is refused."""
    given = {name: value for name, value in headers.items() if name != "Host"}
    if "Host" in headers:  # the library writes its own: speak without it
        return await asyncio.to_thread(_upgraded, server, headers)
    with pytest.raises(InvalidStatus) as refused:
        socket: ClientConnection = await _socket(server, given)
        await socket.close()
    return int(refused.value.response.status_code)


def _upgraded(server: Served, headers: dict[str, str]) -> int:
    parts = urlsplit(server.urls["ws"])
    connection = HTTPConnection(str(parts.hostname), parts.port, timeout=10)
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    connection.request("GET", "/", headers={**upgrade, **key, **headers})
    return connection.getresponse().status
