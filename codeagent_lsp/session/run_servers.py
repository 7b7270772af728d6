"""The language servers of one run: those of the user's editor while the run has staged nothing, else our own.

The editor's servers know the buffers, and nothing of what is staged. Not here: asking the editor
(`server/workspace_ports.py`), our own servers (`language_servers/`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from codeagent_lsp.language_servers.values import ServerAnswer, ServerQuestion, parameters
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.text.position import Encoding

if TYPE_CHECKING:  # needed for annotations only
    from codeagent_lsp.language_servers.session_servers import SessionServers


class EditorServers(Protocol):
    """Port: the language servers of the user's editor, as far as it lends them."""

    @property
    def encoding(self) -> Encoding:
        """Return the position encoding of questions to the editor."""

    async def ask(self, uri: str, method: str, params: Mapping[str, Any]) -> tuple[ServerAnswer, ...]:
        """Return the answers about a document; none if the editor lends no server."""


class RunServers:
    """The `CodeServers` of one run; `note` receives the troubles of servers."""

    def __init__(
        self,
        view: FileView,
        staging: Staging,
        editor: EditorServers | None,
        own: SessionServers,
        note: Callable[[str], None],
    ) -> None:
        self._view = view
        self._staging = staging
        self._editor = editor
        self._own = own
        self._note = note

    async def ask(self, question: ServerQuestion) -> tuple[ServerAnswer, ...]:
        """See `CodeServers`."""
        if self._editor is not None and not self._staging.changeset:
            text = await asyncio.to_thread(_text, self._view, question.path)
            if answers := await self._lent(self._editor, question, text):
                return answers
        answers = await self._own.ask(self._view, question)
        for trouble in self._own.take_troubles():
            self._note(trouble)
        return answers

    async def _lent(self, editor: EditorServers, question: ServerQuestion, text: str) -> tuple[ServerAnswer, ...]:
        params = parameters(question, text, editor.encoding)
        answers = await editor.ask(uris.from_path(question.path), question.method, params)
        # The user has typed while the editor answered: its positions are for a text that nobody has any more.
        if await asyncio.to_thread(_text, self._view, question.path) != text:
            return ()
        return tuple(each for each in answers if question.server in ("", each.server))


def _text(view: FileView, path: str) -> str:
    return view.read(path).text
