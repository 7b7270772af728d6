"""Progress of calls: in order, with growing numbers, bounded, and only for clients that ask."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from codeagent_lsp.mcp_server import progress
from codeagent_lsp.mcp_server.progress import MOST_WAITING, telling
from tests.mcp_server.calls import make_workspace
from tests.mcp_server.rig import over_stdio, text_of

Report = tuple[float, str | None]


class Client:
    """Keeps what it is told; takes nothing while `reads` is not set."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.reads = asyncio.Event()
        self.reads.set()

    async def __call__(self, number: float, total: float | None, message: str | None) -> None:
        await self.reads.wait()
        self.reports.append((number, message))


@pytest.mark.slow
async def test_all_that_is_printed_and_noted_is_told_before_the_end() -> None:
    client = Client()
    async with telling(client) as listener:
        listener.note("begins")
        listener.output("stdout", "one\ntwo\nthr")
        await asyncio.sleep(0.25)
        listener.output("stdout", "ee\n")
    assert [number for number, _ in client.reports] == [1.0, 2.0, 3.0]
    assert "".join(message or "" for _, message in client.reports) == "beginsone\ntwo\nthree\n"


async def test_a_client_that_does_not_read_delays_the_end_only_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "DRAIN_SECONDS", 0.05)
    client = Client()
    client.reads.clear()
    async with asyncio.timeout(1):
        async with telling(client) as listener:
            for number in range(1000):
                listener.note(str(number))
            await asyncio.sleep(0.01)
    assert client.reports == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_waits_is_bounded_and_the_latest_is_kept() -> None:
    client = Client()
    async with telling(client) as listener:
        for number in range(1000):
            listener.note(str(number))
    assert len(client.reports) == MOST_WAITING
    assert client.reports[-1] == (MOST_WAITING, "999")


async def test_who_does_not_ask_is_told_nothing() -> None:
    async with telling(None) as listener:
        listener.note("x")
        listener.output("stdout", "x\n")
        assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_call_that_is_cancelled_leaves_nothing() -> None:
    client = Client()

    async def call() -> None:
        async with telling(client) as listener:
            listener.output("stdout", "half")
            await asyncio.sleep(60)

    at_work = asyncio.ensure_future(call())
    await asyncio.sleep(0.05)
    at_work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await at_work
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_command_is_heard_while_it_runs(workspace: Path, mode: str) -> None:
    make_workspace(workspace)
    heard: list[Report] = []
    times: list[float] = []
    now = asyncio.get_running_loop().time

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))
        times.append(now())

    async with over_stdio(workspace, mode="legacy" if mode == "legacy" else "auto") as client:
        command = "echo one; sleep 1.5; echo two"
        result = await client.call_tool("bash", {"command": command}, progress_callback=hear)
        if "cannot promise" in text_of(result):
            pytest.skip("commands cannot be isolated here")
        ended = now()
        assert "".join(message or "" for _, message in heard) == "one\ntwo\n"
        assert ended - times[0] > 1
        assert [number for number, _ in heard] == sorted({number for number, _ in heard})
        heard.clear()
        tests = await client.call_tool("run_tests", {"path": "tests"}, progress_callback=hear)
        assert "1 passed" in text_of(tests)
        assert heard
        heard.clear()
        await client.call_tool("bash", {"command": "echo quiet"})
        assert heard == []
