"""The sandbox server as a process, the library's client for it, and a model behind that client."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult, CreateMessageRequestParams, CreateMessageResult, TextContent

from tests.mcp_server.calls import WRITTEN
from tests.server.warm import quick_starts

COMMAND = ("-m", "codeagent_lsp.cli", "sandbox-mcp")


class Model:
    """The model of a client: writes tests when it is asked for tests, else a commit message."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[CreateMessageRequestParams] = []

    async def __call__(self, context: Any, params: CreateMessageRequestParams) -> CreateMessageResult:
        self.asked.append(params)
        usual = WRITTEN if "test file" in (params.system_prompt or "") else "Double the rate"
        text = self.answers.pop(0) if self.answers else usual
        return CreateMessageResult(role="assistant", model="scripted", content=TextContent(type="text", text=text))


def environment() -> dict[str, str]:
    """Of the tests, state folder included; our program starts quickly in it."""
    return {**os.environ, **quick_starts()}


@asynccontextmanager
async def over_stdio(
    folder: Path, model: Model | None = None, mode: Literal["auto", "legacy"] = "auto"
) -> AsyncGenerator[Client, None]:
    """A client of a server of its own; `legacy` speaks the protocol with a handshake."""
    arguments = [*COMMAND, "--workspace", str(folder)]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=environment())
    async with Client(stdio_client(server), sampling_callback=model, mode=mode) as client:
        yield client


class Served:
    """A server process on loopback: its addresses by scheme, its token, and the process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.urls: dict[str, str] = {}
        self.token = ""

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def ended(self) -> int | None:
        """The exit code; None while it runs."""
        return self.process.returncode

    async def announced(self, count: int) -> None:
        assert self.process.stderr is not None
        for _ in range(count):
            url = (await self.process.stderr.readline()).decode()
            told = (await self.process.stderr.readline()).decode()
            found = re.search(r"((http|ws)://\S+)", url)
            assert found is not None, url
            self.urls[found[2]] = found[1]
            self.token = told.split()[-1]


@asynccontextmanager
async def served(folder: Path, *options: str) -> AsyncGenerator[Served, None]:
    """A server with these options, ended by SIGTERM."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *(*COMMAND, "--workspace", str(folder), *options),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(),
    )
    server = Served(process)
    try:
        async with asyncio.timeout(30):
            await server.announced(sum(option in ("--http", "--ws") for option in options))
        yield server
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(15):
            await process.communicate()


def text_of(result: CallToolResult) -> str:
    """The words of a result."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def code_of(result: CallToolResult) -> str:
    """The code of a failed call; '' for one that worked."""
    if not result.is_error:
        return ""
    assert isinstance(result.structured_content, dict)
    return str(result.structured_content["error"]["code"])
