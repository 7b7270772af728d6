"""The tool `compose`: a chain of tools in one call; each step is judged, limited and counted like a call of its own.

Not here: how an output becomes arguments (`composition.py`).
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from codeagent_lsp.call_forms import CallForms, Shape
from codeagent_lsp.errors import PermissionDenied, ToolRetry
from codeagent_lsp.messages import ToolCall, ToolResult
from codeagent_lsp.tools.composition import Transformation
from codeagent_lsp.tools.context import Calls, ToolContext
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits

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
    """One call; from the second on it may take arguments from the previous result."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    take: Transformation | None = None


class ComposeParameters(Parameters):
    """The steps of the chain."""

    steps: list[ComposeStep] = Field(min_length=2, max_length=MOST_STEPS)


class Compose(Tool[ComposeParameters]):
    """Run a chain of tools. The effect `ask` prevents it from running concurrently; each step is judged by its own
    effect.
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
        """Return the last result, after a line for each step before it. ToolRetry or
        PermissionDenied if a step fails.
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
                given |= _taken(ToolOutput(result.text, result.data), tool, target, step)
            context.note(f"{self.traits.name} {number}/{len(arguments.steps)}: {step.tool}")
            result, tool = await calls.execute(ToolCall(step.tool, given)), target
            if not result.ok:
                raise _stopped(number, step, result, done)
            done.append(f"{number}. {step.tool}: {_short(result.text)}")
        assert result is not None
        return ToolOutput("\n".join([*done[:-1], f"{len(done)}. {step.tool}:", result.text]), result.data)


def _taken(output: ToolOutput, tool: Tool[Any], target: Tool[Any], step: ComposeStep) -> dict[str, Any]:
    """Return the arguments from the previous result; none if the step has no `take` and all required arguments."""
    if step.take is None:
        required = target.input_schema().get("required", [])
        if all(name in step.arguments for name in required):
            return {}
    return tool.compose_output(output, target, step.take or Transformation(), step.arguments)


def _stopped(number: int, step: ComposeStep, result: ToolResult, done: list[str]) -> ToolRetry | PermissionDenied:
    message = "\n".join([*done, f"{number}. {step.tool} did not work, so the chain stopped: {result.text}"])
    return PermissionDenied(message) if result.status == "denied" else ToolRetry(message)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else f"{line[:200]}…"
