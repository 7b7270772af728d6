"""A server of tools with one tool, as a client of the second door may bring it."""

from __future__ import annotations

from mcp.server import MCPServer

server = MCPServer("clock")


@server.tool()
def now() -> str:
    """Return the time."""
    return "twelve"


if __name__ == "__main__":
    server.run()
