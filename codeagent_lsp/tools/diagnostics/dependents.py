"""The files that a change may break without changing them: those that use a name whose definition it changed.

Not here: checking them (`edit_diagnostics.py`).
"""

from __future__ import annotations

import asyncio

from codeagent_lsp.errors import AgentError
from codeagent_lsp.tools.code.codebase import Codebase
from codeagent_lsp.tools.code.source import SourceFile, source_of
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange

MAX_NAMES = 10
MAX_FILES = 20
SECONDS = 0.5
_SHORTEST = 3


async def dependents(context: ToolContext, changeset: Changeset) -> tuple[str, ...]:
    """Return such files of the workspace, absolute paths, at most `MAX_FILES`, and none if it takes longer than
    `SECONDS`.
    """
    try:
        async with asyncio.timeout(SECONDS):
            names = await asyncio.to_thread(_changed_names, changeset)
            codebase, changed = Codebase(context), set(changeset.paths)
            found: dict[str, None] = {}
            for name in names[:MAX_NAMES]:
                found.update(dict.fromkeys(path for path in await codebase.using(name) if path not in changed))
            return tuple(found)[:MAX_FILES]
    except (TimeoutError, AgentError):
        return ()


def _changed_names(changeset: Changeset) -> list[str]:
    """Return the names whose definitions are gone or have another first line, the longest first."""
    names: set[str] = set()
    for change in changeset:
        before, after = _signatures(change, change.base), _signatures(change, change.text)
        names |= {name for name, lines in before.items() if after.get(name) != lines}
    return sorted((name for name in names if len(name) >= _SHORTEST), key=lambda name: (-len(name), name))


def _signatures(change: FileChange, text: str | None) -> dict[str, frozenset[str]]:
    source: SourceFile | None = source_of(change.path, text) if text is not None else None
    found: dict[str, set[str]] = {}
    for definition in source.definitions if source is not None else ():
        found.setdefault(definition.symbol.name, set()).add(definition.symbol.signature)
    return {name: frozenset(lines) for name, lines in found.items()}
