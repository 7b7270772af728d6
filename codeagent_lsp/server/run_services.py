"""Builds what runs need from a server: the ports of `session/services.py`, filled with the parts of the editor, above
all what runs see of the workspace through it (files and texts, diagnostics, language servers), and the environment
variables of its sessions, over one keyring for the workspace.

Not here: the parts (`backend.py`), what a run does with them (`session/run.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, get_args

from codeagent_lsp.agent.prompt import Environment
from codeagent_lsp.direct.aptitude import KnownForms, ProofStore
from codeagent_lsp.errors import EditorError, FileRefused
from codeagent_lsp.language_servers.answers import ServerAnswer
from codeagent_lsp.language_servers.known import KnownServer, with_own
from codeagent_lsp.language_servers.pool import LanguageServerPool
from codeagent_lsp.protocol import DIAGNOSTICS_METHOD, LENT_METHODS, LSP_METHOD, SOURCE
from codeagent_lsp.server.editor import LspEditor
from codeagent_lsp.session.screens import SessionScreens
from codeagent_lsp.session.services import ModelPorts, Services, SessionStorage, Shells, UserPorts, WorkspacePorts
from codeagent_lsp.state import state_root
from codeagent_lsp.texts import text
from codeagent_lsp.tools.artifacts.artifact_store import ArtifactStore
from codeagent_lsp.tools.diagnostics.difference import Diagnostic, from_lsp
from codeagent_lsp.tools.outputs import OutputStore
from codeagent_lsp.tools.variables.variables import Variables, Vault, open_keyring
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, NothingStaged, StagedView
from codeagent_lsp.workspace.files.paths import Roots
from codeagent_lsp.workspace.text.document import Document
from codeagent_lsp.workspace.text.encoding import is_certain
from codeagent_lsp.workspace.text.position import Encoding

if TYPE_CHECKING:
    from codeagent_lsp.environments.environments import Environments
    from codeagent_lsp.index.host import IndexHost
    from codeagent_lsp.server.documents import Documents
    from codeagent_lsp.server.front import Client, Front
    from codeagent_lsp.server.models import Models
    from codeagent_lsp.server.plans import PlanDocuments
    from codeagent_lsp.server.reviews import Reviews
    from codeagent_lsp.session.inbox import Inbox
    from codeagent_lsp.session.memory.knowledge import Knowledge
    from codeagent_lsp.session.redaction.redactor import Redactor
    from codeagent_lsp.shadow.copying import CopyLayer
    from codeagent_lsp.shadow.probe import Isolator
    from codeagent_lsp.tools.permissions.approvals import StandingApprovals
    from codeagent_lsp.tools.registry import ToolRegistry


class ServerParts(Protocol):
    """Port: the parts of a server that the services of runs are made of."""

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
    """Return the services of all runs of a server, made of its parts."""
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
    """Opens addresses in the user's browser, by `window/showDocument`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def show(self, url: str) -> bool:
        """Open an address and wait at most 10 s; return True when the client did, False when the address was shown to
        the user instead.
        """
        if await self._client.show(url, external=True):
            return True
        self._client.tell(text("screen.at", self._client.language, url=url))
        return False


class SessionVariables:
    """The environment variables of all sessions, kept until the server stops, or in the keyring. `open_vault` opens the
    keyring and blocks; `environ` is our own environment.
    """

    def __init__(self, open_vault: Callable[[], Vault | None], environ: Mapping[str, str]) -> None:
        self._open_vault = open_vault
        self._environ = environ
        self._sessions: dict[str, Variables] = {}

    def of(self, session_id: str) -> Variables:
        """Return the variables of a session, made at the first call, the same object each time; a value set in one
        session is not in another.
        """
        if session_id not in self._sessions:
            self._sessions[session_id] = Variables(self._open_vault, self._environ)
        return self._sessions[session_id]


def session_variables(folders: Sequence[str]) -> SessionVariables:
    """Return the variables of a workspace's sessions, over the keyring of the system and our own environment."""
    workspace = ":".join(folders)
    return SessionVariables(lambda: open_keyring(workspace), os.environ)


