"""The door on loopback: closed until it is needed, open for one visitor, deaf to all others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping

import pytest

from codeagent_lsp.tools.mcp.oauth_callback import MAX_HEAD, OAuthCallback


async def visit(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


def get(target: str) -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


async def test_nobody_is_let_in_before_and_after() -> None:
    door = OAuthCallback()
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", door.port)
        async with door.opened("s"):
            assert (await visit(door.port, get("/"))).startswith(b"HTTP/1.1 404")
    door.close()


async def test_who_comes_with_the_state_brings_the_answer() -> None:
    door = OAuthCallback(said="Fertig. 完成")
    async with door.opened("s p") as answer:
        page = await visit(door.port, get("/callback?code=a%2Fb&state=s+p&iss=x"))
        assert await answer == {"code": "a/b", "state": "s p", "iss": "x"}
    assert page.startswith(b"HTTP/1.1 200 OK") and page.endswith("Fertig. 完成".encode())
    assert b"no-store" in page and b"text/plain" in page
    door.close()


@pytest.mark.parametrize(
    "request_",
    [
        get("/callback?code=a&state=other"),
        get("/callback?code=a"),
        get("/elsewhere?code=a&state=right"),
        get("/callback?state=right".replace("GET", "POST")).replace(b"GET", b"POST"),
        b"\x00\xff rubbish\r\n\r\n",
        b"x" * (MAX_HEAD + 10) + b"\r\n\r\n",
        get("http://[::1/callback?state=right"),
    ],
)
async def test_anybody_else_changes_nothing(request_: bytes) -> None:
    door = OAuthCallback()
    async with door.opened("right") as answer:
        try:
            assert b"200 OK" not in await visit(door.port, request_)
        except ConnectionError:
            pass
        assert not answer.done()
        await visit(door.port, get("/callback?code=good&state=right"))
        given: Mapping[str, str] = await answer
        assert given["code"] == "good"
    door.close()


async def test_a_port_is_kept_where_it_is_free() -> None:
    first = OAuthCallback()
    again = OAuthCallback(first.port)
    assert again.port != first.port
    first.close()
    third = OAuthCallback(first.port)
    assert third.port == first.port
    again.close()
    third.close()


async def test_a_visitor_who_says_nothing_holds_nobody_up() -> None:
    door = OAuthCallback()
    async with door.opened("s"):
        _, writer = await asyncio.open_connection("127.0.0.1", door.port)
        await asyncio.sleep(0.05)
    writer.close()
    door.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_a_port_whose_last_visitor_has_just_gone_is_kept() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as visitor:
            server.accept()[0].close()  # we close first, so the connection lingers on our side
            assert visitor.recv(1) == b""
    with socket.socket() as plain, pytest.raises(OSError):
        plain.bind(("127.0.0.1", port))
    door = OAuthCallback(port)
    assert door.port == port
    other = OAuthCallback(port)
    assert other.port != port
    door.close()
    other.close()
