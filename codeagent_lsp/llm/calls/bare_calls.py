"""Reading of calls that are written as bare JSON or Python, and the check whether a call fits a known tool.

Not here: where in a text calls begin and end (`toolcalls.py`), calls between the markers of a dialect (`dialects.py`),
schemas (`schema.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice
from typing import Any

from codeagent_lsp.call_forms import (
    ANSWERS,
    NO_FORMS,
    CallForms,
    OwnCall,
    meant,
    resolve_call,
    respelt,
    spellings,
    unwrap_call,
)
from codeagent_lsp.llm.calls import dialects, jsontext, schema
from codeagent_lsp.llm.calls.dialects import Raw
from codeagent_lsp.messages import ToolCall, ToolSpec
from codeagent_lsp.workspace.text.numbers import whole_number

# The second line of ReAct: `Action: read_file` / `Action Input: {"path": …}`; also in bold, as code, in Chinese.
ACTION_INPUT = re.compile(
    r"[`*_ \t]*\n[ \t]*[*_]*(?:(?:Action )?Input|(?:动作|行动|操作)?输入|参数)(?: \d+)?[*_]*[:：][*_]*"
    r"\s*(?:`{3}\w*\s*|`?)(?=\{)"
)
_ONLY_FENCE = re.compile(r"\s*`{3}\w*\n(.*)\n`{3}\s*\Z", re.DOTALL)
_LEAST_ARGUMENTS = 2  # an object with one key may be an answer in JSON
_FENCE_END = re.compile(r"\s*`{3}")
NEAREST, LEAST_ALIKE, MOST_NEAR = 2, 0.6, 3
LONGEST_NAME = 100  # of a tool that does not exist, in what is told of it; comparing takes the square of it
_SENT_TO = re.compile(r"<\|\w+\|>.*\bto=([\w.\-]+)", re.DOTALL)
_MOST_CLOSINGS = 50  # ends of lines at which a call in Python may end

UNSURE = (
    "It is not clear where the values of this call of {name} end, as they hold the tags that a call is written with. "
    "Send it again with only what is required, or write the text in parts."
)


def read_json(source: str, tools: tuple[ToolSpec, ...]) -> list[Raw] | None:
    """Return the calls of a text that consists of JSON values, separated by nothing, blanks, `;` or `,`, repaired if
    broken and call-like; None if it is anything else.
    """
    found: list[Raw] = []
    position = 0
    while position < len(source):
        if source[position] not in "{[":
            if source[position] in ";,\n\r\t ":
                position += 1
                continue
            return None
        end = jsontext.span(source, position)
        try:
            # Only what begins like a call is repaired: repairing would make JSON of nearly any text in brackets.
            value = jsontext.loads(source[position:end], repair=_looks_like_call(source))
        except ValueError:
            return None
        calls = dialects.from_value(value) or _call_by_key(value, tools)
        if not calls:
            return None
        found += dialects.as_torn(calls, source[position:end])
        position = len(source) if end is None else end
    return found or None


def read_strict(source: str) -> list[Raw] | None:
    """Return the calls in one JSON value, one object or a list of them, which is not repaired; None if it is broken or
    not a call.
    """
    try:
        return dialects.from_value(jsontext.loads(source))
    except ValueError:
        return None


def read_python(source: str, tools: tuple[ToolSpec, ...]) -> list[Raw] | None:
    """Return the calls of a text that consists of Python calls; with parameters by the tools' names for positional
    ones; None if it is anything else.
    """
    if not re.match(r"\[?\s*[A-Za-z_][\w.\-]*\s*\(", source):
        return None
    # Names such as `git-diff` are no identifiers; the text as it is goes first, as the replacement also changes
    # strings.
    calls = dialects.read_python(source) or dialects.read_python(_identifiers(source, tools))
    return [Raw(call.name, _arguments_by_name(call, tools)) for call in calls] if calls else None


def read_action(text: str, start: int, tools: tuple[ToolSpec, ...]) -> tuple[list[Raw], int]:
    """Parse `NAME[{…}]`, `NAME(key="value")`, or NAME with a line `Action Input: {…}` below, at the offset `start`,
    each on lines of its own; return the calls, [] for none, and the offset behind them, or behind NAME.
    """
    begin = re.compile(r"[\w.\-]+").match(text, start).end()  # type: ignore[union-attr] # the caller has found it
    if given := ACTION_INPUT.match(text, begin):
        end = jsontext.span(text, given.end())
        arguments = jsontext.loads_object(text[given.end() : end], repair=True)
        fence = _FENCE_END.match(text, end) if end is not None else None
        end = fence.end() if fence else end
        return [Raw(text[start:begin], arguments)], len(text) if end is None else end
    if text[begin] == "[":
        end = jsontext.span(text, begin)
        calls = _call_in_list(text[start:begin], text[begin:end])
        return (calls, end) if calls and end is not None and _ends_line(text, end) else ([], begin)
    # A closing bracket may stand inside a string argument: each that ends a line is tried.
    for close in islice(re.compile(r"\)(?=[ \t]*(?:\n|\Z))").finditer(text, begin), _MOST_CLOSINGS):
        if found := read_python(text[start : close.end()], tools):
            return found, close.end()
    return [], begin


def nameless_call(text: str, tools: Iterable[ToolSpec]) -> str:
    """Return the name of the tool whose arguments a reply is, fenced or not, that names no tool: an object of arguments
    that the tool knows, with all that it requires, at least two. '' if it is anything else.
    """
    fence = _ONLY_FENCE.match(text)
    source = (fence[1] if fence else text).strip()
    value = jsontext.loads_object(source) if source.startswith("{") else None
    if not value or len(value) < _LEAST_ARGUMENTS:
        return ""
    for tool in tools:
        parameters = _parameters(tool)
        known, required = parameters.get("properties") or {}, parameters.get("required") or ()
        if len(required) >= _LEAST_ARGUMENTS and set(required) <= set(value) <= set(known):
            return tool["name"]
    return ""


def is_known(name: str, tools: Iterable[ToolSpec]) -> bool:
    """Return whether `name`, in any of the spellings that models use, means one of these tools."""
    return _known_name(name, tools) is not None


def normalise_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that `name` means (`functions.x:0`, another case, `a.b` for `a__b`); None if it means none
    or several.
    """
    names = list(known)
    stripped = _strip_name(name)
    # From exact to loose, so that a tool with an odd name of its own is never taken for another.
    for candidate in (name, stripped, bare_name(name)):
        if candidate in names:
            return candidate
    folded = [item for item in names if _fold(item) == _fold(stripped.removeprefix("functions."))]
    # Two tools that differ only in signs (`a.b`, `a_b`) are not guessed between.
    if len(folded) == 1:
        return folded[0]
    ending = [item for item in names if re.search(rf"[./:]{re.escape(item)}$", stripped)]
    return ending[0] if len(ending) == 1 else None


