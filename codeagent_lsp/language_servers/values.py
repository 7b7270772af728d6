"""The values that language servers are asked with and answer with, in the terms of the workspace: paths and offsets.

An offset counts code points from the start of the text that the run sees. Pure. Not here: their form in the protocol
(`questions.py`, `answers.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from codeagent_lsp.workspace.text.position import Encoding


@dataclass(frozen=True, slots=True)
class ServerQuestion:
    """A request about a place in a file: an LSP `method`, an absolute path, and a range of offsets (`end` equal to
    `start`: a place; None: the whole file). `more` are further parameters; `server` asks only the one of this name.
    """

    method: str
    path: str
    start: int | None = None
    end: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    server: str = ""


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """What one server answered: plain JSON of the protocol, with positions in `encoding`. `lent` is True for a server
    of the user's editor.
    """

    server: str
    result: Any
    encoding: Encoding
    lent: bool = False


class CodeServers(Protocol):
    """Port: the language servers that know the text which one run sees."""

    async def ask(self, question: ServerQuestion) -> tuple[ServerAnswer, ...]:
        """Return the answers of all servers that have one; none if there is no server. Never raises ToolFailed."""
