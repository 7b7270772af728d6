"""The commands of `codeagent.index.*`. Not here: the index (`index/host.py`)."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from codeagent_lsp.errors import ToolFailed, UsageError
from codeagent_lsp.server.commands.arguments import Arguments, Table

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend


def index_commands(backend: Backend) -> Table:
    """Return the handlers by command name."""
    index = backend.index

    async def status(given: Arguments) -> dict[str, Any]:
        try:
            return await index.status()
        except ToolFailed as problem:
            return {"state": "off", "problem": str(problem)}

    async def rebuild(given: Arguments) -> dict[str, Any]:
        try:
            return asdict(await index.rebuild())
        except ToolFailed as problem:
            raise UsageError("index.none", reason=str(problem)) from None

    return {"codeagent.index.status": status, "codeagent.index.rebuild": rebuild}
