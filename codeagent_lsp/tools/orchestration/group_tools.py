"""The tools `enable_tools` and `use_tool`: more tools for a model that needs them. Not here: which ones are offered
(`session/conversation/tool_selection.py`).
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from codeagent_lsp.call_forms import USE_TOOL
from codeagent_lsp.errors import ToolRetry
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolGroups, ToolTraits


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
        described = groups.described(arguments.group.strip())
        return ToolOutput(described or f"You have these tools now: {', '.join(names)}.", list(names))


class UseToolParameters(Parameters):
    """A call of another tool."""

    name: str = Field(min_length=1, max_length=200)
    arguments: dict[str, Any] = Field(default_factory=dict)


class UseTool(Tool[UseToolParameters]):
    """Call a tool that the prompt does not describe. Its calls are those of the other tool, with its permission, before
    they come here (`call_forms.unwrapped`); only what names no tool does.
    """

    traits: ClassVar[ToolTraits] = ToolTraits(
        USE_TOOL,
        "Call a tool that is not described here; you may also call it directly by its name. A call that does not fit "
        "is answered with its parameters. Tools, ? marks what may be left out:",
        "read",
    )
    parameters = UseToolParameters
    example: ClassVar[Example] = {"name": "git_log", "arguments": {"limit": 5}}

    async def run(self, arguments: UseToolParameters, context: ToolContext) -> ToolOutput:
        """Refuse: the call names itself."""
        raise ToolRetry("use_tool cannot call itself. Name the tool to call, and give its arguments.")
