"""Leaving: exit codes, signals, a dead client, busy threads, and what still gets done on the way out.

Which requests each phase of a connection refuses, and the exit code in it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from codeagent_lsp.server.wire import lifecycle
from codeagent_lsp.server.wire.lifecycle import Departure, Phase, run_callbacks, watch_parent
from codeagent_lsp.system import is_alive
from tests.server.rawclient import DEMO_SERVER, RawClient

_BUSY = [None, ("test/block", 30), ("test/sleep", 30), ("test/hang", 30)]


def _leaves_within(client: RawClient, seconds: float) -> int:
    begun = time.monotonic()
    code = client.exit_code(seconds + 5)
    assert time.monotonic() - begun < seconds
    return code


@pytest.mark.slow
def test_exit_codes() -> None:
    with RawClient() as client:
        client.initialize()
        assert client.shutdown() == 0
    with RawClient() as client:
        client.initialize()
        client.notify("exit")
        assert _leaves_within(client, 2) == 1
    with RawClient() as client:
        client.notify("exit")
        assert client.exit_code() == 1


@pytest.mark.slow
def test_the_end_of_input_after_shutdown_is_a_good_end() -> None:
    with RawClient() as client:
        client.initialize()
        client.result("shutdown")
        client.close_input()
        assert _leaves_within(client, 2) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("how", "code"), [("eof", 1), ("SIGTERM", 143), ("SIGINT", 130)])
def test_it_leaves_within_two_seconds_whatever_it_does(how: str, code: int) -> None:
    """Four servers at once: an idle one, and ones with a busy thread, coroutine or loop."""
    with ExitStack() as opened:
        clients = [opened.enter_context(RawClient()) for _ in _BUSY]
        for client, busy in zip(clients, _BUSY, strict=True):
            client.initialize()
            if busy is not None:
                client.start(busy[0], {"seconds": busy[1]})
        time.sleep(0.1)
        begun = time.monotonic()
        for client in clients:
            if how == "eof":
                client.close_input()
            else:
                client.process.send_signal(signal.Signals[how])
        for client, busy in zip(clients, _BUSY, strict=True):
            assert client.exit_code(7) == code, busy
            assert time.monotonic() - begun < 2.5, busy


@pytest.mark.slow
@pytest.mark.parametrize("how", ["eof", "SIGTERM", "SIGINT", "exit"])
def test_closing_steps_are_done(how: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with RawClient([*DEMO_SERVER, "--mark", str(mark)]) as client:
        client.initialize()
        if how == "eof":
            client.close_input()
        elif how == "exit":
            client.notify("exit")
        else:
            client.process.send_signal(signal.Signals[how])
        _leaves_within(client, 2)
    assert mark.read_text() == "flushed"


@pytest.mark.slow
def test_a_closing_step_that_blocks_is_left_behind() -> None:
    with RawClient([*DEMO_SERVER, "--slow-close"]) as client:
        client.initialize()
        client.close_input()
        assert _leaves_within(client, 2.2) == 1


@pytest.mark.slow
def test_an_open_question_does_not_hold_it_back() -> None:
    with RawClient() as client:
        client.initialize()
        client.start("test/ask", {"method": "window/showMessageRequest", "seconds": 60})
        client.notification("window/showMessageRequest")
        client.close_input()
        assert _leaves_within(client, 2) == 1


@pytest.mark.slow
def test_it_leaves_when_the_client_is_gone_but_the_pipe_is_open() -> None:
    editor = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    with RawClient() as client:
        client.initialize(processId=editor.pid)
        time.sleep(0.2)
        assert client.process.poll() is None
        editor.kill()  # not waited for: a zombie counts as gone
        assert _leaves_within(client, 10) == 1
    editor.wait()


@pytest.mark.slow
@pytest.mark.parametrize("pid", [None, 0, 2**22 + 12345])
def test_a_client_that_cannot_be_seen_is_not_watched(pid: int | None) -> None:
    with RawClient() as client:
        client.initialize(processId=pid)
        time.sleep(0.3)
        assert client.result("test/echo", [1]) == [1]


@pytest.mark.slow
def test_the_late_loading_follows_the_reply() -> None:
    with RawClient() as client:
        client.start("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        client.notification("test/started")
        assert client.messages[0]["id"] == 1, "the reply came before"


def test_is_alive() -> None:
    assert is_alive(os.getpid())
    assert not is_alive(2**22 + 12345)
    assert not is_alive(2**70)
    child = subprocess.Popen([sys.executable, "-c", ""])
    deadline = time.monotonic() + 10
    while is_alive(child.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_alive(child.pid)
    child.wait()


async def test_the_watch_reports_with_the_code_of_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "PARENT_POLL_SECONDS", 0.1)
    child = _child_that_waits()
    heard: list[tuple[int, str]] = []
    watch = asyncio.ensure_future(watch_parent(child.pid, lambda *what: heard.append(what), lambda: 7))
    await asyncio.sleep(0.05)
    assert not watch.done()
    child.communicate(b"\n")
    await asyncio.wait_for(watch, 5)
    assert [code for code, _ in heard] == [7]


def _child_that_waits() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


def test_the_first_reason_to_leave_counts() -> None:
    departure = Departure()
    departure.begin(0, "first")
    departure.begin(1, "second")
    assert (departure.code, departure.reason) == (0, "first")


async def test_callbacks_run_side_by_side_and_fail_alone() -> None:
    done: list[str] = []

    async def slow() -> None:
        await asyncio.sleep(30)

    async def fail() -> None:
        raise SystemExit(5)

    async def work() -> None:
        await asyncio.sleep(0.01)
        done.append("work")

    begun = time.monotonic()
    await run_callbacks([slow, fail, work], seconds=0.1)
    assert done == ["work"]
    assert time.monotonic() - begun < 1


@pytest.mark.parametrize(
    ("phase", "initialize", "other"),
    [
        (Phase.FRESH, None, -32002),
        (Phase.STARTING, -32600, -32002),
        (Phase.READY, -32600, None),
        (Phase.SHUT, -32600, -32600),
    ],
)
def test_refusals(phase: Phase, initialize: int | None, other: int | None) -> None:
    codes = [refusal and refusal[0] for refusal in map(phase.refusal, ("initialize", "shutdown"))]
    assert codes == [initialize, other]


def test_only_a_shutdown_makes_the_end_a_good_one() -> None:
    assert [phase.exit_code for phase in Phase] == [1, 1, 1, 0]
