"""A login as the editor shows it: the question, the page in the browser, and editors that can show none."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, cast

import pytest
from lsprotocol import types

from codeagent_lsp.config import TraceSettings
from codeagent_lsp.errors import EditorError, ToolFailed
from codeagent_lsp.records.rotation import read_records
from codeagent_lsp.server.clients import ClientPolicy
from codeagent_lsp.server.front import Client
from codeagent_lsp.server.mcp_servers import McpLogins, Memory
from codeagent_lsp.server.prompts import Prompts
from codeagent_lsp.server.server import CodeAgentServer
from codeagent_lsp.server.virtual_documents import VirtualDocuments
from codeagent_lsp.session.inbox import Inbox
from codeagent_lsp.session.redaction.recording import AUDIT_FILE, open_records
from codeagent_lsp.session.redaction.redactor import Redactor
from codeagent_lsp.tools.variables.variables import Vault
from tests.bench.mcp_conformance import obedient
from tests.server.test_prompts import Answers, Wire
from tests.tools.mcp.issuer import issuing
from tests.tools.mcp.rig import running

URL = "https://login.example/authorize?state=abc"


class Editor:
    """Chooses the title at `chosen`; opens pages, cannot, or fails. Its records are in `state`."""

    visits = False

    def __init__(self, chosen: int | None, *, opens: bool | None = True, state: Path | None = None) -> None:
        self.chosen = chosen
        self.opens = opens
        self.wire = Wire(self.respond)
        self.going: list[asyncio.Task[None]] = []
        self.redactor = Redactor(lambda: open_records(cast("Path", state), TraceSettings(), (), "an editor"))

    async def respond(self, method: str, params: Any) -> Any:
        if method == types.WINDOW_SHOW_MESSAGE_REQUEST:
            return None if self.chosen is None else params.actions[self.chosen]
        if self.opens is None:
            raise EditorError("editor.error", method=method, message="no")
        if self.visits:
            self.going.append(asyncio.ensure_future(obedient(params.uri)))
        return types.ShowDocumentResult(success=self.opens)

    def logins(self, *, shows: bool = True, vault: Vault | None = None) -> McpLogins:
        client = Client(cast("CodeAgentServer", self.wire), policy=ClientPolicy(shows_documents=shows))
        documents = cast("VirtualDocuments", Answers(shown=True))
        prompts = Prompts(client, documents)
        inbox = prompts.inbox = Inbox(prompts, 5.0)
        return McpLogins(client, inbox, self.redactor, lambda: vault)

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

    monkeypatch.setattr("codeagent_lsp.server.mcp_servers.in_thread", silent)
    kept = await Editor(1).logins().vault()
    kept.set("a", "b")
    assert kept.get("a") == "b"


async def test_what_becomes_of_a_login_stands_in_the_audit(tmp_path: Path) -> None:
    editor = Editor(0, state=tmp_path)
    logins = editor.logins()
    assert not await logins.browse("s", "https://h/mcp", URL)
    await logins.record("s", "https://h/mcp", "refused", "it was declined")
    await editor.redactor.close()
    decided, login = read_records(tmp_path / AUDIT_FILE)
    assert (decided["type"], decided["decision"], decided["by"]) == ("decided", "Deny", "user")
    assert "log in at login.example" in decided["subject"]
    told = {key: login[key] for key in ("type", "server", "where", "step", "reason")}
    assert told == {
        "type": "login",
        "server": "s",
        "where": "https://h/mcp",
        "step": "refused",
        "reason": "it was declined",
    }


async def test_a_token_is_masked_from_the_moment_that_it_is_known(tmp_path: Path) -> None:
    editor, plain = Editor(1, state=tmp_path), "a token that looks like words"
    logins, text = editor.logins(), f"it says {plain} and more"
    opened = await editor.redactor.ready()
    assert opened.masking.hide(text) == editor.redactor.hide(text) == text
    await logins.learn([plain])
    await editor.redactor.note("told", words=text)
    assert plain not in opened.masking.hide(text)
    assert plain not in editor.redactor.hide(text)
    assert plain not in str(editor.redactor.clean({"type": "message", "words": text}))
    await editor.redactor.close()
    assert plain not in (tmp_path / AUDIT_FILE).read_text()


@pytest.mark.slow  # a server, a login and a renewal
async def test_tokens_are_masked_when_they_came_and_when_they_were_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = Editor(1, state=tmp_path / "state")
    editor.visits = True
    async with issuing("blabs", lifetime=60) as issuer:
        given = {"s": {"url": issuer.url, "autoApprove": ["work"], "timeoutSeconds": 10}}
        async with running(tmp_path, given, logins=editor.logins()) as rig:
            await rig.until_tools("mcp.s.work")
            first = await rig.call("mcp.s.work")
            monkeypatch.setattr(time, "time", lambda now=time.time: now() + 3600)
            issuer.forget_tokens()
            second = await rig.call("mcp.s.work")
        opened = await editor.redactor.ready()
        for result in (first, second):
            assert any(secret in result.text for secret in issuer.secrets), result.text
            shown = opened.masking.hide(result.text)
            assert "You came with <secret:" in shown and not any(secret in shown for secret in issuer.secrets)
        await editor.redactor.close()
        steps = [row["step"] for row in read_records(tmp_path / "state" / AUDIT_FILE) if row["type"] == "login"]
        assert steps[:2] == ["started", "granted"] and set(steps[2:]) == {"renewed"}
        written = "".join(path.read_text() for path in (tmp_path / "state").iterdir())
        assert not any(secret in written for secret in issuer.secrets)
