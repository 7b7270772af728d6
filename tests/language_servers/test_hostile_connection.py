"""A server that hangs, crashes, floods, lies, asks or stays: the connection to it is bounded and leaves nothing."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from pathlib import Path

import pytest

from codeagent_lsp.language_servers import server_connection
from codeagent_lsp.language_servers.server_connection import ServerFailed, ServerGone
from tests.language_servers.rig import connected, marked
from tests.shadow.processes import until

HELLO = "textDocument/hover"
ASKED = {"textDocument": {"uri": "file:///a"}}
BOUND = 8.0
ROOT = Path(__file__).parents[2]
CLIENT = """
import asyncio, pathlib, sys
from codeagent_lsp.language_servers.server_connection import ServerConnection
from tests.language_servers.rig import LIMITS, launch

async def main():
    connection = ServerConnection("fake")
    await connection.start(launch(pathlib.Path(sys.argv[1]), *sys.argv[2:]), LIMITS)
    await connection.request("initialize", {}, 20)
    print("on", flush=True)
    await asyncio.sleep(3600)

asyncio.run(main())
"""
FLOODS = (
    *("floods", "floods_large", "floods_requests", "floods_errors", "floods_lines"),
    *("huge", "long_header", "long_length"),
)


@pytest.mark.parametrize("action", ["crash", "half"])
@pytest.mark.parametrize("point", ["start", "initialize", "request:3"])
async def test_a_crash_is_told_at_once(tmp_path: Path, point: str, action: str) -> None:
    async with connected(tmp_path, f"{point}={action}") as connection:
        started = time.monotonic()
        with pytest.raises(ServerFailed, match="it broke" if action == "crash" else "middle of a message"):
            for _ in range(3):
                await connection.request("initialize", {}, 60)
        assert time.monotonic() - started < BOUND
        with pytest.raises(ServerGone):
            connection.notify("initialized", {})
        with pytest.raises(ServerGone):
            await connection.request(HELLO, ASKED, 60)


async def test_all_that_waits_hears_of_a_crash(tmp_path: Path) -> None:
    async with connected(tmp_path, f"{HELLO}=silent", "shutdown=crash") as connection:
        waiting = [asyncio.create_task(connection.request(HELLO, ASKED, 60)) for _ in range(20)]
        await asyncio.sleep(0.05)
        with pytest.raises(ServerFailed):
            await connection.request("shutdown", None, 60)
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(result, ServerFailed) for result in results)


async def test_an_answer_that_does_not_come(tmp_path: Path) -> None:
    async with connected(tmp_path, f"{HELLO}=silent") as connection:
        with pytest.raises(ServerFailed, match=r"did not answer textDocument/hover within 0\.1 s"):
            await connection.request(HELLO, ASKED, 0.1)
        assert await connection.request("textDocument/references", ASKED, 10) == []


async def test_it_hangs_and_is_closed(tmp_path: Path) -> None:
    async with connected(tmp_path, "initialize=stubborn,hang") as connection:
        with pytest.raises(ServerFailed):
            await connection.request("initialize", {}, 0.2)
        started = time.monotonic()
        await connection.close()
        assert time.monotonic() - started < BOUND


@pytest.mark.parametrize("action", FLOODS)
async def test_a_flood_ends_it(tmp_path: Path, action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_connection, "FLOOD_BYTES", 16 << 20)
    async with connected(tmp_path, f"start={action}") as connection:
        async with asyncio.timeout(60):
            await connection.lost.wait()
        assert connection.problem
        with pytest.raises(ServerGone):
            await connection.request(HELLO, ASKED, 60)


@pytest.mark.parametrize("action", ["garbage", "bad_json", "wrong_types", "asks", "lower_case", "large", "odd_lengths"])
async def test_what_is_wrong_is_passed_over(tmp_path: Path, action: str) -> None:
    handled: list[object] = []
    async with connected(tmp_path, f"start={action}") as connection:
        connection.handle({"textDocument/publishDiagnostics": handled.append})
        assert "capabilities" in await connection.request("initialize", {}, 20)
        assert await connection.request("textDocument/references", ASKED, 20) == []


async def test_it_does_not_read_what_it_is_sent(tmp_path: Path) -> None:
    async with connected(tmp_path, "start=hang") as connection:
        text = "x" * (1 << 20)
        with pytest.raises(ServerGone, match="does not read"):
            for _ in range(100):
                connection.notify("textDocument/didChange", {"text": text})
                await asyncio.sleep(0)


async def test_requests_that_it_does_not_read_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_connection, "MAX_UNSENT", 1 << 20)
    async with connected(tmp_path, "start=hang") as connection:
        params = {"text": "x" * (1 << 18)}
        waiting = [asyncio.create_task(connection.request(HELLO, params, 60)) for _ in range(20)]
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(result, ServerFailed) for result in results)
        assert connection.problem == "it does not read what it is sent"


@pytest.mark.parametrize("end", ["exit", "crash", "close"])
async def test_its_children_go_with_it(tmp_path: Path, end: str) -> None:
    mark = f"mark-{os.urandom(8).hex()}"
    points = ["initialize=forks,stubborn", "shutdown=crash" if end == "crash" else "x=silent"]
    async with connected(tmp_path, *points, "--", mark) as connection:
        await connection.request("initialize", {}, 20)
        await until(lambda: len(marked(mark)) >= 4)
        if end == "exit":
            connection.notify("exit", None)
            await connection.lost.wait()
    assert marked(mark) == []


async def test_a_server_that_stays_is_killed(tmp_path: Path) -> None:
    mark = f"mark-{os.urandom(8).hex()}"
    async with connected(tmp_path, "start=stubborn", "shutdown=silent", "exit=silent", "--", mark) as connection:
        await connection.request("initialize", {}, 20)
        started = time.monotonic()
        await connection.close()
        assert time.monotonic() - started < BOUND
        assert marked(mark) == []


async def test_a_killed_client_leaves_no_server(tmp_path: Path) -> None:
    """The same for a server that ignores every signal that it may ignore."""
    mark = f"mark-{os.urandom(8).hex()}"
    words = ("start=stubborn", "initialize=forks", "exit=silent", "--", mark)
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CLIENT, str(tmp_path), *words), stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    assert client.stdout is not None
    assert await client.stdout.readline() == b"on\n"
    await until(lambda: len(marked(mark)) >= 4)
    client.kill()
    await client.wait()
    await until(lambda: not marked(mark))


async def test_memory_is_limited(tmp_path: Path) -> None:
    async with connected(tmp_path, "initialize=eats") as connection:
        with pytest.raises(ServerFailed):
            await connection.request("initialize", {}, 60)
        assert connection.lost.is_set()


@pytest.mark.parametrize("seed", range(8))
async def test_cancelled_at_any_moment(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    async with connected(tmp_path, "--delay", "0.05") as connection:
        waiting = [asyncio.create_task(connection.request(HELLO, ASKED, 20)) for _ in range(20)]
        for task in chance.sample(waiting, 10):
            await asyncio.sleep(chance.random() * 0.005)
            task.cancel()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(result, dict | asyncio.CancelledError) for result in results)
        assert await connection.request("textDocument/references", ASKED, 20) == []
        if seed % 2:
            closing = asyncio.create_task(connection.close())
            await asyncio.sleep(chance.random() * 0.05)
            closing.cancel()
            await asyncio.gather(closing, return_exceptions=True)
