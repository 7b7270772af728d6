"""The proxy for programs of others: it knows its user, and leads nowhere but to public addresses."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator

import pytest

from codeagent_lsp.tools.web.child import USER, CheckingProxy
from tests.tools.web.net import PUBLIC, Net, answer, pages, server

HOST = "docs.example.org"


def knock(proxy: CheckingProxy, line: str, *headers: str, token: str | None = None) -> bytes:
    """A request of the proxy's user."""
    credentials = base64.b64encode(f"{USER}:{proxy.token if token is None else token}".encode()).decode()
    lines = [line, f"Proxy-Authorization: Basic {credentials}", *headers]
    return "".join(f"{item}\r\n" for item in lines).encode() + b"\r\n"


async def said(proxy: CheckingProxy, request: bytes, then: bytes = b"") -> bytes:
    """All that it answers; `then` is sent after its first line."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.address.rpartition(":")[2]))
    try:
        async with asyncio.timeout(5):
            writer.write(request)
            first = await reader.readuntil(b"\r\n\r\n") if then else b""
            writer.write(then)
            return first + await reader.read()
    finally:
        writer.close()


@pytest.fixture
def net() -> Net:
    return Net({HOST: [[PUBLIC]], "inside.example": [["10.0.0.1"]], "turning.example": [[PUBLIC], ["127.0.0.1"]]})


@pytest.fixture
async def proxy(net: Net) -> AsyncGenerator[CheckingProxy]:
    async with CheckingProxy(net.dialer) as it:
        yield it


async def test_a_plain_request_goes_to_the_server_without_what_was_for_us(net: Net, proxy: CheckingProxy) -> None:
    async with server(pages({"/x?y": answer("hello")}), net, (PUBLIC, 80)) as asked:
        request = knock(
            proxy, f"GET http://{HOST}/x?y HTTP/1.1", "Host: elsewhere.example", "Proxy-Connection: x", "A: b"
        )
        assert (await said(proxy, request)).endswith(b"hello")
    assert asked[0].headers == {"host": HOST, "a": "b", "connection": "close"}
    assert net.tried == [(PUBLIC, 80)]


async def test_a_tunnel(net: Net, proxy: CheckingProxy) -> None:
    async with server(pages({"/": answer("deep")}), net, (PUBLIC, 443)):
        talk = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
        assert (await said(proxy, knock(proxy, f"CONNECT {HOST}:443 HTTP/1.1"), talk)).endswith(b"deep")
    assert net.tried == [(PUBLIC, 443)]


@pytest.mark.parametrize(
    "line",
    [
        "CONNECT 127.0.0.1:443 HTTP/1.1",
        "CONNECT localhost:443 HTTP/1.1",
        "CONNECT [::1]:443 HTTP/1.1",
        "CONNECT inside.example:443 HTTP/1.1",
        "CONNECT 0x7f.1:80 HTTP/1.1",
        f"CONNECT {HOST}:22 HTTP/1.1",
        f"CONNECT {HOST}@127.0.0.1:443 HTTP/1.1",
        "CONNECT / HTTP/1.1",
        "GET http://127.0.0.1/ HTTP/1.1",
        "GET http://169.254.169.254/latest HTTP/1.1",
        "GET http://inside.example/ HTTP/1.1",
        f"GET http://{HOST}:8080/ HTTP/1.1",
        "GET / HTTP/1.1",
        "GET ftp://docs.example.org/ HTTP/1.1",
        "GET",
    ],
)
async def test_nothing_else_is_connected_to(net: Net, proxy: CheckingProxy, line: str) -> None:
    assert b" 403 " in await said(proxy, knock(proxy, line))
    assert net.tried == [] and len(proxy.refused) == 1


async def test_each_connection_is_checked_anew(net: Net, proxy: CheckingProxy) -> None:
    async with server(pages({"/": answer("once")}), net, (PUBLIC, 80)):
        line = "GET http://turning.example/ HTTP/1.1"
        assert (await said(proxy, knock(proxy, line))).endswith(b"once")
        assert b" 403 " in await said(proxy, knock(proxy, line))
    assert net.tried == [(PUBLIC, 80)]


@pytest.mark.parametrize("token", ["", "wrong", "\u00e9"])
async def test_strangers_are_not_served(net: Net, proxy: CheckingProxy, token: str) -> None:
    for request in (
        knock(proxy, f"GET http://{HOST}/ HTTP/1.1", token=token),
        b"GET http://docs.example.org/ HTTP/1.1\r\n\r\n",
        knock(proxy, f"CONNECT {HOST}:443 HTTP/1.1", "Proxy-Authorization: Basic eDp5"),
    ):
        assert b" 407 " in await said(proxy, request)
    assert net.asked == [] and net.tried == []


async def test_no_more_than_the_limit_passes(net: Net) -> None:
    async with (
        CheckingProxy(net.dialer, max_bytes=10_000) as proxy,
        server(pages({"/": answer(b"x" * 100_000)}), net, (PUBLIC, 80)),
    ):
        assert len(await said(proxy, knock(proxy, f"GET http://{HOST}/ HTTP/1.1"))) <= 10_000


async def test_a_head_without_end_is_dropped(net: Net, proxy: CheckingProxy) -> None:
    try:
        answered = await said(proxy, b"GET http://docs.example.org/ HTTP/1.1\r\nX: " + b"y" * 300_000)
    except ConnectionError:
        answered = b""
    assert answered == b"" and net.asked == []


async def test_nothing_is_left_when_it_ends(net: Net) -> None:
    before = asyncio.all_tasks()

    async with CheckingProxy(net.dialer) as proxy:
        address = proxy.address
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
        await asyncio.sleep(0.02)
    assert await reader.read() == b""
    writer.close()
    assert asyncio.all_tasks() == before
    with pytest.raises(OSError):
        await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
