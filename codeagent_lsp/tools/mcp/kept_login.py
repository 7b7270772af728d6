"""What a login gave, kept in a vault under the server's name: tokens, who we are there, and where to renew them.

The library's port for it, and the parts that the library does not keep: when a token expires, and which server renews
it. Without those a token that ran out while nobody looked would be a new login. What is secret in it is told before
it is used or kept, so that it is masked everywhere. Not here: the vault (`../variables/os_keyring.py`).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from pydantic import BaseModel, ValidationError

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.tools.mcp.settings import ServerSettings
from codeagent_lsp.tools.variables.variables import Vault, in_thread

M = TypeVar("M", bound=BaseModel)
Learn = Callable[[Iterable[str]], Awaitable[None]]
Told = Callable[[], Awaitable[None]]

SECRET = ("access_token", "refresh_token", "client_secret")


async def _nobody(secrets: Iterable[str]) -> None:
    """Nobody masks anything."""


async def _silence() -> None:
    """Nobody asks."""


class KeptLogin:
    """The library's `TokenStorage`. Its names tell servers apart; what cannot be read counts as nothing.

    `learn` hears of everything secret, `granted` of new tokens.
    """

    def __init__(
        self,
        vault: Vault,
        settings: ServerSettings,
        clock: Callable[[], float] = time.time,
        *,
        learn: Learn = _nobody,
        granted: Told = _silence,
    ) -> None:
        self._vault = vault
        self._learn = learn
        self._granted = granted
        self._given = settings.oauth
        self._name = f"mcp-login.{settings.identity}"
        self._clock = clock
        self._context: OAuthContext | None = None
        self._registered: Mapping[str, Any] = {}
        self._tokens: Mapping[str, Any] = {}

    async def load(self) -> int:
        """Read what is kept; the port that we were registered with, 0 for none."""
        self._registered, self._tokens = await self._read("client"), await self._read("tokens")
        told = self._given.get("clientSecret", "")
        await self._learn((told, *_secrets(self._registered), *_secrets(self._tokens.get("tokens"))))
        uris = self._registered.get("redirect_uris")
        port = str(uris[0]).rpartition(":")[2].partition("/")[0] if isinstance(uris, list) and uris else ""
        return int(port) if re.fullmatch(r"[1-9][0-9]{0,4}", port) else 0

    def restore(self, context: OAuthContext, redirect: str) -> None:
        """Give a new login what an older one knew."""
        self._context = context
        if self._given:
            self._registered = _told(self._given, redirect)
        context.oauth_metadata = _as(OAuthMetadata, self._tokens.get("metadata"))
        context.protected_resource_metadata = _as(ProtectedResourceMetadata, self._tokens.get("resource"))
        context.auth_server_url = self._tokens.get("issuer")
        expires = self._tokens.get("expires")
        context.token_expiry_time = float(expires) if isinstance(expires, int | float) else None

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens of the last login."""
        return _as(OAuthToken, self._tokens.get("tokens"))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep these, and what renewing them needs."""
        given = tokens.model_dump(mode="json", exclude_none=True)
        await self._learn(_secrets(given))
        context = self._context
        expires = None if tokens.expires_in is None else self._clock() + tokens.expires_in
        self._tokens = {
            "tokens": given,
            "expires": expires,
            "metadata": _dumped(context.oauth_metadata if context else None),
            "resource": _dumped(context.protected_resource_metadata if context else None),
            "issuer": context.auth_server_url if context else None,
        }
        await self._granted()
        await self._write("tokens", self._tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Who we are at the server."""
        return _as(OAuthClientInformationFull, self._registered)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep who we are, with the address that we registered, which the server may leave out of its answer."""
        ours = self._context.client_metadata.redirect_uris if self._context else None
        given = client_info.model_dump(mode="json", exclude_none=True)
        await self._learn(_secrets(given))
        self._registered = {**given, "redirect_uris": [str(uri) for uri in ours or ()]}
        await self._write("client", self._registered)

    async def _read(self, part: str) -> Mapping[str, Any]:
        try:
            kept = await in_thread(lambda: self._vault.get(f"{self._name}.{part}"))
            value = json.loads(kept or "{}")
        except (ToolFailed, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    async def _write(self, part: str, value: Mapping[str, Any]) -> None:
        """Where the vault fails, what was learnt holds as long as we run."""
        try:
            await in_thread(lambda: self._vault.set(f"{self._name}.{part}", json.dumps(value)))
        except ToolFailed:
            return


def _secrets(given: Any) -> tuple[str, ...]:
    """What nobody may see of tokens or of a registration."""
    found = (given.get(key) for key in SECRET) if isinstance(given, Mapping) else ()
    return tuple(value for value in found if isinstance(value, str))


def _as(model: type[M], value: Any) -> M | None:
    try:
        return model.model_validate(value) if value else None
    except ValidationError:
        return None


def _told(given: Mapping[str, str], redirect: str) -> Mapping[str, Any]:
    """Who we are by the user's settings."""
    secret = given.get("clientSecret")
    method = "client_secret_basic" if secret else "none"
    told = {"client_id": given["clientId"], "client_secret": secret, "token_endpoint_auth_method": method}
    return {**told, "redirect_uris": [redirect]}


def _dumped(value: BaseModel | None) -> Any:
    return None if value is None else value.model_dump(mode="json", exclude_none=True)
