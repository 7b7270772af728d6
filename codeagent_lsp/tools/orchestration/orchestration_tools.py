"""The tools that work with other tools: `delegate`, `enable_tools`, `use_tool` and `compose`.

`delegate` gives a part of the task to an agent with a conversation of its own; `enable_tools` and `use_tool` are for a
model that needs more tools; `compose` is a chain of tools in one call, each step judged, limited and counted like a
call of its own. Not here: the agents, which tools are offered (`session/conversation/tool_selection.py`), how an output
becomes arguments (`composition.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from pydantic import Field

from codeagent_lsp.call_forms import USE_TOOL, CallForms, ForeignTool, Shape
from codeagent_lsp.errors import ErrorCode, PermissionDenied, ToolRetry
from codeagent_lsp.messages import ToolCall, ToolResult
from codeagent_lsp.tools.composition import Transformation
from codeagent_lsp.tools.context import Calls, ToolContext
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolGroups, ToolTraits

_CODER, _PLANNER = {"agent": "coder"}, {"agent": "planner"}
_SETTINGS = ("model", "run_in_background", "max_turns", "name", "mode", "resume", "readonly", "isolation")
_AGENTS: Mapping[str | int, str] = {
    **dict.fromkeys(("general-purpose", "general", "generalPurpose", "default", "worker", "code", "debug"), "coder"),
    **dict.fromkeys(("Explore", "explore", "explorer", "Plan", "plan", "architect", "ask"), "planner"),
    **dict.fromkeys(("code-reviewer", "review"), "reviewer"),
}
"""The built-in agents of other agents, as ours."""


class DelegateParameters(Parameters):
    """Parameters of `delegate`: the agent's name and all that it has to know."""

    agent: str = Field(min_length=1, max_length=100, description="planner, coder, reviewer, or one you were told of")
    task: str = Field(min_length=1, max_length=20_000, description="All it must know; it sees nothing else")


class Delegate(Tool[DelegateParameters]):
    """The tool `delegate`: gives a task to another agent with a conversation of its own, and waits for its report."""

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


class Delegates(Protocol):
    """Port: the other agents that a run's model can give tasks to."""

    async def delegate(self, agent: str, task: str) -> str:
        """Return the report of `agent` on `task`, once it is done. ToolFailed if the agent is unknown or fails;
        PermissionDenied if the user does not trust it.
        """


class EnableToolsParameters(Parameters):
    """Parameters of `enable_tools`: the group to enable."""

    group: str = Field(min_length=1, max_length=100)


class EnableTools(Tool[EnableToolsParameters]):
    """The tool `enable_tools`: offers the model a group of tools that its prompt does not have, for the rest of the
    run.
    """

    traits: ClassVar[ToolTraits] = ToolTraits("enable_tools", "Get more tools. Groups:", "read")
    parameters = EnableToolsParameters
    example: ClassVar[Example] = {"group": "git"}
    output = list[str]

    async def run(self, arguments: EnableToolsParameters, context: ToolContext) -> ToolOutput:
        """Enable the group; return the names of its tools, or their parameters if the prompt never gets them.
        ToolFailed for an unknown group, or if the run offers all tools anyway.
        """
        groups = context.need(ToolGroups, "All tools there are are switched on.")
        names = groups.enable(arguments.group.strip())
        described = groups.described(arguments.group.strip())
        return ToolOutput(described or f"You have these tools now: {', '.join(names)}.", list(names))


class UseToolParameters(Parameters):
    """Parameters of `use_tool`: the name and the arguments of another tool, as a call of that tool would have them."""

    name: str = Field(min_length=1, max_length=200)
    arguments: dict[str, Any] = Field(default_factory=dict)


class UseTool(Tool[UseToolParameters]):
    """The tool `use_tool`, by which a model calls a tool that its prompt does not describe. Such calls are replaced by
    calls of that tool, with its permission, before they are run (`call_forms.unwrapped`).
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
        """Raise ToolRetry: the only calls that get here name no other tool."""
        raise ToolRetry("use_tool cannot call itself. Name the tool to call, and give its arguments.")


MOST_STEPS = 10


def _filtering(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with `{field: wanted, …}` as a filter of several equal fields."""
    wanted = given.get("filter")
    if not isinstance(wanted, dict) or not wanted or "value" in wanted:
        return given
    return {**given, "filter": {"op": "has", "value": wanted}}


