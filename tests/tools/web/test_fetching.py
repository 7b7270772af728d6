"""Fetching over a network of the test's own: what is connected to, what is followed, and the limits."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import time
import tracemalloc
import zlib
from pathlib import Path

import pytest

from codeagent_lsp.errors import ErrorCode, ToolFailed, ToolRetry
from codeagent_lsp.tools.web.http import Fetcher, Page, PageLimits
from codeagent_lsp.tools.web.urls import WebRefused, parse_url
from tests.tools.web.certificates import authority
from tests.tools.web.net import OTHER, PUBLIC, Net, Request, answer, pages, redirect, server

HOST = "docs.example.org"
HERE = (PUBLIC, 80)
INSIDE = ("127.0.0.1", "10.0.0.5", "169.254.169.254", "::1", "::ffff:127.0.0.1", "fd00::1", "64:ff9b::7f00:1")
TRUST = ssl.create_default_context()  # made once: it takes half a second
QUICK = PageLimits(seconds=0.8, silence_seconds=0.4, size=50_000)


async def get(net: Net, url: str, limits: PageLimits = QUICK) -> Page:
    return await Fetcher(net.dialer, limits, TRUST).get(parse_url(url))


@pytest.fixture
def net() -> Net:
    return Net({HOST: [[PUBLIC]], f"www.{HOST}": [[PUBLIC]], "other.example": [[OTHER]]})


async def test_a_page_with_the_right_host_and_nothing_that_tells_on_us(net: Net) -> None:
    async with server(pages({"/x?q=1": answer("hello", media="text/plain; charset=utf-8")}), net, HERE) as asked:
        page = await get(net, f"http://{HOST}/x?q=1#part")
    assert (page.body, page.media, page.charset, page.cut) == (b"hello", "text/plain", "utf-8", False)
    assert net.tried == [HERE]
    assert asked[0].headers["host"] == HOST
    assert not {"cookie", "referer", "authorization", "from", "origin"} & set(asked[0].headers)


async def test_the_proxy_of_the_environment_is_not_asked(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    async with server(pages({}), net) as proxied, server(pages({"/": answer("direct")}), net, HERE):
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")
        assert (await get(net, f"http://{HOST}/")).body == b"direct"
    assert not proxied


@pytest.mark.parametrize("inside", INSIDE)
async def test_a_name_that_leads_inside_is_not_connected_to(inside: str) -> None:
    net = Net({HOST: [[inside]]})
    with pytest.raises(WebRefused) as raised:
        await get(net, f"http://{HOST}/")
    assert raised.value.code is ErrorCode.PERMISSION_DENIED
    assert net.tried == []


@pytest.mark.parametrize("inside", INSIDE)
async def test_one_bad_address_among_good_ones_is_enough(inside: str) -> None:
    for answers in ([PUBLIC, inside], [inside, PUBLIC], [PUBLIC] * 9 + [inside]):
        net = Net({HOST: [answers]})
        with pytest.raises(WebRefused):
            await get(net, f"http://{HOST}/")
        assert net.tried == []


async def test_a_name_that_answers_differently_the_second_time_gains_nothing() -> None:
    net = Net({HOST: [[PUBLIC], ["127.0.0.1"]]})
    async with server(pages({"/": answer("first")}), net, HERE):
        assert (await get(net, f"http://{HOST}/")).body == b"first"
        assert net.tried == [HERE] and net.asked == [HOST]  # one question, one address, and that one was connected to
        with pytest.raises(WebRefused):
            await get(net, f"http://{HOST}/")
    assert net.tried == [HERE]


async def test_a_name_that_turns_inside_between_two_hops() -> None:
    net = Net({HOST: [[PUBLIC], ["169.254.169.254"]]})
    async with server(pages({"/": redirect("/secret")}), net, HERE) as asked:
        with pytest.raises(WebRefused):
            await get(net, f"http://{HOST}/")
    assert net.tried == [HERE] and [request.path for request in asked] == ["/"]


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "http://0x7f.1/",
        "//127.0.0.1/",
        "http://docs.example.org@127.0.0.1/",
        "http://inside.example/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_FLUSHALL",
    ],
)
async def test_redirects_to_the_inside_never_connect(net: Net, location: str) -> None:
    net.names["inside.example"] = [["127.0.0.1"]]
    async with server(pages({"/": redirect(location)}), net, HERE):
        with pytest.raises((WebRefused, ToolRetry)):
            await get(net, f"http://{HOST}/")
    assert net.tried == [HERE]


async def test_redirects_within_the_site_are_followed_without_cookies(net: Net) -> None:
    found = {
        "/": answer("", "301 Moved", Location="/a", Set_Cookie="id=1; Path=/"),
        "/a": redirect(f"http://www.{HOST}/b", "308 Permanent Redirect"),
        "/b": answer("there"),
    }
    async with server(pages(found), net, HERE) as asked:
        page = await get(net, f"http://{HOST}/")
    assert (page.body, page.target.url) == (b"there", f"http://www.{HOST}/b")
    assert [request.headers["host"] for request in asked] == [HOST, HOST, f"www.{HOST}"]
    assert not any("cookie" in request.headers for request in asked)
    assert net.asked == [HOST, HOST, f"www.{HOST}"]  # each hop is resolved and checked anew


async def test_another_site_is_told_and_not_visited(net: Net) -> None:
    async with server(pages({"/": redirect("http://other.example/?d=1")}), net, HERE):
        with pytest.raises(ToolRetry, match=r"http://other\.example/\?d=1"):
            await get(net, f"http://{HOST}/")
    assert net.tried == [HERE] and "other.example" not in net.asked


async def test_a_redirect_loop_ends(net: Net) -> None:
    async with server(pages({"/": redirect("/")}), net, HERE) as asked:
        with pytest.raises(ToolFailed, match="5 times"):
            await get(net, f"http://{HOST}/")
    assert len(asked) == 6


async def test_a_number_as_host_is_not_resolved(net: Net) -> None:
    async with server(pages({"/": answer("x")}), net, HERE):
        assert (await get(net, f"http://{PUBLIC}/")).body == b"x"
    assert net.asked == []


async def test_no_such_name(net: Net) -> None:
    with pytest.raises(ToolFailed) as raised:
        await get(net, "http://nowhere.example/")
    assert raised.value.code is ErrorCode.NOT_FOUND and net.tried == []


async def test_a_resolver_that_hangs_ends_with_the_limit() -> None:
    async def never(host: str, port: int) -> list[str]:
        await asyncio.sleep(60)
        return [PUBLIC]

    net = Net()
    net.resolve = never  # type: ignore[method-assign]
    started = time.monotonic()
    with pytest.raises(ToolFailed) as raised:
        await get(net, f"http://{HOST}/")
    assert raised.value.code is ErrorCode.TIMEOUT and time.monotonic() - started < 5


async def test_the_next_address_serves_when_the_first_does_not(net: Net) -> None:
    net.names[HOST] = [[OTHER, PUBLIC]]
    async with server(pages({"/": answer("second")}), net, HERE):
        assert (await get(net, f"http://{HOST}/")).body == b"second"
    assert net.tried == [(OTHER, 80), HERE]


async def test_nobody_there(net: Net) -> None:
    with pytest.raises(ToolFailed) as raised:
        await get(net, f"http://{HOST}/")
    assert raised.value.code is ErrorCode.NETWORK_ERROR


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("404 Not Found", ErrorCode.NOT_FOUND),
        ("403 Forbidden", ErrorCode.NOT_FOUND),
        ("503 Busy", ErrorCode.NETWORK_ERROR),
    ],
)
async def test_a_refusal_is_told_with_its_status(net: Net, status: str, code: ErrorCode) -> None:
    async with server(pages({"/": answer("no", status)}), net, HERE):
        with pytest.raises(ToolFailed, match=status[:3]) as raised:
            await get(net, f"http://{HOST}/")
    assert raised.value.code is code


async def test_a_long_page_is_cut(net: Net) -> None:
    async with server(pages({"/": answer(b"x" * 80_000)}), net, HERE):
        page = await get(net, f"http://{HOST}/")
    assert page.cut and len(page.body) == QUICK.size


@pytest.mark.parametrize("packing", ["gzip", "x-gzip", "deflate", "GZIP"])
async def test_a_packed_page(net: Net, packing: str) -> None:
    data = b"words " * 1000
    packed = zlib.compress(data) if packing == "deflate" else gzip.compress(data)
    async with server(pages({"/": answer(packed, Content_Encoding=packing)}), net, HERE):
        page = await get(net, f"http://{HOST}/")
    assert page.body == data and not page.cut


async def test_a_bomb_is_never_unpacked(net: Net) -> None:
    bomb = gzip.compress(b"\0" * (64 << 20), 1)  # 300 kB that would be 64 MiB
    async with server(pages({"/": answer(bomb, Content_Encoding="gzip")}), net, HERE):
        tracemalloc.start()
        try:
            page = await get(net, f"http://{HOST}/", PageLimits(seconds=20, size=1 << 20))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert page.cut and len(page.body) == 1 << 20 and peak < 8 << 20


@pytest.mark.parametrize("packing", ["br", "zstd", "gzip, gzip", "made-up"])
async def test_what_was_not_asked_for_is_not_unpacked(net: Net, packing: str) -> None:
    async with server(pages({"/": answer(b"x", Content_Encoding=packing)}), net, HERE):
        with pytest.raises(ToolFailed, match="packed"):
            await get(net, f"http://{HOST}/")


async def test_broken_packing(net: Net) -> None:
    async with server(pages({"/": answer(b"no gzip", Content_Encoding="gzip")}), net, HERE):
        with pytest.raises(ToolFailed, match="broken"):
            await get(net, f"http://{HOST}/")


async def _drip(writer: asyncio.StreamWriter, head: bytes, piece: bytes, pause: float) -> None:
    writer.write(head)
    while True:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(pause)


@pytest.mark.parametrize(
    ("head", "piece", "pause"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"x", 0.05),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", 0.05),
        (b"HTTP/1.1 200 OK\r\nX: ", b"y", 0.05),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", 0.05),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"", 60.0),
    ],
    ids=["body", "chunks", "headers", "continue", "silence"],
)
async def test_slow_answers_end_with_the_limit(net: Net, head: bytes, piece: bytes, pause: float) -> None:
    async def drip(request: Request, writer: asyncio.StreamWriter) -> None:
        await _drip(writer, head, piece, pause)

    async with server(drip, net, HERE):
        started = time.monotonic()
        with pytest.raises(ToolFailed) as raised:
            await get(net, f"http://{HOST}/")
        assert raised.value.code is ErrorCode.TIMEOUT and time.monotonic() - started < 4


async def test_endless_answers_are_cut(net: Net) -> None:
    async def flood(request: Request, writer: asyncio.StreamWriter) -> None:
        await _drip(
            writer, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + b"x" * 4096 + b"\r\n", 0
        )

    async with server(flood, net, HERE):
        page = await get(net, f"http://{HOST}/")
    assert page.cut and len(page.body) == QUICK.size


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: %s\r\n" % (number, b"y" * 900) for number in range(300)) + b"\r\n",
        b"no http at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"",
    ],
    ids=["headers", "garbage", "length", "chunk", "short", "nothing"],
)
async def test_broken_answers_are_failures(net: Net, said: bytes) -> None:
    async def say(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(said)

    async with server(say, net, HERE):
        with pytest.raises(ToolFailed) as raised:
            await get(net, f"http://{HOST}/")
    assert raised.value.code is ErrorCode.NETWORK_ERROR


async def test_cancelling_leaves_no_task(net: Net) -> None:
    async def silent(request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    before = asyncio.all_tasks()
    async with server(silent, net, HERE) as asked:
        task = asyncio.ensure_future(get(net, f"http://{HOST}/", PageLimits()))
        while not asked:  # noqa: ASYNC110 - a server tells by its list
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        left = [item for item in asyncio.all_tasks() - before if "serve" not in repr(item)]
    assert not left


async def test_tls_speaks_to_the_name_at_the_checked_address(net: Net, tmp_path: Path) -> None:
    of_server, of_client = authority(tmp_path, HOST)
    named: list[str | None] = []
    of_server.sni_callback = lambda connection, name, context: named.append(name)
    async with server(pages({"/": answer("safe")}), net, (PUBLIC, 443), trust=of_server) as asked:
        page = await Fetcher(net.dialer, QUICK, of_client).get(parse_url(f"https://{HOST}/"))
    assert page.body == b"safe" and named == [HOST] and asked[0].headers["host"] == HOST
    assert net.tried == [(PUBLIC, 443)]


async def test_a_certificate_of_somebody_else_is_refused(net: Net, tmp_path: Path) -> None:
    of_server, of_client = authority(tmp_path, "evil.example")
    async with server(pages({"/": answer("x")}), net, (PUBLIC, 443), trust=of_server) as asked:
        for trust in (of_client, None):
            with pytest.raises(ToolFailed) as raised:
                await Fetcher(net.dialer, QUICK, trust).get(parse_url(f"https://{HOST}/"))
            assert raised.value.code is ErrorCode.NETWORK_ERROR
    assert not asked
