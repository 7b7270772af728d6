"""A small LSP client for one task: starts the run, shows its events, answers its prompts, writes accepted edits.

It is an editor without buffers: its documents are the files on disk. Not here: how things look (`screen.py`), the wire
(`connection.py`).
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from typing import Any, Protocol

from codeagent_lsp.protocol import EVENT_METHOD, EXPERIMENTAL_KEY, INPUT_METHOD, TERMINAL_CLIENT
from codeagent_lsp.terminal.connection import LEAVE_SECONDS, Connection, ConnectionLost
from codeagent_lsp.terminal.disk import Disk, commit
from codeagent_lsp.terminal.edits import EditImpossible, FileWrite, plan
from codeagent_lsp.terminal.locales import user_locale
from codeagent_lsp.terminal.options import RunOptions
from codeagent_lsp.workspace.files import uris

CANCEL_SECONDS = 1.0
QUICK_SECONDS = 0.5
CREATED, CHANGED, DELETED = 1, 2, 3
WARNING = 2

CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-32"]},
    "workspace": {
        "applyEdit": True,
        "workspaceEdit": {
            "documentChanges": True,
            "resourceOperations": ["create", "rename", "delete"],
            "failureHandling": "transactional",
        },
        "workspaceFolders": True,
    },
    "window": {"showMessage": {"messageActionItem": {"additionalPropertiesSupport": False}}},
    "experimental": {EXPERIMENTAL_KEY: {"event": True, "input": True}},
}


class Face(Protocol):
    """Port: shows a run and asks the user."""

    def event(self, event: Mapping[str, Any]) -> None:
        """Show an event of the run."""

    def message(self, words: str) -> None:
        """Show a warning or an error outside the run."""

    async def choose(self, title: str, choices: tuple[str, ...]) -> str | None:
        """Return the chosen title; None for none."""

    async def ask(self, title: str, detail: str, *, secret: bool) -> str | None:
        """Return the entered text; None for none."""


class Client:
    """One server and one run. `interrupted` ends it early. `environ` is the server's; `written` is all that was written
    to files, in order.
    """

    def __init__(
        self,
        options: RunOptions,
        face: Face,
        interrupted: asyncio.Event,
        disk: Disk | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.written: list[FileWrite] = []
        self._options = options
        self._face = face
        self._interrupted = interrupted
        self._disk = disk or Disk(options.workspace)
        self._run_id: str | None = None
        self._ended: dict[str | None, Mapping[str, Any]] = {}
        self._completed: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._connection = Connection(server_command(), environ)

    async def run(self) -> Mapping[str, Any] | None:
        """Return the run's `run_completed` event; None if interrupted before there was one.

        ConnectionLost if the server ends early, Refused if it does not accept the task.
        """
        self._listen()
        try:
            await self._connection.start()
            work = asyncio.ensure_future(self._work())
            stop = asyncio.ensure_future(self._interrupted.wait())
            await asyncio.wait([work, stop], return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                await self._cancel(work)
            stop.cancel()
            return None if work.cancelled() else work.result()
        except OSError as error:
            raise ConnectionLost(str(error)) from error
        finally:
            await self._connection.close(QUICK_SECONDS if self._interrupted.is_set() else LEAVE_SECONDS)

    def _listen(self) -> None:
        connection = self._connection
        connection.notifications[EVENT_METHOD] = self._event
        connection.notifications["window/showMessage"] = self._message
        connection.requests["window/showMessageRequest"] = self._prompt
        connection.requests[INPUT_METHOD] = self._input
        connection.requests["workspace/applyEdit"] = self._apply

    async def _work(self) -> Mapping[str, Any]:
        connection = self._connection
        await connection.request("initialize", self._hello(), seconds=60)
        connection.notify("initialized", {})
        options = self._options
        arguments = {"task": options.task, "mode": options.mode, "attempts": options.attempts, "untilProven": True}
        command = {"command": "codeagent.run", "arguments": [arguments]}
        self._run_id = (await connection.request("workspace/executeCommand", command, seconds=60))["runId"]
        self._settle()
        lost: asyncio.Future[Any] = asyncio.ensure_future(connection.lost.wait())
        await asyncio.wait([self._completed, lost], return_when=asyncio.FIRST_COMPLETED)
        lost.cancel()
        if not self._completed.done():
            raise ConnectionLost(connection.log.last_line)
        completed: Mapping[str, Any] = self._completed.result()
        return completed

    async def _cancel(self, work: asyncio.Task[Mapping[str, Any]]) -> None:
        """Ask the server to stop; wait at most `CANCEL_SECONDS`."""
        request = {"command": "codeagent.cancel", "arguments": [{}]}
        cancel = asyncio.ensure_future(self._connection.request("workspace/executeCommand", request, CANCEL_SECONDS))
        await asyncio.wait([work], timeout=CANCEL_SECONDS)
        for task in (work, cancel):
            task.cancel()
        await asyncio.gather(work, cancel, return_exceptions=True)

    def _hello(self) -> dict[str, Any]:
        folder = self._options.workspace
        uri = uris.from_path(str(folder))
        return {
            "processId": os.getpid(),
            "clientInfo": {"name": TERMINAL_CLIENT},
            "locale": user_locale(),
            "rootUri": uri,
            "workspaceFolders": [{"uri": uri, "name": folder.name}],
            "capabilities": CAPABILITIES,
            "initializationOptions": dict(self._options.settings),
        }

    def _event(self, event: Mapping[str, Any]) -> None:
        if self._completed.done():
            return
        try:
            self._face.event(event)
        except OSError:  # the output was closed
            self._interrupted.set()
        if event["type"] == "run_completed":
            self._ended[event.get("run_id", "")] = event
            self._settle()

    def _settle(self) -> None:
        """Note the end of our run; its attempts are runs, too, and the reply that names ours may come after its end."""
        if self._run_id in self._ended and not self._completed.done():
            self._completed.set_result(self._ended[self._run_id])

    def _message(self, params: Mapping[str, Any]) -> None:
        """Show warnings and errors; answers and outcomes arrive as events."""
        if params["type"] <= WARNING and not self._completed.done():
            self._face.message(params["message"])

    async def _prompt(self, params: Mapping[str, Any]) -> Mapping[str, str] | None:
        choices = tuple(action["title"] for action in params.get("actions") or ())
        chosen = await self._face.choose(params["message"], choices)
        return None if chosen is None else {"title": chosen}

    async def _input(self, params: Mapping[str, Any]) -> Mapping[str, str | None]:
        secret = bool(params.get("secret"))
        return {"value": await self._face.ask(params["title"], params.get("prompt") or "", secret=secret)}

    async def _apply(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write an edit, all or nothing, without awaiting, so that a cancel never leaves a part of it."""
        try:
            writes = plan(params["edit"], self._disk.read)
            commit(writes, self._disk)
            self.written.extend(writes)
        except (EditImpossible, OSError) as error:
            return {"applied": False, "failureReason": " ".join([str(error), *getattr(error, "__notes__", ())])}
        changes = [{"uri": uris.from_path(str(item.path)), "type": _kind(item.before, item.after)} for item in writes]
        self._connection.notify("workspace/didChangeWatchedFiles", {"changes": changes})
        return {"applied": True}


def server_command() -> list[str]:
    """Return the command of the server in this interpreter; -P prevents imports from the current folder."""
    return [sys.executable, "-P", "-m", "codeagent_lsp.cli", "serve"]


def _kind(before: bytes | None, after: bytes | None) -> int:
    if before is None:
        return CREATED
    return DELETED if after is None else CHANGED
