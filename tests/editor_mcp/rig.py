"""An editor with its server, and the library's MCP client with a real `codeagent-lsp editor-mcp` as its child."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult, Implementation, TextContent

from tests.server.stock_editor import Choose
from tests.server.warm import quick_starts

NAME = "claude-code"
_LISTENS = "00010000"
ASKS = f"{NAME} wants to use this editor"


@asynccontextmanager
async def agent(
    folder: Path, state: Path, name: str = NAME, mode: Literal["auto", "legacy"] = "legacy"
) -> AsyncGenerator[Client, None]:
    """The client of an `editor-mcp` of its own, as an agent in `folder` starts it; `legacy` speaks the protocol with a
    handshake, as most agents do.
    """
    env = {**os.environ, **quick_starts(), "CODEAGENT_STATE_DIR": str(state)}
    arguments = ["-m", "codeagent_lsp.cli", "editor-mcp"]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=env, cwd=str(folder))
    info = Implementation(name=name, version="1")
    async with Client(stdio_client(server), client_info=info, mode=mode) as client:
        yield client


async def said(client: Client, tool: str, **arguments: Any) -> str:
    """The text that a call answers, which must go well."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    return text_of(result)


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """The text of a call that must fail."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, text_of(result)
    return text_of(result)


def text_of(result: CallToolResult) -> str:
    return "".join(part.text for part in result.content if isinstance(part, TextContent))


def choosing(asked: str = "Allow", changes: str | None = "Apply") -> Choose:
    """Answers the question about the agent, and all others."""
    return lambda params: asked if ASKS in params["message"] else changes


def until(condition: Callable[[], Any], seconds: float = 10.0) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)


def meeting(state: Path) -> list[Path]:
    """The folders by which servers have announced themselves."""
    return sorted(path.parent for path in state.glob("workspaces/*/lend/*/server.json"))


def listening(state: Path) -> list[str]:
    """The Unix sockets of our state that somebody listens on, as the system knows them."""
    rows = map(str.split, Path("/proc/net/unix").read_text().splitlines())
    return [row[7] for row in rows if len(row) == 8 and row[7].startswith(str(state)) and row[3] == _LISTENS]
