"""The tool `delegate`: a part of the task for an agent with a conversation of its own. Not here: the agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from codeagent_lsp.call_forms import CallForms, ForeignTool
from codeagent_lsp.errors import ErrorCode
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.orchestration.delegates import Delegates
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits

_CODER, _PLANNER = {"agent": "coder"}, {"agent": "planner"}
_SETTINGS = ("model", "run_in_background", "max_turns", "name", "mode", "resume", "readonly", "isolation")
_AGENTS: Mapping[str | int, str] = {
    **dict.fromkeys(("general-purpose", "general", "generalPurpose", "default", "worker", "code", "debug"), "coder"),
    **dict.fromkeys(("Explore", "explore", "explorer", "Plan", "plan", "architect", "ask"), "planner"),
    **dict.fromkeys(("code-reviewer", "review"), "reviewer"),
}
"""The built-in agents of other agents, as ours."""


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
        errors=(
            ErrorCode.EXECUTION_ERROR,
            ErrorCode.NETWORK_ERROR,
            ErrorCode.PARSE_ERROR,
            ErrorCode.TIMEOUT,
        ),
        hook_name="Task",
    )
    parameters = DelegateParameters
    example: ClassVar[Example] = {"agent": "reviewer", "task": "Look for mistakes in src/cart.py."}
    forms: ClassVar[CallForms] = CallForms(
        arguments={"prompt": "task", "subagent_type": "agent"},
        also={"message": "task", "agent_type": "agent", "agent_name": "agent"},
        values={"agent": _AGENTS},
        foreign=(
            ForeignTool("Task", ("Claude Code", "Cursor"), ignored=_SETTINGS, fixed=_CODER),
            ForeignTool("Agent", ("Claude Code",), ignored=_SETTINGS, fixed=_CODER),
            ForeignTool("task", ("opencode",), ignored=("task_id", "command"), fixed=_CODER),
            ForeignTool("runSubagent", ("Copilot",), fixed=_CODER),
            ForeignTool("search_subagent", ("Copilot",), {"query": "task"}, ignored=("details",), fixed=_PLANNER),
            ForeignTool("new_task", ("Roo Code",), {"mode": "agent"}, ignored=("todos",), fixed=_CODER),
            ForeignTool("spawn_agent", ("codex", "Zed"), ignored=("label", "session_id", "items"), fixed=_CODER),
        ),
        near=("use_subagents", "send_input", "wait_agent"),
    )

    async def run(self, arguments: DelegateParameters, context: ToolContext) -> ToolOutput:
        """Run the agent and return its report; its changes are staged in this run. ToolFailed if it is unknown or
        fails, or if this run cannot delegate; PermissionDenied if the user does not trust it.
        """
        delegates = context.need(Delegates, "Nothing can be delegated here. Do it yourself.")
        return ToolOutput(await delegates.delegate(arguments.agent, arguments.task))
