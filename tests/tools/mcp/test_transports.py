"""Every transport against a server on the official library, in the newer era and the older."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.tools.mcp.settings import Transport
from tests.faults.model_server import free_port
from tests.tools.mcp.faulty_http import always, answering, in_calls, older_era, response
from tests.tools.mcp.rig import running

pytestmark = pytest.mark.slow  # servers in processes of their own

PROGRAM = str(Path(__file__).with_name("library_server.py"))
SERVED = {
    "http": ("streamable-http", "http", "/mcp"),
    "sse": ("sse", "http", "/sse"),
    "websocket": ("websocket", "ws", ""),
}
NEWER = "2026-07-28"
MEBIBYTE = 1 << 20


def begins(path: Path, data: bytes) -> bool:
    return path.read_bytes().startswith(data)


@contextmanager
def served(transport: Transport) -> Iterator[dict[str, Any]]:
    """The setting of a server on the library that runs."""
    if transport == "stdio":
        yield {"s": {"command": sys.executable, "args": [PROGRAM, "stdio"], "autoApprove": ["*"]}}
        return
    name, scheme, path = SERVED[transport]
    port = free_port()
    process = subprocess.Popen([sys.executable, PROGRAM, name, str(port)], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        url = f"{scheme}://127.0.0.1:{port}{path}"
        yield {"s": {"url": url, "transport": transport, "autoApprove": ["*"], "timeoutSeconds": 20}}
    finally:
        process.kill()
        process.wait()


@pytest.mark.journey
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("transport", ["stdio", "http", "sse", "websocket"])
async def test_a_server_on_the_library(tmp_path: Path, transport: Transport) -> None:
    with served(transport) as given:
        async with running(tmp_path, given) as rig:
            row = await rig.row()
            assert row["state"] == "ready", row
            assert row["version"] == NEWER
            total = await rig.call("mcp.s.add", a=2, b=3)
            assert total.ok and total.data == {"total": 5}
            failed = await rig.call("mcp.s.fail")
            assert failed.error is not None
            assert (failed.status, failed.error.code) == ("retry", "MCP_EXECUTION_ERROR")
            assert "Error executing tool fail" in failed.text
            picture = await rig.call("mcp.s.picture")
            path = Path(picture.text.rpartition(" in ")[2].rstrip("]"))
            assert path.suffix == ".png" and begins(path, b"\x89PNG")
            await rig.call("mcp.s.steps")
            assert rig.notes == ["mcp.s.steps: 1/2 half"]
            call = asyncio.create_task(rig.call("mcp.s.slow"))
            await asyncio.sleep(0.3)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert (await rig.call("mcp.s.grow")).ok
            await rig.until_tool("mcp.s.grown")
            assert (await rig.call("mcp.s.grown")).ok


@pytest.mark.parametrize("transport", ["http", "sse", "websocket"])
async def test_nobody_listens(tmp_path: Path, transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codeagent_lsp.environments.failures.FIRST_WAIT", 0.01)
    _, scheme, path = SERVED[transport]
    given = {"s": {"url": f"{scheme}://127.0.0.1:{free_port()}{path}", "transport": transport, "timeoutSeconds": 10}}
    async with running(tmp_path, given) as rig:
        row = await rig.row()
        assert row["state"] == "failed"
        assert "cannot be reached" in str(row["error"])
        result = await rig.call("mcp.s.add")
        assert result.error is not None and result.error.code == "MCP_NETWORK_ERROR"


@pytest.mark.parametrize(
    ("status", "code", "words", "requests"),
    [
        ("401 Unauthorized", "MCP_EXECUTION_ERROR", "HTTP 401", 2),
        ("403 Forbidden", "MCP_EXECUTION_ERROR", "Authorization", 2),
        ("404 Not Found", "MCP_NOT_FOUND", "Not Found", 2),
        ("503 Service Unavailable", "MCP_NETWORK_ERROR", "HTTP 503", 8),
        ("307 Temporary Redirect", "MCP_PARAM_ERROR", "elsewhere.example", 2),
    ],
)
async def test_a_web_server_that_refuses(
    tmp_path: Path, status: str, code: str, words: str, requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeagent_lsp.environments.failures.FIRST_WAIT", 0.01)
    secret = "k" + os.urandom(12).hex()
    async with answering(always(response(status, b"", "Location: http://elsewhere.example/mcp"))) as seen:
        given = {"s": {"url": f"{seen.url}?key=hidden", "headers": {"Authorization": f"Bearer {secret}"}}}
        async with running(tmp_path, given) as rig:
            row = await rig.row()
            assert row["state"] == "failed" and words in str(row["error"]), row
            assert secret not in str(row["error"]) and "hidden" not in str(row)
            assert row["error"].code == code
        assert len(seen.heads) == requests
        assert all(secret in head for head in seen.heads)


async def _huge(message: dict[str, Any]) -> Any:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
    yield b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % message["id"]
    for _ in range(100):
        yield b"x" * MEBIBYTE
    yield b'"}]}}'


async def _packed(message: dict[str, Any]) -> Any:
    yield response(
        "200 OK",
        base64.b64decode("H4sIAAAAAAAC/wMAAAAAAAAAAAA="),
        "Content-Encoding: gzip",
        "Content-Type: application/json",
    )


async def _silent(message: dict[str, Any]) -> Any:
    await asyncio.sleep(4)
    yield b""


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (_huge, "MCP_PARSE_ERROR", "more than the 8 MiB"),
        (_packed, "MCP_PARSE_ERROR", "packed"),
        (_silent, "MCP_TIMEOUT", "did not answer in 2 s"),
        (always(response("200 OK", b"<html>", "Content-Type: application/json")), "MCP_PARSE_ERROR", "parse"),
        (always(response("200 OK", b"<html>", "Content-Type: text/html")), "MCP_PARAM_ERROR", "text/html"),
        (always(response("500 Oops")), "MCP_NETWORK_ERROR", "HTTP 500"),
        (always(b"garbage\r\n\r\n"), "MCP_NETWORK_ERROR", "cannot be reached"),
    ],
)
async def test_a_web_server_that_fails_in_a_call(tmp_path: Path, answer: Any, code: str, words: str) -> None:
    async with answering(in_calls(answer)) as seen:
        given = {"s": {"url": seen.url, "timeoutSeconds": 2, "autoApprove": ["work"]}}
        async with running(tmp_path, given) as rig:
            assert (await rig.row())["version"] == "2025-06-18"
            result = await rig.call("mcp.s.work")
            assert result.error is not None and result.error.code == code, result.text
            assert words in result.text


async def test_a_web_server_of_the_older_era(tmp_path: Path) -> None:
    async with answering(older_era) as seen:
        async with running(tmp_path, {"s": {"url": seen.url, "autoApprove": ["work"]}}) as rig:
            assert (await rig.call("mcp.s.work")).text.endswith("done")
        assert "initialize" in seen.methods
