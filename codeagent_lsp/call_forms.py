"""Other spellings of tool calls that are understood: names of a tool, names and values of arguments, other shapes, and
the tools of other agents, which models learned to call.

Each tool declares its own as data (`forms`, beside its `example`); `resolve_call` is the only place that applies them,
for calls of models, of chains and of MCP clients alike. Not here: the forms themselves (`tools/<feature>/`), the
coercion of values to a schema (`llm/calls/schema.py`), the page about them (`scripts/generate`).
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from codeagent_lsp.errors import WrongArguments

Convert = Callable[[dict[str, Any]], dict[str, Any]]

Agent = Literal[
    "aider", "Anthropic API", "Claude Code", "cline", "codex", "Copilot", "Cursor", "Gemini CLI", "opencode",
    "OpenHands", "pi", "Roo Code", "Windsurf", "Zed",
]  # fmt: skip
"""The agents whose tools are known."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Another shape of arguments. `words` describe it for the page; `convert` gets the arguments under their own names
    and returns them in the tool's shape, the same if they have it already.

    `parameters` are the JSON Schemas of what it takes beside the tool's own parameters, or in place of one, for clients
    that check their calls by a schema.
    """

    words: str
    convert: Convert
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the arguments of a call, as they came: `holds` tells whether it is met; `words` describe it for
    the page about forms.
    """

    words: str
    holds: Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class ForeignTool:
    """A tool of other agents whose calls are understood as calls of the tool that declares it. `name` is exact: `Read`
    is not `read`. With `when`, only calls for which it holds are meant; it is needed if the name is that of one of our
    tools, or several of them declare it.

    `arguments` maps its parameters to ours, `ignored` ones mean nothing to ours, `shapes` convert what else differs,
    such as its counting of lines, and `fixed` are arguments that its calls imply.
    """

    name: str
    agents: tuple[Agent, ...]
    arguments: Mapping[str, str] = field(default_factory=dict)
    when: Condition | None = None
    ignored: tuple[str, ...] = ()
    shapes: tuple[Shape, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def own(self, arguments: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
        """Return the arguments of a call as those of our tool; `names` are the other names that our tool has for its
        parameters, mapped to these. WrongArguments if that is impossible.
        """
        given = _rename_arguments(arguments, {**names, **self.arguments}, self.ignored)
        for shape in self.shapes:
            given = shape.convert(given)
        return {**self.fixed, **given}


@dataclass(frozen=True, slots=True)
class CallForms:
    """The other spellings of one tool's calls, or of the objects in one of its parameters.

    `names` are other names of the tool, `arguments` maps other names to parameters, `values` other values of a
    parameter to its own, `ignored` names arguments that are accepted and dropped, `items` has the forms of the objects
    in a parameter, `plain` the parameters whose objects may be given as a text, with the field that the text fills.
    `also` maps names that are only other agents' to parameters: hooks, which are told the other names of `arguments`,
    are not told these. `foreign` are tools of other agents whose calls become calls of this one; `near` names tools
    that it cannot stand for, but comes nearest to.
    """

    names: tuple[str, ...] = ()
    arguments: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str | int, Any]] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    items: Mapping[str, CallForms] = field(default_factory=dict)
    plain: Mapping[str, str] = field(default_factory=dict)
    shapes: tuple[Shape, ...] = ()
    also: Mapping[str, str] = field(default_factory=dict)
    foreign: tuple[ForeignTool, ...] = ()
    near: tuple[str, ...] = ()

    @property
    def parameters(self) -> Mapping[str, str]:
        """All other names of parameters, those of `also` too, with the parameters that they mean."""
        return {**self.also, **self.arguments}


