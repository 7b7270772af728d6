"""Sets up semantic search (by embedding vectors) for the index of a server, where the settings ask for it.

Its heavy parts are imported late. Not here: what is embedded and found (`index/semantic.py`), getting the vectors from
their server (`llm/embeddings.py`) or from the built-in model (`llm/builtin_embeddings.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

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


def key_for(url: str | None, model: ModelSettings) -> str | None:
    """Return the API key of the model's server, if the embeddings come from the same origin; None otherwise."""
    return model.api_key if url and model.base_url and _origin(url) == _origin(model.base_url) else None


def meaning(
    settings: IndexSettings, store: Store, folders: Folders, language: str, note: Note, key: str | None = None
) -> VectorSearch | None:
    """Return the semantic search that the settings ask for; None for none. `key` is the API key of the embeddings
    server.

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
        embedder = _embedder(settings.embeddings_base_url, key)
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


def _embedder(url: str | None, key: str | None) -> Embedding:
    """Return the embedder at `url`, else the built-in one. Raises ModelError for a URL that is none."""
    if not url:
        from codeagent_lsp.llm.builtin_embeddings import BuiltinEmbedder  # late, with the rest of the index

        return BuiltinEmbedder()
    from codeagent_lsp.llm.embeddings import Embedder  # late: an HTTP client
    from codeagent_lsp.llm.endpoint import endpoint  # late: an HTTP client

    return Embedder(endpoint(url, key))


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme.lower(), parts.netloc.lower()
