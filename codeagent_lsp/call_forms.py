"""Other spellings of tool calls that are understood: names of a tool, names and values of arguments, other shapes.

Each tool declares its own as data (`forms`, beside its `example`); `translated` is the only place that applies them,
for calls of models, of chains and of MCP clients alike. Not here: the forms themselves (`tools/<feature>/*_tools.py`),
the coercion of values to a schema (`llm/calls/schema.py`), the page about them (`forms_page.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from codeagent_lsp.errors import WrongArguments

Convert = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Shape:
    """Another shape of arguments. `words` describe it for the page; `convert` gets the arguments under their own names
    and returns them in the tool's shape, the same if they have it already.
    """

    words: str
    convert: Convert


@dataclass(frozen=True, slots=True)
class CallForms:
    """The other spellings of one tool's calls, or of the objects in one of its parameters.

    `names` are other names of the tool, `arguments` maps other names to parameters, `values` other values of a
    parameter to its own, `ignored` names arguments that are accepted and dropped, `items` has the forms of the objects
    in a parameter, `plain` the parameters whose objects may be given as a text, with the field that the text fills.
    """

    names: tuple[str, ...] = ()
    arguments: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str | int, Any]] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    items: Mapping[str, CallForms] = field(default_factory=dict)
    plain: Mapping[str, str] = field(default_factory=dict)
    shapes: tuple[Shape, ...] = ()


NO_FORMS = CallForms()

USE_TOOL = "use_tool"
"""The tool whose calls are calls of another tool: `{name, arguments}`."""


def unwrapped(name: str, arguments: Mapping[str, Any] | None) -> tuple[str, Mapping[str, Any] | None]:
    """Return the name and arguments of the call that a call of `use_tool` stands for; any other call as it is."""
    if name.casefold() != USE_TOOL or arguments is None or not isinstance(arguments.get("name"), str):
        return name, arguments
    inner = unpacked(arguments.get("arguments", {}))
    beside = {key: value for key, value in arguments.items() if key not in ("name", "arguments")}
    if isinstance(inner, Mapping):
        return arguments["name"], {**beside, **inner}
    return (arguments["name"], beside) if inner in (None, "") else (arguments["name"], None)


def wrapped(name: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the call of `use_tool` that stands for a call of another tool."""
    return USE_TOOL, {"name": name, "arguments": dict(arguments)}


def translated(arguments: Mapping[str, Any], forms: CallForms) -> dict[str, Any]:
    """Return the arguments in the tool's own spelling; unknown ones stay, so that they are refused.

    WrongArguments if two spellings of one parameter have different values. Translating twice changes nothing more.
    """
    if forms is NO_FORMS:
        return dict(arguments)
    given = _renamed(arguments, forms)
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


def meant(name: str, forms: Iterable[tuple[str, CallForms]]) -> str | None:
    """Return the tool that has `name` as another name, in any case; None unless exactly one has."""
    wanted = name.casefold()
    found = [tool for tool, known in forms if any(other.casefold() == wanted for other in known.names)]
    return found[0] if len(found) == 1 else None


def _renamed(arguments: Mapping[str, Any], forms: CallForms) -> dict[str, Any]:
    given: dict[str, Any] = {}
    spelt: dict[str, str] = {}
    for name, value in arguments.items():
        if name in forms.ignored:
            continue
        own = forms.arguments.get(name, name)
        if own in given and given[own] != value:
            raise WrongArguments(f"{spelt[own]} and {name} mean the same parameter and differ. Give one of them.")
        given[own] = value
        spelt.setdefault(own, name)
    return given


def _objects(value: Any, name: str) -> Any:
    """Return the value with each text in it as an object with that text under `name`."""
    value = unpacked(value)
    if isinstance(value, (list, tuple)):
        return [{name: item} if isinstance(item, str) else item for item in value]
    return [{name: value}] if isinstance(value, str) else value


def _inside(value: Any, forms: CallForms) -> Any:
    value = unpacked(value)
    if isinstance(value, Mapping):
        return translated(value, forms)
    if isinstance(value, (list, tuple)):
        return [translated(item, forms) if isinstance(item, Mapping) else item for item in value]
    return value


def _value(value: Any, values: Mapping[str | int, Any]) -> Any:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return value
    return values.get(value, value)


def unpacked(value: Any) -> Any:
    """Return the list or object that a text holds as JSON; any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
