"""Parsers of the formats in which models write tool calls as text, one function per dialect.

A parser gets the text and the offset of its marker and returns the calls it found as `Raw` values, and the offset
where it stopped. Not here: telling calls from examples (`toolcalls.py`), and serializing (`render.py`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from codeagent_lsp.llm.calls import jsontext


@dataclass(frozen=True)
class Raw:
    """A call as written: `arguments` None if they are not an object; `textual` if values are unparsed text."""

    name: str
    arguments: dict[str, Any] | None
    textual: bool = False


Read = tuple[list[Raw], int]
Reader = Callable[[str, int], Read]

_OPENING = r"(?:<[|\w]+>\s*)+|functools|\[TOOL_CALLS\]"
_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"\s*[\"']?([\w.:\-/]+)[\"']?")
_NAME_KEYS = ("name", "tool", "tool_name", "action", "recipient_name", "function_name")
_ARGUMENT_KEYS = (
    "arguments",
    "args",
    "parameters",
    "params",
    "input",
    "tool_input",
    "action_input",
    "kwargs",
)
_WRAPPERS = ("tool_calls", "tool_uses", "calls", "function_calls")


def from_value(value: Any) -> list[Raw] | None:
    """Return the calls that a JSON value denotes; None when it does not have the shape of any."""
    if isinstance(value, list):
        inner = [from_value(item) for item in value]
        return [raw for found in inner for raw in found or ()] if value and all(inner) else None
    if not isinstance(value, dict):
        return None
    for key in _WRAPPERS:
        if isinstance(value.get(key), list):
            return from_value(value[key])
    function = _first(value, ("function", "function_call", "functionCall"))
    if isinstance(function, dict):
        return from_value(function)
    name = function if isinstance(function, str) else _first(value, _NAME_KEYS)
    arguments = _first(value, _ARGUMENT_KEYS)
    if not isinstance(name, str) or arguments is None:
        return None
    if isinstance(arguments, str):
        arguments = jsontext.loads_object(arguments or "{}", repair=True)
    return [Raw(name, arguments if isinstance(arguments, dict) else None)]


def read_json(text: str, start: int) -> Read:
    """Parse one JSON value at `start`, repaired if broken; without an end it extends to the end of the text."""
    end = jsontext.span(text, start)
    source = text[start:end]
    try:
        calls = from_value(jsontext.loads(source, repair=True))
    except ValueError:
        calls = None
    return as_torn(calls or [], source), len(text) if end is None else end


def as_torn(calls: list[Raw], source: str) -> list[Raw]:
    """Return the calls of a JSON text without their arguments, where that text lost its end."""
    return [replace(call, arguments=None) for call in calls] if jsontext.torn(source) else calls


def read_hermes(text: str, start: int) -> Read:
    """Parse `<tool_call>` with JSON, Qwen-Coder XML or GLM pairs inside, closed or not."""
    begin = _skip(text, text.index(">", start) + 1)
    if text.startswith("```", begin):
        begin = _skip(text, (text.find("\n", begin) + 1) or len(text))
    if text.startswith("<function", begin):
        calls, end = read_function(text, begin)
    elif text[begin : begin + 1] in ("{", "["):
        calls, end = read_json(text, begin)
    else:
        calls, end = _read_pairs(text, begin)
    return calls, _eat(text, end, r"[\s`]*</tool_call>")


def read_function(text: str, start: int) -> Read:
    """Parse `<function=NAME>` with `<parameter=K>V</parameter>` or a JSON object inside."""
    head = re.compile(r"<function(?:=|\s+name=)[\"']?([^>\"'\s]+)[\"']?\s*>").match(text, start)
    if head is None:
        return [], start + 1
    inside = _skip(text, head.end())
    if text[inside : inside + 1] == "{":
        end = jsontext.span(text, inside)
        arguments = jsontext.loads_object(text[inside:end], repair=True)
        return [Raw(head[1], arguments)], _eat(text, len(text) if end is None else end, r"\s*</function>")
    values, end = _parameters(text, inside)
    return [Raw(head[1], dict(values), textual=True)], _eat(text, end, r"\s*</function>")


def read_invoke(text: str, start: int) -> Read:
    """Parse one or several `<invoke name="…">` with `<parameter name="…">`, inside any wrapper."""
    calls: list[Raw] = []
    position = start
    pattern = re.compile(r"\s*(?:<[\w:]+>\s*)?<invoke\s+name=[\"']?([^>\"']+)[\"']?\s*>\s*")
    while head := pattern.match(text, position):
        values, position = _parameters(text, head.end())
        calls.append(Raw(head[1], dict(values), textual=True))
        position = _eat(text, position, r"\s*</invoke>")
    if not calls:
        return read_wrapped(text, start)
    return calls, _eat(text, position, r"\s*</[\w:]+>")


def read_kimi(text: str, start: int) -> Read:
    """Parse repeated `<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`."""
    pattern = re.compile(
        r"\s*(?:<\|tool_calls?_section_begin\|>\s*)?<\|tool_call_begin\|>\s*([^\s<{]+)\s*"
        r"(?:<\|tool_call_argument_begin\|>\s*)?"
    )
    ending = r"\s*<\|tool_call_end\|>"
    calls, end = _sequence(text, start, pattern, ending)
    return calls, _eat(text, end, r"\s*<\|tool_calls?_section_end\|>")


def read_deepseek(text: str, start: int) -> Read:
    """Parse repeated `<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME`, then JSON, fenced or not."""
    pattern = re.compile(
        r"\s*(?:<｜tool▁calls▁begin｜>\s*)?<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?\s*([^\s<{]+)\s*"
        r"(?:<｜tool▁sep｜>\s*)?(?:```(?:json)?\s*)?"
    )
    calls, end = _sequence(text, start, pattern, r"\s*(?:```)?\s*<｜tool▁call▁end｜>")
    return calls, _eat(text, end, r"\s*<｜tool▁calls▁end｜>")


def read_mistral(text: str, start: int) -> Read:
    """Parse `[TOOL_CALLS]` before a JSON list, or before repeated `NAME[ARGS]{…}`."""
    if text[_skip(text, start + len("[TOOL_CALLS]")) :][:1] in ("[", "{"):
        return read_wrapped(text, start)
    pattern = re.compile(r"\s*(?:\[TOOL_CALLS\])?\s*([\w.:\-/]+)\s*(?:\[CALL_ID\]\s*\w+\s*)?(?:\[ARGS\])?\s*(?=\{)")
    return _sequence(text, start, pattern, "")


def read_harmony(text: str, start: int) -> Read:
    """Parse `<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>`."""
    pattern = re.compile(r"\s*<\|channel\|>commentary to=([\w.\-]+)\s*(?:<\|constrain\|>\s*)?(?:json)?<\|message\|>\s*")
    return _sequence(text, start, pattern, "")


def read_wrapped(text: str, start: int) -> Read:
    """Parse JSON values, separated by `;` or nothing, or Python calls, after the opening marker of a dialect."""
    begin = position = _eat(text, start, _OPENING)
    calls: list[Raw] = []
    while text[(at := _skip(text, position)) : at + 1] in ("{", "["):
        found, position = read_json(text, at)
        if not found:
            break
        calls += found
        position = _eat(text, position, r"\s*;")
    if not calls:
        source = re.split(r"<[|/]", text[begin:], maxsplit=1)[0]
        calls, position = read_python(source) or [], begin + len(source)
    return calls, _eat(text, position, r"\s*(?:<\|[\w/]+\|>|</[\w:]+>)")


def read_python(source: str) -> list[Raw] | None:
    """Parse `[f(a=1), g("x")]` or `f(a=1)`; None for anything else. Positional arguments are named `0`, `1`, …"""
    try:
        tree = ast.parse(source.strip(), mode="eval")
        body = tree.body
        nodes = body.elts if isinstance(body, ast.List | ast.Tuple) else [body]
        return [_python_call(node) for node in nodes] or None
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError):
        return None


READERS: dict[str, Reader] = {
    "<tool_call>": read_hermes,
    "<function=": read_function,
    "<function name=": read_function,
    "<invoke name=": read_invoke,
    "<minimax:tool_call>": read_invoke,
    "<function_calls>": read_invoke,
    "<|tool_calls_section_begin|>": read_kimi,
    "<|tool_call_begin|>": read_kimi,
    "<｜tool▁calls▁begin｜>": read_deepseek,
    "<｜tool▁call▁begin｜>": read_deepseek,
    "[TOOL_CALLS]": read_mistral,
    "<|channel|>commentary to=": read_harmony,
    **dict.fromkeys(
        (
            "<|python_tag|>",
            "<|python_start|>",
            "<|tool_call|>",
            "<|tool_call_start|>",
            "<|tools_prefix|>",
            "<|START_ACTION|>",
            "<|action_start|>",
            "<function_call>",
            "<tool_calls>",
            "<TOOLCALL>",
            "functools[",
        ),
        read_wrapped,
    ),
}


def _first(value: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((value[key] for key in keys if key in value), None)


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _eat(text: str, position: int, pattern: str) -> int:
    match = re.compile(pattern).match(text, position)
    return match.end() if match else position


def _sequence(text: str, start: int, head: re.Pattern[str], ending: str) -> Read:
    """Parse a sequence of calls: a head with the name, a JSON object, an ending."""
    calls: list[Raw] = []
    position = start
    while match := head.match(text, position):
        begin = match.end()
        if text[begin : begin + 1] != "{":
            calls.append(Raw(match[1], {} if re.compile(ending).match(text, begin) else None))
            position = _eat(text, begin, ending) if ending else begin
            continue
        end = jsontext.span(text, begin)
        calls.append(Raw(match[1], jsontext.loads_object(text[begin:end], repair=True)))
        position = _eat(text, len(text) if end is None else end, ending)
    return calls, max(position, start + 1)


_PARAMETER = re.compile(r"\s*<parameter(?:=|\s+name=)[\"']?([^>\"'=\s]+)[\"']?(>|=)")
_PARAMETER_END = re.compile(r"</parameter>(?=\s*(?:<parameter[=\s]|</function>|</invoke>|</tool_call>|</[\w:]+>|\Z))")
_PARAMETER_LOST_END = re.compile(
    r"</parameter>|(?=\s*</function>|\s*</invoke>|\s*</tool_call>|\s*<parameter=[\w.\-]+>)"
)


def _parameters(text: str, position: int) -> tuple[dict[str, str], int]:
    """Parse `<parameter=K>V</parameter>` pairs from `position`; a missing end, or `<parameter=k=v`, is tolerated."""
    values: dict[str, str] = {}
    while head := _PARAMETER.match(text, position):
        match = _PARAMETER_END.search(text, head.end())
        value = text[head.end() : match.start()] if match else ""
        if match is None or len(_PARAMETER.findall(value)) > value.count("</parameter>"):
            match = _PARAMETER_LOST_END.search(text, head.end())
            value = text[head.end() : match.start() if match else len(text)].strip()
        values[head[1]] = _unwrap(value)
        position = match.end() if match else len(text)
    return values, position


def _read_pairs(text: str, start: int) -> Read:
    """Parse GLM's format: a name, then `<arg_key>K</arg_key><arg_value>V</arg_value>` pairs."""
    head = _NAME.match(text, start)
    if head is None:
        return [], start
    position = head.end()
    values: dict[str, Any] = {}
    pair = re.compile(
        r"\s*<arg_key>\s*(.*?)\s*</arg_key>\s*<arg_value>(.*?)</arg_value>(?=\s*(?:<arg_key>|</tool_call>|\Z))",
        re.DOTALL,
    )
    while match := pair.match(text, position):
        values[match[1]] = _unwrap(match[2])
        position = match.end()
    if not values and not text.startswith("</tool_call>", _skip(text, position)):
        return [], start
    return [Raw(head[1], values, textual=True)], position


def _unwrap(value: str) -> str:
    """Return a value without the line breaks that the template puts around it, if there are both."""
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == "\n" else value


def _python_call(node: ast.expr) -> Raw:
    if not isinstance(node, ast.Call):
        raise ValueError("not a call")
    arguments = {str(position): ast.literal_eval(value) for position, value in enumerate(node.args)}
    for keyword in node.keywords:
        if keyword.arg is None:
            arguments.update(ast.literal_eval(keyword.value))
        else:
            arguments[keyword.arg] = _python_literal(keyword.value)
    return Raw(ast.unparse(node.func), arguments)


def _python_literal(node: ast.expr) -> Any:
    """Return the value of a literal, JSON's `true`, `false`, `null` included. Tuples and sets become lists."""
    if isinstance(node, ast.Name) and node.id in ("true", "false", "null"):
        return {"true": True, "false": False, "null": None}[node.id]
    value = ast.literal_eval(node)
    return list(value) if isinstance(value, tuple | set) else value