def bare_name(name: str) -> str:
    """Return a tool's name without what models put around it: quotes, prefixes such as `functions.`, a number (`:0`),
    marks such as `<|channel|>`.
    """
    return re.sub(r"^(?:functions\.|default_api[.:])?(?:tools\.)?", "", _strip_name(name))


def check(name: str, arguments: Mapping[str, Any] | None, tools: Iterable[ToolSpec]) -> ToolCall | str:
    """Return the call with its name and arguments coerced to the tool that it means, or sentences in English for the
    model on what to correct: no such tool, arguments None or nested too deeply, or such as do not fit the schema. Pure.
    """
    by_name = {tool["name"]: tool for tool in tools}
    call = _resolve_meant(name, arguments, by_name)
    if call is None:
        return _no_tool(unwrap_call(name, arguments)[0], by_name)
    tool = by_name[call.tool]
    if call.arguments is None or jsontext.is_deep(dict(call.arguments)):
        return f"The arguments of {call.tool} are not a JSON object. Send one JSON object. {_describe_parameters(tool)}"
    try:
        # Here, not in `resolve_call`: what the model is told has the parameters with it.
        if call.problem:
            raise schema.Misfit(call.problem)
        given = respelt(call.arguments, _parameters(tool))
        return ToolCall(call.tool, schema.fit(given, _parameters(tool)))
    except schema.Misfit as misfit:
        return (
            f"The call of {call.tool} does not fit: {misfit}. Correct it and call again. {_describe_parameters(tool)}"
        )


