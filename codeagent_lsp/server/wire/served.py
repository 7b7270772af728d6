"""What the protocol asks of the server that it belongs to. Not here: the server (`server.py`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

from pygls.lsp.server import LanguageServer

from codeagent_lsp.server.documents import Documents

ExecuteCommand = Callable[[str, list[Any]], Awaitable[Any]]
"""Runs a command by its name with its arguments and returns the answer."""


class Served(LanguageServer):
    """A server of this protocol: `documents` are the open buffers, `language` is the language of messages."""

    documents: Documents
    language: str
    execute_command: ExecuteCommand

    @abstractmethod
    def started(self, process_id: int | None) -> None:
        """Begin what waits for the reply to `initialize`; `process_id` is the client's."""

    @abstractmethod
    def leave(self, code: int, reason: str) -> None:
        """End the process with this exit code."""
