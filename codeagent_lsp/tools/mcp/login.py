"""OAuth login in the browser at an MCP server over HTTP: the library's flow with the user's consent.

It begins when the server answers 401: servers without a login cause no access to the keyring and no port. The library
discovers the authorization server, registers the client and builds the URL; the user is asked before it is opened, and
is redirected to a local port. Every URL that the server names is checked before use, each step is recorded, and secrets
are masked from then on. Heavy to import. Not here: the address to which the browser returns (`oauth_callback.py`).
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.state import json_object
from codeagent_lsp.tools.mcp.errors import McpProblem, error_message
from codeagent_lsp.tools.mcp.host import Logins, Step
from codeagent_lsp.tools.mcp.oauth_callback import OAuthCallback
from codeagent_lsp.tools.mcp.settings import ServerSettings
from codeagent_lsp.tools.mcp.stdio import Health
from codeagent_lsp.tools.variables.variables import Vault, in_thread
from codeagent_lsp.tools.web.dialing import Resolve, system_resolve
from codeagent_lsp.tools.web.urls import is_own, own_addresses

SECONDS = 300.0
"""Most seconds that a user may take in the browser."""
CLIENT = "codeagent-lsp"
UNAUTHORIZED = 401
REFUSED = (UNAUTHORIZED, 403)

Waiting = Callable[[], AbstractAsyncContextManager[None]]
M = TypeVar("M", bound=BaseModel)
Learn = Callable[[Iterable[str]], Awaitable[None]]
Told = Callable[[], Awaitable[None]]

SECRET = ("access_token", "refresh_token", "client_secret")


@asynccontextmanager
async def login_for(
    settings: ServerSettings, logins: Logins, health: Health, waiting: Waiting = nullcontext
) -> AsyncGenerator[httpx2.Auth, None]:
    """Yield the authentication for a server's requests, for httpx; a login that goes on is ended with this context. The
    user is waited for within the context `waiting`.
    """
    logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL)  # it logs what servers answer
    login = Login(settings, logins, health, waiting)
    try:
        yield login
    finally:
        await login.close()


class Login(httpx2.Auth):
    """OAuth authentication of httpx for one server; made by `login_for`. It fails with a McpProblem, which is also
    stored in `health.login`.
    """

    def __init__(self, settings: ServerSettings, logins: Logins, health: Health, waiting: Waiting) -> None:
        self._settings = settings
        self._logins = logins
        self._health = health
        self._waiting = waiting
        self._turn = asyncio.Lock()
        self._flow: OAuthClientProvider | None = None
        self._door: OAuthCallback | None = None
        self._stack = AsyncExitStack()
        self._answer: asyncio.Future[Mapping[str, str]] | None = None
        self._under_way = False

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Yield the request unchanged until one is answered with 401, then run the library's OAuth flow, which opens a
        browser and waits for the user. The port of httpx's `Auth`. McpProblem if the login fails or the user declines.
        """
        if self._flow is None:
            response = yield request
            if response.status_code != UNAUTHORIZED:
                return
        provider = await self._begin()
        flow = provider.async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                # All but the request itself goes to addresses that the server has named.
                if outgoing is not request:
                    await self._check(str(outgoing.url))
                self._health.status = 0  # what was refused before is past, unless it is refused again
                response = yield outgoing
                # The flow is about to begin a login; it would take the stored registration as it is.
                if outgoing is request and response.status_code in REFUSED:
                    self._renew_registration(provider)
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        except McpProblem as problem:
            await self._over("refused", str(problem))
            raise
        except (OAuthFlowError, ValidationError) as error:
            failed = self._failure(provider, error)
            await self._over("refused", str(failed))
            raise failed from None  # its cause may quote what is secret
        finally:
            await flow.aclose()

    async def close(self) -> None:
        """End a login in progress, record it as abandoned, and release the port. Waits for the user's tab to be
        answered, about a second at most.
        """
        try:
            await self._stack.aclose()
            await self._over("abandoned")
        finally:
            if self._door is not None:
                self._door.close()

    async def _begin(self) -> OAuthClientProvider:
        """Return the library's flow, created at the first call with the stored state of an earlier login."""
        # Several requests may be answered with 401 at once; only one may take the port.
        async with self._turn:
            if self._flow is None:
                logins, vault = self._logins, await self._logins.vault()
                kept = KeptLogin(vault, self._settings, learn=logins.learn, granted=self._granted)
                self._door = OAuthCallback(await kept.load(), self._logins.words("mcp.login.done"))
                metadata = OAuthClientMetadata(
                    client_name=CLIENT,
                    redirect_uris=[AnyUrl(self._door.address)],
                    grant_types=["authorization_code", "refresh_token"],
                    response_types=["code"],
                )
                flow = OAuthClientProvider(self._settings.url, metadata, kept, self._open_page, self._wait_for_code)
                kept.restore(flow.context, self._door.address)
                self._flow = flow
            return self._flow

    def _renew_registration(self, provider: OAuthClientProvider) -> None:
        """Forget a registration for another redirect address: its server would not redirect the browser to this
        port.
        """
        context = provider.context
        known = context.client_info.redirect_uris if context.client_info is not None else None
        if not set(context.client_metadata.redirect_uris or ()) & set(known or ()):
            context.client_info = None

    async def _open_page(self, url: str) -> None:
        """Ask the user for consent and open the login page. McpProblem if the user declines or it fails."""
        assert self._door is not None
        await self._check(url)
        self._under_way = True
        await self._record("started")
        state = parse_qs(urlsplit(url).query).get("state", [""])[0]
        try:
            await self._stack.enter_async_context(self._waiting())
            self._answer = await self._stack.enter_async_context(self._door.opened(state))
            if not await self._logins.browse(self._settings.name, self._settings.where, url):
                raise self._problem("mcp.login.declined")
        except OSError as error:
            await self._stack.aclose()
            raise self._problem("mcp.login.failed", reason=error_message(error)) from error
        # A cancelled login must not keep the limits suspended and the port open.
        except BaseException:
            await self._stack.aclose()
            raise

    async def _wait_for_code(self) -> AuthorizationCodeResult:
        """Wait for the browser's redirect and return the authorization code. McpProblem if it is late or refused."""
        assert self._answer is not None
        try:
            async with asyncio.timeout(SECONDS):
                given = await self._answer
        except TimeoutError:
            raise self._problem("mcp.login.late", seconds=f"{SECONDS:g}") from None
        finally:
            await self._stack.aclose()
        # Refused in the browser, by the user or by the server.
        if "code" not in given:
            reason = error_message(ValueError(f"{given.get('error', '')} {given.get('error_description', '')}".strip()))
            raise self._problem("mcp.login.refused", reason=reason)
        # Masked from now on wherever it could be recorded, though it can be used only once.
        await self._logins.learn((given["code"],))
        return AuthorizationCodeResult(code=given["code"], state=given.get("state"), iss=given.get("iss"))

    async def _granted(self) -> None:
        """Record that new tokens arrived."""
        if self._under_way:
            await self._over("granted")
        else:
            await self._record("renewed")

    async def _over(self, step: Step, reason: str = "") -> None:
        """Record the outcome of the login in progress, if there is one."""
        if self._under_way:
            self._under_way = False
            await self._record(step, reason)

    async def _record(self, step: Step, reason: str = "") -> None:
        await self._logins.record(self._settings.name, self._settings.where, step, reason)

    async def _check(self, url: str) -> None:
        """Check a URL that the server names: https on the net; for a server on this machine, also local addresses.
        McpProblem.
        """
        parts, own = urlsplit(url), urlsplit(self._settings.url)
        if (parts.scheme, parts.netloc) == (own.scheme, own.netloc):
            return
        # For trying out a server on this machine; one on the net must not send the browser or us to local ports.
        if is_local(own.hostname) and is_local(parts.hostname) and parts.scheme in ("http", "https"):
            return
        if parts.scheme != "https" or "@" in parts.netloc or await leads_here(parts.hostname):
            raise self._problem(
                "mcp.login.address", address=error_message(ValueError(f"{parts.scheme}://{parts.netloc}"))
            )

    def _failure(self, provider: OAuthClientProvider, error: Exception) -> McpProblem:
        """Return the problem of a failed login; a server without OAuth metadata needs a token in the settings."""
        context, unregistered = provider.context, isinstance(error, OAuthRegistrationError)
        if unregistered and context.protected_resource_metadata is None and context.oauth_metadata is None:
            return self._problem("mcp.unauthorized", where=self._settings.where, status=UNAUTHORIZED)
        return self._problem("mcp.login.failed", reason=error_message(error))

    def _problem(self, key: str, **values: Any) -> McpProblem:
        problem = McpProblem(key, ErrorCode.MCP_EXECUTION_ERROR, name=self._settings.name, **values)
        self._health.login = problem
        return problem


