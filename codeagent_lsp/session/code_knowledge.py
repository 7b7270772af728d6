"""Builds what one run knows of code beyond its text: language servers, and the diagnostics of its edits.

Not here: the parts themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codeagent_lsp.language_servers.values import CodeServers
from codeagent_lsp.session.proposal import Diagnose, Proposal
from codeagent_lsp.session.quick_linters import QuickLinters
from codeagent_lsp.session.run_index import RunIndex
from codeagent_lsp.session.run_servers import RunServers
from codeagent_lsp.session.services import Services
from codeagent_lsp.shadow.shell import Shell
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.diagnostics.after_edits import AfterEdits
from codeagent_lsp.tools.diagnostics.difference import Difference
from codeagent_lsp.tools.diagnostics.edit_diagnostics import BeforeAndAfter, EditDiagnostics
from codeagent_lsp.tools.diagnostics.port import Diagnostics
from codeagent_lsp.workspace.changes.changeset import Changeset
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView, NothingStaged

PROPOSAL_SECONDS = 5.0


def code_index(services: Services, proposal: Proposal) -> RunIndex | None:
    """Return the code index as a run sees it; None if there is none."""
    if services.workspace.indexing is None:
        return None
    return RunIndex(services.workspace.indexing, proposal.view, lambda: services.user.settings().permissions)


def edit_diagnostics(session_id: str, services: Services, staged: FileView) -> EditDiagnostics | None:
    """Return the diagnostics of edits, as `staged` has them; None if the user does not want them."""
    if services.user.settings().edits.diagnostics == "off":
        return None

    async def shell_over(view: FileView) -> Shell:
        return await services.shells.shadows.shell(session_id, view, Staging(lambda path: None), _none)

    servers = services.workspace.servers
    own = servers.of(session_id) if servers is not None else None
    views = BeforeAndAfter(services.workspace.view(NothingStaged()), staged)
    return EditDiagnostics(views, own, QuickLinters(shell_over))


def code_ports(
    session_id: str,
    services: Services,
    proposal: Proposal,
    diagnostics: EditDiagnostics | None,
    note: Callable[[str], None],
) -> tuple[tuple[type[Any], Any], ...]:
    """Return the ports for a run's tools; `note` receives the troubles of servers."""
    workspace = services.workspace
    after = AfterEdits(diagnostics) if diagnostics is not None else None
    if workspace.servers is None:
        return ((Diagnostics, workspace.diagnostics), (AfterEdits, after))
    own = workspace.servers.of(session_id)
    servers = RunServers(proposal.view, proposal.staging, workspace.lent, own, note)
    return ((Diagnostics, workspace.diagnostics), (AfterEdits, after), (CodeServers, servers))


def diagnosing(context: ToolContext) -> Diagnose:
    """Return what checks all changes of a run whose tools have this context, before they are proposed."""

    async def diagnose(changeset: Changeset) -> Difference | None:
        after = context.get(AfterEdits)
        return await after.of(context, changeset, PROPOSAL_SECONDS) if after is not None and changeset else None

    return diagnose


async def _none(paths: tuple[str, ...]) -> bool:
    return False
