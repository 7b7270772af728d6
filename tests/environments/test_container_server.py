"""The sandbox server with its commands in a real container: over its real interface, ended, and killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from codeagent_lsp.environments.container_box import USER
from tests.environments.engine_rig import IMAGE, MARK, Podman, needs_engine
from tests.environments.test_container import until
from tests.mcp_server.calls import disk, make_workspace
from tests.mcp_server.rig import code_of, over_stdio, text_of

pytestmark = [pytest.mark.slow, needs_engine]


def server_over(workspace: Path) -> int:
    """The process id of the server of this workspace."""
    for path in (folder / "cmdline" for folder in Path("/proc").glob("[0-9]*")):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:  # gone meanwhile
            continue
        if b"sandbox-mcp" in words and os.fsencode(workspace) in words:
            return int(path.parent.name)
    raise AssertionError("no server")


async def test_the_sandbox_server_in_a_container(
    engine: Podman, workspace: Path, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEAGENT_CONTAINER_IMAGE", IMAGE)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{engine.socket}")
    before = disk(make_workspace(workspace))
    async with over_stdio(workspace) as client:

        async def call(name: str, **arguments: object) -> str:
            result = await client.call_tool(name, arguments)
            assert code_of(result) == "", text_of(result)
            return text_of(result)

        await call("edit", path="shop/tax.py", old_str="RATE = 2", new_str="RATE = 3 - 1")
        assert "1 passed" in await call("run_tests", path="tests/test_cart.py")
        built = await call("bash", command="id -u; ls /sys/class/net; printf 'a\\0b' > shop.bin; echo made > made.txt")
        assert "1001\nlo\n" in built and "isolation: container" in built
        assert "shop.bin (3 bytes)" in await call("export_artifact", file_path="shop.bin")
        assert "made" in await call("read", path="made.txt")
        assert len(engine.listed()) == 1
        monkeypatch.delenv("CODEAGENT_CONTAINER_IMAGE")
    await until(lambda: engine.listed() == [])
    assert engine.inside() == [] and disk(workspace) == before
    (exported,) = state_dir.glob("workspaces/*/artifacts/sandbox/*")  # noqa: ASYNC240
    assert exported.read_bytes() == b"a\0b"
    assert list((state_dir / "containers").iterdir()) == []


def test_only_what_runs_in_containers_of_this_engine_counts(engine: Podman) -> None:
    for mark, counted in ((f"{MARK}=/another/folder", 0), (engine.mark, 1)):
        name, _, folder = mark.partition("=")
        like = subprocess.Popen(["sleep", "60"], user=USER, group=USER, extra_groups=[], env={name: folder})
        try:
            assert len(engine.inside()) == counted
        finally:
            like.kill()
            like.wait()


async def test_the_sandbox_server_is_killed(
    engine: Podman, workspace: Path, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEAGENT_CONTAINER_IMAGE", IMAGE)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{engine.socket}")
    make_workspace(workspace)
    async with over_stdio(workspace) as client:
        pid = await asyncio.to_thread(server_over, workspace)
        running = asyncio.create_task(client.call_tool("bash", {"command": "sleep 1000"}))
        await until(lambda: any("sleep 1000" in words for words in engine.inside()))
        os.kill(pid, signal.SIGKILL)
        await until(lambda: engine.listed() == [])
        running.cancel()
        await asyncio.wait([running])
    assert engine.inside() == []
