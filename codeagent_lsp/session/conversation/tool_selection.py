"""Selects the tools offered to a model in one run.

A capable model gets the same ones in every prompt of a session: the core as it is, all others by name (`FixedTools`).
Others get the core, and groups enabled by the model, a skill or an agent (`ToolSelection`); a group used in a
conversation is offered in all of it, so that prompt caches hold. Not here: who may call a tool
(`tools/permissions/policy.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from codeagent_lsp.call_forms import USE_TOOL
from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.messages import Message, ToolSpec, without_forms
from codeagent_lsp.session.request import Planning
from codeagent_lsp.session.run_output import PLANNING_CALL
from codeagent_lsp.tools.catalogue import SMALL_SET
from codeagent_lsp.tools.permissions.policy import Mode, effects_of
from codeagent_lsp.tools.registry import ToolRegistry, own_name
from codeagent_lsp.tools.traits import CORE, EXTENDED
from codeagent_lsp.workspace.text.excerpts import join_names
from codeagent_lsp.workspace.text.visible import one_line

ENABLE = "enable_tools"
PLANNING_TOOLS = (PLANNING_CALL, "plan_enter", "plan_update", "plan_exit")
NAMED_IN_RULES = ("skill_loader", "delegate")  # tools of groups that the system prompt may tell the model to use
NAMED = 5
MOST_FOREIGN = 6000
"""Characters of a prompt for tools that the user has added."""
FOREIGN_WORDS = 80
_CHECKS = (
    *("additionalProperties", "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"),
    *("exclusiveMinimum", "exclusiveMaximum"),
)

Heads = dict[str, tuple[ToolSpec, ...]]
"""The tools with which prompts of a session begin, by the effects that they may have."""
OFFERED = ("active", "error")  # a suspended tool may come back


class ToolSelection:
    """The `ToolGroups` of one run. `mode` returns the present permission mode; `before` are earlier messages, whose
    groups stay on; `without` are tools never offered, `named` tools offered whatever their group. Groups of tools that
    the user added are enabled as far as they fit into `room` characters. With `few`, the names of tools for small
    models, no other tool of the core is offered, and `enable_tools` only if the user added groups: every tool costs
    tokens and invites mistakes.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        mode: Callable[[], Mode],
        before: Sequence[Message] = (),
        without: Iterable[str] = (),
        few: Iterable[str] | None = None,
        named: Iterable[str] = (),
        room: int = 0,
    ) -> None:
        self._registry = registry
        self._mode = mode
        # `use_tool` is for capable models; here a tool that is not described cannot be called.
        self._without = frozenset((*without, USE_TOOL))
        self._few = None if few is None else frozenset(few)
        self._named = frozenset(named)
        self._room = room
        self._on: dict[str, None] = {}  # in the order of enabling, the newest last
        self._description = self._listing()
        # For a small model only groups that its user added are worth a tool to ask for them.
        self._ask_for = few is None or bool(set(self._groups()) - set(EXTENDED))
        self._enable_used(before)

    def enable(self, group: str) -> tuple[str, ...]:
        """Offer a group from the next model call on, for the rest of the run; return the names of its tools. ToolFailed
        for an unknown group.
        """
        known = self._groups()
        if group not in known:
            listed = ", ".join(known) or "none"
            raise ToolFailed(f"There is no group {one_line(group, 60)!r}. Groups: {listed}.", ErrorCode.NOT_FOUND)
        self._on[group] = None
        return known[group]

    def described(self, group: str) -> str:
        """Return '': the next prompt has the parameters of an enabled group."""
        return ""

    def offer(self, names: Iterable[str]) -> None:
        """Offer the groups of these tools, in whatever spelling, from the next model call on; unknown names are
        ignored.
        """
        entries = self._registry.entries()
        wanted, known = {own_name(name, entries) for name in names}, self._groups()
        for group, tools in known.items():
            # The whole group, not the one tool: its neighbours are used with it, and the prompt changes only once.
            if wanted & set(tools):
                self._on[group] = None

    def specs(self, only: Sequence[str] | None = None) -> tuple[ToolSpec, ...]:
        """Return the specs offered now: those named in `only`, from any group, or all that are enabled; of the core, a
        small model gets only `few`. Each call also enables, for good, groups that the user added since, while there is
        room for them.
        """
        core = self._of(CORE)
        self._bring_along()
        if only is not None:
            return tuple(spec for spec in self._of(CORE, *self._groups()) if spec["name"] in only)
        if self._few is not None:
            core = tuple(spec for spec in core if spec["name"] in self._few or spec["name"] == ENABLE)
        named = tuple(spec for spec in self._of(*self._off_groups()) if spec["name"] in self._named)
        specs = (*core, *named, *(spec for group in self._on for spec in self._of(group)))
        return tuple(map(self._spec_for_prompt, filter(self._fits, specs)))

    def _bring_along(self) -> None:
        for group in self._groups():
            if group in EXTENDED or group in self._on:
                continue
            size = len(json.dumps([without_forms(spec) for spec in self._of(group)], ensure_ascii=False))
            if size <= self._room:
                self._on[group] = None
                # Not given back: what was offered once stays in the prompt of this run.
                self._room -= size

    def _fits(self, spec: ToolSpec) -> bool:
        return spec["name"] != ENABLE or self._ask_for

    def _spec_for_prompt(self, spec: ToolSpec) -> ToolSpec:
        if spec["name"] != ENABLE:
            return spec
        return {**spec, "description": f"{spec['description']}\n{self._description}"}

    def _of(self, *groups: str) -> tuple[ToolSpec, ...]:
        specs = self._registry.specs(effects_of(self._mode()), groups)
        return tuple(spec for spec in specs if spec["name"] not in self._without)

    def _off_groups(self) -> tuple[str, ...]:
        return tuple(group for group in self._groups() if group not in self._on)

    def _groups(self) -> dict[str, tuple[str, ...]]:
        """Return the names of the available tools by group, without the core."""
        found: dict[str, tuple[str, ...]] = {}
        effects = effects_of(self._mode())
        for entry in self._registry.entries():
            traits = entry.tool.traits
            if entry.state in OFFERED and traits.effect in effects and traits.name not in self._without:
                found[traits.group] = (*found.get(traits.group, ()), traits.name)
        found.pop(CORE, None)
        return found

    def _listing(self) -> str:
        lines = [
            f"{group}: {EXTENDED.get(group) or join_names(names, NAMED)}" for group, names in self._groups().items()
        ]
        return "\n".join(lines)

    def _enable_used(self, before: Sequence[Message]) -> None:
        """Enable the groups used in earlier messages of this conversation."""
        calls = [call for message in before for call in message.tool_calls]
        known = self._groups()
        for call in calls:
            group = call.arguments.get("group") if call.name == ENABLE else None
            if isinstance(group, str) and group in known:
                self._on[group] = None
        self.offer(call.name for call in calls)