class Views:
    """Makes file views of the workspace as the client has it. `folders` is called for every view, since the client may
    add folders.
    """

    def __init__(self, folders: Callable[[], list[str]], documents: Documents) -> None:
        self._folders = folders
        self._documents = documents

    def over(self, staged: StagedView) -> FileView:
        """Return a view of the user's files with staged changes over them."""
        return FileView(Roots(self._folders()), _OpenBuffers(self._documents), staged)

    def plain(self) -> FileView:
        """Return a view of the files as the user has them, open buffers over the disk."""
        return self.over(NothingStaged())

    def disk_text(self, path: str) -> str | None:
        """Return the text of a file on disk; None when there is none. FileRefused for a file that is not text."""
        view = FileView(Roots(self._folders()), NoBuffers(), NothingStaged())
        return view.read(path).text if view.exists(path) else None

    def is_certain(self, path: str) -> bool:
        """Return whether every editor reads a file on disk (absolute path) as the same text, whatever encoding it
        assumes; True also for one that is missing or binary.
        """
        view = FileView(Roots(self._folders()), NoBuffers(), NothingStaged())
        try:
            file = view.saved(path)
        except FileRefused:
            return True
        return file is None or is_certain(file.text, file.encoding)


class _OpenBuffers:
    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def get_by_path(self, path: str) -> Document | None:
        return self._documents.by_path(path) if Path(path).is_absolute() else self._documents.get(path)

    def open_paths(self) -> Iterable[str]:
        return self._documents.paths()


SECONDS = 3.0
LENT_SECONDS = 3.0
MAX_ANSWERS = 8
MAX_ENTRIES = 64  # of a list that is answered, those beyond are not looked at
MAX_NAME = 100
MAX_CHARACTERS = 2 * 1024 * 1024
MAX_NODES = 100_000
MAX_DEPTH = 100  # so that any later walk through a result may be recursive


def workspace_ports(front: Front, views: Views, index: IndexHost, servers: LanguageServerPool) -> WorkspacePorts:
    """Return the ports to the workspace of one server; `servers` are our own language servers."""
    return WorkspacePorts(
        environment=lambda: Environment(tuple(front.folders()), front.client.policy.name),
        view=views.over,
        editor=LspEditor(front.client, views.disk_text, views.is_certain),
        diagnostics=ClientDiagnostics(front.client),
        indexing=index,
        lent=LentServers(front.client),
        servers=servers,
        texts=ClientTexts(front.client),
    )


# Asks a client for the texts that it does not tell by itself, if it announces that it is to be asked.


class ClientTexts:
    """The `PresentTexts` port of one client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def refresh(self, paths: Iterable[str]) -> None:
        """Ask a client that does not send its unsaved texts by itself for those of these files (absolute paths), for at
        most 10 s.
        """
        if self._client.policy.syncs:
            await self._client.sync(map(self._client.server.documents.uri, paths))

    def unknown(self, paths: Iterable[str]) -> Sequence[str]:
        """Return the absolute paths of the open files, among these paths or below them, whose text in the editor is no
        longer known.
        """
        asked = tuple(paths)
        lost = self._client.server.documents.lost_paths()
        return [path for path in lost if any(path == each or path.startswith(f"{each}{os.sep}") for each in asked)]


# Requests from the client the diagnostics that it shows, by a request of our own, if it announces support for it.


class ClientDiagnostics:
    """The `Diagnostics` port: asks one client for the diagnostics that it shows."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def of(self, path: str) -> tuple[Diagnostic, ...] | None:
        """Ask the client for the diagnostics of an open file (absolute path), wait at most 3 s, and return them; None
        if it has none to give, does not answer in time, or the text changed meanwhile.
        """
        documents = self._client.server.documents
        document = documents.by_path(path)
        if document is None or not self._client.policy.diagnostics:
            return None
        try:
            answer = await self._client.server.request(DIAGNOSTICS_METHOD, {"uri": document.uri}, SECONDS)
        except EditorError:
            return None
        if not documents.is_current(document):  # the text has changed since the request
            return None
        items = _items(answer, document.version)
        return None if items is None else read(items, path, document, documents.encoding)


def read(items: list[Any], path: str, document: Document, encoding: Encoding) -> tuple[Diagnostic, ...]:
    """Return LSP diagnostics, JSON data about `document`, as `Diagnostic`s of the file `path`; invalid ones and our own
    are left out. `encoding` is that of their positions.
    """
    made = from_lsp(items, path, document.text, encoding, document.lines)
    return tuple(item for item in made if item.source != SOURCE)


def _items(answer: Any, version: int | None) -> list[Any] | None:
    """Return the list in an answer of either shape; None when there is none for this version."""
    if isinstance(answer, dict):
        if answer.get("version") not in (None, version):
            return None
        answer = answer.get("diagnostics")
    return answer if isinstance(answer, list) else None


# Asks the client's other language servers a question, by a request of our own, if the client announces support for it.


