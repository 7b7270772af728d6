"""The interface that the protocol needs of its server. Not here: the server (`server.py`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

from pygls.lsp.server import LanguageServer

from codeagent_lsp.server.documents import Documents

ExecuteCommand = Callable[[str, list[Any]], Awaitable[Any]]
"""A function that runs a command by its name with its arguments and returns the answer."""


class Served(LanguageServer):
    """A server with this protocol: `documents` are the open documents, `language` is the language of messages."""

    documents: Documents
    language: str
    execute_command: ExecuteCommand

    @abstractmethod
    def started(self, process_id: int | None) -> None:
        """Start what follows a successful `initialize`; `process_id` is the client's, None when it gave none."""

    @abstractmethod
    def leave(self, code: int, reason: str) -> None:
        """End the process with this exit code."""