def own_spelling(call: ToolCall, tools: tuple[ToolSpec, ...]) -> ToolCall:
    """Return the call with the name and parameters of the tool that it means; unchanged if it means none or contradicts
    itself. For models whose calls are not checked; `check` does it for all others.
    """
    own = _resolve_meant(call.name, call.arguments, {tool["name"]: tool for tool in tools})
    if own is None:
        name, arguments = unwrap_call(call.name, call.arguments)
        return replace(call, name=name, arguments=arguments or {})
    return call if own.problem else replace(call, name=own.tool, arguments=own.arguments or {})


def check_raw(raw: Raw, tools: tuple[ToolSpec, ...]) -> ToolCall | str:
    """Return what `check` does for a call that was read; arguments written as text are converted first. A call with
    optional arguments is also refused, by a sentence for the model, if it is not certain where its values end.
    """
    arguments: Mapping[str, Any] | None = raw.arguments
    if raw.textual and arguments is not None:
        arguments = _from_text(raw.name, arguments, tools)
    call = check(raw.name, arguments, tools)
    # A value that may end elsewhere could have swallowed an optional argument; with only what is required there is
    # none.
    if raw.unsure and isinstance(call, ToolCall):
        tool = next(tool for tool in tools if tool["name"] == call.name)
        if len(call.arguments) > len(_parameters(tool).get("required") or ()):
            return UNSURE.format(name=call.name)
    return call


def _from_text(name: str, arguments: Mapping[str, Any], tools: tuple[ToolSpec, ...]) -> Mapping[str, Any]:
    """Return arguments that were written as text, as values that fit the tool's parameters, whatever their names."""
    by_name = {tool["name"]: tool for tool in tools}
    call = _resolve_meant(name, arguments, by_name)
    if call is None:
        return arguments
    parameters = _parameters(by_name[call.tool])
    properties = parameters.get("properties") or {}
    other = spellings(bare_name(name), arguments, {tool["name"]: _forms(tool) for tool in tools})
    # By the names that the model used: converting comes before renaming, and needs the type of what each name means.
    known = {key: properties.get(own, {"type": "string"}) for key, own in other.items() if key not in properties}
    return schema.from_text(arguments, {**parameters, "properties": {**known, **properties}})


def _call_in_list(name: str, source: str) -> list[Raw]:
    """Return the call of `name` with the one object, or none, that the list in `source` holds."""
    try:
        value = jsontext.loads(source)
    except ValueError:
        return []
    fits = isinstance(value, list) and len(value) <= 1 and all(isinstance(item, dict) for item in value)
    return [Raw(name, value[0] if value else {})] if fits else []


def _ends_line(text: str, end: int) -> bool:
    return not text[end:].split("\n", 1)[0].strip()


def _looks_like_call(source: str) -> bool:
    return bool(re.match(r"\s*\[?\s*\{\s*[\"']?(name|tool|function|type|tool_name|tool_calls)\b", source))


def _call_by_key(value: Any, tools: tuple[ToolSpec, ...]) -> list[Raw] | None:
    """Parse `{"read_file": {…}}`, the tool's name as the only key, or `{"tool": "todoread"}`, as the only value."""
    if isinstance(value, dict) and len(value) == 1:
        name, arguments = next(iter(value.items()))
        if name in dialects.NAME_KEYS and any(tool["name"] == arguments for tool in tools):
            return [Raw(arguments, {})]
        if isinstance(arguments, dict) and any(tool["name"] == name for tool in tools):
            return [Raw(name, arguments)]
    return None


