"""The MCP servers of a backend, and the commands of `codeagent.mcp.*`. Not here: the servers (`tools/mcp`)."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from codeagent_lsp.server.mcp_logins import McpLogins
from codeagent_lsp.texts import text
from codeagent_lsp.tools.mcp.errors import McpProblem
from codeagent_lsp.tools.mcp.pinning import Pins
from codeagent_lsp.tools.mcp.servers import McpServers
from codeagent_lsp.tools.variables.os_keyring import open_keyring

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend

Arguments = Mapping[str, Any]
Later = Callable[[Awaitable[None]], None]


def mcp_servers(backend: Backend) -> McpServers:
    """The servers that the settings name; none is started here."""
    front = backend.front
    workspace = ":".join(front.folders())

    def told(problem: McpProblem) -> None:
        language = front.language()
        words = text("mcp.off", language, problem=backend.redactor.hide(problem.localized(language)))
        backend.announcer.tell(words, types.MessageType.Warning)

    return McpServers(
        lambda: front.settings().mcp.servers,
        backend.registry,
        Pins(backend.state / "mcp.json"),
        front.folders,
        os.environ,
        told,
        lambda: front.settings().tools.disabled,
        McpLogins(front.client, backend.inbox, backend.redactor, partial(open_keyring, workspace)),
    )


def mcp_commands(backend: Backend, later: Later) -> dict[str, Callable[[Arguments], Any]]:
    """Commands by name; `later` takes work that goes on after the answer."""

    def shown(row: dict[str, Any]) -> dict[str, Any]:
        problem = row.get("error")
        if not isinstance(problem, McpProblem):
            return row
        return {**row, "error": backend.redactor.hide(problem.localized(backend.front.language()))}

    async def status(given: Arguments) -> list[dict[str, Any]]:
        return [shown(row) for row in await backend.mcp.status()]

    def reload(given: Arguments) -> dict[str, bool]:
        later(backend.mcp.reload())
        return {"ok": True}

    return {"codeagent.mcp.status": status, "codeagent.mcp.reload": reload}
