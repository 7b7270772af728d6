"""The tool `enable_tools`: more tools for a model that needs them. Not here: which ones are offered
(`session/conversation/tool_selection.py`).
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.groups import ToolGroups
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits


class EnableToolsParameters(Parameters):
    """The group to enable."""

    group: str = Field(min_length=1, max_length=100)


class EnableTools(Tool[EnableToolsParameters]):
    """Enable a group of tools."""

    traits: ClassVar[ToolTraits] = ToolTraits("enable_tools", "Get more tools. Groups:", "read")
    parameters = EnableToolsParameters
    example: ClassVar[Example] = {"group": "git"}
    output = list[str]

    async def run(self, arguments: EnableToolsParameters, context: ToolContext) -> ToolOutput:
        """Return the names of its tools."""
        groups = context.need(ToolGroups, "All tools there are are switched on.")
        names = groups.enable(arguments.group.strip())
        return ToolOutput(f"You have these tools now: {', '.join(names)}.", list(names))
