"""Runs the conformance suite of MCP against the sandbox server and prints the table:
`python -m tests.mcp_server.conformance [--all]`.

The suite is `@modelcontextprotocol/conformance`, fetched from npm. It knows no tokens, so a relay adds ours. Most of
its scenarios call tools that a test server has to have, such as `test_simple_text`; those are run only with `--all`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.mcp_server.rig import Served, served
from tests.tools.mcp.real import conformance

SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)
SECONDS = 60


@dataclass(frozen=True, slots=True)
class Row:
    """What one scenario said: how many checks passed and failed, and the first complaint."""

    scenario: str
    passed: int
    failed: int
    complaint: str = ""


async def table(workspace: Path, scenarios: tuple[str, ...]) -> AsyncIterator[Row]:
    """The rows, one scenario after the other."""
    async with served(workspace, "--http", "127.0.0.1:0") as server, _with_token(server) as url:
        for scenario in scenarios or await all_scenarios():
            with tempfile.TemporaryDirectory() as folder:
                yield await _row(scenario, url, Path(folder))


async def all_scenarios() -> tuple[str, ...]:
    """The names of all scenarios for servers."""
    listed = (await _run("list")).partition("Server scenarios")[2].partition("Client scenarios")[0]
    return tuple(line.split()[1] for line in listed.splitlines() if line.startswith("  - "))


async def _row(scenario: str, url: str, folder: Path) -> Row:
    said = await _run("server", "--url", url, "--scenario", scenario, "--output-dir", str(folder))
    checks = _checks(folder)
    if not checks:
        return Row(scenario, 0, 1, said.strip()[-200:])
    failed = [check for check in checks if check["status"] in ("FAILURE", "WARNING")]
    passed = sum(check["status"] == "SUCCESS" for check in checks)
    return Row(scenario, passed, len(failed), str(failed[0].get("errorMessage", failed[0]["id"])) if failed else "")


def _checks(folder: Path) -> list[dict[str, Any]]:
    return [check for path in folder.rglob("checks.json") for check in json.loads(path.read_text())]


async def _run(*words: str) -> str:
    pipe = asyncio.subprocess.PIPE
    suite = await asyncio.to_thread(conformance)
    process = await asyncio.create_subprocess_exec(*suite, *words, stdout=pipe, stderr=asyncio.subprocess.STDOUT)
    try:
        async with asyncio.timeout(SECONDS):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return said.decode("utf-8", "replace")


@asynccontextmanager
async def _with_token(server: Served) -> AsyncGenerator[str, None]:
    """The address of a relay to the server that adds the token to each request, one request a connection."""
    target = urlsplit(server.urls["http"])
    added = f"\r\nAuthorization: Bearer {server.token}\r\nConnection: close\r\n".encode()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(target.hostname, target.port)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            line, *rest = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
            kept = [item for item in rest if not item.lower().startswith((b"connection:", b"authorization:"))]
            back.write(line + added + b"\r\n".join([*kept, b"", b""]))
            pours = [asyncio.create_task(_pour(reader, back)), asyncio.create_task(_pour(there, writer))]
            _, left = await asyncio.wait(pours, return_when=asyncio.FIRST_COMPLETED)
            for pour in left:
                pour.cancel()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            back.close()
            writer.close()

    async with await asyncio.start_server(relay, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}{target.path}"
        listener.close()


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()


async def main() -> int:
    """Print the table; 1 when anything failed."""
    bad = False
    print("| scenario | checks passed | failed | |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        async for row in table(Path(folder), () if "--all" in sys.argv else SCENARIOS):
            print(f"| {row.scenario} | {row.passed} | {row.failed} | {row.complaint[:120]} |", flush=True)
            bad = bad or bool(row.failed)
    return int(bad)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
