"""One language server: its start, requests to it, and the parts that make it up.

Not here: the process and its bytes (`server_connection.py`), which servers run when (`session_servers.py`).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from typing import Any

from codeagent_lsp.language_servers.known import KnownServer
from codeagent_lsp.language_servers.server_connection import Handler, ServerConnection, ServerLate
from codeagent_lsp.language_servers.text_diagnostics import OpenTexts, TextDiagnostics
from codeagent_lsp.shadow.shell import Launch, ProcessLimits
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.text.position import Encoding

START_SECONDS = 60.0
YOUNG_SECONDS = 15.0
LOADING_SECONDS = 300.0
PATIENCE_SECONDS = 5.0
"""The least time for which a question must have had no answer to count against the server."""

MAX_LATE = 2
"""The number of such questions in a row after which a server is ended."""

_ENCODINGS: Mapping[str, Encoding] = {"utf-8": "utf-8", "utf-16": "utf-16", "utf-32": "utf-32"}
_NOTHING = {"dynamicRegistration": False}
CAPABILITIES: dict[str, Any] = {
    # The one encoding that the protocol demands of every server.
    "general": {"positionEncodings": ["utf-16"]},
    "window": {"workDoneProgress": True},
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        "workspaceEdit": {"documentChanges": True, "resourceOperations": ["create", "rename", "delete"]},
        "symbol": _NOTHING,
        "diagnostics": {"refreshSupport": True},
    },
    "textDocument": {
        "synchronization": {**_NOTHING, "didSave": True},
        "publishDiagnostics": {"versionSupport": True, "relatedInformation": False},
        "diagnostic": {"dynamicRegistration": True, "relatedDocumentSupport": False},  # or pyright only pushes
        "hover": {"contentFormat": ["plaintext", "markdown"]},
        "definition": {"linkSupport": True},
        "typeDefinition": {"linkSupport": True},
        "implementation": {"linkSupport": True},
        "references": _NOTHING,
        "rename": {"prepareSupport": True},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "callHierarchy": _NOTHING,
        "typeHierarchy": _NOTHING,
        "codeAction": {
            "codeActionLiteralSupport": {
                "codeActionKind": {"valueSet": ["", "quickfix", "refactor", "source", "source.organizeImports"]}
            },
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit"]},
        },
    },
    "experimental": {"serverStatusNotification": True},
}
_PROVIDERS = {
    "textDocument/definition": "definitionProvider",
    "textDocument/typeDefinition": "typeDefinitionProvider",
    "textDocument/implementation": "implementationProvider",
    "textDocument/references": "referencesProvider",
    "textDocument/hover": "hoverProvider",
    "textDocument/rename": "renameProvider",
    "textDocument/codeAction": "codeActionProvider",
    "textDocument/documentSymbol": "documentSymbolProvider",
    "textDocument/signatureHelp": "signatureHelpProvider",
    "textDocument/formatting": "documentFormattingProvider",
    "textDocument/rangeFormatting": "documentRangeFormattingProvider",
    "textDocument/prepareCallHierarchy": "callHierarchyProvider",
    "textDocument/prepareTypeHierarchy": "typeHierarchyProvider",
    "textDocument/diagnostic": "diagnosticProvider",
    "workspace/symbol": "workspaceSymbolProvider",
}
QUIET_SECONDS = 0.4
MAX_BUSY = 200
_MAX_ITEMS = 100
_LONGEST_METHOD = 200
_STARTING = "starting"


class LanguageServer:
    """One server process for one project, from `start` to `close`. `encoding` is that of its positions, `open` has the
    texts that it has open.
    """

    def __init__(self, known: KnownServer, folder: str, settings: Mapping[str, Any]) -> None:
        self.known = known
        self.encoding: Encoding = "utf-16"
        self._folder = folder
        self._settings = settings
        self._client = ClientSide(folder, settings, known.ready)
        self._capabilities: Mapping[str, Any] = {}
        self._started = time.monotonic()
        self._late = 0
        self.connection = ServerConnection(known.name)
        self.open = OpenTexts(known, self.connection)
        self._diagnostics = TextDiagnostics(known, self.connection, self.open)
        self.connection.handle({**self._client.handlers, "textDocument/publishDiagnostics": self._diagnostics.take})

    async def start(self, launch: Launch, limits: ProcessLimits) -> None:
        """Start and initialize the server. ToolFailed if it cannot be started or does not answer within 60 s; `close`
        must be called even then.
        """
        await self.connection.start(launch, limits)
        answer = await self.connection.request("initialize", self._initialize(), START_SECONDS)
        capabilities = answer.get("capabilities") if isinstance(answer, dict) else None
        self._capabilities = capabilities if isinstance(capabilities, dict) else {}
        self.encoding = _ENCODINGS.get(str(self._capabilities.get("positionEncoding")), "utf-16")
        self.connection.notify("initialized", {})
        # Some servers take settings from this notification only and never ask.
        if self._settings:
            self.connection.notify("workspace/didChangeConfiguration", {"settings": dict(self._settings)})

    async def request(self, method: str, params: Mapping[str, Any], seconds: float) -> Any:
        """Send a request and return the result as plain JSON. ServerFailed if there is no answer within `seconds`, or
        the server refuses or has ended. A server is ended if two requests in a row of at least 5 s get no answer in
        time, unless it is loading.
        """
        try:
            result = await self.connection.request(method, dict(params), seconds)
        except ServerLate:
            self._late += seconds >= PATIENCE_SECONDS and not self._is_loading
            if self._late >= MAX_LATE:
                self.connection.end("it does not answer")
            raise
        self._late = 0
        return result

    def can(self, method: str) -> bool:
        """Return whether the server has announced, at its start or later, that it answers a method of LSP; True for
        methods that servers do not announce.
        """
        name = _PROVIDERS.get(method)
        offered = name is None or self._capabilities.get(name) not in (None, False)  # options may be an empty object
        return offered or self._client.registered(method)

    @property
    def is_young(self) -> bool:
        """Whether the server was started less than 15 s ago, so that it may still be looking for files."""
        return time.monotonic() - self._started < YOUNG_SECONDS

    async def settled(self, seconds: float) -> None:
        """Wait until the server has reported no work of its own for 0.4 s, at most `seconds`, or until it has ended."""
        await self._client.settled(seconds, self.connection.lost)

    async def diagnostics(self, path: str, deadline: float) -> list[Any] | None:
        """Return the diagnostics of an open text, by absolute path, as it is now, as plain JSON; None if they are not
        known by `deadline`, a time of `time.monotonic`.
        """
        if not await self._client.started(deadline, self.connection.lost):
            return None
        return await self._diagnostics.of(path, deadline, pulls=self.can("textDocument/diagnostic"))

    @property
    def _is_loading(self) -> bool:
        """Return whether the server says that it is at work, and has not said so for too long: an import of a large
        project takes minutes, and begins anew with another start.
        """
        return self._client.busy and time.monotonic() - self._started < LOADING_SECONDS

    async def close(self) -> None:
        """End the server; it has 1 s to end by itself, then it is killed. Waits for its end, also when cancelled."""
        await self.connection.close()

    def _initialize(self) -> dict[str, Any]:
        return {
            # In the sandbox our id is that of no process, and a server would end itself.
            "processId": None,
            "clientInfo": {"name": "codeagent-lsp"},
            "rootUri": self._client.folder_item["uri"],
            "rootPath": self._folder,
            "workspaceFolders": [self._client.folder_item],
            "capabilities": CAPABILITIES,
            "initializationOptions": dict(self.known.options),
        }


# What a language server asks and tells its client: settings, folders, progress. Nothing is ever applied or shown.


class ClientSide:
    """Answers the requests and takes the notifications of one server for the project in `folder` with these settings.
    `ready` is a part of the log message by which the server says that it has found the project's files; '' for one that
    says it by progress or not at all.
    """

    def __init__(self, folder: str, settings: Mapping[str, Any], ready: str = "") -> None:
        self.folder_item = {"uri": uris.from_path(folder), "name": os.path.basename(folder)}  # noqa: PTH119
        self._settings = settings
        self._ready = ready
        self._busy: set[str] = {_STARTING} if ready else set()
        self._since = time.monotonic()
        self._registered: set[str] = set()

    @property
    def handlers(self) -> dict[str, Handler]:
        """The functions that answer the server's own requests and take its notifications, by method, from plain JSON to
        plain JSON. Edits that it asks for are refused.
        """
        return {
            "workspace/configuration": self._configuration,
            "workspace/workspaceFolders": lambda params: [self.folder_item],
            "workspace/applyEdit": lambda params: {"applied": False, "failureReason": "not asked for"},
            "workspace/diagnostic/refresh": lambda params: None,
            "client/registerCapability": self._register,
            "client/unregisterCapability": lambda params: None,
            "window/showMessageRequest": lambda params: None,
            "window/showDocument": lambda params: {"success": False},
            "window/workDoneProgress/create": lambda params: None,
            "window/logMessage": self._log,
            "$/progress": self._progress,
            "experimental/serverStatus": self._status,
        }

    def registered(self, method: str) -> bool:
        """Return whether the server has announced after its start (`client/registerCapability`) that it answers a
        method.
        """
        return method in self._registered

    @property
    def busy(self) -> bool:
        """Whether the server reports work of its own, such as indexing, by LSP's progress."""
        return bool(self._busy - {_STARTING})

    async def started(self, deadline: float, lost: asyncio.Event) -> bool:
        """Wait until the server has found the project's files, if it is one that says so, or has ended; return False if
        it has not by `deadline`, a time of `time.monotonic`.
        """
        while _STARTING in self._busy and not lost.is_set():
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(0.02)
        return True

    async def settled(self, seconds: float, lost: asyncio.Event) -> None:
        """Wait until the server has reported no work of its own for 0.4 s, at most `seconds`, or until `lost` is
        set.
        """
        deadline = time.monotonic() + seconds
        while (now := time.monotonic()) < deadline and not lost.is_set():
            rest = self._since + QUIET_SECONDS - now
            if not self._busy and rest <= 0:
                return
            await asyncio.sleep(max(min(rest, 0.2), 0.05))

    def _configuration(self, params: Any) -> list[Any]:
        items = params.get("items") if isinstance(params, dict) else None
        return [self._section(item) for item in items[:_MAX_ITEMS]] if isinstance(items, list) else []

    def _section(self, item: Any) -> Any:
        value: Any = self._settings
        name = item.get("section") if isinstance(item, dict) else None
        # Without a section, all settings are asked for.
        for key in str(name or "").split("."):
            value = value.get(key) if isinstance(value, Mapping) and key else value
        return value if value is not None else {}

    def _register(self, params: Any) -> None:
        items = params.get("registrations") if isinstance(params, dict) else None
        for item in items[:_MAX_ITEMS] if isinstance(items, list) else ():
            if isinstance(item, dict) and len(self._registered) < _MAX_ITEMS:
                self._registered.add(str(item.get("method"))[:_LONGEST_METHOD])

    def _progress(self, params: Any) -> None:
        params = params if isinstance(params, dict) else {}
        value, token = params.get("value"), str(params.get("token"))
        kind = value.get("kind") if isinstance(value, dict) else None
        if kind == "begin" and len(self._busy) < MAX_BUSY:
            self._busy.add(token)
        elif kind == "end":
            self._busy.discard(token)
        self._since = time.monotonic()

    def _log(self, params: Any) -> None:
        message = params.get("message") if isinstance(params, dict) else None
        if self._ready and isinstance(message, str) and self._ready in message:
            self._busy.discard(_STARTING)
            self._since = time.monotonic()

    def _status(self, params: Any) -> None:
        """Note whether rust-analyzer has loaded everything."""
        quiescent = params.get("quiescent") if isinstance(params, dict) else True
        # As if it were the token of one more progress.
        (self._busy.discard if quiescent else self._busy.add)("status")
        self._since = time.monotonic()
