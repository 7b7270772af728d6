"""A server on the official library: `python library_server.py stdio|sse|streamable-http|websocket [PORT]`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, Image, MCPServer
from pydantic import BaseModel

server = MCPServer("library", log_level="ERROR")


class Place(BaseModel):
    """What the user is asked."""

    city: str = "Kyoto"


class Sum(BaseModel):
    """A result with a shape."""

    total: int


@server.tool()
def add(a: int, b: int) -> Sum:
    """Adds two numbers."""
    return Sum(total=a + b)


@server.tool()
def picture() -> Image:
    """A very small picture."""
    return Image(data=b"\x89PNG\r\n\x1a\n" + bytes(20), format="png")


@server.tool()
def fail() -> str:
    """Always fails."""
    raise ValueError("there is no such place")


@server.tool()
async def steps(context: Context[Any]) -> str:
    """Reports how far it is."""
    await context.report_progress(1, 2, "half")
    return "done"


@server.tool()
async def grow(context: Context[Any]) -> str:
    """Has one more tool afterwards."""
    server.add_tool(lambda: "new", name="grown", description="New.")
    await context.notify_tools_changed()
    return "grown"


@server.tool()
async def slow() -> str:
    """Takes a minute."""
    await asyncio.sleep(60)
    return "done"


async def over_websockets(port: int) -> None:
    """Each connection gets a server of its own, a child that speaks over its pipes."""
    from websockets.asyncio.server import ServerConnection, serve

    async def bridge(socket: ServerConnection) -> None:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, str(Path(__file__)), "stdio"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 24,
        )
        assert child.stdin is not None and child.stdout is not None
        stdin, stdout = child.stdin, child.stdout

        async def back() -> None:
            while line := await stdout.readline():
                await socket.send(line.decode())

        answering = asyncio.create_task(back())
        try:
            async for message in socket:
                stdin.write((message if isinstance(message, str) else message.decode()).encode() + b"\n")
        finally:
            child.kill()
            await child.wait()
            answering.cancel()

    async with serve(bridge, "127.0.0.1", port) as listening:
        await listening.serve_forever()


def main() -> None:
    transport, *rest = sys.argv[1:]
    if transport == "stdio":
        server.run("stdio")
    elif transport == "websocket":
        asyncio.run(over_websockets(int(rest[0])))
    elif transport == "sse":
        server.run("sse", port=int(rest[0]))
    else:
        server.run("streamable-http", port=int(rest[0]))


if __name__ == "__main__":
    main()
