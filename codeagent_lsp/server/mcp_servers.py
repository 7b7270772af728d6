"""Builds the servers of tools of a language server: MCP servers, and the workers of the user's own tools.

Not here: the servers (`tools/mcp`, `tools/own`), the commands about them.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from codeagent_lsp.server.announcer import Announcer
from codeagent_lsp.server.front import Front
from codeagent_lsp.server.mcp_logins import McpLogins
from codeagent_lsp.server.own_tool_servers import own_tools
from codeagent_lsp.session.inbox import Inbox
from codeagent_lsp.session.redaction.redactor import Redactor
from codeagent_lsp.texts import text
from codeagent_lsp.tools.mcp.errors import McpProblem
from codeagent_lsp.tools.mcp.pinning import Pins
from codeagent_lsp.tools.mcp.servers import McpServers
from codeagent_lsp.tools.variables.os_keyring import open_keyring

if TYPE_CHECKING:
    from codeagent_lsp.tools.own.own_servers import OwnTools
    from codeagent_lsp.tools.registry import ToolRegistry
    from codeagent_lsp.tools.skills.desk import Brings
    from codeagent_lsp.tools.skills.trust import Trust


def tool_servers(
    front: Front,
    registry: ToolRegistry,
    inbox: Inbox,
    redactor: Redactor,
    announcer: Announcer,
    state: Path,
    project_trust: Trust,
    brings: Brings,
) -> tuple[McpServers, OwnTools]:
    """Return both, with nothing started; `project_trust` has the user's approvals of what the workspace `brings`."""
    parts = (front, registry, inbox, redactor, announcer, state)
    return mcp_servers(*parts), own_tools(*parts, project_trust, brings)


def mcp_servers(
    front: Front, registry: ToolRegistry, inbox: Inbox, redactor: Redactor, announcer: Announcer, state: Path
) -> McpServers:
    """Return the MCP servers that the settings name, none of them started. Their tools go into `registry`."""

    def tell(problem: McpProblem) -> None:
        language = front.language()
        words = text("mcp.off", language, problem=redactor.hide(problem.localized(language)))
        announcer.tell(words, types.MessageType.Warning)

    return McpServers(
        lambda: front.settings().mcp.servers,
        registry,
        Pins(state / "mcp.json"),
        front.folders,
        os.environ,
        tell,
        lambda: front.settings().tools.disabled,
        McpLogins(front.client, inbox, redactor, partial(open_keyring, ":".join(front.folders()))),
        lambda: front.settings().network,
    )
