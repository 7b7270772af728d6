"""The stored result of an OAuth login, in a vault under the server's name: tokens, client registration, metadata.

It implements the library's storage port and adds what the library does not store: the expiry of a token and the server
that renews it, without which an expired token would need a new login. Secrets are reported before they are used or
stored, so that they are masked everywhere. Not here: the vault (`tools/variables/os_keyring.py`).
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
    """Ignore secrets: the default for `learn`."""


async def _silence() -> None:
    """Ignore new tokens: the default for `granted`."""


class KeptLogin:
    """The library's `TokenStorage` for one server. Stored values that cannot be read count as missing.

    `learn` is called with every secret, `granted` when new tokens arrive.
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
        """Load the stored values and return the port of the registered redirect address, 0 if there is none."""
        self._registered, self._tokens = await self._read("client"), await self._read("tokens")
        told = self._given.get("clientSecret", "")
        await self._learn((told, *_secrets(self._registered), *_secrets(self._tokens.get("tokens"))))
        uris = self._registered.get("redirect_uris")
        port = str(uris[0]).rpartition(":")[2].partition("/")[0] if isinstance(uris, list) and uris else ""
        return int(port) if re.fullmatch(r"[1-9][0-9]{0,4}", port) else 0

    def restore(self, context: OAuthContext, redirect: str) -> None:
        """Set the state of a new flow to that of the stored login."""
        self._context = context
        if self._given:
            self._registered = _told(self._given, redirect)
        context.oauth_metadata = _as(OAuthMetadata, self._tokens.get("metadata"))
        context.protected_resource_metadata = _as(ProtectedResourceMetadata, self._tokens.get("resource"))
        context.auth_server_url = self._tokens.get("issuer")
        expires = self._tokens.get("expires")
        context.token_expiry_time = float(expires) if isinstance(expires, int | float) else None

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens of the last login; None if there are none."""
        return _as(OAuthToken, self._tokens.get("tokens"))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store the tokens with what their renewal needs."""
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
        """Return the client registration at the server; None if there is none."""
        return _as(OAuthClientInformationFull, self._registered)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store the client registration with the redirect address, which servers may omit from their answer."""
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
        """Store a value; if the vault fails, it is kept in memory only."""
        try:
            await in_thread(lambda: self._vault.set(f"{self._name}.{part}", json.dumps(value)))
        except ToolFailed:
            return


def _secrets(given: Any) -> tuple[str, ...]:
    """Return the secret values of tokens or of a registration."""
    found = (given.get(key) for key in SECRET) if isinstance(given, Mapping) else ()
    return tuple(value for value in found if isinstance(value, str))


def _as(model: type[M], value: Any) -> M | None:
    try:
        return model.model_validate(value) if value else None
    except ValidationError:
        return None


def _told(given: Mapping[str, str], redirect: str) -> Mapping[str, Any]:
    """Return the client registration from the user's settings."""
    secret = given.get("clientSecret")
    method = "client_secret_basic" if secret else "none"
    told = {"client_id": given["clientId"], "client_secret": secret, "token_endpoint_auth_method": method}
    return {**told, "redirect_uris": [redirect]}


def _dumped(value: BaseModel | None) -> Any:
    return None if value is None else value.model_dump(mode="json", exclude_none=True)