class LentServers:
    """The `EditorServers` port: the other language servers of one client, asked through it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def encoding(self) -> Encoding:
        """The encoding in which positions in questions are counted."""
        return self._client.server.documents.encoding

    async def ask(
        self, uri: str, method: str, params: Mapping[str, Any], seconds: float = LENT_SECONDS
    ) -> tuple[ServerAnswer, ...]:
        """Return at most 8 answers of the editor's other servers about the current text of `uri`. `params` are those of
        `method` in LSP, with positions in the encoding negotiated with the client. () if the client lends no servers,
        refuses, does not answer within `seconds`, answers in a wrong shape, or the text changed.

        A client may open a file to answer; the caller has to check that its text is the one that was meant.
        """
        if not self._client.policy.lsp or method not in LENT_METHODS:
            return ()
        documents = self._client.server.documents
        uri = documents.uri(uris.to_path(uri) or uri)
        document = documents.get(uri)
        question = {"uri": uri, "method": method, "params": {**params, "textDocument": {"uri": uri}}}
        try:
            answer = await self._client.server.request(LSP_METHOD, question, seconds)
        except EditorError:
            return ()
        if document is not None and not documents.is_current(document):  # the text has changed since the request
            return ()
        return read_answer(answer, method, documents.encoding)


def read_answer(answer: Any, method: str, agreed: Encoding) -> tuple[ServerAnswer, ...]:
    """Return at most 8 valid entries of an answer to a request of this method, () if it is malformed; `agreed` is the
    encoding of those that name none.
    """
    if not isinstance(answer, list):
        return ()
    entries = (_entry(item, method, agreed) for item in answer[:MAX_ENTRIES])
    return tuple(islice((entry for entry in entries if entry is not None), MAX_ANSWERS))


def _entry(item: Any, method: str, agreed: Encoding) -> ServerAnswer | None:
    if not isinstance(item, dict) or not isinstance(item.get("server"), str) or not is_small(item.get("result")):
        return None
    server = "".join(character for character in item["server"] if character.isprintable())[:MAX_NAME].strip()
    encoding, result = item.get("positionEncoding") or agreed, _without_commands(item.get("result"), method)
    if not server or result is None or encoding not in get_args(Encoding):
        return None
    return ServerAnswer(server, result, encoding, lent=True)


def is_small(value: Any) -> bool:
    """Return whether a JSON value has at most 100,000 nodes, 2 Mi characters of texts and keys, and 100 levels."""
    nodes = characters = 0
    # Without recursion, as the depth is what is in question.
    rest = [(value, 0)]
    while rest:
        node, depth = rest.pop()
        nodes += 1
        if isinstance(node, str):
            characters += len(node)
        elif isinstance(node, dict):
            characters += sum(map(len, node))
            rest += [(child, depth + 1) for child in node.values()]
        elif isinstance(node, list):
            rest += [(child, depth + 1) for child in node]
        # With those that wait: a single wide node must not fill the memory first.
        if nodes + len(rest) > MAX_NODES or characters > MAX_CHARACTERS or depth > MAX_DEPTH:
            return False
    return True


def _without_commands(result: Any, method: str) -> Any:
    """Return the result; code actions without their commands, and without those that are nothing else."""
    if method == "codeAction/resolve":
        return _action(result) if isinstance(result, dict) and result.get("edit") else None
    if method != "textDocument/codeAction":
        return result
    return [_action(item) for item in result if _may_edit(item)] if isinstance(result, list) else None


def _may_edit(item: Any) -> bool:
    """Return whether a code action has an edit, or may have one when it is resolved by its `data`."""
    return isinstance(item, dict) and (bool(item.get("edit")) or item.get("data") is not None)


def _action(item: dict[str, Any]) -> dict[str, Any]:
    # A command would be run by the other server, out of our sight.
    return {key: value for key, value in item.items() if key != "command"}


# Builds the pool of our own language servers for one server: where they run, and which are known.


def language_servers(front: Front) -> LanguageServerPool:
    """Return the pool of our own language servers; nothing is started or searched for before a run needs a server."""

    @cache
    def isolator() -> Isolator:
        from codeagent_lsp.shadow.probe import Isolator  # late: an idle server does without all that isolates

        return Isolator(str(state_root()))

    def open_copy(folders: Sequence[str]) -> CopyLayer:
        return isolator().open_copy(front.settings().shell, folders)

    def known() -> tuple[KnownServer, ...]:
        settings = front.settings()
        # A server may be a program of the workspace, and most run some of its: build scripts, compilers, plug-ins.
        return () if settings.permissions.mode == "readOnly" else with_own(settings.language_servers)

    return LanguageServerPool(open_copy, known)
