"""Builds the code index of a server with its progress reports, file watching, and semantic search.

Not here: the index (`index/host.py`), the semantic search (`index_meaning.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from codeagent_lsp.index.host import IndexHost
from codeagent_lsp.server.front import Front
from codeagent_lsp.server.index_meaning import access_for, meaning
from codeagent_lsp.server.index_progress import IndexProgress
from codeagent_lsp.server.watched_files import watch

if TYPE_CHECKING:
    from codeagent_lsp.index.port import VectorSearch
    from codeagent_lsp.index.scan import Folders
    from codeagent_lsp.index.store import Store


def index_host(front: Front, tell: Callable[[str], None]) -> IndexHost:
    """Return the index of the workspace; `tell` shows the user why semantic search does not work."""

    async def watched() -> bool:
        return front.client.policy.watches_files and await watch(front.server)

    def vectors(store: Store, folders: Folders) -> VectorSearch | None:
        settings = front.settings()
        access = access_for(settings.index.embeddings_base_url, settings.model, settings.network)
        return meaning(settings.index, store, folders, front.language(), tell, access)

    progress = IndexProgress(front.client)
    host = IndexHost(front.folders, lambda: front.settings().index, progress.observe, watched, vectors)
    documents = front.server.documents
    documents.subscribe(lambda uri, document: host.document_opened())
    if documents.all():
        host.document_opened()
    return host
