"""Who comes in at the socket and who does not; that nothing said there, and no order of it, wedges it."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.lend import MAX_FRAME, MAX_HELLO, PROTOCOL, Frames, LendRequest, encode_frame
from codeagent_lsp.server import door as door_module
from codeagent_lsp.server.door import Door, LentConnection
from codeagent_lsp.session.lending.lent_run import CallCancelled, LentCall
from tests.examples import examples

REQUEST = LendRequest("0" * 32, "claude-code", os.getpid(), "/project")


class Guard:
    """A door, who was let in by it, and who was not and why."""

    def __init__(self, place: Path, admit: Callable[[LentConnection], Any] | None) -> None:
        self.admitted: list[LentConnection] = []
        self.refused: list[tuple[str, str, int | None]] = []
        holds = lambda folder: folder == os.path.realpath("/project")  # noqa: E731 (one line)
        self.door = Door(place, holds, admit or self.admitted.append, lambda *why: self.refused.append(why))

    def hello(self, given: str, **other: Any) -> dict[str, Any]:
        values = {"protocol": PROTOCOL, "token": given, "workspace": "/project", "client": "claude-code"}
        return {"hello": {**values, **other}}

    async def says(self, address: str, data: bytes) -> dict[str, Any]:
        """The one frame that is answered to these bytes."""
        reader, writer = await asyncio.open_unix_connection(address.removeprefix("unix:"))
        writer.write(data)
        try:
            return json.loads(await asyncio.wait_for(reader.readline(), 5)) if data else {}
        finally:
            writer.close()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def is_there(path: Path) -> bool:
    return path.exists()


@asynccontextmanager
async def guarded(state: Path, admit: Callable[[LentConnection], Any] | None = None) -> AsyncIterator[Guard]:
    guard = Guard(state, admit)
    try:
        yield guard
    finally:
        await guard.door.close("ended")
    assert not guard.door.address and not (state / "socket").exists()


async def test_the_right_one_comes_in_once(state: Path) -> None:
    async with guarded(state) as guard:
        assert not (state / "socket").exists()
        address, token = await guard.door.expect(REQUEST)
        path = Path(address.removeprefix("unix:"))
        assert (mode(path), mode(path.parent)) == (0o600, 0o700)
        assert "welcome" in await guard.says(address, encode_frame(guard.hello(token)))
        again = await guard.says(address, encode_frame(guard.hello(token)))
        assert again["refused"]["reason"] == "token"
        assert [connection.name for connection in guard.admitted] == ["claude-code"]
        await guard.door.close_unused()
        assert is_there(path)
        assert await guard.admitted[0].next() is None
        await guard.admitted[0].leave("ended")
        await guard.admitted[0].closed()
        await asyncio.sleep(0.05)
        await guard.door.close_unused()
        assert not is_there(path)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"hello": {"protocol": PROTOCOL, "workspace": "/project", "client": "claude-code"}}, "hello"),
        ({"token": "no"}, "token"),
        ({"token": "ü" * 43}, "token"),
        ({"workspace": "/other"}, "workspace"),
        ({"workspace": "/project\0"}, "workspace"),
        ({"client": "another"}, "client"),
        ({"protocol": 2}, "protocol"),
        ({"call": {"id": 1, "tool": "read", "arguments": {}}}, "hello"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "http"),
        (b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "http"),
        (b"OPTIONS", "slow"),
        (b"OPTIONS * HTTP/1.1", "http"),
        (b"no json\n", "json"),
        (b"[1]\n", "json"),
        (b"[" * 10_000 + b"\n", "json"),
        (b"x" * (MAX_HELLO + 2), "large"),
        (b"\xff\xfe\n", "json"),
        (b"{", "slow"),
    ],
)
async def test_all_others_are_told_why_and_do_not(
    state: Path, said: Any, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door_module, "HELLO_SECONDS", 0.2)
    async with guarded(state) as guard:
        address, token = await guard.door.expect(REQUEST)
        if isinstance(said, bytes):
            data = said
        elif said.keys() & {"hello", "call"}:
            data = encode_frame(said)
        else:
            data = encode_frame(guard.hello(token, **said))
        answer = await guard.says(address, data)
        assert answer["refused"]["reason"] == reason and answer["refused"]["message"]
        assert [why for why, _, _ in guard.refused] == [reason] and guard.refused[0][2] == os.getuid()
        assert not guard.admitted
        # The token is still good for the one that it was given to.
        assert "welcome" in await guard.says(address, encode_frame(guard.hello(token)))


CHILD = """
import os, socket, sys
os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1])
except PermissionError:
    print("not allowed"); sys.exit()
try:
    s.sendall(sys.argv[2].encode() + b"\\n")
except BrokenPipeError:
    pass  # turned away before it said anything
print(s.makefile().readline().strip())
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only the superuser can become another user")
async def test_another_user_does_not(state: Path) -> None:
    async with guarded(state) as guard:
        address, token = await guard.door.expect(REQUEST)
        path = address.removeprefix("unix:")
        hello = encode_frame(guard.hello(token)).decode().strip()

        def child() -> str:
            done = subprocess.run(
                [sys.executable, "-c", CHILD, path, hello], capture_output=True, text=True, timeout=10
            )
            return done.stdout + done.stderr

        assert "not allowed" in await asyncio.to_thread(child)
        # Even if the folder and the socket were open to all.
        await asyncio.to_thread(state.chmod, 0o755)
        await asyncio.to_thread(Path(path).chmod, 0o666)
        assert '"reason":"user"' in await asyncio.to_thread(child)
        assert guard.refused == [("user", "", 65534)] and not guard.admitted


