"""Subagents: agents that do a part of a run in a conversation of their own, with their own tools and limits.

Each has a part of the tools of the run that calls it; what one edits is staged in the same run. None can call another.
Not here: the files that define agents (`agent_files.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from itertools import count

from codeagent_lsp import events
from codeagent_lsp.agent.agent_files import Profile
from codeagent_lsp.agent.context.history import History
from codeagent_lsp.agent.limits import limits_for
from codeagent_lsp.agent.loop import AgentLoop, LoopResult
from codeagent_lsp.errors import ErrorCode, ModelError, PermissionDenied, ToolFailed
from codeagent_lsp.llm.model import Model
from codeagent_lsp.messages import Message, ToolSpec
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.tools.orchestration.orchestration_tools import Delegates
from codeagent_lsp.tools.permissions.approvals import Approvals
from codeagent_lsp.tools.permissions.policy import Mode, effects_of
from codeagent_lsp.tools.plan.plan import Planner
from codeagent_lsp.tools.registry import RegisteredTool, ToolRegistry, ToolState
from codeagent_lsp.tools.skills.skill_library import RunSkills
from codeagent_lsp.tools.todos.todo_list import TodoList
from codeagent_lsp.tools.tool import Tool
from codeagent_lsp.tools.traits import CORE, Effect, ToolGroups, ToolTraits
from codeagent_lsp.workspace.text.visible import one_line

LONGEST_REPORT = 20_000
# An agent works on its part: plans, other agents and installing are the run's own.
NEVER = frozenset({"delegate", "create_plan", "plan_enter", "plan_update", "plan_exit", "skill_installer"})
NEVER_GIVEN = "You do not have the tool {tool!r}. Tools: {tools}."
NOT_YET = "The tool {tool!r} cannot be called yet. Now: {tools}."


@dataclass(frozen=True, slots=True)
class Parent:
    """What the agents of a run use of it: model, tools (those that are offered, or those of the given names),
    approvals, and the function that emits their events.

    `model` opens a model by its name, '' for the run's own; `prompt` returns the system prompt of an agent; `vouched`
    asks whether the user trusts an agent of the workspace; `before` returns the text to put before a task.
    """

    registry: ToolRegistry
    context: ToolContext
    tools: Callable[[tuple[str, ...] | None], tuple[ToolSpec, ...]]
    mode: Callable[[], Mode]
    approvals: Approvals
    language: str
    emit: Callable[[events.Event], None]
    model: Callable[[str], Awaitable[Model]]
    prompt: Callable[[Profile], Awaitable[str]]
    vouched: Callable[[Profile], Awaitable[bool]]
    before: Callable[[str], Awaitable[str]]


class OwnGroups:
    """The `ToolGroups` of one agent: groups that it enables are offered to it alone. `names` returns the names of the
    tools that it may have, by group.
    """

    def __init__(self, names: Callable[[], dict[str, tuple[str, ...]]]) -> None:
        self._names = names
        self.on: tuple[str, ...] = ()

    def enable(self, group: str) -> tuple[str, ...]:
        """Offer a group from the next model call on; return the names of its tools, also when it was offered already.
        ToolFailed when there is no such group.
        """
        known = self._names()
        if group not in known:
            listed = ", ".join(known) or "none"
            raise ToolFailed(
                f"There is no group {one_line(group, 60)!r} for you. Groups: {listed}.", ErrorCode.NOT_FOUND
            )
        self._add(known[group])
        return known[group]

    def described(self, group: str) -> str:
        """Return '': the agent's next prompt has the parameters."""
        return ""

    def offer(self, names: Iterable[str]) -> None:
        """Offer the groups of these tools from the next model call on; unknown names are ignored."""
        wanted = set(names)
        for tools in self._names().values():
            if wanted & set(tools):
                self._add(tools)

    def _add(self, names: tuple[str, ...]) -> None:
        self.on = tuple(dict.fromkeys((*self.on, *names)))


