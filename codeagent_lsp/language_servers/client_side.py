"""What a language server asks and tells its client: settings, folders, progress. Nothing is ever applied or shown.

Not here: diagnostics that it publishes (`text_diagnostics.py`).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from typing import Any

from codeagent_lsp.language_servers.server_connection import Handler
from codeagent_lsp.workspace.files import uris

QUIET_SECONDS = 0.4
MAX_BUSY = 200
_MAX_ITEMS = 100
_STARTING = "starting"


class ClientSide:
    """The client of one server for the project in `folder` with these settings. `ready` is a part of the log message
    by which the server says that it has found the project's files; '' for one that says it by progress or not at all.
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
        """Return the handlers by method."""
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
        """Return whether the server has said after its start that it answers a method."""
        return method in self._registered

    @property
    def busy(self) -> bool:
        """Return whether the server says that it is at work of its own."""
        return bool(self._busy - {_STARTING})

    async def started(self, deadline: float, lost: asyncio.Event) -> bool:
        """Wait until the server has found the project's files, where it says so; return whether it has by `deadline`,
        a time of `time.monotonic`.
        """
        while _STARTING in self._busy and not lost.is_set():
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(0.02)
        return True

    async def settled(self, seconds: float, lost: asyncio.Event) -> None:
        """Wait until the server has been without work of its own for a moment, at most `seconds`."""
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
        for key in str(name or "").split("."):
            value = value.get(key) if isinstance(value, Mapping) and key else value
        return value if value is not None else {}

    def _register(self, params: Any) -> None:
        items = params.get("registrations") if isinstance(params, dict) else None
        for item in items[:_MAX_ITEMS] if isinstance(items, list) else ():
            if isinstance(item, dict) and len(self._registered) < _MAX_ITEMS:
                self._registered.add(str(item.get("method"))[:_MAX_ITEMS])

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
        (self._busy.discard if quiescent else self._busy.add)("status")
        self._since = time.monotonic()
