"""The tool `delegate`: a part of the task for an agent with a conversation of its own. Not here: the agents."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.orchestration.delegates import Delegates
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits


class DelegateParameters(Parameters):
    """The agent and its task."""

    agent: str = Field(min_length=1, max_length=100, description="planner, coder, reviewer, or one you were told of")
    task: str = Field(min_length=1, max_length=20_000, description="All it must know; it sees nothing else")


class Delegate(Tool[DelegateParameters]):
    """Delegate a task and wait for the report."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "delegate",
        "Give a part of the task to another agent and get its report: planner and reviewer only read, coder edits.",
        "read",
        "agents",
        timeout=None,
    )
    parameters = DelegateParameters
    example: ClassVar[Example] = {"agent": "reviewer", "task": "Look for mistakes in src/cart.py."}

    async def run(self, arguments: DelegateParameters, context: ToolContext) -> ToolOutput:
        """Return the agent's report."""
        delegates = context.need(Delegates, "Nothing can be delegated here. Do it yourself.")
        return ToolOutput(await delegates.delegate(arguments.agent, arguments.task))
