"""OAuth login in the browser at an MCP server over HTTP: the library's flow with the user's consent.

It begins when the server answers 401: servers without a login cause no access to the keyring and no port. The library
discovers the authorization server, registers the client and builds the URL; the user is asked before it is opened, and
is redirected to a local port. Every URL that the server names is checked before use, each step is recorded, and secrets
are masked from then on. Heavy to import. Not here: what is stored of it (`kept_login.py`).
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from pydantic import AnyUrl, ValidationError

from codeagent_lsp.errors import ErrorCode
from codeagent_lsp.tools.mcp.errors import McpProblem, said
from codeagent_lsp.tools.mcp.health import Health
from codeagent_lsp.tools.mcp.kept_login import KeptLogin
from codeagent_lsp.tools.mcp.logins import Logins, Step
from codeagent_lsp.tools.mcp.oauth_callback import OAuthCallback
from codeagent_lsp.tools.mcp.settings import ServerSettings
from codeagent_lsp.tools.web.addresses import is_own, own_addresses
from codeagent_lsp.tools.web.dialing import Resolve, system_resolve

SECONDS = 300.0
"""Most seconds that a user may take in the browser."""
CLIENT = "codeagent-lsp"
UNAUTHORIZED = 401
REFUSED = (UNAUTHORIZED, 403)

Waiting = Callable[[], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def login_for(
    settings: ServerSettings, logins: Logins, health: Health, waiting: Waiting = nullcontext
) -> AsyncGenerator[httpx2.Auth, None]:
    """Yield the authentication for a server's requests. The user is waited for within the context `waiting`."""
    logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL)  # it logs what servers answer
    login = Login(settings, logins, health, waiting)
    try:
        yield login
    finally:
        await login.close()


class Login(httpx2.Auth):
    """OAuth authentication for httpx. Its errors are a McpProblem, which is also stored in `health.login`."""

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
        """Send plain requests until one is answered with 401, then run the library's OAuth flow."""
        if self._flow is None:
            response = yield request
            if response.status_code != UNAUTHORIZED:
                return
        provider = await self._begun()
        flow = provider.async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                if outgoing is not request:
                    await self._check(str(outgoing.url))
                self._health.status = 0  # what was refused before is past, unless it is refused again
                response = yield outgoing
                if outgoing is request and response.status_code in REFUSED:
                    self._renew_registration(provider)
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        except McpProblem as problem:
            await self._over("refused", str(problem))
            raise
        except (OAuthFlowError, ValidationError) as error:
            failed = self._failed(provider, error)
            await self._over("refused", str(failed))
            raise failed from None  # its cause may quote what is secret
        finally:
            await flow.aclose()

    async def close(self) -> None:
        """End a login in progress and release the port."""
        try:
            await self._stack.aclose()
            await self._over("abandoned")
        finally:
            if self._door is not None:
                self._door.close()

    async def _begun(self) -> OAuthClientProvider:
        """Return the library's flow, created at the first call with the stored state of an earlier login."""
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
                flow = OAuthClientProvider(self._settings.url, metadata, kept, self._opened, self._answered)
                kept.restore(flow.context, self._door.address)
                self._flow = flow
            return self._flow

    def _renew_registration(self, provider: OAuthClientProvider) -> None:
        """Forget a registration for another redirect address: its server would not redirect the
        browser to this port.
        """
        context = provider.context
        known = context.client_info.redirect_uris if context.client_info is not None else None
        if not set(context.client_metadata.redirect_uris or ()) & set(known or ()):
            context.client_info = None

    async def _opened(self, url: str) -> None:
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
            raise self._problem("mcp.login.failed", reason=said(error)) from error
        except BaseException:
            await self._stack.aclose()
            raise

    async def _answered(self) -> AuthorizationCodeResult:
        """Wait for the browser's redirect and return the authorization code. McpProblem if it is late or refused."""
        assert self._answer is not None
        try:
            async with asyncio.timeout(SECONDS):
                given = await self._answer
        except TimeoutError:
            raise self._problem("mcp.login.late", seconds=f"{SECONDS:g}") from None
        finally:
            await self._stack.aclose()
        if "code" not in given:
            reason = said(ValueError(f"{given.get('error', '')} {given.get('error_description', '')}".strip()))
            raise self._problem("mcp.login.refused", reason=reason)
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
        if is_local(own.hostname) and is_local(parts.hostname) and parts.scheme in ("http", "https"):
            return
        if parts.scheme != "https" or "@" in parts.netloc or await leads_here(parts.hostname):
            raise self._problem("mcp.login.address", address=said(ValueError(f"{parts.scheme}://{parts.netloc}")))

    def _failed(self, provider: OAuthClientProvider, error: Exception) -> McpProblem:
        """Return the problem of a failed login; a server without OAuth metadata needs a token in the settings."""
        context, unregistered = provider.context, isinstance(error, OAuthRegistrationError)
        if unregistered and context.protected_resource_metadata is None and context.oauth_metadata is None:
            return self._problem("mcp.unauthorized", where=self._settings.where, status=UNAUTHORIZED)
        return self._problem("mcp.login.failed", reason=said(error))

    def _problem(self, key: str, **values: Any) -> McpProblem:
        problem = McpProblem(key, ErrorCode.MCP_EXECUTION_ERROR, name=self._settings.name, **values)
        self._health.login = problem
        return problem


async def leads_here(host: str | None, resolve: Resolve = system_resolve) -> bool:
    """Return whether a host is this machine or link-local, or a name with such an address; own public ones count."""
    if is_local(host) or not host:
        return True
    own = await asyncio.to_thread(own_addresses)
    try:
        addresses = [host] if is_own(host, own) else await resolve(host, 443)
    except (OSError, UnicodeError):
        return False  # then nothing can connect to it either
    return any(is_local(address) or is_own(address, own) for address in addresses)


def is_local(host: str | None) -> bool:
    """Return whether a host is this machine or link-local."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return not host or host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_link_local or address.is_unspecified
