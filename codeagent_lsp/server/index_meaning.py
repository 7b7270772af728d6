"""Sets up semantic search (by embedding vectors) for the index of a server, where the settings ask for it.

Its heavy parts are imported late. Not here: what is embedded and found (`index/semantic.py`), getting the vectors from
their server (`llm/embeddings.py`) or from the built-in model (`llm/builtin_embeddings.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.errors import ModelError
from codeagent_lsp.texts import text

if TYPE_CHECKING:  # heavy
    from codeagent_lsp.config import IndexSettings, ModelSettings
    from codeagent_lsp.index.port import VectorSearch
    from codeagent_lsp.index.scan import Folders
    from codeagent_lsp.index.semantic import Embedding
    from codeagent_lsp.index.store import Store

VECTORS = "vectors"

Note = Callable[[str], None]
"""A function that shows the user a sentence."""


@dataclass(frozen=True, slots=True)
class Access:
    """What requests to a server carry, and how it is reached."""

    key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    network: NetworkSettings = NetworkSettings()


def access_for(url: str | None, model: ModelSettings, network: NetworkSettings) -> Access:
    """Return the access to the embeddings server: the model's, if it has the same origin."""
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
    """Return the semantic search that the settings ask for; None for none. `access` is that to the embeddings server.

    `note` gets, in the user's language, the reason when it does not work, from any thread. Blocks: call it in a thread.
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
    from codeagent_lsp.index.vectors import installed  # late, with the rest of the index
    from codeagent_lsp.llm.builtin_embeddings import engine_installed  # late, with the rest of the index

    if not installed():
        return "index.semantic_missing"
    return "" if settings.embeddings_base_url or engine_installed() else "index.no_embedder"


def _embedder(url: str | None, access: Access) -> Embedding:
    """Return the embedder at `url`, else the built-in one. Raises ModelError for a URL that is none."""
    if not url:
        from codeagent_lsp.llm.builtin_embeddings import BuiltinEmbedder  # late, with the rest of the index

        return BuiltinEmbedder()
    from codeagent_lsp.llm.embeddings import Embedder  # late: an HTTP client
    from codeagent_lsp.llm.endpoint import endpoint  # late: an HTTP client

    return Embedder(endpoint(url, access.key, headers=access.headers, query=access.query, network=access.network))


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme.lower(), parts.netloc.lower()
