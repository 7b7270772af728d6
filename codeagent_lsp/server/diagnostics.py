"""Requests from the client the diagnostics that it shows, by a request of our own, if it announces support for it.

The answer is a list of LSP diagnostics, or `{version?, diagnostics}`; one for another version of the text is ignored.
Not here: linters (`tools/diagnostics/`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codeagent_lsp.errors import EditorError
from codeagent_lsp.protocol import DIAGNOSTICS_METHOD, SOURCE
from codeagent_lsp.tools.diagnostics import protocol_form
from codeagent_lsp.tools.diagnostics.port import Diagnostic

if TYPE_CHECKING:
    from codeagent_lsp.server.client import Client
    from codeagent_lsp.workspace.text.document import Document
    from codeagent_lsp.workspace.text.position import Encoding

SECONDS = 3.0


class ClientDiagnostics:
    """The `Diagnostics` port over LSP."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def of(self, path: str) -> tuple[Diagnostic, ...] | None:
        """Return the diagnostics of a file; None when the client has none to give or the text changed meanwhile."""
        documents = self._client.server.documents
        document = documents.by_path(path)
        if document is None or not self._client.policy.diagnostics:
            return None
        try:
            answer = await self._client.server.request(DIAGNOSTICS_METHOD, {"uri": document.uri}, SECONDS)
        except EditorError:
            return None
        if documents.by_path(path) is not document:  # the text has changed since the request
            return None
        items = _items(answer, document.version)
        return None if items is None else read(items, path, document, documents.encoding)


def read(items: list[Any], path: str, document: Document, encoding: Encoding) -> tuple[Diagnostic, ...]:
    """Convert LSP diagnostics to `Diagnostic`s; invalid ones and our own are left out."""
    made = protocol_form.read(items, path, document.text, encoding, document.lines)
    return tuple(item for item in made if item.source != SOURCE)


def _items(answer: Any, version: int | None) -> list[Any] | None:
    """Return the list in an answer of either shape; None when there is none for this version."""
    if isinstance(answer, dict):
        if answer.get("version") not in (None, version):
            return None
        answer = answer.get("diagnostics")
    return answer if isinstance(answer, list) else None