class Subagents:
    """The `Delegates` of one run: runs other agents on parts of its task, one at a time, so that no two edit a file at
    once.
    """

    def __init__(self, profiles: Callable[[], Awaitable[tuple[Profile, ...]]], parent: Parent) -> None:
        self._profiles = profiles
        self._parent = parent
        self._turn = asyncio.Lock()
        self._numbers = count(1)

    async def delegate(self, agent: str, task: str) -> str:
        """Run `agent` on `task`, after any other has ended, and return its report for the model: its last text, cut at
        20,000 characters, and the files that it changed, by their relative paths; its changes are staged like those of
        the run itself. ToolFailed when there is no such agent or its model fails, PermissionDenied when the user does
        not trust it. Cancellable.
        """
        async with self._turn:
            profile = await self._profile(agent)
            # What the agent says it did is not what counts: the report lists what it staged.
            before = self._parent.context.staging.changeset
            self._status(profile, one_line(task, 100))
            result = await self._work(profile, task)
            after = self._parent.context.staging.changeset
            relative = self._parent.context.view.roots.relative
            changed = [relative(item.path) for item in after if before.get(item.path) != item]
            self._status(profile, {"answered": "ok", "limit": "limit"}.get(result.ending, "stopped"))
            return _report(profile, result, changed)

    async def _profile(self, agent: str) -> Profile:
        known = {profile.name: profile for profile in await self._profiles()}
        profile = known.get(agent.strip())
        if profile is None:
            names = ", ".join(known)
            raise ToolFailed(f"There is no agent {one_line(agent, 60)!r}. Agents: {names}.", ErrorCode.NOT_FOUND)
        if not await self._parent.vouched(profile):
            raise PermissionDenied(f"The user does not trust the agent {profile.name}. Go on without it.")
        return profile

    async def _work(self, profile: Profile, task: str) -> LoopResult:
        parent = self._parent
        try:
            model = await parent.model(profile.model)
            system = Message("system", await parent.prompt(profile))
            told = "\n\n".join(filter(None, (await parent.before(task), task)))
            limits = limits_for(parent.context.settings, model.info, profile.max_iterations)
            groups = OwnGroups(lambda: self._groups(profile))
            loop = AgentLoop(
                model,
                self._executor(profile, groups),
                History([system, Message("user", told)]),
                lambda: self._tools(profile, groups),
                self._emitter(profile, next(self._numbers)),
                limits,
            )
            return await loop.run()
        except ModelError as error:
            raise ToolFailed(f"The agent {profile.name} failed: {error}", error.code) from error

    def _executor(self, profile: Profile, groups: OwnGroups) -> ToolExecutor:
        parent, context = self._parent, self._parent.context
        skills = context.get(RunSkills)
        skills = replace(skills, mode=profile.name) if skills else None
        # Taken out of the context too: a tool that is not offered could still find them there.
        without = (Planner, None), (Delegates, None)
        own = context.having((TodoList, TodoList()), (ToolGroups, groups), (RunSkills, skills), *without)
        subset = Subset(parent.registry, lambda: {spec["name"] for spec in self._tools(profile, groups)})
        return ToolExecutor(subset, own, self._mode(profile), parent.approvals, parent.language)

    def _mode(self, profile: Profile) -> Callable[[], Mode]:
        return (lambda: "readOnly") if profile.reads_only else self._parent.mode

    def _tools(self, profile: Profile, groups: OwnGroups) -> tuple[ToolSpec, ...]:
        """Return the tools of the run that this agent may have, never more; those it switched on come last."""
        allowed, given = set(self._allowed(profile)), self._profile_tools(profile)
        first = [spec for spec in self._parent.tools(given) if spec["name"] in allowed]
        known = {spec["name"] for spec in first}
        # Behind the others, so that a group that is switched on leaves the beginning of the prompt as it is.
        later = [spec for spec in self._parent.tools(groups.on) if spec["name"] in allowed - known]
        return (*first, *later)

    def _profile_tools(self, profile: Profile) -> tuple[str, ...] | None:
        """Return the tools that its profile names, groups resolved to their tools; None when it names none."""
        registry = self._parent.registry
        return tuple(part for name in profile.tools for part in (name, *registry.names(group=name))) or None

    def _allowed(self, profile: Profile) -> tuple[str, ...]:
        """Return the names of all tools that it may ever call, by its profile and mode."""
        registry, effects = self._parent.registry, effects_of(self._mode(profile)())
        names = (name for name in registry.names("active") if name not in NEVER)
        return tuple(name for name in names if registry.get(name).traits.effect in effects)

    def _groups(self, profile: Profile) -> dict[str, tuple[str, ...]]:
        """Return the groups that it may switch on, with the tools it may have of each."""
        registry, found = self._parent.registry, dict[str, tuple[str, ...]]()
        could = {spec["name"] for spec in self._parent.tools(self._allowed(profile))}
        for name in filter(could.__contains__, self._allowed(profile)):
            group = registry.get(name).traits.group
            found[group] = (*found.get(group, ()), name)
        found.pop(CORE, None)
        return found

    def _emitter(self, profile: Profile, number: int) -> Callable[[events.Event], None]:
        """Return a function that emits the agent's events in the run: without its text, with call ids of their own."""
        emit, mark = self._parent.emit, f"{profile.name}-{number}"

        def tell(event: events.Event) -> None:
            match event:
                # Its text would run into the answer of the run; the report has it.
                case events.Token() | events.Thought():
                    return
                case events.ToolCalls():
                    # Two agents may use the same ids, and clients pair calls with results by them.
                    calls = tuple({**call, "id": f"{mark}/{call.get('id', '')}"} for call in event.calls)
                    emit(replace(event, calls=calls))
                case events.ToolFinished():
                    emit(replace(event, call_id=f"{mark}/{event.call_id}"))
                case events.ContextCompacted() | events.AnomalyDetected():
                    self._status(profile, event.type)
                case _:
                    emit(event)

        return tell

    def _status(self, profile: Profile, what: str) -> None:
        self._parent.emit(events.StatusChanged(message=f"{profile.name}: {what}"))


