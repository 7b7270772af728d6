"""`compose`: a chain of tools in one call, each step judged, limited and counted like a call of its own.

Not here: what becomes of an output on its way (`composition.py`).
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from codeagent_lsp.errors import PermissionDenied, ToolRetry
from codeagent_lsp.messages import ToolCall, ToolResult
from codeagent_lsp.tools.composition import Transformation
from codeagent_lsp.tools.context import Calls, ToolContext
from codeagent_lsp.tools.tool import Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits

MOST_STEPS = 10


class ComposeStep(Parameters):
    """One call; from the second on it gets something of the result before it."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    take: Transformation | None = None


class ComposeParameters(Parameters):
    """The chain."""

    steps: list[ComposeStep] = Field(min_length=2, max_length=MOST_STEPS)


class Compose(Tool[ComposeParameters]):
    """Run a chain. The effect `ask` keeps it from running beside other calls; what its steps do is judged there."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "compose",
        "Run tools in a chain; each takes something of the result before. field_mapping: parameter -> path.",
        "ask",
        "compose",
        timeout=None,
    )
    parameters = ComposeParameters

    async def run(self, arguments: ComposeParameters, context: ToolContext) -> ToolOutput:
        """The last result, and a line for each step before it."""
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
    """What a step takes; nothing when it says nothing and is told everything."""
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