NO_FORMS = CallForms()


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call under the name of the tool that it means, with arguments in that tool's spelling: None if they are no
    JSON object. If they cannot be understood, `problem` says why, and they are as they came.
    """

    tool: str
    arguments: Mapping[str, Any] | None
    problem: str = ""


def resolve_call(name: str, arguments: Mapping[str, Any] | None, tools: Mapping[str, CallForms]) -> OwnCall | None:
    """Return the call of one of `tools`, given with their forms, that a call means; None if it means none of them.

    Resolving its result again changes nothing more.
    """
    name, arguments = unwrap_call(name, arguments)
    tool, foreign = _meant(name, arguments or {}, tools)
    if tool is None or arguments is None:
        return None if tool is None else OwnCall(tool, None)
    try:
        given = foreign.own(arguments, tools[tool].parameters) if foreign else arguments
        return OwnCall(tool, translate_arguments(given, tools[tool]))
    except WrongArguments as problem:
        return OwnCall(tool, arguments, str(problem))


def spellings(name: str, arguments: Mapping[str, Any], tools: Mapping[str, CallForms]) -> dict[str, str]:
    """Return, for those arguments of a call that have other names, the parameters that they mean, by the names given;
    '' for an argument of another agent's tool that becomes something else.
    """
    tool, foreign = _meant(name, arguments, tools)
    if tool is None:
        return {}
    known = {**tools[tool].parameters, **(foreign.arguments if foreign else {})}
    return {key: own or "" for key in arguments if (own := _resolve_name(key, known)) is not None or foreign}


def _meant(
    name: str, arguments: Mapping[str, Any], tools: Mapping[str, CallForms]
) -> tuple[str | None, ForeignTool | None]:
    """Return the tool that a call means, and the foreign tool that it calls; conditions decide before names."""
    found = [
        (tool, foreign)
        for tool, forms in tools.items()
        for foreign in forms.foreign
        if foreign.name == name and (foreign.when is None or foreign.when.holds(arguments))
    ]
    conditional = [pair for pair in found if pair[1].when is not None]
    if conditional:
        return conditional[0]
    if name in tools:
        return name, None
    return found[0] if found else (_by_other_name(name, tools.items()), None)


USE_TOOL = "use_tool"
"""The tool whose calls are calls of another tool: `{name, arguments}`."""

MCP_PREFIX = "mcp."
"""What the names of the tools of MCP servers begin with: `mcp.<server>.<tool>`."""

MCP_CALLS: Mapping[str, tuple[str, str]] = {
    "use_mcp_tool": ("server_name", "tool_name"),  # cline, Roo Code
    "CallMcpTool": ("server", "toolName"),  # Cursor
}
"""Tools of other agents whose calls are calls of a tool of an MCP server, with the arguments that name both."""

ANSWERS: Mapping[str, tuple[str, ...]] = {
    "attempt_completion": ("result",),  # cline, Roo Code
    "plan_mode_respond": ("response",),  # cline
    "submit_and_exit": ("summary",),  # cline
    "finish": ("message",),  # OpenHands
    "complete_task": ("result",),  # Gemini CLI
    "task_complete": ("summary",),  # Copilot
    "ExitPlanMode": ("plan",),  # Claude Code; where a plan is open, it is a call of `plan_exit`
    "exit_plan_mode": ("plan",),  # Claude Code, Zed
    "final_answer": ("text", "answer"),
    "Final Answer": ("text",),
}
"""Tools of other agents whose calls are the answer, with the argument that holds it."""

_SEVERAL: Mapping[str, tuple[str, str]] = {
    "multi_tool_use.parallel": ("tool_uses", "recipient_name"),  # OpenAI
    "batch": ("tool_calls", "tool"),  # opencode
}
"""Tools of other agents whose calls hold several calls: the argument with them, and what names a tool in each."""


def unwrap_call(name: str, arguments: Mapping[str, Any] | None) -> tuple[str, Mapping[str, Any] | None]:
    """Return the name and arguments of the inner call of `use_tool`, or of a tool that calls MCP servers; any other
    call as it is. Arguments are None if they are no JSON object.
    """
    keys = ("name",) if name.casefold() == USE_TOOL else MCP_CALLS.get(name, ())
    parts = [arguments.get(key) for key in keys] if arguments else []
    names = [part for part in parts if isinstance(part, str)]
    if arguments is None or not names or len(names) < len(parts):
        return name, arguments
    name = names[0] if name not in MCP_CALLS else MCP_PREFIX + ".".join(names)
    inner = unpack_json(arguments.get("arguments", {}))
    beside = {key: value for key, value in arguments.items() if key not in (*keys, "arguments")}
    if isinstance(inner, Mapping):
        return name, {**beside, **inner}
    return (name, beside) if inner in (None, "") else (name, None)


def several(name: str, arguments: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the calls, as pairs of name and arguments, in one call that holds several; [] if it is an ordinary call.
    Calls whose arguments are no object are left out.
    """
    key, called = _SEVERAL.get(name, ("", ""))
    held = unpack_json(arguments.get(key))
    calls = [item for item in held if isinstance(item, Mapping)] if isinstance(held, list) else []
    return [
        (str(call.get(called, "")), unpack_json(call.get("parameters")) or {})
        for call in calls
        if isinstance(unpack_json(call.get("parameters")) or {}, Mapping)
    ]


