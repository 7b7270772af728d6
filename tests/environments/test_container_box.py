"""What an engine is asked for one container, and what is left when that fails. No engine is needed."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.environments.container_box import Box, BoxLimits, Plan, Task, shell_words, sweep
from codeagent_lsp.environments.container_engine import Engine
from codeagent_lsp.environments.environment import EnvironmentProblem
from tests.environments.test_container_engine import engine, reply

PLAN = Plan("image:1", ("/home/me/shop", "/srv/other"), "state", "/state/containers/layer-1")
PIPES = b"HTTP/1.1 101 UPGRADED\r\n\r\n"


class Fake:
    """Answers as an engine does; `refuses` are parts of requests that it refuses, with a status."""

    def __init__(self, **refuses: int) -> None:
        self.refuses = {part.replace("_", "/"): status for part, status in refuses.items()}
        self.bodies: list[dict[str, Any]] = []
        self.said = b""

    def __call__(self, line: str, body: bytes) -> bytes:
        if body:
            self.bodies.append(json.loads(body))
        for part, status in self.refuses.items():
            if part in line:
                return reply({"message": "no"}, status)
        if "/attach" in line:
            return PIPES
        if line.startswith("POST") and "/exec/" in line:
            return PIPES + self.said
        if line.endswith("/start") or line.startswith("DELETE"):
            return reply(b"", 204)
        return reply({"Id": "c1", "ExitCode": 0, "State": {"Running": True}})


async def test_everything_is_closed_that_can_be(tmp_path: Path) -> None:
    fake = Fake()
    async with engine(tmp_path, fake) as (api, asked):
        box = await Box.started(api, PLAN)
        await box.remove()
    assert asked == [
        "POST /v1.40/containers/create",
        "POST /v1.40/containers/c1/attach?stream=1&stdin=1",
        "POST /v1.40/containers/c1/start",
        "DELETE /v1.40/containers/c1?force=true&v=true",
    ]
    made = fake.bodies[0]
    host = made["HostConfig"]
    assert (made["Image"], made["User"], made["NetworkDisabled"]) == ("image:1", "1001:1001", True)
    assert (made["OpenStdin"], made["StdinOnce"], host["AutoRemove"]) == (True, True, True)
    assert (host["ReadonlyRootfs"], host["NetworkMode"], host["CapDrop"]) == (True, "none", ["ALL"])
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert (host["Memory"], host["MemorySwap"], host["PidsLimit"], host["NanoCpus"]) == (
        2 << 30,
        2 << 30,
        512,
        2 * 10**9,
    )
    assert set(host["Tmpfs"]) == {"/home/me/shop", "/srv/other", "/tmp", "/run/codeagent"}
    assert all("nosuid,nodev" in options and "size=" in options for options in host["Tmpfs"].values())
    assert not {"Binds", "Mounts", "Devices", "Privileged", "PidMode", "VolumesFrom"} & set(host)
    assert made["Labels"] == {"codeagent.state": "state", "codeagent.owner": "/state/containers/layer-1"}


async def test_a_network_only_where_it_was_asked_for(tmp_path: Path) -> None:
    fake = Fake()
    async with engine(tmp_path, fake) as (api, _):
        await (await Box.started(api, Plan("i", ("/w/x",), "s", network=True, limits=BoxLimits(disk=1 << 20)))).remove()
    made = fake.bodies[0]
    assert (made["NetworkDisabled"], made["HostConfig"]["NetworkMode"]) == (False, "bridge")
    assert "size=1048576," in made["HostConfig"]["Tmpfs"]["/w/x"]


@pytest.mark.parametrize("part", ["attach", "c1_start"])
async def test_nothing_is_left_of_one_that_does_not_start(tmp_path: Path, part: str) -> None:
    async with engine(tmp_path, Fake(**{part: 500})) as (api, asked):
        with pytest.raises(EnvironmentProblem, match="refuses: no"):
            await Box.started(api, PLAN)
    assert asked[-1] == "DELETE /v1.40/containers/c1?force=true&v=true"


async def test_both_streams_and_an_end_in_the_middle(tmp_path: Path) -> None:
    fake = Fake()
    fake.said = b"\x01\0\0\0\0\0\0\x03out\x02\0\0\0\0\0\0\x03err\x01\0\0\0\0\0\0\0"
    async with engine(tmp_path, fake) as (api, _):
        box = await Box.started(api, PLAN)
        task = Task(shell_words("echo $X"), "/home/me/shop", {"X": "1"}, apart=True)
        assert [piece async for piece in box.run(task)] == [("stdout", b"out"), ("stderr", b"err")]
        asked = fake.bodies[1]
        assert (asked["User"], asked["WorkingDir"], asked["Env"]) == ("1001:1001", "/home/me/shop", ["X=1"])
        assert asked["Cmd"][-1] == "echo $X" and asked["AttachStdin"] is False
        for cut in (4, 10, 15):
            fake.said = b"\x01\0\0\0\0\0\0\x03out\x02\0\0\0\0\0\0\x03err"[:cut]
            with pytest.raises(EnvironmentProblem, match="has ended"):
                assert [piece async for piece in box.run(task)]
        await box.remove()


async def test_an_end_counts_when_the_engine_knows_of_it(tmp_path: Path) -> None:
    states = iter(({"Running": True, "ExitCode": None}, {"Running": True, "ExitCode": 0}, {"ExitCode": None}))
    plain = Fake()

    def answer(line: str, body: bytes) -> bytes:
        if line.startswith("GET") and "/exec/" in line:
            return reply(next(states, {"Running": False, "ExitCode": 3}))
        return plain(line, body)

    async with engine(tmp_path, answer) as (api, _):
        box = await Box.started(api, PLAN)
        assert [piece async for piece in box.run(Task(("false",), "/", {}))] == []
        assert await box.code() == 3
        await box.remove()


async def test_a_program_that_complains_more_than_it_reads(tmp_path: Path) -> None:
    """What it says is taken while it is fed: else both would wait for each other."""
    said = b"\x02\0\0\0\0\0\x10\0" + b"x" * 4096

    async def program(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0] or 0)
        body = await reader.readexactly(length)
        if "/start" in head and "/exec/" in head:
            writer.write(PIPES)
            for _ in range(2_000):  # more than any buffer between us
                writer.write(said)
                await writer.drain()
            await reader.read()
        else:
            writer.write(Fake(exec_c1_json=500)(head.split(" HTTP")[0], body))
        await writer.drain()
        writer.close()

    served = await asyncio.start_unix_server(program, tmp_path / "engine.sock")
    async with served, asyncio.timeout(20):
        box = await Box.started(Engine(str(tmp_path / "engine.sock")), PLAN)
        with pytest.raises(EnvironmentProblem, match="refuses: no"):
            await box.send(io.BytesIO(bytes(8 << 20)), "/home/me/shop")


async def test_a_name_that_an_engine_cannot_be_told(tmp_path: Path) -> None:
    async with engine(tmp_path, Fake()) as (api, _):
        box = await Box.started(api, PLAN)
        with pytest.raises(EnvironmentProblem, match="not UTF-8"):
            await box.send(io.BytesIO(), "/home/me/shop", ["caf\udce9"])
        await box.remove()


async def test_only_containers_of_dead_servers_are_swept(tmp_path: Path) -> None:
    def answer(line: str, body: bytes) -> bytes:
        labels = [{"codeagent.owner": "dead"}, {"codeagent.owner": "alive"}, None]
        listed = [{"Id": f"c{number}", "Labels": each} for number, each in enumerate(labels)]
        return reply(listed) if line.startswith("GET") else reply(b"", 204)

    async with engine(tmp_path, answer) as (api, asked):
        assert await sweep(api, "mine", lambda owner: owner == "dead") == 1
    assert "codeagent.state%3Dmine" in asked[0]
    assert asked[1:] == ["DELETE /v1.40/containers/c0?force=true&v=true"]
