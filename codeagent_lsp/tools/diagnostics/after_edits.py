"""What a tool result says about the diagnostics that its edit made and fixed.

Not here: the diagnostics (`edit_diagnostics.py`), which results it is added to (`executor.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import PurePath

from codeagent_lsp.errors import AgentError
from codeagent_lsp.tools.code.codebase import Codebase
from codeagent_lsp.tools.code.source import SourceFile, source_of
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.diagnostics.difference import Difference, since, told
from codeagent_lsp.tools.diagnostics.edit_diagnostics import EditDiagnostics
from codeagent_lsp.tools.tool import ToolOutput
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange

SECONDS = 2.0
SECONDS_AGAIN = 0.3
"""How long a call waits when one before it has waited in vain: a server that starts takes its time."""
ONLY_SYNTAX = "only the syntax was checked, as no language server and no linter for it runs here"
_NAMED = 3
MAX_NAMES = 10
MAX_FILES = 20
DEPENDENTS_SECONDS = 0.5
_SHORTEST = 3


class AfterEdits:
    """Port: the remark on one run's edits."""

    def __init__(self, diagnostics: EditDiagnostics) -> None:
        self._diagnostics = diagnostics
        self._told = Difference()
        self._late: frozenset[str] = frozenset()
        self._unchecked: set[str] = set()  # suffixes of files

    @property
    def late(self) -> bool:
        """Return whether diagnostics of earlier edits are still to be told."""
        return bool(self._late)

    async def of(self, context: ToolContext, changeset: Changeset, seconds: float) -> Difference:
        """Return the difference that all of these changes make."""
        return await self._diagnostics.of(changeset, await dependents(context, changeset), seconds)

    async def remark(self, context: ToolContext, changeset: Changeset) -> str:
        """Return what is new and what is fixed in all that the run has staged, as far as that was not said before; ''
        if there is nothing to say.
        """
        if not changeset:
            return ""
        name = context.view.roots.relative
        found, before = await self.of(context, changeset, SECONDS_AGAIN if self._late else SECONDS), self._told
        news, waited = since(found, before), self._late
        self._late = frozenset(found.unknown)
        if self._late:  # what is missing may be neither fixed nor said before
            self._told = replace(before, new=(*before.new, *news.new))
            late = "" if self._late <= waited else _named(sorted(self._late), name, "not known yet")
            return "\n".join(filter(None, (told(replace(news, fixed=()), name), late)))
        self._told = found
        if before.new and not found.new:
            return "Diagnostics: no new problems any more."
        line, left = told(news, name), len(found.new) - len(news.new)
        line = f"{line}\n({left} new from your earlier edits are left.)" if line and left else line
        if waited and not line:
            line = "Diagnostics: no new problems."
        return "\n".join(filter(None, (line, self._only_syntax(changeset, name))))

    def _only_syntax(self, changeset: Changeset, name: Callable[[str], str]) -> str:
        """Return once for each kind of file that more than its syntax is not checked: silence would read as clean."""
        paths = [path for path in changeset.paths if path in self._diagnostics.only_syntax]
        new = [path for path in paths if PurePath(path).suffix not in self._unchecked]
        self._unchecked |= {PurePath(path).suffix for path in new}
        return _named(new, name, ONLY_SYNTAX)


async def with_remark(context: ToolContext, run: Callable[[], Awaitable[ToolOutput]]) -> ToolOutput:
    """Run a call, and add the remark to its result if it has staged something."""
    after, before = context.get(AfterEdits), context.staging.changeset
    output = await run()
    if after is None or (context.staging.changeset == before and not after.late):
        return output
    remark = await after.remark(context, context.staging.changeset)
    return replace(output, text=f"{output.text}\n{remark}") if remark else output


def _named(paths: Sequence[str], name: Callable[[str], str], what: str) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return f"Diagnostics of {', '.join(map(name, paths[:_NAMED]))}{more}: {what}." if paths else ""


# The files that a change may break without changing them: those that use a name whose definition it changed.


async def dependents(context: ToolContext, changeset: Changeset) -> tuple[str, ...]:
    """Return such files of the workspace, absolute paths, at most `MAX_FILES`, and none if it takes longer than
    `SECONDS`.
    """
    try:
        async with asyncio.timeout(DEPENDENTS_SECONDS):
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
