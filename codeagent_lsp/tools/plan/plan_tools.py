"""The tool `create_plan` for steps of long work, and `plan_enter`, `plan_update`, `plan_exit` for the plan document."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from codeagent_lsp.call_forms import CallForms, ForeignTool, Shape, unpack_json
from codeagent_lsp.errors import ErrorCode, ToolRetry
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.plan.plan import MOST_STEPS, TITLE_CHARS, Planner, StepDraft, UpdateAction
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits

_GOAL = 500


class PlannedStep(Parameters):
    """One step of `create_plan`, small enough to be checked by itself."""

    title: str = Field(min_length=1, max_length=TITLE_CHARS)
    description: str = Field("", max_length=4000)
    expected_tools: list[str] = Field(default_factory=list, max_length=30)


class CreatePlanParameters(Parameters):
    """Parameters of `create_plan`: the goal, its steps in order, at least one, and the estimated complexity."""

    goal: str = Field(min_length=1, max_length=2000)
    steps: list[PlannedStep] = Field(min_length=1, max_length=MOST_STEPS)
    estimated_complexity: Literal["low", "medium", "high"] = "medium"


def _whole(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with what is in `plan` at the top, a goal, and the steps in the order of their `index`."""
    plan = unpack_json(given.get("plan"))
    rest = {name: value for name, value in given.items() if name != "plan"}
    if isinstance(plan, dict):
        given = {**plan, **rest}
    elif isinstance(plan, list):
        given = {"steps": plan, **rest}
    steps = unpack_json(given.get("steps"))
    if not isinstance(steps, list):
        return given
    steps = [{"title": step} if isinstance(step, str) else step for step in steps]
    titles = [str(step.get("title", "")) for step in steps if isinstance(step, dict)]
    return {"goal": "; ".join(filter(None, titles))[:_GOAL], **given, "steps": _in_order(steps)}


def _in_order(steps: list[Any]) -> list[Any]:
    """Return the steps without their `index`, in its order if every step has a number of its own."""
    numbers = {step["index"]: step for step in steps if isinstance(step, dict) and type(step.get("index")) is int}
    if len(numbers) == len(steps):
        steps = [numbers[index] for index in sorted(numbers)]
    return [
        {key: value for key, value in step.items() if key != "index"} if isinstance(step, dict) else step
        for step in steps
    ]


class CreatePlan(Tool[CreatePlanParameters]):
    """The tool `create_plan`: divides the task of the run into steps that the user sees and that are done one by
    one.
    """

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
    forms: ClassVar[CallForms] = CallForms(
        shapes=(
            Shape(
                "all of it, or the steps alone, may be in one argument `plan`; a step may be its title alone; an "
                "`index` orders the steps; without a goal it is made of the titles",
                _whole,
            ),
        )
    )

    async def run(self, arguments: CreatePlanParameters, context: ToolContext) -> ToolOutput:
        """Make the plan; the text says what happens next. ToolRetry if a plan may not be made now."""
        steps = tuple(
            # One line: a second one would look like another step, in a state of its own.
            StepDraft(" ".join(step.title.split()) or step.title, step.description, tuple(step.expected_tools))
            for step in arguments.steps
        )
        return ToolOutput(
            _planner(context).create(" ".join(arguments.goal.split()), steps, arguments.estimated_complexity)
        )


class PlanEnterParameters(Parameters):
    """Parameters of `plan_enter`: the title of the plan document, and text that it begins with."""

    title: str = Field(min_length=1, max_length=200)
    description: str = Field("", max_length=4000)


