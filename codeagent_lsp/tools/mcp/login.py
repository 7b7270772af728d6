"""A login by the browser (OAuth) with a server over HTTP: the library's own flow, with a user who agrees to it.

Begins when the server answers 401, and not before: neither a keyring nor a port is touched for servers that ask for
no login. The library discovers where, registers us, and makes an address for the browser; the user is asked before it
is opened, and comes back to a port of ours. Every address that the server names on the way is checked before it is
used, what it becomes is written down, and what is secret in it is masked from then on. Heavy to import. Not here: what
is kept of it (`kept_login.py`).
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

SECONDS = 300.0
"""How long a user may take in the browser."""
CLIENT = "codeagent-lsp"
UNAUTHORIZED = 401
REFUSED = (UNAUTHORIZED, 403)

Waiting = Callable[[], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def login_for(
    settings: ServerSettings, logins: Logins, health: Health, waiting: Waiting = nullcontext
) -> AsyncGenerator[httpx2.Auth, None]:
    """What logs the requests to a server in. Within `waiting` a person is waited for."""
    logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL)  # it logs what servers answer
    login = Login(settings, logins, health, waiting)
    try:
        yield login
    finally:
        await login.close()


class Login(httpx2.Auth):
    """What goes wrong in it is a McpProblem, which `health.login` has too."""

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
        """Plain requests until one is refused for want of a login."""
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
                    self._check(str(outgoing.url))
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
        """Wait for nobody any more, and let the port go."""
        try:
            await self._stack.aclose()
            await self._over("abandoned")
        finally:
            if self._door is not None:
                self._door.close()

    async def _begun(self) -> OAuthClientProvider:
        """The library's flow, with what an earlier login left."""
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
        """Whoever registered us for another port would not send a browser to this one."""
        context = provider.context
        known = context.client_info.redirect_uris if context.client_info is not None else None
        if not set(context.client_metadata.redirect_uris or ()) & set(known or ()):
            context.client_info = None

    async def _opened(self, url: str) -> None:
        """Ask the user, and open the page."""
        assert self._door is not None
        self._check(url)
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
        """What the browser brings back."""
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
        """New tokens came."""
        if self._under_way:
            await self._over("granted")
        else:
            await self._record("renewed")

    async def _over(self, step: Step, reason: str = "") -> None:
        """What became of the login that is under way, if one is."""
        if self._under_way:
            self._under_way = False
            await self._record(step, reason)

    async def _record(self, step: Step, reason: str = "") -> None:
        await self._logins.record(self._settings.name, self._settings.where, step, reason)

    def _check(self, url: str) -> None:
        """A server on the net may name addresses of the net, encrypted; one on this machine also such of it."""
        parts, own = urlsplit(url), urlsplit(self._settings.url)
        if (parts.scheme, parts.netloc) == (own.scheme, own.netloc):
            return
        if is_local(own.hostname) and is_local(parts.hostname) and parts.scheme in ("http", "https"):
            return
        if parts.scheme != "https" or is_local(parts.hostname) or "@" in parts.netloc:
            raise self._problem("mcp.login.address", address=said(ValueError(f"{parts.scheme}://{parts.netloc}")))

    def _failed(self, provider: OAuthClientProvider, error: Exception) -> McpProblem:
        """A server that says nothing of logins wants a token of the settings."""
        context, unregistered = provider.context, isinstance(error, OAuthRegistrationError)
        if unregistered and context.protected_resource_metadata is None and context.oauth_metadata is None:
            return self._problem("mcp.unauthorized", where=self._settings.where, status=UNAUTHORIZED)
        return self._problem("mcp.login.failed", reason=said(error))

    def _problem(self, key: str, **values: Any) -> McpProblem:
        problem = McpProblem(key, ErrorCode.MCP_EXECUTION_ERROR, name=self._settings.name, **values)
        self._health.login = problem
        return problem


def is_local(host: str | None) -> bool:
    """Whether a name or an address is this machine, or only its neighbours see it."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return not host or host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_link_local or address.is_unspecified
