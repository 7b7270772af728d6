"""What a tool result says about the diagnostics that its edit made and fixed.

Not here: the diagnostics (`edit_diagnostics.py`), which results it is added to (`executor.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.diagnostics.dependents import dependents
from codeagent_lsp.tools.diagnostics.difference import Difference, since, told
from codeagent_lsp.tools.diagnostics.edit_diagnostics import EditDiagnostics
from codeagent_lsp.tools.tool import ToolOutput
from codeagent_lsp.workspace.changes.changeset import Changeset

SECONDS = 2.0
_NAMED = 3


class AfterEdits:
    """Port: the remark on one run's edits."""

    def __init__(self, diagnostics: EditDiagnostics) -> None:
        self._diagnostics = diagnostics
        self._told = Difference()

    async def of(self, context: ToolContext, changeset: Changeset, seconds: float) -> Difference:
        """Return the difference that all of these changes make."""
        return await self._diagnostics.of(changeset, await dependents(context, changeset), seconds)

    async def remark(self, context: ToolContext, changeset: Changeset) -> str:
        """Return what is new and what is fixed in all that the run has staged, as far as that was not said before; ''
        if there is nothing to say.
        """
        if not changeset:
            return ""
        found, before = await self.of(context, changeset, SECONDS), self._told
        late = _late(found, context)
        if found.unknown:  # what is missing may be neither fixed nor said before
            return "\n".join(filter(None, (told(found, context.view.roots.relative), late)))
        self._told, news = found, since(found, before)
        if before.new and not found.new:
            return "Diagnostics: no new problems any more."
        line, left = told(news, context.view.roots.relative), len(found.new) - len(news.new)
        return f"{line}\n({left} new from your earlier edits are left.)" if line and left else line


async def with_remark(context: ToolContext, run: Callable[[], Awaitable[ToolOutput]]) -> ToolOutput:
    """Run a call, and add the remark to its result if it has staged something."""
    after, before = context.get(AfterEdits), context.staging.changeset
    output = await run()
    if after is None or context.staging.changeset == before:
        return output
    remark = await after.remark(context, context.staging.changeset)
    return replace(output, text=f"{output.text}\n{remark}") if remark else output


def _late(found: Difference, context: ToolContext) -> str:
    names = [context.view.roots.relative(path) for path in found.unknown]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"Diagnostics of {', '.join(names[:_NAMED])}{more}: not known yet." if names else ""
