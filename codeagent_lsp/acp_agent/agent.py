"""The agent side of the Agent Client Protocol: what a client may call, and its sessions.

Not here: one session (`open_session.py`), the streams (`serve.py`).
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, Client, RequestError, schema

from codeagent_lsp import __version__
from codeagent_lsp.acp_agent.client_files import FolderNames
from codeagent_lsp.acp_agent.open_session import OpenSession
from codeagent_lsp.acp_agent.prompt_content import task_of
from codeagent_lsp.acp_agent.session_options import SessionOptions
from codeagent_lsp.language_servers.json_rpc import INTERNAL_ERROR, Refused
from codeagent_lsp.lsp_client.connection import ConnectionLost
from codeagent_lsp.settings_files import read_policy, read_user_settings
from codeagent_lsp.settings_layers import environment_layer, load, refusal
from codeagent_lsp.texts import choose_language, text

SETUP = "setup"
"""The authentication method: a dialogue in a terminal that finds or takes a model."""

FILES_OF_THE_DISK = ("CodeCompanion.nvim",)
"""Clients that answer with what is on the disk when they are asked for a file, and put what they are given in the place
of a buffer's unsaved text (CodeCompanion 19.22). They are not asked, and files are written to the disk: the editor then
asks its user before it drops anything.
"""

McpServers = Sequence[Any] | None


class Agent:
    """The methods that one client of the Agent Client Protocol calls, and its sessions by id, until `close`. `locale`
    is the user's, `settings` the first layer of every session's settings. What fails raises RequestError, which the
    client is shown.
    """

    def __init__(self, locale: str, settings: Mapping[str, Any] | None = None) -> None:
        self._settings = dict(settings or {})
        self._language = choose_language(str(self._settings.get("language", "auto")), locale)
        self._offered: schema.ClientCapabilities | None = None
        self._client: Client | None = None
        self._sessions: dict[str, OpenSession] = {}
        self._spare: dict[tuple[Path, ...], OpenSession] = {}  # servers that were started for a list
        self._opening = asyncio.Lock()

    def on_connect(self, conn: Client) -> None:
        """Take the connection to the client; called by the library before anything else."""
        self._client = conn

    async def close(self) -> None:
        """End all sessions and their servers; never raises."""
        every = [*self._sessions.values(), *self._spare.values()]
        self._sessions.clear()
        self._spare.clear()
        await asyncio.gather(*(session.close() for session in every), return_exceptions=True)

    # The connection.

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: schema.ClientCapabilities | None = None,
        client_info: schema.Implementation | None = None,
        **kwargs: Any,
    ) -> schema.InitializeResponse:
        """Return what this agent can do (`initialize` of the Agent Client Protocol, in the version that this agent
        speaks), and note what the client offers.
        """
        self._offered = client_capabilities
        if client_capabilities and client_info and client_info.name in FILES_OF_THE_DISK:
            self._offered = client_capabilities.model_copy(update={"fs": None})
        sessions = schema.SessionCapabilities(
            list=schema.SessionListCapabilities(),
            resume=schema.SessionResumeCapabilities(),
            close=schema.SessionCloseCapabilities(),
            fork=schema.SessionForkCapabilities(),
            additional_directories=schema.SessionAdditionalDirectoriesCapabilities(),
        )
        return schema.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, audio=False, embedded_context=True),
                mcp_capabilities=schema.McpCapabilities(http=True, sse=True),
                session_capabilities=sessions,
            ),
            auth_methods=[self._setup()],
            agent_info=schema.Implementation(name="codeagent-lsp", title="codeagent-lsp", version=__version__),
        )

    def _setup(self) -> schema.TerminalAuthMethod:
        name = text("acp.setup", self._language)
        command = shutil.which("codeagent-lsp")
        # Clients that do not know the type `terminal` yet take the command from here.
        run = {"command": command, "args": [SETUP]} if command else {"command": sys.executable, "args": _MODULE}
        return schema.TerminalAuthMethod(
            type="terminal",
            id=SETUP,
            name=name,
            description=text("acp.about_setup", self._language),
            args=[SETUP],
            field_meta={"terminal-auth": {"label": name, **run}},
        )

    async def authenticate(self, method_id: str, **kwargs: Any) -> schema.AuthenticateResponse:
        """Accept the method `setup` without a check; whether there is a model shows at the first prompt. RequestError
        for another method.
        """
        if method_id != SETUP:
            raise RequestError.invalid_params({"details": f"no authentication method {method_id!r}"})
        return schema.AuthenticateResponse()

    # Sessions.

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: McpServers = None,
        **kwargs: Any,
    ) -> schema.NewSessionResponse:
        """Begin a session in `cwd`, an absolute path, and start its own server, which takes up to 60 s. Return its id
        and options. RequestError if the server does not start.
        """
        async with self._open(cwd, additional_directories, mcp_servers) as session:
            await session.new()
        return schema.NewSessionResponse(
            session_id=session.session_id, modes=session.options.modes(), config_options=session.options.config()
        )

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: McpServers = None,
        additional_directories: list[str] | None = None,
        **kwargs: Any,
    ) -> schema.LoadSessionResponse:
        """Continue a session and send its conversation to the client; a server that works for it here is replaced.
        Return its options. RequestError if the session is unknown or in use elsewhere, or its server does not start.
        """
        session = await self._resume(session_id, cwd, additional_directories, mcp_servers, shown=True)
        return schema.LoadSessionResponse(modes=session.options.modes(), config_options=session.options.config())

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: McpServers = None,
        **kwargs: Any,
    ) -> schema.ResumeSessionResponse:
        """Continue a session whose conversation the client shows already; a server that works for it here is replaced.
        Return its options. RequestError as for `load_session`.
        """
        session = await self._resume(session_id, cwd, additional_directories, mcp_servers, shown=False)
        return schema.ResumeSessionResponse(modes=session.options.modes(), config_options=session.options.config())

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: McpServers = None,
        **kwargs: Any,
    ) -> schema.ForkSessionResponse:
        """Begin a session with the conversation of another one, by its id, with a server of its own. Return its id and
        options. RequestError if that session is unknown, or the server does not start.
        """
        async with self._open(cwd, additional_directories, mcp_servers) as session:
            await session.fork(session_id)
        return schema.ForkSessionResponse(
            session_id=session.session_id, modes=session.options.modes(), config_options=session.options.config()
        )

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **kwargs: Any
    ) -> schema.ListSessionsResponse:
        """Return the sessions of a folder, without one those of all folders that are open here; all at once, so
        `cursor` is ignored. May start a server for it, which the next session uses.
        """
        open_here = {session.names.real: session.names for session in self._sessions.values()}
        wanted = [*open_here.values()] if cwd is None and open_here else [_folders(cwd or str(Path.cwd()), ())]
        found: list[schema.SessionInfo] = []
        for names in wanted:
            rows = await self._rows(names)
            found += [
                schema.SessionInfo(
                    session_id=row["sessionId"],
                    cwd=names.shown(str(names.real[0])),
                    title=row.get("title") or None,
                    updated_at=datetime.fromtimestamp(row["modified"], UTC).isoformat(),
                )
                for row in rows
                if row.get("title")  # one without a title has no run yet
            ]
        return schema.ListSessionsResponse(sessions=found)

    async def close_session(self, session_id: str, **kwargs: Any) -> schema.CloseSessionResponse:
        """Cancel the session's run and end its server. The session stays on the disk and can be continued. RequestError
        for an unknown session.
        """
        session = self._session(session_id)
        del self._sessions[session_id]
        await session.cancel()
        await session.close()
        return schema.CloseSessionResponse()

    # Prompts and options.

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> schema.PromptResponse:
        """Run the task of a prompt, a list of content blocks of the protocol, in a session and return why it ended,
        which may take hours; `cancel` ends it. A server that has ended is started again first. RequestError for an
        unknown session, or if that fails.
        """
        session = await self._revive(session_id)
        with _explained():
            return await session.prompt(task_of(prompt, session.names))

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        """Cancel the run in progress and all prompts that wait; nothing for an unknown session."""
        if (session := self._sessions.get(session_id)) is not None:
            await session.cancel()

    async def set_session_mode(self, session_id: str, mode_id: str, **kwargs: Any) -> schema.SetSessionModeResponse:
        """Set the permission mode of a session, which is what the agent may do without asking. RequestError for an
        unknown session or mode.
        """
        session = self._session(session_id)
        with _explained():
            await session.set_option("mode", mode_id)
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **kwargs: Any
    ) -> schema.SetSessionConfigOptionResponse:
        """Set one option of a session (`mode`, `model` or `effort`) and return all of them. RequestError for an unknown
        session or value.
        """
        session = self._session(session_id)
        with _explained():
            await session.set_option(config_id, str(value))
        return schema.SetSessionConfigOptionResponse(config_options=session.options.config())

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Raise RequestError: this agent has no methods beyond the protocol."""
        raise RequestError.method_not_found(f"_{method}")

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Ignore a notification beyond the protocol."""

    # Servers.

    async def _revive(self, session_id: str) -> OpenSession:
        """Return a session; one whose server has ended gets another, and goes on where it was."""
        session = self._session(session_id)
        if not session.lost:
            return session
        async with self._opening:
            if (session := self._session(session_id)).lost:
                made = session.again()
                try:
                    with _explained():
                        await made.start()
                        await made.resume(session_id, shown=False)
                except BaseException:
                    await made.close()
                    raise
                await session.close()
                self._sessions[session_id] = session = made
        return session

    def _session(self, session_id: str) -> OpenSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise RequestError.resource_not_found(session_id)
        return session

    async def _resume(
        self,
        session_id: str,
        cwd: str,
        additional: list[str] | None,
        mcp_servers: McpServers,
        *,
        shown: bool,
    ) -> OpenSession:
        async with self._open(cwd, additional, mcp_servers, session_id) as session:
            await session.resume(session_id, shown=shown)
        return session

    @asynccontextmanager
    async def _open(
        self, cwd: str, additional: list[str] | None, mcp_servers: McpServers, session_id: str = ""
    ) -> AsyncIterator[OpenSession]:
        """Start a server for a session, which has its name when the block ends, and end the one that works with
        `session_id`. RequestError if that fails.
        """
        names = _folders(cwd, additional or ())
        async with self._opening:
            if (known := self._sessions.pop(session_id, None)) is not None:  # its server has the session's file
                await known.cancel()
                await known.close()
            servers = _mcp(mcp_servers or ())
            session = None if servers else self._spare.pop(names.real, None)
            session = session or self._create_session(names, servers)
            try:
                with _explained():
                    await session.start()
                    yield session
            except BaseException:
                await session.close()
                raise
            self._sessions[session.session_id] = session

    def _create_session(self, names: FolderNames, servers: Mapping[str, Any]) -> OpenSession:
        assert self._client is not None
        policy = read_policy()
        if (refused := refusal(policy)) is not None:
            raise RequestError(INTERNAL_ERROR, refused.localized(self._language))
        settings, _ = load(environment_layer(), self._settings, policy=policy, user=read_user_settings())
        # Beside the user's own, of which the client knows nothing.
        every = {**settings.mcp.servers, **servers}
        layer = {**self._settings, **({"mcp.servers": every} if servers else {})}
        language = settings.language if settings.language != "auto" else self._language
        options = SessionOptions.of(settings.permissions, settings.model, language)
        return OpenSession(self._client, names, self._offered, options, layer)

    async def _rows(self, names: FolderNames) -> list[dict[str, Any]]:
        """Return the sessions of some folders, by a server that works there; one that is started for it is kept for
        the next session.
        """
        folders = names.real
        with _explained():
            async with self._opening:
                session = next((each for each in self._sessions.values() if each.names.real == folders), None)
                if session is None and folders not in self._spare:
                    made = self._create_session(names, {})
                    try:
                        await made.start()
                    except BaseException:
                        await made.close()
                        raise
                    for other in [*self._spare]:  # one at most
                        with suppress(KeyError):
                            await self._spare.pop(other).close()
                    self._spare[folders] = made
                rows: list[dict[str, Any]] = await (session or self._spare[folders]).command("codeagent.session.list")
                return rows


_MODULE = ["-m", "codeagent_lsp.cli", SETUP]


class _explained:  # noqa: N801 - used as a function
    """Turns the errors of a server into those of the protocol, with what the server said."""

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Raise RequestError for what a server refuses, and for one that has ended."""
        if isinstance(error, Refused | ConnectionLost):
            raise RequestError(INTERNAL_ERROR, str(error) or "the server has ended") from error


def _folders(cwd: str, additional: Iterable[str]) -> FolderNames:
    """Return the folders of a session. RequestError if one is none."""
    found = tuple(dict.fromkeys(Path(each) for each in (cwd, *additional)))
    for folder in found:
        if not folder.is_absolute() or not folder.is_dir():
            raise RequestError.invalid_params({"details": f"{folder} is not the absolute path of a folder"})
    return FolderNames(found)


def _mcp(servers: Iterable[Any]) -> dict[str, Any]:
    """Return the servers of tools that a client names, as the setting `mcp.servers` has them."""
    found: dict[str, Any] = {}
    for server in servers:
        match server:
            case schema.McpServerStdio():
                env = {each.name: each.value for each in server.env}
                found[server.name] = {"command": server.command, "args": list(server.args), "env": env}
            case schema.HttpMcpServer() | schema.SseMcpServer():
                headers = {each.name: each.value for each in server.headers}
                transport = "sse" if isinstance(server, schema.SseMcpServer) else "http"
                found[server.name] = {"url": server.url, "headers": headers, "transport": transport}
    return found
