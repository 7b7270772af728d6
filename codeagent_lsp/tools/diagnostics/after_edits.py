"""What a tool result says about the diagnostics that its edit made and fixed.

Not here: the diagnostics (`edit_diagnostics.py`), which results it is added to (`executor.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import PurePath

from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.diagnostics.dependents import dependents
from codeagent_lsp.tools.diagnostics.difference import Difference, since, told
from codeagent_lsp.tools.diagnostics.edit_diagnostics import EditDiagnostics
from codeagent_lsp.tools.tool import ToolOutput
from codeagent_lsp.workspace.changes.changeset import Changeset

SECONDS = 2.0
SECONDS_AGAIN = 0.3
"""How long a call waits when one before it has waited in vain: a server that starts takes its time."""
ONLY_SYNTAX = "only the syntax was checked, as no language server and no linter for it runs here"
_NAMED = 3


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