class FixedTools:
    """The `ToolGroups` of a run of a capable model. `heads` keeps, for a session, the specs that prompts begin with for
    each set of effects, so that they stay the same; `mode` returns the present permission mode, `without` are tools
    never offered.
    """

    def __init__(
        self, registry: ToolRegistry, mode: Callable[[], Mode], heads: Heads, without: Iterable[str] = ()
    ) -> None:
        self._registry = registry
        self._mode = mode
        self._heads = heads
        self._without = frozenset(without)

    def specs(self, only: Sequence[str] | None = None) -> tuple[ToolSpec, ...]:
        """Return the specs in the prompt, the same for a whole session; with `only` those of these names, from any
        group.
        """
        if only is not None:
            return tuple(spec for spec in self._all() if spec["name"] in only)
        # By effects: another permission mode has other tools, and coming back to a mode finds its cached prompt.
        key = ",".join(sorted((*effects_of(self._mode()), *self._without)))
        if key not in self._heads:
            core = (spec for spec in self._all() if self._group(spec["name"]) == CORE)
            self._heads[key] = tuple(map(self._spec_for_prompt, core))
        return self._heads[key]

    def also(self) -> tuple[ToolSpec, ...]:
        """Return the specs of the tools that may be called besides those in the prompt, the descriptions of which are
        not sent.
        """
        declared = {spec["name"] for spec in self.specs()}
        return tuple(spec for spec in self._all() if spec["name"] not in declared)

    def enable(self, group: str) -> tuple[str, ...]:
        """Return the names of a group's tools, which may be called anyway. ToolFailed for an unknown group."""
        known = self._groups()
        if group not in known:
            raise ToolFailed(
                f"There is no group {one_line(group, 60)!r}. Groups: {', '.join(known) or 'none'}.", ErrorCode.NOT_FOUND
            )
        return tuple(spec["name"] for spec in known[group])

    def described(self, group: str) -> str:
        """Return the tools of a group with their descriptions and parameters, for the conversation; '' for an unknown
        group.
        """
        return "\n".join(
            f"{spec['name']}: {spec['description']}\n{json.dumps(lean(spec['parameters']), ensure_ascii=False)}"
            for spec in self._groups().get(group, ())
        )

    def offer(self, names: Iterable[str]) -> None:
        """Do nothing: all tools may be called anyway."""

    def _spec_for_prompt(self, spec: ToolSpec) -> ToolSpec:
        """Return a spec as the prompt has it: its schema without what only checks need, and lists where they belong."""
        text = spec["description"]
        if spec["name"] == USE_TOOL:
            text = f"{text}\n{self._listing()}"
        elif spec["name"] == ENABLE:
            text = f"Get the parameters of a group's tools before you call them: {', '.join(self._groups())}."
        return {**spec, "description": text, "parameters": lean(spec["parameters"])}

    def _listing(self) -> str:
        """Return the other tools with their parameters' names, a line for each group; of groups that the user added, as
        many as fit.
        """
        lines, room = [], MOST_FOREIGN
        for group, specs in self._groups().items():
            told = [_signature(spec) if group in EXTENDED else _introduce(spec) for spec in specs]
            line = f"{group}: {', '.join(told)}"
            if group not in EXTENDED:
                line = line if len(line) <= room else f"{group}: {join_names([spec['name'] for spec in specs], NAMED)}"
                room -= len(line)
            lines.append(line)
        return "\n".join(lines)

    def _groups(self) -> dict[str, list[ToolSpec]]:
        found: dict[str, list[ToolSpec]] = {}
        for spec in self._all():
            if (group := self._group(spec["name"])) != CORE:
                found.setdefault(group, []).append(spec)
        return found

    def _group(self, name: str) -> str:
        traits = self._registry.traits(name)
        return CORE if traits is None else traits.group

    def _all(self) -> tuple[ToolSpec, ...]:
        groups = dict.fromkeys(entry.tool.traits.group for entry in self._registry.entries())
        specs = self._registry.specs(effects_of(self._mode()), groups)
        return tuple(spec for spec in specs if spec["name"] not in self._without)


