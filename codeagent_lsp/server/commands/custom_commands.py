"""The commands `codeagent.command` and `codeagent.commands.list`, and their names for the list of code actions.

Not here: their files (`agent/custom_commands.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from codeagent_lsp.agent.custom_commands import named
from codeagent_lsp.errors import UsageError
from codeagent_lsp.server.commands.arguments import Arguments, Table

if TYPE_CHECKING:
    from codeagent_lsp.agent.custom_commands import CustomCommand
    from codeagent_lsp.server.backend import Backend


def custom_commands(backend: Backend, start: Callable[[Arguments], Awaitable[dict[str, Any]]]) -> Table:
    """Return the handlers by command name; `start` starts a run from a command's arguments."""

    async def commands() -> tuple[CustomCommand, ...]:
        return await asyncio.to_thread(backend.knowledge.commands.commands, backend.views.plain())

    async def call(given: Arguments) -> dict[str, Any]:
        name, known = given["name"].removeprefix("/"), await commands()
        if named(known, name) is None:
            await asyncio.to_thread(backend.knowledge.commands.called, backend.views.plain(), f"/{name}")
            names = ", ".join(item.name for item in known[:30])
            raise UsageError("commands.unknown", name=name[:100], known=names or "-")
        words = f"/{name} {given.get('arguments', '')}".strip()
        place = {key: given[key] for key in ("uri", "range", "sessionId") if key in given}
        return await start({"task": words, **place})

    async def listed(given: Arguments) -> list[dict[str, Any]]:
        return [
            {"name": item.name, "description": item.description, "hint": item.hint, "path": item.path,
             "approved": item.approved}
            for item in await commands()
        ]  # fmt: skip

    return {"codeagent.command": call, "codeagent.commands.list": listed}
