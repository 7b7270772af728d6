"""Builds what runs see of the workspace through the editor: its texts, its diagnostics, and language servers.

Not here: the other services of runs (`run_services.py`), the parts themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codeagent_lsp.agent.prompt import Environment
from codeagent_lsp.server.diagnostics import ClientDiagnostics
from codeagent_lsp.server.editor import LspEditor
from codeagent_lsp.server.lent_servers import LentServers
from codeagent_lsp.server.own_language_servers import language_servers
from codeagent_lsp.session.services import WorkspacePorts

if TYPE_CHECKING:  # needed for annotations only
    from codeagent_lsp.index.host import IndexHost
    from codeagent_lsp.server.front import Front
    from codeagent_lsp.server.views import Views


def workspace_ports(front: Front, views: Views, index: IndexHost) -> WorkspacePorts:
    """Return the ports of one server."""
    return WorkspacePorts(
        environment=lambda: Environment(tuple(front.folders()), front.client.policy.name),
        view=views.over,
        editor=LspEditor(front.client, views.disk_text, views.is_certain),
        diagnostics=ClientDiagnostics(front.client),
        indexing=index,
        lent=LentServers(front.client),
        servers=language_servers(front),
    )
