"""The wire to the server: requests both ways, errors, a server that dies, talks nonsense or does not leave."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from codeagent_lsp.language_servers.json_rpc import Refused
from codeagent_lsp.lsp_client.connection import Connection, ConnectionLost

_LIBRARY = """
import json, sys, time
def read():
    length = 0
    while (line := sys.stdin.buffer.readline().strip()):
        length = int(line.split(b":")[1])
    return json.loads(sys.stdin.buffer.read(length)) if length else sys.exit(0)
def send(**message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n%s" % (len(body), body))
    sys.stdout.buffer.flush()
"""


@asynccontextmanager
async def server(code: str, prepare: Callable[[Connection], None] = lambda it: None) -> AsyncIterator[Connection]:
    """A connection to a small server; closed quickly afterwards."""
    connection = Connection([sys.executable, "-c", _LIBRARY + code], os.environ)
    prepare(connection)
    await connection.start()
    try:
        yield connection
    finally:
        await connection.close(0.3)


async def test_a_request_has_its_answer() -> None:
    code = "m = read(); n = read(); send(id=n['id'], result=n['params']); send(id=m['id'], result=m['params'])"
    async with server(code) as connection:
        answers = await asyncio.gather(connection.request("a", {"x": 1}), connection.request("b", ["é"]))
    assert [*answers] == [{"x": 1}, ["é"]]


async def test_an_error_is_refused_with_its_words() -> None:
    async with server("m = read(); send(id=m['id'], error={'code': 1, 'message': 'not today'})") as connection:
        with pytest.raises(Refused, match="not today"):
            await connection.request("a")


async def test_a_server_that_dies_says_why() -> None:
    async with server("read(); sys.stderr.write('first\\nout of coffee\\n'); sys.exit(1)") as connection:
        with pytest.raises(ConnectionLost, match="out of coffee"):
            await connection.request("a")
        assert connection.lost.is_set()
        connection.notify("anything")


@pytest.mark.parametrize(
    "nonsense", ["Content-Length: x\\r\\n\\r\\n", "hello\\r\\n\\r\\n", "Content-Length: 2\\r\\n\\r\\n{]"]
)
async def test_nonsense_ends_the_connection(nonsense: str) -> None:
    async with server(f"read(); print('{nonsense}', end='', flush=True); time.sleep(60)") as connection:
        with pytest.raises(ConnectionLost):
            await connection.request("a", seconds=10)


async def test_no_answer_in_time() -> None:
    async with server("read(); time.sleep(60)") as connection:
        with pytest.raises(ConnectionLost, match=r"0\.1 s"):
            await connection.request("a", seconds=0.1)


async def test_the_server_may_ask_and_cancel() -> None:
    cancelled = asyncio.Event()

    async def double(params: Any) -> Any:
        return params * 2

    async def wait(params: Any) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def fail(params: Any) -> Any:
        raise KeyError("uri")

    code = """
m = read(); got = []
send(id="s1", method="double", params=21); got.append(read())
send(id="s2", method="unknown"); got.append(read())
send(id="s3", method="fail"); got.append(read())
send(id="s4", method="wait"); send(method="$/cancelRequest", params={"id": "s4"}); got.append(read())
send(id=m["id"], result=got)
"""
    async with server(code, lambda it: it.requests.update(double=double, wait=wait, fail=fail)) as connection:
        got = await connection.request("start")
    assert got[0] == {"jsonrpc": "2.0", "id": "s1", "result": 42}
    assert [answer["error"]["code"] for answer in got[1:]] == [-32601, -32603, -32800]
    assert cancelled.is_set() or got[3]["id"] == "s4"


async def test_notifications_arrive_in_order() -> None:
    seen: list[Any] = []
    code = "m = read(); [send(method='n', params=k) for k in range(5)]; send(id=m['id'], result=None)"
    async with server(code, lambda it: it.notifications.update(n=seen.append)) as connection:
        assert await connection.request("a") is None
    assert seen == [0, 1, 2, 3, 4]


async def test_a_server_that_does_not_leave_is_ended() -> None:
    began = time.monotonic()
    async with server("time.sleep(60)"):
        pass
    assert time.monotonic() - began < 3


async def test_a_command_that_does_not_exist() -> None:
    connection = Connection(["/no/such/program"], os.environ)
    with pytest.raises(OSError, match="no/such"):
        await connection.start()
    await connection.close()
