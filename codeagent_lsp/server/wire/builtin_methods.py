"""The methods that every language server has: start, text synchronisation, commands, shutdown.

Overrides of pygls' own; the documents go to our `Documents` and never to pygls' workspace, which still keeps the
workspace folders. Handlers registered with `@server.feature` for these methods run after them.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, cast

from lsprotocol import types
from pygls.protocol import lsp_method

from codeagent_lsp.server.clients import completes_always, real_encoding
from codeagent_lsp.server.wire.phase import Phase
from codeagent_lsp.server.wire.protocol_guard import GuardedProtocol
from codeagent_lsp.workspace.text.document import Change, Document
from codeagent_lsp.workspace.text.position import Encoding

Steps = Generator[Any, Any, Any]


class CodeAgentProtocol(GuardedProtocol):
    """The dispatcher with the built-in methods of this server."""

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Steps:
        """Agree on capabilities and the position encoding; a failure leaves the server as it was."""
        self.phase = Phase.STARTING
        try:
            result = yield from super().lsp_initialize(params)
        except BaseException:
            self.phase = Phase.FRESH
            raise
        result.capabilities.inline_completion_provider = completes_always(params) or None
        agreed = result.capabilities.position_encoding or "utf-16"
        self._server.documents.encoding = real_encoding(params, cast("Encoding", getattr(agreed, "value", agreed)))
        self.phase = Phase.READY
        self._server.started(params.process_id)
        return result

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *args: Any) -> Steps:
        """Refuse all further messages but `exit`, let the feature handler clean up, cancel running requests."""
        self.phase = Phase.SHUT
        yield from self._user(types.SHUTDOWN, *args)
        self.open_requests.cancel_others()

    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: Any) -> Steps:
        """End the process: with code 0 after `shutdown`, else 1."""
        yield from self._user(types.EXIT, *args)
        self._server.leave(self.phase.exit_code, "the client asked for it")

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Steps:
        """Add a document."""
        item = params.text_document
        self._server.documents.open(Document(item.uri, item.text, item.version, str(item.language_id)))
        yield from self._user(types.TEXT_DOCUMENT_DID_OPEN, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Steps:
        """Apply the changes in order."""
        item = params.text_document
        changes = [_change(change) for change in params.content_changes]
        self._server.documents.change(item.uri, item.version, changes)
        yield from self._user(types.TEXT_DOCUMENT_DID_CHANGE, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Steps:
        """Remove a document."""
        self._server.documents.close(params.text_document.uri)
        yield from self._user(types.TEXT_DOCUMENT_DID_CLOSE, params)

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(  # type: ignore[override]
        self, params: types.ExecuteCommandParams
    ) -> Any:
        """Run a command; a coroutine, so that `$/cancelRequest` can cancel it."""
        return await self._server.execute_command(params.command, list(params.arguments or ()))

    def _user(self, method: str, *args: Any) -> Steps:
        """Call the handler that a feature registered for a built-in method, if there is one."""
        handler = self.fm.features.get(method)
        if handler is not None:
            yield handler, args, None


def _change(change: types.TextDocumentContentChangeEvent) -> Change:
    if isinstance(change, types.TextDocumentContentChangeWholeDocument):
        return Change(change.text)
    start, end = change.range.start, change.range.end
    return Change(change.text, (start.line, start.character), (end.line, end.character))