class PlanEnter(Tool[PlanEnterParameters]):
    """The tool `plan_enter`: begins a plan document; until the user approves it, the run may only read."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "plan_enter",
        "Begin a written plan that the user approves before anything changes: explore first, only reading is allowed "
        "until plan_exit. For risky or unclear tasks.",
        "read",
        group="plan",
    )
    parameters = PlanEnterParameters
    example: ClassVar[Example] = {"title": "Taxes"}
    forms: ClassVar[CallForms] = CallForms(
        names=("enter_plan",),
        ignored=("conversation_id", "session_id"),
        foreign=(
            ForeignTool("EnterPlanMode", ("Claude Code",), fixed={"title": "Plan"}),
            ForeignTool("enter_plan_mode", ("Gemini CLI",), {"reason": "description"}, fixed={"title": "Plan"}),
        ),
        near=("switch_mode", "SwitchMode"),
    )
    output = dict[str, str]  # plan_id

    async def run(self, arguments: PlanEnterParameters, context: ToolContext) -> ToolOutput:
        """Begin the document, with the description as its text; the text says what to do now, the data has the
        `plan_id`. ToolRetry if it may not be begun now.
        """
        planner = _planner(context)
        said = planner.enter(arguments.title)
        if arguments.description.strip():
            planner.update("append", arguments.description, "")
        return ToolOutput(f"{said} (plan_id {planner.plan_id})", {"plan_id": planner.plan_id})


class CriticalFile(Parameters):
    """An item of `critical_files` of `plan_update`: a file that the plan is going to create, modify or delete."""

    path: str = Field(min_length=1, max_length=1000)
    type: Literal["create", "modify", "delete"] = "modify"


class PlanUpdateParameters(Parameters):
    """Parameters of `plan_update`: `replace` the whole text, `append` to it, or write one `section`. The lists of files
    become sections of their own.
    """

    action: UpdateAction
    content: str = Field(max_length=40_000)
    section: str = Field("", max_length=100, description="only for action section: its heading")
    explored_files: list[str] = Field(default_factory=list, max_length=200)
    critical_files: list[CriticalFile] = Field(default_factory=list, max_length=200)
    plan_id: str | None = None


def _acting(given: dict[str, Any]) -> dict[str, Any]:
    return {"action": "section" if given.get("section") else "append", **given}


class PlanUpdate(Tool[PlanUpdateParameters]):
    """The tool `plan_update`: changes the plan document that `plan_enter` began."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "plan_update",
        "Change the written plan (Markdown). Sections to fill: Explored files, Critical files, Approach.",
        "read",
        group="plan",
    )
    parameters = PlanUpdateParameters
    example: ClassVar[Example] = {"action": "append", "content": "1. Write the function"}
    forms: ClassVar[CallForms] = CallForms(
        arguments={"mode": "action", "section_name": "section"},
        ignored=("conversation_id", "session_id"),
        plain={"critical_files": "path"},
        shapes=(Shape("without `action`: `section` if a section is named, else `append`", _acting),),
    )

    async def run(self, arguments: PlanUpdateParameters, context: ToolContext) -> ToolOutput:
        """Change the document; the text says how long it is now. ToolRetry without a document, for another `plan_id`,
        or if it would have 100,000 characters or more.
        """
        planner = _planner_of(context, arguments.plan_id)
        said = planner.update(arguments.action, arguments.content, arguments.section)
        explored = [f"- `{name}`" for name in arguments.explored_files]
        critical = [f"- `{file.path}` ({file.type})" for file in arguments.critical_files]
        for key, lines in (("plan_page.explored", explored), ("plan_page.critical", critical)):
            try:
                said = planner.update("section", "\n".join(lines), context.words(key)) if lines else said
            except ToolRetry as refused:  # the content is written, and must not be sent again
                said = f"{said} {context.words(key)}: {refused}"
        return ToolOutput(said)


class PlanExitParameters(Parameters):
    """Parameters of `plan_exit`: a summary for the user, which becomes a section of the plan; `plan` is text to append
    to the document.
    """

    summary: str = Field("", max_length=4000)
    plan: str = Field("", max_length=40_000)
    plan_id: str | None = None


class PlanExit(Tool[PlanExitParameters]):
    """The tool `plan_exit`: asks the user to approve the plan document and waits for the decision."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "plan_exit", "Ask the user to approve the written plan. Work begins when they do.", "ask",
        group="plan", timeout=None,
    )  # fmt: skip
    parameters = PlanExitParameters
    example: ClassVar[Example] = {}
    forms: ClassVar[CallForms] = CallForms(
        names=("exit_plan",),
        ignored=("conversation_id", "session_id", "approve"),
        foreign=(
            ForeignTool("ExitPlanMode", ("Claude Code",), ignored=("allowedPrompts", "pushToRemote")),
            ForeignTool("exit_plan_mode", ("Gemini CLI", "Zed"), ignored=("plan_filename", "plan_path")),
        ),
    )

    async def run(self, arguments: PlanExitParameters, context: ToolContext) -> ToolOutput:
        """Wait for the user and return their decision and what to do now. ToolRetry if there is no document to
        approve.
        """
        planner = _planner_of(context, arguments.plan_id)
        if arguments.plan.strip():
            planner.update("append", arguments.plan, "")
        if arguments.summary.strip():
            planner.update("section", arguments.summary, context.words("plan_page.summary"))
        return ToolOutput(await planner.exit())


def _planner(context: ToolContext) -> Planner:
    missing = "Plans are switched off for this request. Do the task directly."
    return context.need(Planner, missing, ErrorCode.TOOL_DISABLED)


def _planner_of(context: ToolContext, plan_id: str | None) -> Planner:
    """Return the planner of this run. ToolRetry if another plan is named."""
    planner = _planner(context)
    if plan_id is not None and plan_id != planner.plan_id:
        raise ToolRetry(
            f"There is no plan {plan_id!r} here. The plan of this run is {planner.plan_id!r}; leave it out."
        )
    return planner
