"""Builds the code index of a server with its progress reports and semantic search.

Not here: the index (`index/host.py`), having the client report changed files (`front.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.errors import ModelError
from codeagent_lsp.index.host import IndexHost
from codeagent_lsp.server.front import Front
from codeagent_lsp.server.progress import Bar
from codeagent_lsp.texts import text

if TYPE_CHECKING:
    from codeagent_lsp.config import IndexSettings, ModelSettings
    from codeagent_lsp.index.port import VectorSearch
    from codeagent_lsp.index.scan import Folders
    from codeagent_lsp.index.semantic import Embedding
    from codeagent_lsp.index.service import Status
    from codeagent_lsp.index.store import Store
    from codeagent_lsp.server.front import Client

MANY_FILES = 100
STEP = 5  # percent between two reports, so that there are at most twenty
VECTORS = "vectors"

Note = Callable[[str], None]
"""A function that shows the user a sentence."""


def index_host(front: Front, tell: Callable[[str], None], watched: Callable[[], Awaitable[bool]]) -> IndexHost:
    """Return the index of the workspace, which is built when first needed and which the caller closes; `tell` shows the
    user why semantic search does not work, `watched` makes the client report changed files.
    """

    def vectors(store: Store, folders: Folders) -> VectorSearch | None:
        settings = front.settings()
        access = access_for(settings.index.embeddings_base_url, settings.model, settings.network)
        return meaning(settings.index, store, folders, front.language(), tell, access)

    progress = IndexProgress(front.client)
    host = IndexHost(front.folders, lambda: front.settings().index, progress.observe, watched, vectors)
    documents = front.server.documents
    documents.subscribe(lambda uri, document: host.document_opened())
    # They were opened before this part was loaded, so the listener has not heard of them.
    if documents.all():
        host.document_opened()
    return host


# Shows in the editor that the index is being built: one progress bar, and only where there are many files.


class IndexProgress:
    """Shows the building of the index of one server as a progress bar."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._bar: Bar | None = None
        self._number = 0
        self._task: asyncio.Task[None] | None = None

    def observe(self, status: Status) -> None:
        """Begin, update or end the progress bar by a status of the index; indexes of fewer than 100 files get none."""
        if status.state == "building" and status.total >= MANY_FILES:
            self._report(status)
        elif self._bar is not None:
            key = "index.ready" if status.state == "ready" else "index.stopped"
            self._bar.end(text(key, self._client.language, files=status.files))
            self._bar = None

    def _report(self, status: Status) -> None:
        percentage = 100 * status.done // status.total
        bar = self._bar
        if bar is None:
            if not self._client.policy.progress:
                return
            self._number += 1
            title = text("index.building", self._client.language)
            bar = self._bar = Bar(self._client.server, f"codeagent-index-{self._number}", title, cancellable=False)
            bar.percentage = 0
            self._task = asyncio.ensure_future(bar.create())
        elif percentage < (bar.percentage or 0) + STEP:
            return
        bar.percentage = percentage - percentage % STEP
        bar.report(text("index.files", self._client.language, done=status.done, total=status.total))


# Sets up semantic search (by embedding vectors) for the index of a server, where the settings ask for it.


@dataclass(frozen=True, slots=True)
class Access:
    """What requests to a server need: key, headers, URL parameters, and how it is reached."""

    key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    network: NetworkSettings = NetworkSettings()


def access_for(url: str | None, model: ModelSettings, network: NetworkSettings) -> Access:
    """Return the access to the embeddings server at `url`: with key and headers of the model's server if both have one
    origin.
    """
    if url and model.base_url and _origin(url) == _origin(model.base_url):
        return Access(model.api_key, model.headers, model.query, network)
    return Access(network=network)


def meaning(
    settings: IndexSettings,
    store: Store,
    folders: Folders,
    language: str,
    note: Note,
    access: Access = Access(),
) -> VectorSearch | None:
    """Return the semantic search that the settings ask for; None if it is switched off or cannot work. `note` gets a
    sentence for the user with the reason, from any thread. Blocks: call it in a thread.
    """
    if settings.semantic is False:
        return None
    from codeagent_lsp.index.semantic import Semantic  # late, with the rest of the index
    from codeagent_lsp.index.vectors import Vectors  # late, with the rest of the index

    lacking = _missing(settings)
    if lacking:
        if settings.semantic is True:
            note(text(lacking, language))
        return None
    try:
        embedder = _embedder(settings.embeddings_base_url, access)
    except ModelError as error:
        note(text("index.semantic_failed", language, reason=error.localized(language)))
        return None
    place = settings.uri or str(store.path.with_name(VECTORS))

    def failed(reason: str) -> None:
        note(text("index.semantic_failed", language, reason=reason))

    return Semantic(store, folders, embedder, lambda model: Vectors(place, model), failed)


def _missing(settings: IndexSettings) -> str:
    """Return the key of the sentence that says what semantic search needs and is not there; '' for nothing."""
    from codeagent_lsp.index.vectors import is_installed  # late, with the rest of the index
    from codeagent_lsp.llm.embeddings import engine_installed  # late, with the rest of the index

    if not is_installed():
        return "index.semantic_missing"
    return "" if settings.embeddings_base_url or engine_installed() else "index.no_embedder"


def _embedder(url: str | None, access: Access) -> Embedding:
    """Return the embedder at `url`, else the built-in one. Raises ModelError for a URL that is none."""
    if not url:
        from codeagent_lsp.llm.embeddings import BuiltinEmbedder  # late, with the rest of the index

        return BuiltinEmbedder()
    from codeagent_lsp.llm.embeddings import Embedder  # late: an HTTP client
    from codeagent_lsp.llm.endpoint import endpoint  # late: an HTTP client

    return Embedder(endpoint(url, access.key, headers=access.headers, query=access.query, network=access.network))


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme.lower(), parts.netloc.lower()
