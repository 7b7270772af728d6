"""The server of one session, a child process, whose editor this process is: commands to it, files for it.

Not here: what its events and questions become (`open_session.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from acp import Client, RequestError, schema

from codeagent_lsp.acp_agent.client_files import ClientFiles, FileRequestFailed, FolderNames
from codeagent_lsp.lsp_client.connection import LEAVE_SECONDS, Connection, ConnectionLost, server_command
from codeagent_lsp.protocol import ACP_CLIENT, EVENT_METHOD, EXPERIMENTAL_KEY, SYNC_METHOD
from codeagent_lsp.workspace.files import uris

START_SECONDS = 60.0
COMMAND_SECONDS = 60.0

Notified = Callable[[Mapping[str, Any]], None]


class SessionServer:
    """The server process of one session, from `start` to `close`. `offered` is what the client can do, `language` the
    user's, `settings` the first layer; `files` are those that the server gets from the client, `lost` is set when the
    server has ended.
    """

    def __init__(
        self,
        client: Client,
        names: FolderNames,
        offered: schema.ClientCapabilities | None,
        language: str,
        settings: Mapping[str, Any],
    ) -> None:
        self._names = names
        self._language = language
        self._settings = settings
        self._connection = Connection(server_command(), os.environ)
        self._requests = SessionFiles(client, offered, names)
        self.notify = self._connection.notify
        self.lost = self._connection.lost
        self.files = ClientFiles(names.real, self._requests, self.notify)

    def named(self, session_id: str) -> None:
        """Set the id of the session, which requests to the client for files carry; to be called before the first of
        them.
        """
        self._requests.session_id = session_id

    @property
    def last_line(self) -> str:
        """The last line of the server's log that is not blank; '' for none."""
        return self._connection.log.last_line

    async def start(self, on_event: Notified, on_message: Notified) -> None:
        """Start the server, within 60 s; the parameters of its events and messages are passed to these functions.
        ConnectionLost or Refused if it does not start.
        """
        connection = self._connection
        connection.notifications[EVENT_METHOD] = on_event
        connection.notifications["window/showMessage"] = on_message
        connection.requests["workspace/applyEdit"] = lambda params: self.files.apply(params["edit"])
        connection.requests[SYNC_METHOD] = self._sync
        try:
            await connection.start()
        except OSError as error:
            raise ConnectionLost(str(error)) from error
        await connection.request("initialize", self._hello(), START_SECONDS)
        connection.notify("initialized", {})

    async def close(self) -> None:
        """End the server, waiting at most some seconds before it is killed. Never raises; one that was not started is
        no error.
        """
        await self._connection.close(LEAVE_SECONDS)

    async def command(self, name: str, arguments: Mapping[str, Any], seconds: float = COMMAND_SECONDS) -> Any:
        """Execute a command of the server, such as `codeagent.run`, with one object of arguments, and return its answer
        as plain JSON. Refused if the server refuses it, ConnectionLost if it does not answer within `seconds`.
        """
        params = {"command": name, "arguments": [dict(arguments)]}
        return await self._connection.request("workspace/executeCommand", params, seconds)

    def _hello(self) -> dict[str, Any]:
        folders = [{"uri": uris.from_path(str(folder)), "name": folder.name} for folder in self._names.real]
        edits = {
            "documentChanges": True,
            "resourceOperations": ["create", "rename", "delete"],
            "failureHandling": "transactional" if self.files.transactional else "abort",
        }
        return {
            "processId": os.getpid(),
            "clientInfo": {"name": ACP_CLIENT},
            "locale": self._language,
            "rootUri": folders[0]["uri"],
            "workspaceFolders": folders,
            "capabilities": {
                # As Python counts, so that no position needs a conversion.
                "general": {"positionEncodings": ["utf-32"]},
                "workspace": {"applyEdit": True, "workspaceEdit": edits, "workspaceFolders": True},
                "experimental": {EXPERIMENTAL_KEY: {"event": True, "ask": True, "sync": self._requests.reads}},
            },
            "initializationOptions": dict(self._settings),
        }

    async def _sync(self, params: Mapping[str, Any]) -> None:
        paths = [Path(path) for path in map(uris.to_path, params["uris"]) if path is not None]
        # A command may read any file, so all that the agent has to do with are looked at.
        await self.files.sync(paths, again=not paths)


class SessionFiles:
    """The `FileRequests` of one session, by the client's methods `fs/read_text_file` and `fs/write_text_file`;
    `session_id` must be set before they are called.
    """

    def __init__(self, client: Client, offered: schema.ClientCapabilities | None, names: FolderNames) -> None:
        files = offered.fs if offered else None
        self.reads = bool(files and files.read_text_file)
        self.writes = bool(files and files.write_text_file)
        self.session_id = ""
        self._client = client
        self._names = names

    async def read(self, path: str) -> str:
        """Return the text of a file, by its real path, as the client has it. FileRequestFailed if the client refuses or
        is gone.
        """
        try:
            answer = await self._client.read_text_file(session_id=self.session_id, path=self._names.shown(path))
        except (RequestError, ConnectionError, ValueError) as error:
            raise FileRequestFailed(str(error)) from error
        return answer.content

    async def write(self, path: str, content: str) -> None:
        """Write a file, by its real path, through the client. FileRequestFailed if the client refuses or is gone."""
        try:
            await self._client.write_text_file(
                session_id=self.session_id, path=self._names.shown(path), content=content
            )
        except (RequestError, ConnectionError, ValueError) as error:
            raise FileRequestFailed(f"the editor did not write {path}: {error}") from error
