"""What is kept of a login, in which words, and what becomes of it when it does not fit any more."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken
from pydantic import AnyUrl

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.server.mcp_servers import Memory
from codeagent_lsp.tools.mcp.login import KeptLogin
from codeagent_lsp.tools.mcp.settings import ServerSettings

BACK = "http://127.0.0.1:4711/callback"
SERVER = ServerSettings("s", "http", url="https://h/mcp")
METADATA = OAuthMetadata.model_validate(
    {"issuer": "https://a", "authorization_endpoint": "https://a/x", "token_endpoint": "https://a/token"}
)


def context(kept: KeptLogin) -> OAuthContext:
    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(BACK)])
    return OAuthClientProvider(SERVER.url, metadata, kept).context


async def logged_in(vault: Memory, server: ServerSettings = SERVER) -> None:
    kept = KeptLogin(vault, server, lambda: 1000.0)
    await kept.load()
    made = context(kept)
    kept.restore(made, BACK)
    made.oauth_metadata, made.auth_server_url = METADATA, "https://a"
    await kept.set_client_info(OAuthClientInformationFull(client_id="me"))
    await kept.set_tokens(OAuthToken(access_token="one", refresh_token="two", expires_in=60))


async def test_all_that_the_next_start_needs() -> None:
    vault = Memory()
    await logged_in(vault)
    kept = KeptLogin(vault, SERVER)
    assert await kept.load() == 4711
    made = context(kept)
    kept.restore(made, BACK)
    assert made.token_expiry_time == 1060.0
    assert made.oauth_metadata == METADATA and made.auth_server_url == "https://a"
    tokens, client = await kept.get_tokens(), await kept.get_client_info()
    assert tokens is not None and (tokens.access_token, tokens.refresh_token) == ("one", "two")
    assert client is not None and client.client_id == "me"


async def test_what_is_secret_is_told_before_it_is_kept_and_after_it_is_read() -> None:
    told: list[str] = []
    early: list[str] = []
    vault = Memory()

    async def learn(secrets: Iterable[str]) -> None:
        new = [secret for secret in secrets if secret]
        told.extend(new)
        early.extend(secret for secret in new if secret not in str(vault._values))

    kept = KeptLogin(vault, SERVER, learn=learn)
    await kept.load()
    kept.restore(context(kept), BACK)
    await kept.set_client_info(OAuthClientInformationFull(client_id="me", client_secret="three"))
    await kept.set_tokens(OAuthToken(access_token="one", refresh_token="two"))
    await kept.set_tokens(OAuthToken(access_token="four"))
    assert told == early == ["three", "one", "two", "four"]
    told.clear()
    await KeptLogin(vault, SERVER, learn=learn).load()
    assert told == ["three", "four"]


async def test_another_port_loses_no_tokens() -> None:
    vault = Memory()
    await logged_in(vault)
    kept = KeptLogin(vault, SERVER)
    await kept.load()
    kept.restore(context(kept), BACK.replace("4711", "4712"))
    assert await kept.get_tokens() is not None


async def test_servers_are_kept_apart() -> None:
    vault = Memory()
    await logged_in(vault)
    other = KeptLogin(vault, ServerSettings("s", "http", url="https://other/mcp"))
    assert await other.load() == 0
    assert await other.get_tokens() is None


async def test_no_command_can_ask_for_it() -> None:
    vault = Memory()
    await logged_in(vault)
    assert all(not name.isidentifier() for name in vault._values)


@pytest.mark.parametrize("value", ["", "{", "[]", '{"tokens": 3, "redirect_uris": 3}', '{"redirect_uris": ["x:y/z"]}'])
async def test_rubbish_is_nothing(value: str) -> None:
    vault = Memory()
    await logged_in(vault)
    vault._values = dict.fromkeys(vault._values, value)
    kept = KeptLogin(vault, SERVER)
    assert await kept.load() == 0
    kept.restore(context(kept), BACK)
    assert await kept.get_tokens() is None


async def test_a_vault_that_fails_costs_only_the_memory() -> None:
    class Failing(Memory):
        def get(self, name: str) -> str | None:
            raise ToolFailed("locked")

        def set(self, name: str, value: str) -> None:
            raise ToolFailed("locked")

    kept = KeptLogin(Failing(), SERVER)
    assert await kept.load() == 0
    kept.restore(context(kept), BACK)
    await kept.set_tokens(OAuthToken(access_token="one"))
    tokens = await kept.get_tokens()
    assert tokens is not None and tokens.access_token == "one"


async def test_a_client_of_the_settings_stands_above() -> None:
    vault = Memory()
    await logged_in(vault)
    server = ServerSettings("s", "http", url="https://h/mcp", oauth={"clientId": "own", "clientSecret": "word"})
    kept = KeptLogin(vault, server)
    await kept.load()
    kept.restore(context(kept), BACK)
    client = await kept.get_client_info()
    assert client is not None
    assert (client.client_id, client.token_endpoint_auth_method) == ("own", "client_secret_basic")
    assert "word" not in json.dumps(vault._values)
