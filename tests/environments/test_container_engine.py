"""The few calls of the Docker API: what is asked over the socket, and what each failure comes to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.environments.container import ContainerAdapter
from codeagent_lsp.environments.container_engine import MAX_REPLY, Engine, find_socket
from codeagent_lsp.environments.environment import EnvironmentProblem
from codeagent_lsp.errors import SettingError

Reply = Callable[[str, bytes], bytes]


def reply(body: object, status: int = 200) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode() + data


@asynccontextmanager
async def engine(folder: Path, answer: Reply) -> AsyncGenerator[tuple[Engine, list[str]]]:
    """An engine that answers to the first line of a request and its body; the first lines it got."""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next(
                (int(line[16:]) for line in head.split("\r\n") if line.lower().startswith("content-length:")), 0
            )
            body = await reader.readexactly(length)
            asked.append(head.split(" HTTP")[0])
            writer.write(answer(asked[-1], body))
            await writer.drain()
        except (OSError, EOFError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_unix_server(serve, folder / "engine.sock")
    try:
        yield Engine(str(folder / "engine.sock")), asked
    finally:
        server.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "said", "code"),
    [
        (400, "bad parameter", "PARAMETER_ERROR"),
        (403, "no", "PERMISSION_ERROR"),
        (404, "no such image", "SANDBOX_NOT_FOUND"),
        (409, "container is paused", "SANDBOX_TERMINATED"),
        (410, "gone", "SANDBOX_TERMINATED"),
        (503, "busy", "CONNECTION_ERROR"),
        (504, "slow", "TIMEOUT_ERROR"),
        (500, "container state improper", "SANDBOX_TERMINATED"),
        (500, "no such container 5", "SANDBOX_NOT_FOUND"),
        (500, "operation not permitted", "PERMISSION_ERROR"),
        (500, "timed out", "TIMEOUT_ERROR"),
        (500, "something else", "EXECUTION_ERROR"),
    ],
)
async def test_refusals(tmp_path: Path, status: int, said: str, code: str) -> None:
    async with engine(tmp_path, lambda line, body: reply({"message": f"{said}\x1b[31m"}, status)) as (api, _):
        with pytest.raises(EnvironmentProblem, match=said) as caught:
            await api.get("/x")
        assert caught.value.code == code and "\x1b" not in str(caught.value)
        with pytest.raises(EnvironmentProblem) as caught:
            await api.hijacked("/x")
        assert caught.value.code == code


@pytest.mark.slow
async def test_what_is_asked(tmp_path: Path) -> None:
    def answer(line: str, body: bytes) -> bytes:
        return reply({"got": json.loads(body)}) if body else reply(b"", 204)

    async with engine(tmp_path, answer) as (api, asked):
        assert await api.post("/containers/create", {"Image": "x"}, name="y") == {"got": {"Image": "x"}}
        assert await api.get("/info", all="true") is None
        await api.delete("/containers/5", force="true")
    assert asked == [
        "POST /v1.40/containers/create?name=y",
        "GET /v1.40/info?all=true",
        "DELETE /v1.40/containers/5?force=true",
    ]


async def test_removing_what_is_gone_is_fine(tmp_path: Path) -> None:
    async with engine(tmp_path, lambda line, body: reply({"message": "no such container"}, 404)) as (api, _):
        await api.delete("/containers/5")


@pytest.mark.slow
async def test_garbage(tmp_path: Path) -> None:
    async with engine(tmp_path, lambda line, body: reply(b"<html>")) as (api, _):
        with pytest.raises(EnvironmentProblem) as caught:
            await api.get("/x")
        assert caught.value.code == "VALIDATION_ERROR"
    async with engine(tmp_path, lambda line, body: reply(b"1" * (MAX_REPLY + 1))) as (api, _):
        with pytest.raises(EnvironmentProblem, match="too much"):
            await api.get("/x")
    heads = iter([b"no http", b"HTTP/1.1 abc", b"HTTP/1.1", b"HTTP/1.1 "] * 2)
    for _ in range(4):
        async with engine(tmp_path, lambda line, body: next(heads) + b"\r\n\r\n") as (api, _):
            for ask in (api.get, api.hijacked):
                with pytest.raises(EnvironmentProblem):
                    await ask("/x")
    async with engine(tmp_path, lambda line, body: b"") as (api, _):
        for ask in (api.get, api.hijacked):
            with pytest.raises(EnvironmentProblem) as caught:
                await ask("/x")
            assert caught.value.code == "CONNECTION_ERROR"


async def test_pipes(tmp_path: Path) -> None:
    data = b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\n\r\n\x01\0\0\0\0\0\0\x02hi"
    async with engine(tmp_path, lambda line, body: data) as (api, asked):
        pipes = await api.hijacked("/exec/5/start", {"Tty": False})
        assert await pipes.reader.read() == b"\x01\0\0\0\0\0\0\x02hi"
        pipes.writer.close()
    assert asked == ["POST /v1.40/exec/5/start"]


@pytest.mark.slow
async def test_nobody_is_there_and_it_is_tried_three_times_more(tmp_path: Path) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    settings = ShellSettings(container_image="x")
    environ = {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    adapter = ContainerAdapter(lambda: settings, tmp_path, tmp_path, environ=environ, sleep=sleep)
    with pytest.raises(EnvironmentProblem, match="No container engine answers") as caught:
        await adapter.create(settings, [str(tmp_path)])
    assert caught.value.code == "CONNECTION_ERROR"
    assert len(waits) == 3
    assert all(plain * 0.75 <= wait <= plain * 1.25 for plain, wait in zip((1, 2, 4), waits, strict=True))


async def test_a_refusal_is_not_tried_again(tmp_path: Path) -> None:
    settings = ShellSettings(container_image="bad image")
    environ = {"DOCKER_HOST": f"unix://{tmp_path}/engine.sock"}
    async with engine(tmp_path, lambda line, body: reply({"message": "bad name"}, 400)) as (_, asked):
        with pytest.raises(EnvironmentProblem, match="bad name"):
            await ContainerAdapter(lambda: settings, tmp_path, tmp_path, environ=environ).create(settings, ["/w/x"])
    assert asked == ["GET /v1.40/images/bad%20image/json"]


@pytest.mark.parametrize("folder", ["/", "/usr", "/tmp", "/home"])
async def test_folders_that_the_image_has_itself(tmp_path: Path, folder: str) -> None:
    settings = ShellSettings(container_image="x")
    environ = {"DOCKER_HOST": f"unix://{tmp_path}/engine.sock"}
    with pytest.raises(SettingError, match="the image has a folder of that name"):
        await ContainerAdapter(lambda: settings, tmp_path, tmp_path, environ=environ).create(settings, [folder])


def test_where_the_engine_is(tmp_path: Path) -> None:
    assert find_socket({"DOCKER_HOST": "unix:///run/x.sock"}) == "/run/x.sock"
    assert find_socket({"CONTAINER_HOST": "/run/y.sock"}) == "/run/y.sock"
    assert find_socket({"DOCKER_HOST": "tcp://10.0.0.1:2375"}) == ""
    assert find_socket({"XDG_RUNTIME_DIR": str(tmp_path)}) in ("", "/var/run/docker.sock", "/run/podman/podman.sock")


async def test_no_engine_at_all(tmp_path: Path) -> None:
    settings = ShellSettings(container_image="x")
    adapter = ContainerAdapter(lambda: settings, tmp_path, tmp_path, environ={"DOCKER_HOST": "tcp://somewhere"})
    with pytest.raises(SettingError, match="no container engine was found"):
        await adapter.create(settings, [str(tmp_path)])