def lean(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON Schema for a prompt, without what only validation needs: limits of length and number, closed
    objects, and defaults that mean "off" (False, 0, ''). The schema itself is not changed.
    """

    def clean(node: Any) -> Any:
        if isinstance(node, list):
            return [clean(item) for item in node]
        if not isinstance(node, dict):
            return node
        # A property of a tool may itself be called `minimum`; then the value is its schema, no number.
        kept = {key: value for key, value in node.items() if key not in _CHECKS or not isinstance(value, int)}
        # The 1 stands for "no default", which is not among those.
        if kept.get("default", 1) in (0, False, ""):
            del kept["default"]
        return {key: clean(value) for key, value in kept.items()}

    cleaned: dict[str, Any] = clean(dict(schema))
    return cleaned


def _signature(spec: ToolSpec) -> str:
    """Return a tool as `name(a, b?)`."""
    parameters = spec["parameters"]
    required = parameters.get("required") or ()
    names = sorted(parameters.get("properties") or (), key=lambda name: name not in required)
    return f"{spec['name']}({', '.join(name if name in required else f'{name}?' for name in names)})"


def _introduce(spec: ToolSpec) -> str:
    """Return a tool that the user has added, with the first words about it."""
    words = one_line(spec["description"], FOREIGN_WORDS)
    return f"{_signature(spec)} {words}".strip()


def tool_selection_for(
    registry: ToolRegistry,
    mode: Callable[[], Mode],
    before: Sequence[Message],
    planning: Planning,
    rules: str,
    *,
    small: bool,
    room: int = 0,
) -> ToolSelection:
    """Return the selection of a run: tools that fit its planning, that its `rules` (the system prompt) mention, or that
    the conversation used before. `small` is for models with a small window; `room` is as for `ToolSelection`.
    """
    few = (*SMALL_SET, PLANNING_CALL) if planning == "always" else SMALL_SET
    without = PLANNING_TOOLS if planning == "never" else ()
    named = [name for name in NAMED_IN_RULES if name in rules]
    return ToolSelection(registry, mode, before, without, few if small else None, named, room)
