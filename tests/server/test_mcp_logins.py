"""A login as the editor shows it: the question, the page in the browser, and editors that can show none."""

from __future__ import annotations

from typing import Any, cast

import pytest
from lsprotocol import types

from codeagent_lsp.errors import EditorError, ToolFailed
from codeagent_lsp.server.clients import ClientPolicy
from codeagent_lsp.server.mcp_logins import McpLogins, Memory
from codeagent_lsp.server.prompts import Prompts
from codeagent_lsp.server.server import CodeAgentServer
from codeagent_lsp.server.virtual_documents import VirtualDocuments
from codeagent_lsp.session.inbox import Inbox
from codeagent_lsp.tools.variables import Vault
from tests.server.test_prompts import Answers, Wire

URL = "https://login.example/authorize?state=abc"


class Editor:
    """Chooses the title at `chosen`; opens pages, cannot, or fails."""

    def __init__(self, chosen: int | None, *, opens: bool | None = True) -> None:
        self.chosen = chosen
        self.opens = opens
        self.wire = Wire(self.respond)

    async def respond(self, method: str, params: Any) -> Any:
        if method == types.WINDOW_SHOW_MESSAGE_REQUEST:
            return None if self.chosen is None else params.actions[self.chosen]
        if self.opens is None:
            raise EditorError("editor.error", method=method, message="no")
        return types.ShowDocumentResult(success=self.opens)

    def logins(self, *, shows: bool = True, vault: Vault | None = None) -> McpLogins:
        can, server = ClientPolicy(shows_documents=shows), cast(CodeAgentServer, self.wire)
        documents = cast(VirtualDocuments, Answers(shown=True))
        prompts = Prompts(server, lambda: can, documents, lambda: "en")
        inbox = prompts.inbox = Inbox(prompts, 5.0)
        return McpLogins(server, lambda: can, lambda: "en", inbox, lambda: vault)

    def pages(self) -> list[Any]:
        return [params for method, params in self.wire.requests if method == types.WINDOW_SHOW_DOCUMENT]


async def test_yes_opens_the_page_outside_of_the_editor() -> None:
    editor = Editor(1)
    assert await editor.logins().browse("s", "https://h/mcp", URL)
    (page,) = editor.pages()
    assert (page.uri, page.external) == (URL, True)
    assert editor.wire.notes == []
    (_, question) = editor.wire.requests[0]
    assert "MCP server s at https://h/mcp wants you to log in at login.example" in question.message


@pytest.mark.parametrize("chosen", [0, None])
async def test_anything_but_a_yes_opens_nothing(chosen: int | None) -> None:
    editor = Editor(chosen)
    assert not await editor.logins().browse("s", "https://h/mcp", URL)
    assert editor.pages() == []


@pytest.mark.parametrize(("shows", "opens"), [(False, True), (True, False), (True, None)])
async def test_where_no_page_can_be_opened_the_address_is_told(shows: bool, opens: bool | None) -> None:
    editor = Editor(1, opens=opens)
    assert await editor.logins(shows=shows).browse("s", "https://h/mcp", URL)
    ((method, note),) = editor.wire.notes
    assert method == types.WINDOW_SHOW_MESSAGE and URL in note.message


async def test_the_keyring_is_asked_once_and_memory_stands_in() -> None:
    vault = Memory()
    assert await Editor(1).logins(vault=vault).vault() is vault
    logins = Editor(1).logins()
    assert await logins.vault() is await logins.vault()


async def test_a_keyring_that_does_not_answer_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(work: Any) -> Any:
        raise ToolFailed("it did not answer")

    monkeypatch.setattr("codeagent_lsp.server.mcp_logins.in_thread", silent)
    kept = await Editor(1).logins().vault()
    kept.set("a", "b")
    assert kept.get("a") == "b"