async def leads_here(host: str | None, resolve: Resolve = system_resolve) -> bool:
    """Return whether a host is this machine or link-local, or a name with such an address; own public ones count. False
    for a name that cannot be resolved.
    """
    if is_local(host) or not host:
        return True
    own = await asyncio.to_thread(own_addresses)
    try:
        addresses = [host] if is_own(host, own) else await resolve(host, 443)
    except (OSError, UnicodeError):
        return False  # then nothing can connect to it either
    return any(is_local(address) or is_own(address, own) for address in addresses)


def is_local(host: str | None) -> bool:
    """Return whether a host, a name or an address, is this machine or link-local by its spelling; names are not
    resolved. True also for None and ''.
    """
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return not host or host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_link_local or address.is_unspecified


# The stored result of an OAuth login, in a vault under the server's name: tokens, client registration, metadata.


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
        """Load the stored registration and tokens, have their secrets masked, and return the port of the registered
        redirect address, 0 if there is none. A vault that fails counts as empty.
        """
        self._registered, self._tokens = await self._read("client"), await self._read("tokens")
        told = self._given.get("clientSecret", "")
        await self._learn((told, *_secrets(self._registered), *_secrets(self._tokens.get("tokens"))))
        uris = self._registered.get("redirect_uris")
        port = str(uris[0]).rpartition(":")[2].partition("/")[0] if isinstance(uris, list) and uris else ""
        return int(port) if re.fullmatch(r"[1-9][0-9]{0,4}", port) else 0

    def restore(self, context: OAuthContext, redirect: str) -> None:
        """Set the state of a new flow, `context` of the library, to that of the stored login; `redirect` is the present
        redirect address.
        """
        self._context = context
        if self._given:
            self._registered = _registration_of(self._given, redirect)
        context.oauth_metadata = _as(OAuthMetadata, self._tokens.get("metadata"))
        context.protected_resource_metadata = _as(ProtectedResourceMetadata, self._tokens.get("resource"))
        context.auth_server_url = self._tokens.get("issuer")
        expires = self._tokens.get("expires")
        context.token_expiry_time = float(expires) if isinstance(expires, int | float) else None

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens of the last login; None if there are none, or they cannot be read."""
        return _as(OAuthToken, self._tokens.get("tokens"))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Have the tokens masked and store them, with the time at which they expire and what their renewal needs. If
        the vault fails, they are kept in memory only.
        """
        given = tokens.model_dump(mode="json", exclude_none=True)
        # Before anything else, so that no log gets them first.
        await self._learn(_secrets(given))
        context = self._context
        expires = None if tokens.expires_in is None else self._clock() + tokens.expires_in
        self._tokens = {
            "tokens": given,
            "expires": expires,
            "metadata": _dump(context.oauth_metadata if context else None),
            "resource": _dump(context.protected_resource_metadata if context else None),
            "issuer": context.auth_server_url if context else None,
        }
        await self._granted()
        await self._write("tokens", self._tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the registration of this client at the authorization server; None if there is none."""
        return _as(OAuthClientInformationFull, self._registered)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store the client registration with our redirect address, which servers may omit from their answer. If the
        vault fails, it is kept in memory only.
        """
        ours = self._context.client_metadata.redirect_uris if self._context else None
        given = client_info.model_dump(mode="json", exclude_none=True)
        await self._learn(_secrets(given))
        self._registered = {**given, "redirect_uris": [str(uri) for uri in ours or ()]}
        await self._write("client", self._registered)

    async def _read(self, part: str) -> Mapping[str, Any]:
        try:
            kept = await in_thread(lambda: self._vault.get(f"{self._name}.{part}"))
        except ToolFailed:
            return {}
        return json_object(kept or "{}") or {}

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


def _registration_of(given: Mapping[str, str], redirect: str) -> Mapping[str, Any]:
    """Return the client registration from the user's settings."""
    secret = given.get("clientSecret")
    method = "client_secret_basic" if secret else "none"
    told = {"client_id": given["clientId"], "client_secret": secret, "token_endpoint_auth_method": method}
    return {**told, "redirect_uris": [redirect]}


def _dump(value: BaseModel | None) -> Any:
    return None if value is None else value.model_dump(mode="json", exclude_none=True)
