"""Servers that nobody here wrote, over their real interfaces; skipped, visibly, where they cannot be had."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.tools.mcp.real import node_server, time_server
from tests.tools.mcp.rig import running

pytestmark = pytest.mark.slow  # they are fetched once, and start slowly

ALL = {"autoApprove": ["*"], "timeoutSeconds": 40}


async def test_time(tmp_path: Path) -> None:
    async with running(tmp_path, {"time": {"command": time_server(), **ALL}}) as rig:
        assert rig.tools() == ["mcp.time.get_current_time", "mcp.time.convert_time"]
        result = await rig.call("mcp.time.get_current_time", timezone="Europe/Paris")
        assert result.ok and "Europe/Paris" in result.text
        wrong = await rig.call("mcp.time.get_current_time", timezone="Nowhere/Land")
        assert wrong.error is not None and wrong.error.code.startswith("MCP_"), wrong
        missing = await rig.call("mcp.time.get_current_time")
        assert missing.status == "retry" and "timezone" in missing.text


async def test_filesystem_stays_within_the_roots(tmp_path: Path) -> None:
    allowed = tmp_path / "work"
    allowed.mkdir()
    (allowed / "a.txt").write_text("hello\n")
    (tmp_path / "b.txt").write_text("hidden\n")
    given = {"fs": {"command": node_server("filesystem"), "args": [str(allowed)], **ALL}}
    async with running(tmp_path, given) as rig:
        assert "mcp.fs.read_text_file" in rig.tools()
        assert "hello" in (await rig.call("mcp.fs.read_text_file", path=str(allowed / "a.txt"))).text
        outside = await rig.call("mcp.fs.read_text_file", path=str(tmp_path / "b.txt"))
        assert outside.status == "retry" and "hidden" not in outside.text
        assert (await rig.call("mcp.fs.write_file", path=str(allowed / "c.txt"), content="new")).ok
        assert (allowed / "c.txt").read_text() == "new"
        assert str(rig.bench.root) in (await rig.call("mcp.fs.list_allowed_directories")).text


async def test_memory_keeps_what_it_is_told(tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    given = {"memory": {"command": node_server("memory"), "env": {"MEMORY_FILE_PATH": str(file)}, **ALL}}
    entity = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
    async with running(tmp_path, given) as rig:
        assert (await rig.call("mcp.memory.create_entities", entities=[entity])).ok
        found = await rig.call("mcp.memory.search_nodes", query="Ada")
        assert found.ok and found.data["entities"][0]["observations"] == ["writes programs"]
        assert (await rig.call("mcp.memory.create_entities", entities="Ada")).status == "retry"
    assert "Ada" in file.read_text()


def begins(path: Path, data: bytes) -> bool:
    return path.read_bytes().startswith(data)


@contextmanager
def everything(transport: str) -> Iterator[dict[str, object]]:
    """The setting of the server that has everything."""
    program = node_server("everything")
    if transport == "stdio":
        yield {"command": program, **ALL}
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    name, path, ours = ("streamableHttp", "/mcp", "http") if transport == "http" else ("sse", "/sse", "sse")
    process = subprocess.Popen([program, name], env={**os.environ, "PORT": str(port)}, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 40
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.1)
        yield {"url": f"http://127.0.0.1:{port}{path}", "transport": ours, **ALL}
    finally:
        process.kill()
        process.wait()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
async def test_everything(tmp_path: Path, transport: str) -> None:
    with everything(transport) as server:
        async with running(tmp_path, {"e": server}) as rig:
            row = await rig.row()
            assert row["state"] == "ready", row
            assert row["version"] == "2025-11-25"
            assert (await rig.call("mcp.e.echo", message="hello")).text.endswith("hello")
            total = await rig.call("mcp.e.get-sum", a=2, b=3)
            assert "5" in total.text
            image = await rig.call("mcp.e.get-tiny-image")
            kept = Path(next(line for line in image.text.splitlines() if "image of type" in line).split(" in ")[1][:-1])
            assert begins(kept, b"\x89PNG")
            shaped = await rig.call("mcp.e.get-structured-content", location="New York")
            assert set(shaped.data) == {"temperature", "conditions", "humidity"}
            await rig.call("mcp.e.trigger-long-running-operation", duration=2, steps=2)
            assert any("mcp.e.trigger-long-running-operation: 1/2" in note for note in rig.notes)
            links = await rig.call("mcp.e.get-resource-links", count=2)
            assert links.text.count("[resource ") == 2
            call = asyncio.create_task(rig.call("mcp.e.trigger-long-running-operation", duration=30, steps=5))
            await asyncio.sleep(0.5)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert (await rig.call("mcp.e.echo", message="after")).ok


async def test_everything_asks_the_user_and_sees_the_roots(tmp_path: Path) -> None:
    with everything("stdio") as server:
        async with running(tmp_path, {"e": server}) as rig:
            assert "mcp.e.trigger-sampling-request" not in rig.tools()  # it sees that we do not sample
            rig.bench.asker.answers = ["Answer", "Ada"]
            told = await rig.call("mcp.e.trigger-elicitation-request")
            assert rig.bench.asker.asked[0].title.startswith("The MCP server e asks:")
            assert '"action": "accept"' in told.text and "Ada" in told.text and "dark and stormy" in told.text
            await rig.until_tools(*rig.tools())
            assert rig.bench.root.as_uri() in (await rig.call("mcp.e.get-roots-list")).text
