"""Builds what runs need from a server: the ports of `session/services.py`, filled with the parts of the editor.

Not here: the parts (`backend.py`), what a run does with them (`session/run.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codeagent_lsp.agent.forms.known import KnownForms
from codeagent_lsp.agent.forms.proof import ProofStore
from codeagent_lsp.agent.prompt import Environment
from codeagent_lsp.server.diagnostics import ClientDiagnostics
from codeagent_lsp.server.editor import LspEditor
from codeagent_lsp.server.external import External
from codeagent_lsp.session.screens import SessionScreens
from codeagent_lsp.session.services import Kept, ModelPorts, Services, Shells, UserPorts, WorkspacePorts
from codeagent_lsp.state import state_root
from codeagent_lsp.tools.artifacts.artifact_store import ArtifactStore
from codeagent_lsp.tools.outputs import OutputStore

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend


def run_services(backend: Backend) -> Services:
    """Return the services of all runs of a server."""
    front, state = backend.front, backend.state
    return Services(
        user=UserPorts(
            settings=front.settings,
            mode=lambda: front.settings().permissions.mode,
            language=front.language,
            inbox=backend.inbox,
            show_review=backend.reviews.show,
            show_plan=backend.plans.show,
        ),
        models=ModelPorts(backend.models.open, backend.models.open_named, KnownForms(ProofStore(state_root()))),
        workspace=WorkspacePorts(
            environment=lambda: Environment(tuple(front.folders()), front.client.policy.name),
            view=backend.views.over,
            editor=LspEditor(front.client, backend.views.disk_text),
            diagnostics=ClientDiagnostics(front.client),
            indexing=backend.index,
        ),
        shells=Shells(backend.shadows, SessionScreens(backend.shadows, External(front.client).show)),
        kept=Kept(
            outputs=lambda session_id: OutputStore(state / "outputs" / session_id),
            artifacts=lambda session_id: ArtifactStore(state / "artifacts" / session_id),
            variables=backend.variables.of,
        ),
        registry=backend.registry,
        standing=backend.standing,
        knowledge=backend.knowledge,
        redactor=backend.redactor,
    )
