"""Requests from the client the diagnostics that it shows, by a request of our own, if it announces support for it.

The answer is a list of LSP diagnostics, or `{version?, diagnostics}`; one for another version of the text is ignored.
Not here: linters (`tools/diagnostics/`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codeagent_lsp.errors import EditorError
from codeagent_lsp.protocol import DIAGNOSTICS_METHOD, SOURCE
from codeagent_lsp.tools.diagnostics.port import Diagnostic, Severity

if TYPE_CHECKING:
    from codeagent_lsp.server.client import Client
    from codeagent_lsp.workspace.text.document import Document
    from codeagent_lsp.workspace.text.position import Encoding

SECONDS = 3.0
MAX_ITEMS = 500
MAX_MESSAGE = 2000
_SEVERITIES: dict[Any, Severity] = {1: "error", 2: "warning", 3: "info", 4: "hint"}


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
    """Convert LSP diagnostics to `Diagnostic`s, at most `MAX_ITEMS`; invalid ones and our own are left out."""
    made = (_diagnostic(item, path, document, encoding) for item in items[:MAX_ITEMS])
    return tuple(item for item in made if item is not None and item.source != SOURCE)


def _items(answer: Any, version: int | None) -> list[Any] | None:
    """Return the list in an answer of either shape; None when there is none for this version."""
    if isinstance(answer, dict):
        if answer.get("version") not in (None, version):
            return None
        answer = answer.get("diagnostics")
    return answer if isinstance(answer, list) else None


def _diagnostic(item: Any, path: str, document: Document, encoding: Encoding) -> Diagnostic | None:
    message, start = _get(item, "message"), _get(_get(item, "range"), "start")
    line, character = _get(start, "line"), _get(start, "character")
    if not (isinstance(message, str) and _is_count(line) and _is_count(character)):
        return None
    place = document.position(document.offset(line, character, encoding), "utf-32")
    severity = _SEVERITIES.get(_get(item, "severity"), "warning")
    source, code = _get(item, "source"), _get(item, "code")
    return Diagnostic(
        path,
        place.line + 1,
        place.character + 1,
        severity,
        message[:MAX_MESSAGE],
        source[:100] if isinstance(source, str) else "",
        str(code)[:100] if isinstance(code, str | int) else "",
    )


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