def _identifiers(source: str, tools: tuple[ToolSpec, ...]) -> str:
    """Return the source with the known tools' names made valid Python identifiers."""
    for tool in tools:
        name = tool["name"]
        if not name.replace(".", "_").isidentifier():
            source = source.replace(f"{name}(", f"{re.sub(r'[^0-9A-Za-z_]', '_', name)}(")
    return source


def _arguments_by_name(call: Raw, tools: tuple[ToolSpec, ...]) -> dict[str, Any]:
    """Return the arguments of a Python call by name, positional ones named in the tool's order."""
    tool = _tool(call.name, tools)
    order = list((_parameters(tool).get("properties") or {}) if tool else ())
    arguments = call.arguments or {}
    places = {key: place for key in arguments if (place := whole_number(key)) is not None and place < len(order)}
    return {order[places[key]] if key in places else key: value for key, value in arguments.items()}


def _tool(name: str, tools: tuple[ToolSpec, ...]) -> ToolSpec | None:
    known = _known_name(name, tools)
    return next((tool for tool in tools if tool["name"] == known), None)


def _known_name(name: str, tools: Iterable[ToolSpec]) -> str | None:
    """Return the name of the tool that is meant, by its own name or another one of it; None if there is none."""
    named = {tool["name"]: _forms(tool) for tool in tools}
    foreign = (tool for tool, forms in named.items() if any(each.name == name for each in forms.foreign))
    return normalise_name(name, named) or meant(bare_name(name), named.items()) or next(foreign, None)


def _resolve_meant(name: str, arguments: Mapping[str, Any] | None, tools: Mapping[str, ToolSpec]) -> OwnCall | None:
    """Return the call of one of the tools that is meant, whatever a model put around its name."""
    name, arguments = unwrap_call(name, arguments)
    forms = {tool: _forms(spec) for tool, spec in tools.items()}
    for spelling in (name, bare_name(name), normalise_name(name, tools) or name):
        if (call := resolve_call(spelling, arguments, forms)) is not None:
            return call
    return None


def _no_tool(name: str, tools: Mapping[str, ToolSpec]) -> str:
    """Return what to say of a tool that does not exist: which come nearest, and which there are."""
    name = bare_name(name)
    name = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
    forms = {tool: _forms(spec) for tool, spec in tools.items()}
    names = {other: tool for tool, each in forms.items() for other in (tool, *each.names)}
    close = [tool for tool, each in forms.items() if name in (*each.near, *(other.name for other in each.foreign))]
    close = close[:MOST_NEAR] or [names[found] for found in get_close_matches(name, names, NEAREST, LEAST_ALIKE)]
    nearest = " ".join(_describe_parameters(tools[tool]) for tool in dict.fromkeys(close))
    listed = ", ".join(tool for tool in tools if tool not in ANSWERS)
    return " ".join(filter(None, (f"There is no tool {name!r}.", nearest, f"The tools are: {listed}.")))


def _describe_parameters(tool: ToolSpec) -> str:
    """Return a tool's parameters in a line, for a call that did not fit."""
    return f"{tool['name']} takes: {json.dumps(_parameters(tool).get('properties') or {}, ensure_ascii=False)}"


def _forms(tool: ToolSpec) -> CallForms:
    return tool.get("forms", NO_FORMS)


def _parameters(tool: ToolSpec) -> Mapping[str, Any]:
    return tool.get("parameters") or {}


def _strip_name(name: str) -> str:
    # Around it, some servers leave marks of the model's own format: `read_file<|channel|>commentary`, also with
    # `to=functions.read_file` behind them.
    sent_to = _SENT_TO.search(name)
    name = sent_to[1] if sent_to else name.partition("<|")[0]
    return re.sub(r":\d+$|\.call$|\(\)$", "", name.strip().strip("\"'"))


def _fold(name: str) -> str:
    return re.sub(r"[._\-/:]+", "_", name).lower()
