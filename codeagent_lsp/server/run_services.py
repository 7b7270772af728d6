"""Builds what runs need from a server: the ports of `session/services.py`, filled with the parts of the editor.

Here are also the environment variables of its sessions, over one keyring for the workspace. Not here: the parts
(`backend.py`), what a run does with them (`session/run.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from codeagent_lsp.direct.aptitude import KnownForms, ProofStore
from codeagent_lsp.server.workspace_ports import workspace_ports
from codeagent_lsp.session.screens import SessionScreens
from codeagent_lsp.session.services import ModelPorts, Services, SessionStorage, Shells, UserPorts
from codeagent_lsp.state import state_root
from codeagent_lsp.texts import text
from codeagent_lsp.tools.artifacts.artifact_store import ArtifactStore
from codeagent_lsp.tools.outputs import OutputStore
from codeagent_lsp.tools.variables.variables import Variables, Vault, open_keyring

if TYPE_CHECKING:
    from pathlib import Path

    from codeagent_lsp.environments.environments import Environments
    from codeagent_lsp.index.host import IndexHost
    from codeagent_lsp.language_servers.pool import LanguageServerPool
    from codeagent_lsp.server.client import Client
    from codeagent_lsp.server.front import Front
    from codeagent_lsp.server.models import Models
    from codeagent_lsp.server.plans import PlanDocuments
    from codeagent_lsp.server.reviews import Reviews
    from codeagent_lsp.server.workspace_ports import Views
    from codeagent_lsp.session.inbox import Inbox
    from codeagent_lsp.session.memory.knowledge import Knowledge
    from codeagent_lsp.session.redaction.redactor import Redactor
    from codeagent_lsp.tools.permissions.approvals import StandingApprovals
    from codeagent_lsp.tools.registry import ToolRegistry


class ServerParts(Protocol):
    """The parts of a server that runs need."""

    front: Front
    state: Path
    inbox: Inbox
    reviews: Reviews
    plans: PlanDocuments
    models: Models
    views: Views
    index: IndexHost
    language_servers: LanguageServerPool
    environments: Environments
    variables: SessionVariables
    registry: ToolRegistry
    standing: StandingApprovals
    knowledge: Knowledge
    redactor: Redactor


def run_services(parts: ServerParts) -> Services:
    """Return the services of all runs of a server."""
    front, state = parts.front, parts.state
    return Services(
        user=UserPorts(
            settings=front.settings,
            mode=lambda: front.settings().permissions.mode,
            language=front.language,
            inbox=parts.inbox,
            show_review=parts.reviews.show,
            plans=parts.plans,
        ),
        models=ModelPorts(parts.models.open, parts.models.open_named, KnownForms(ProofStore(state_root()))),
        workspace=workspace_ports(front, parts.views, parts.index, parts.language_servers),
        shells=Shells(parts.environments, SessionScreens(parts.environments, External(front.client).show)),
        kept=SessionStorage(
            outputs=lambda session_id: OutputStore(state / "outputs" / session_id),
            artifacts=lambda session_id: ArtifactStore(state / "artifacts" / session_id),
            variables=parts.variables.of,
        ),
        registry=parts.registry,
        standing=parts.standing,
        knowledge=parts.knowledge,
        redactor=parts.redactor,
    )


# Opens addresses outside of the editor, such as that of a web terminal.


class External:
    """Opens addresses by `window/showDocument`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def show(self, url: str) -> bool:
        """Open an address. Return True when the client did, False when the address was shown to the user instead."""
        if await self._client.show(url, external=True):
            return True
        self._client.tell(text("screen.at", self._client.language, url=url))
        return False


class SessionVariables:
    """The variables of all sessions, kept until the server stops, or in the keyring. `open_vault` opens the keyring and
    blocks; `environ` is our own environment.
    """

    def __init__(self, open_vault: Callable[[], Vault | None], environ: Mapping[str, str]) -> None:
        self._open_vault = open_vault
        self._environ = environ
        self._sessions: dict[str, Variables] = {}

    def of(self, session_id: str) -> Variables:
        """Return the variables of a session; a value set in one session is not in another."""
        if session_id not in self._sessions:
            self._sessions[session_id] = Variables(self._open_vault, self._environ)
        return self._sessions[session_id]


def session_variables(folders: Sequence[str]) -> SessionVariables:
    """Return the variables of a workspace's sessions, over the keyring of the system and our own environment."""
    workspace = ":".join(folders)
    return SessionVariables(lambda: open_keyring(workspace), os.environ)
