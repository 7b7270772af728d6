"""The tool `create_plan` for steps of long work, and `plan_enter`, `plan_update`, `plan_exit` for the plan document."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from codeagent_lsp.errors import ErrorCode
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.plan.planner_port import Planner, StepDraft, UpdateAction
from codeagent_lsp.tools.tool import Example, NoParameters, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits

MOST_STEPS = 30


class PlannedStep(Parameters):
    """One step, small enough to be checked by itself."""

    title: str = Field(min_length=1, max_length=200)
    description: str = Field("", max_length=4000)
    expected_tools: list[str] = Field(default_factory=list, max_length=30)


class CreatePlanParameters(Parameters):
    """The goal, its steps in order, and the estimated complexity."""

    goal: str = Field(min_length=1, max_length=2000)
    steps: list[PlannedStep] = Field(min_length=1, max_length=MOST_STEPS)
    estimated_complexity: Literal["low", "medium", "high"] = "medium"


class CreatePlan(Tool[CreatePlanParameters]):
    """Split the task into steps and work on them one by one."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "create_plan",
        "Split a large task into ordered steps that the user sees and can steer; call it first, and only for tasks "
        "of three steps or more. You are then given one step after the other.",
        "read",
    )
    parameters = CreatePlanParameters
    example: ClassVar[Example] = {
        "goal": "Add the tax",
        "steps": [{"title": "Write the function"}, {"title": "Test it"}],
    }

    async def run(self, arguments: CreatePlanParameters, context: ToolContext) -> ToolOutput:
        """Return what happens next, for the model."""
        steps = tuple(
            StepDraft(step.title.strip() or step.title, step.description, tuple(step.expected_tools))
            for step in arguments.steps
        )
        return ToolOutput(_planner(context).create(arguments.goal, steps, arguments.estimated_complexity))


class PlanEnterParameters(Parameters):
    """The title of the plan."""

    title: str = Field(min_length=1, max_length=200)


class PlanEnter(Tool[PlanEnterParameters]):
    """Begin a plan document."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "plan_enter",
        "Begin a written plan that the user approves before anything changes: explore first, only reading is allowed "
        "until plan_exit. For risky or unclear tasks.",
        "read",
        group="plan",
    )
    parameters = PlanEnterParameters
    example: ClassVar[Example] = {"title": "Taxes"}

    async def run(self, arguments: PlanEnterParameters, context: ToolContext) -> ToolOutput:
        """Return what to do now, for the model."""
        return ToolOutput(_planner(context).enter(arguments.title))


class PlanUpdateParameters(Parameters):
    """The change: `replace` the whole text, `append` to it, or write one `section`."""

    action: UpdateAction
    content: str = Field(max_length=40_000)
    section: str = Field("", max_length=100, description="only for action section: its heading")


class PlanUpdate(Tool[PlanUpdateParameters]):
    """Change the plan document."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "plan_update",
        "Change the written plan (Markdown). Sections to fill: Explored files, Critical files, Approach.",
        "read",
        group="plan",
    )
    parameters = PlanUpdateParameters
    example: ClassVar[Example] = {"action": "append", "content": "1. Write the function"}

    async def run(self, arguments: PlanUpdateParameters, context: ToolContext) -> ToolOutput:
        """Return the size of the document, for the model."""
        return ToolOutput(_planner(context).update(arguments.action, arguments.content, arguments.section))


class PlanExit(Tool[NoParameters]):
    """Ask for the user's approval of the plan document."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "plan_exit", "Ask the user to approve the written plan. Work begins when they do.", "ask",
        group="plan", timeout=None,
    )  # fmt: skip
    parameters = NoParameters
    example: ClassVar[Example] = {}

    async def run(self, arguments: NoParameters, context: ToolContext) -> ToolOutput:
        """Return the user's decision, for the model."""
        return ToolOutput(await _planner(context).exit())


def _planner(context: ToolContext) -> Planner:
    missing = "Plans are switched off for this request. Do the task directly."
    return context.need(Planner, missing, ErrorCode.TOOL_DISABLED)