async def test_too_many_at_a_time(state: Path) -> None:
    async with guarded(state) as guard:
        address, token = await guard.door.expect(REQUEST)
        silent = [
            await asyncio.open_unix_connection(address.removeprefix("unix:")) for _ in range(door_module.MAX_OPEN)
        ]
        await asyncio.sleep(0.05)
        assert (await guard.says(address, encode_frame(guard.hello(token))))["refused"]["reason"] == "busy"
        for _, writer in silent:
            writer.close()
        await asyncio.sleep(0.05)
        assert "welcome" in await guard.says(address, encode_frame(guard.hello(token)))


async def test_a_token_is_not_good_for_ever(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "TOKEN_SECONDS", 0.0)
    async with guarded(state) as guard:
        address, token = await guard.door.expect(REQUEST)
        assert (await guard.says(address, encode_frame(guard.hello(token))))["refused"]["reason"] == "token"
        await asyncio.sleep(0.05)
        await guard.door.close_unused()
        assert not guard.door.address


async def test_a_long_path_has_its_socket_elsewhere(state: Path) -> None:
    place = state / ("x" * 120)
    place.mkdir()
    async with guarded(place) as guard:
        address, token = await guard.door.expect(REQUEST)
        path = Path(address.removeprefix("unix:"))
        assert not path.is_relative_to(state) and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert "welcome" in await guard.says(address, encode_frame(guard.hello(token)))
    assert not path.parent.exists()


async def test_what_is_no_call_ends_the_connection(state: Path) -> None:
    async with guarded(state) as guard:
        address, token = await guard.door.expect(REQUEST)
        reader, writer = await asyncio.open_unix_connection(address.removeprefix("unix:"))
        writer.write(
            encode_frame(guard.hello(token)) + encode_frame({"call": {"id": 1, "tool": "read", "arguments": {}}})
        )
        writer.write(encode_frame({"cancel": 1}) + encode_frame({"call": {"id": -1, "tool": "read", "arguments": {}}}))
        assert b"welcome" in await reader.readline()
        connection = guard.admitted[0]
        assert [await connection.next() for _ in range(3)] == [LentCall(1, "read", {}), CallCancelled(1), None]
        assert json.loads(await reader.readline())["closed"]["reason"] == "frame"
        assert await reader.read() == b"" and guard.refused[0][0] == "frame"
        writer.close()


@pytest.mark.slow
async def test_one_that_does_not_read_is_dropped(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codeagent_lsp.lend.WRITE_SECONDS", 0.2)
    async with guarded(state) as guard:
        address, token = await guard.door.expect(REQUEST)
        reader, writer = await asyncio.open_unix_connection(address.removeprefix("unix:"))
        writer.write(encode_frame(guard.hello(token)))
        await reader.readline()
        for number in range(20):
            await asyncio.wait_for(guard.admitted[0].answer(number, "x" * MAX_FRAME, ok=True), 5)
        assert await asyncio.wait_for(guard.admitted[0].next(), 5) is None
        writer.close()


FRAME = st.one_of(
    st.binary(max_size=200).map(lambda data: data + b"\n"),
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=20), st.lists, max_leaves=8).map(
        lambda value: json.dumps(value).encode() + b"\n"
    ),
    st.fixed_dictionaries(
        {
            "call": st.fixed_dictionaries(
                {"id": st.integers(-1, 5), "tool": st.text(max_size=5), "arguments": st.just({})}
            )
        }
    ).map(encode_frame),
    st.fixed_dictionaries({"cancel": st.integers(-1, 5)}).map(encode_frame),
    st.fixed_dictionaries({"hello": st.dictionaries(st.sampled_from(["protocol", "token", "client"]), st.text())}).map(
        encode_frame
    ),
)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=st.lists(FRAME, max_size=4), after=st.lists(FRAME, max_size=12), cut=st.integers(1, 40))
def test_any_frames_in_any_order_leave_it_working(
    state: Path, before: list[bytes], after: list[bytes], cut: int
) -> None:
    async def serve(connection: LentConnection) -> None:
        while await connection.next() is not None:
            pass
        await connection.leave("ended")

    async def play() -> None:
        tasks = BackgroundTasks()
        async with guarded(state, lambda connection: tasks.start(serve(connection))) as guard:
            address, token = await guard.door.expect(REQUEST)
            path = address.removeprefix("unix:")
            for data in (b"".join(before), encode_frame(guard.hello(token)) + b"".join(after)):
                reader, writer = await asyncio.open_unix_connection(path)
                with suppress(OSError):  # turned away already
                    for at in range(0, len(data), cut):
                        writer.write(data[at : at + cut])
                        await writer.drain()
                    writer.write_eof()
                with suppress(OSError):
                    while await reader.read(1 << 16):
                        pass
                writer.close()
            _, token = await guard.door.expect(REQUEST)
            assert "welcome" in await guard.says(path, encode_frame(guard.hello(token)))

    asyncio.run(asyncio.wait_for(play(), 20))


async def test_frames_are_cut_at_their_limit() -> None:
    reader = asyncio.StreamReader()
    frames = Frames(reader, _NoWriter())  # type: ignore[arg-type]
    reader.feed_data(encode_frame({"a": "x" * 50}) + b'{"b": 1}\n')
    reader.feed_eof()
    assert await frames.read(100) == {"a": "x" * 50}
    assert await frames.read(100) == {"b": 1}
    assert await frames.read(100) is None


class _NoWriter:
    """Nothing is written."""