def answer_in(name: str, arguments: Mapping[str, Any]) -> str:
    """Return the text of a call that stands for the final answer (see `ANSWERS`): that of the argument named there,
    else of the first argument that is a text; '' if none is.
    """
    # Models name the argument in other ways: then the first text of the call is the answer.
    texts = [arguments.get(key) for key in (*ANSWERS.get(name, ()), *arguments)]
    return next((text for text in texts if isinstance(text, str)), "")


def wrap_call(name: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name and the arguments, `name` and `arguments`, of the call of `use_tool` that wraps a call of another
    tool; `unwrap_call` gives that call again.
    """
    return USE_TOOL, {"name": name, "arguments": dict(arguments)}


def translate_arguments(arguments: Mapping[str, Any], forms: CallForms) -> dict[str, Any]:
    """Return a copy of the arguments in the tool's own spelling; unknown ones stay. WrongArguments if two spellings of
    one parameter have different values. Translating twice changes nothing more.
    """
    if forms is NO_FORMS:
        return dict(arguments)
    given = _rename_arguments(arguments, forms.parameters, forms.ignored)
    for name, texts in forms.plain.items():
        if name in given:
            given[name] = _objects(given[name], texts)
    for name, inner in forms.items.items():
        if name in given:
            given[name] = _inside(given[name], inner)
    for name, values in forms.values.items():
        if name in given:
            given[name] = _value(given[name], values)
    for shape in forms.shapes:
        given = shape.convert(given)
    return given


def published_schema(schema: Mapping[str, Any], forms: CallForms) -> dict[str, Any]:
    """Return the JSON Schema of arguments in the tool's own spelling and in these others, for clients that check calls
    before they send them. Names in `also` are understood, but not listed.

    It refuses no call that is understood: unknown names are allowed, and a parameter with several names is required
    under none, as model APIs refuse a choice (`anyOf`) at the top of a schema.
    """
    required = list(schema.get("required", ()))
    properties: dict[str, Any] = {}
    for name, stated in schema.get("properties", {}).items():
        others = [other for other, own in forms.arguments.items() if own == name]
        properties[name] = _nested_schema(stated, forms.items.get(name, NO_FORMS))
        for other in others:
            properties[other] = {**without(properties[name], "default"), "description": f"The same as {name}"}
        if name in required and name in forms.parameters.values():
            required.remove(name)
            needed = f"Needed, here or as {' or '.join(others)}" if others else "Needed"
            words = f"{stated.get('description', '')}. {needed}".removeprefix(". ")
            properties[name] = {**properties[name], "description": words}
    for shape in forms.shapes:
        properties |= shape.parameters
    properties |= {name: {"description": "Not needed"} for name in forms.ignored}
    kept = without(schema, "properties", "required", "additionalProperties")
    return {**kept, "properties": properties, **({"required": required} if required else {})}


def _nested_schema(schema: Mapping[str, Any], forms: CallForms) -> dict[str, Any]:
    """Return the schema of one parameter with that of the objects in it, or in its list, as in `published_schema`."""
    if isinstance(schema.get("properties"), Mapping):
        return published_schema(schema, forms)
    items = schema.get("items")
    return {**schema, "items": _nested_schema(items, forms)} if isinstance(items, Mapping) else dict(schema)


def meant(name: str, forms: Iterable[tuple[str, CallForms]]) -> str | None:
    """Return the name of the tool that has `name` as another name, in any case, or that alone declares a foreign tool
    of exactly this name; None if there is not exactly one.
    """
    known = list(forms)
    found = [tool for tool, each in known if any(foreign.name == name for foreign in each.foreign)]
    return _by_other_name(name, known) or (found[0] if len(found) == 1 else None)


def _by_other_name(name: str, forms: Iterable[tuple[str, CallForms]]) -> str | None:
    wanted = name.casefold()
    found = [tool for tool, each in forms if any(other.casefold() == wanted for other in each.names)]
    return found[0] if len(found) == 1 else None


def has(*names: str) -> Condition:
    """Return the condition that one of these arguments is given, in exactly this spelling; null counts as not given."""
    words = f"with {' or '.join(f'`{name}`' for name in names)}"
    return Condition(words, lambda given: any(given.get(name) is not None for name in names))


def given_as(name: str, *values: str) -> Condition:
    """Return the condition that an argument has one of these values, a text in exactly this spelling."""
    words = f"with `{name}` {' or '.join(f'`{value}`' for value in values)}"
    return Condition(words, lambda given: given.get(name) in values)


def blank(*names: str) -> Condition:
    """Return the condition that one of these arguments is an empty text."""
    words = f"with an empty {' or '.join(f'`{name}`' for name in names)}"
    return Condition(words, lambda given: any(given.get(name) == "" for name in names))


def respelt(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a copy of the arguments with names that differ from those in the JSON Schema only in their notation
    (`startLine`) replaced, also inside of objects and lists. Where the schema is open to other names, they stay.
    """
    if isinstance(value, list):
        items = schema.get("items")
        return [respelt(item, items) for item in value] if isinstance(items, Mapping) else value
    properties = schema.get("properties")
    if not isinstance(value, Mapping) or not isinstance(properties, Mapping):
        return value
    # A parameter that is given under its own name takes no other spelling.
    free: dict[str, str] = {plain(name): name for name in properties if name not in value}
    if schema.get("additionalProperties"):
        free = {}
    given: dict[str, Any] = {}
    for key, item in value.items():
        name = key if key in properties else free.get(plain(key)) or key
        given[name] = respelt(item, properties.get(name) or {})
    return given


def plain(name: str) -> str:
    """Return the ASCII letters and digits of a name in lower case, so that its notations become equal: `startLine` and
    `start_line` give `startline`.
    """
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def without(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return a copy of the arguments without those of these names."""
    return {key: value for key, value in given.items() if key not in names}


def place_of(paths: Any) -> str | None:
    """Return the one path in a list of paths (or its JSON), or the folder that contains all of them, with `/` between
    the parts; None for an empty list, and for absolute and relative paths together.
    """
    paths = unpack_json(paths)
    names = [paths] if isinstance(paths, str) else [path for path in paths or () if isinstance(path, str)]
    try:
        return posixpath.commonpath(names) or None
    except ValueError:  # none, or absolute and relative ones
        return None


def number(value: Any) -> int | None:
    """Return a whole number of at most 15 digits, given as one or as text, negative ones too; None for everything else,
    also for booleans.
    """
    text = str(value).strip() if isinstance(value, (int, str)) and not isinstance(value, bool) else ""
    return int(text) if re.fullmatch(r"-?\d{1,15}", text) else None


def _resolve_name(name: str, names: Mapping[str, str]) -> str | None:
    """Return what a name stands for, exactly or in another spelling: `filePath` for `file_path`."""
    if name in names:
        return names[name]
    return next((own for other, own in names.items() if _fold_name(other) == _fold_name(name)), None)


def _fold_name(name: str) -> str:
    """Return a name without capitals and `_`; one with other signs, such as `-C`, as it is."""
    return name.replace("_", "").casefold() if name.isidentifier() else name


def _rename_arguments(
    arguments: Mapping[str, Any], names: Mapping[str, str], ignored: tuple[str, ...] = ()
) -> dict[str, Any]:
    given: dict[str, Any] = {}
    spelt: dict[str, str] = {}
    for name, value in arguments.items():
        if name in ignored:
            continue
        own = _resolve_name(name, names) or name
        # Null beside a value is a parameter that was left out.
        if own in given and value is None:
            continue
        if given.get(own) is not None and given[own] != value:
            raise WrongArguments(f"{spelt[own]} and {name} mean the same parameter and differ. Give one of them.")
        given[own] = value
        spelt.setdefault(own, name)
    return given


def _objects(value: Any, name: str) -> Any:
    """Return the value with each text in it as an object with that text under `name`."""
    value = unpack_json(value)
    if isinstance(value, (list, tuple)):
        return [{name: item} if isinstance(item, str) else item for item in value]
    return [{name: value}] if isinstance(value, str) else value


def _inside(value: Any, forms: CallForms) -> Any:
    value = unpack_json(value)
    if isinstance(value, Mapping):
        return translate_arguments(value, forms)
    if isinstance(value, (list, tuple)):
        return [translate_arguments(item, forms) if isinstance(item, Mapping) else item for item in value]
    return value


def _value(value: Any, values: Mapping[str | int, Any]) -> Any:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return value
    return values.get(value, value)


def unpack_json(value: Any) -> Any:
    """Return the list or object that a text holds as JSON; any other value, and a text that is not valid JSON, as it
    is.
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