def _aggregating(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with an aggregate given as a word alone as an object."""
    word = given.get("aggregate")
    return {**given, "aggregate": {"function": word}} if isinstance(word, str) and word[:1] != "{" else given


_SHAPES = (
    Shape("`filter` may be `{field: value}`, for items with these values", _filtering),
    Shape("`aggregate` may be a word alone: count, sum, first, last", _aggregating),
)


class ComposeStep(Parameters):
    """One call in a chain; from the second on it may take arguments from the result before."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    take: Transformation | None = None


class ComposeParameters(Parameters):
    """Parameters of `compose`: the steps of the chain, from 2 to 10."""

    steps: list[ComposeStep] = Field(min_length=2, max_length=MOST_STEPS)


class Compose(Tool[ComposeParameters]):
    """The tool `compose`: runs a chain of tools in one call. The effect `ask` prevents it from running concurrently;
    each step is judged by its own effect.
    """

    traits: ClassVar[ToolTraits] = ToolTraits(
        "compose",
        "Run tools in a chain; each takes something of the result before. field_mapping: parameter -> path.",
        "ask",
        "compose",
        timeout=None,
    )
    parameters = ComposeParameters
    example: ClassVar[Example] = {
        "steps": [
            {"tool": "glob_file_search", "arguments": {"pattern": "src/*.py"}},
            {"tool": "read_file", "take": {"extract_path": "[0]", "field_mapping": {"path": ""}}},
        ]
    }
    forms: ClassVar[CallForms] = CallForms(
        items={
            "steps": CallForms(
                arguments={
                    "tool_name": "tool",
                    "target_tool": "tool",
                    "parameters": "arguments",
                    "transformation": "take",
                },
                items={"take": CallForms(shapes=_SHAPES)},
            )
        }
    )

    async def run(self, arguments: ComposeParameters, context: ToolContext) -> ToolOutput:
        """Run the steps in order and return the last result, after a line for each step before it; what the steps
        staged stays. ToolRetry or PermissionDenied if a step fails.
        """
        calls = context.need(Calls, "Tools cannot be chained here.")
        done: list[str] = []
        result: ToolResult | None = None
        tool: Tool[Any] | None = None
        for number, step in enumerate(arguments.steps, 1):
            if step.tool == self.traits.name:
                raise ToolRetry("A chain cannot hold a chain.")
            target = calls.tool(step.tool)
            given = {**step.arguments}
            if result is not None and tool is not None:
                given |= _taken_arguments(ToolOutput(result.text, result.data), tool, target, step)
            context.note(f"{self.traits.name} {number}/{len(arguments.steps)}: {step.tool}")
            result, tool = await calls.execute(ToolCall(step.tool, given)), target
            if not result.ok:
                raise _stop_error(number, step, result, done)
            done.append(f"{number}. {step.tool}: {_short(result.text)}")
        assert result is not None
        return ToolOutput("\n".join([*done[:-1], f"{len(done)}. {step.tool}:", result.text]), result.data)


def _taken_arguments(output: ToolOutput, tool: Tool[Any], target: Tool[Any], step: ComposeStep) -> dict[str, Any]:
    """Return the arguments from the previous result; none if the step has no `take` and all required arguments."""
    if step.take is None:
        required = target.input_schema().get("required", [])
        if all(name in step.arguments for name in required):
            return {}
    return tool.compose_output(output, target, step.take or Transformation(), step.arguments)


def _stop_error(number: int, step: ComposeStep, result: ToolResult, done: list[str]) -> ToolRetry | PermissionDenied:
    message = "\n".join([*done, f"{number}. {step.tool} did not work, so the chain stopped: {result.text}"])
    return PermissionDenied(message) if result.status == "denied" else ToolRetry(message)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else f"{line[:200]}…"
