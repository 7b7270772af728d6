"""The commands of `codeagent.mcp.*`. Not here: the servers (`tools/mcp`), making them (`mcp_servers.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codeagent_lsp.server.commands.arguments import Arguments, Later, Table
from codeagent_lsp.tools.mcp.errors import McpProblem

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend


def mcp_commands(backend: Backend, later: Later) -> Table:
    """Return the handlers by command name; `later` runs work after the answer."""

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
