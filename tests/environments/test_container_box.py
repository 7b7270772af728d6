"""What an engine is asked for one container, and what is left when that fails. No engine is needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.environments.base import EnvironmentProblem
from codeagent_lsp.environments.container_box import Box, BoxLimits, Plan, Task, shell_words, sweep
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


async def test_only_containers_of_dead_servers_are_swept(tmp_path: Path) -> None:
    def answer(line: str, body: bytes) -> bytes:
        labels = [{"codeagent.owner": "dead"}, {"codeagent.owner": "alive"}, None]
        listed = [{"Id": f"c{number}", "Labels": each} for number, each in enumerate(labels)]
        return reply(listed) if line.startswith("GET") else reply(b"", 204)

    async with engine(tmp_path, answer) as (api, asked):
        assert await sweep(api, "mine", lambda owner: owner == "dead") == 1
    assert "codeagent.state%3Dmine" in asked[0]
    assert asked[1:] == ["DELETE /v1.40/containers/c0?force=true&v=true"]