def _report(profile: Profile, result: LoopResult, changed: list[str]) -> str:
    text = result.text.strip() or "(no words)"
    if len(text) > LONGEST_REPORT:
        text = f"{text[:LONGEST_REPORT]}\n(… cut)"
    heads = {"limit": "It was stopped at its limit of model calls; its last words:", "anomaly": "It went in circles:"}
    parts = [f"Report of {profile.name}:", *filter(None, [heads.get(result.ending, "")]), text]
    if changed:
        parts.append(f"It changed (staged): {', '.join(changed[:40])}{' …' if len(changed) > 40 else ''}")
    return "\n".join(parts)


# A registry restricted to some tools: what an agent, or one moment of a run, may call.


class Subset(ToolRegistry):
    """A view of the registry `whole` in which only the `allowed` tools can be called; states and counts are those of
    `whole`. `refusal` is the message to the model when it calls another tool.
    """

    def __init__(self, whole: ToolRegistry, allowed: Callable[[], Iterable[str]], refusal: str = NEVER_GIVEN) -> None:
        super().__init__(circuits=whole.circuits)
        self._refusal = refusal
        self._whole = whole
        self._allowed = allowed

    def get(self, name: str) -> Tool:  # type: ignore[type-arg]
        """Return the tool of that name. ToolFailed with a message for the model if it may not be called here or is not
        registered.
        """
        if name not in self._allowed():
            names = ", ".join(self.names("active"))
            told = self._refusal.format(tool=one_line(name, 60), tools=names)
            raise ToolFailed(told, ErrorCode.NOT_FOUND)
        return self._whole.get(name)

    def entries(self) -> tuple[RegisteredTool, ...]:
        """Return the registered tools that may be called, suspended ones included."""
        allowed = set(self._allowed())
        return tuple(entry for entry in self._whole.entries() if entry.tool.traits.name in allowed)

    def traits(self, name: str) -> ToolTraits | None:
        """Return the traits of a tool that may be called; None for any other."""
        return self._whole.traits(name) if name in self._allowed() else None

    def names(self, state: ToolState | None = None, group: str | None = None) -> tuple[str, ...]:
        """Return the names of the tools that may be called, in registration order; `state` and `group` narrow them,
        None means any.
        """
        allowed = set(self._allowed())
        return tuple(name for name in self._whole.names(state, group) if name in allowed)

    def specs(self, effects: Iterable[Effect], groups: Iterable[str]) -> tuple[ToolSpec, ...]:
        """Return the specs of the tools that may be called, with these effects and groups, as `ToolRegistry.specs`; ()
        for none.
        """
        allowed = set(self._allowed())
        return tuple(spec for spec in self._whole.specs(effects, groups) if spec["name"] in allowed)

    def count(self, name: str, *, ok: bool, milliseconds: float) -> None:
        """Add one call, which succeeded (`ok`) or not and took so many milliseconds, to the counts in the whole
        registry. ToolFailed if the tool is unknown.
        """
        self._whole.count(name, ok=ok, milliseconds=milliseconds)
