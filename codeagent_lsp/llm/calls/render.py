"""Serialization of tool calls as text in a dialect: for the history of models without native tools, and for tests.

Not here: parsing (`dialects.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from codeagent_lsp.messages import ToolCall


def render(call: ToolCall, dialect: str = "hermes") -> str:
    """Return the call in `dialect`, one of `DIALECTS`."""
    return DIALECTS[dialect](call.name, call.arguments)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _bare(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _hermes(name: str, arguments: Mapping[str, Any]) -> str:
    return f"<tool_call>\n{_json({'name': name, 'arguments': dict(arguments)})}\n</tool_call>"


def _qwen_xml(name: str, arguments: Mapping[str, Any]) -> str:
    lines = "".join(f"<parameter={key}>\n{_bare(value)}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{lines}</function>\n</tool_call>"


def _kimi(name: str, arguments: Mapping[str, Any]) -> str:
    call = f"functions.{name}:0<|tool_call_argument_begin|>{_json(dict(arguments))}"
    return f"<|tool_calls_section_begin|><|tool_call_begin|>{call}<|tool_call_end|><|tool_calls_section_end|>"


def _deepseek(name: str, arguments: Mapping[str, Any]) -> str:
    call = f"function<｜tool▁sep｜>{name}\n```json\n{_json(dict(arguments))}\n```"
    return f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{call}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"


def _glm(name: str, arguments: Mapping[str, Any]) -> str:
    pairs = "".join(
        f"<arg_key>{key}</arg_key>\n<arg_value>\n{_bare(value)}\n</arg_value>\n" for key, value in arguments.items()
    )
    return f"<tool_call>{name}\n{pairs}</tool_call>"


def _minimax(name: str, arguments: Mapping[str, Any]) -> str:
    lines = "".join(f'<parameter name="{key}">\n{_bare(value)}\n</parameter>\n' for key, value in arguments.items())
    return f'<minimax:tool_call>\n<invoke name="{name}">\n{lines}</invoke>\n</minimax:tool_call>'


def _pythonic(name: str, arguments: Mapping[str, Any]) -> str:
    return f"[{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})]"


DIALECTS: dict[str, Callable[[str, Mapping[str, Any]], str]] = {
    "json": lambda name, arguments: _json({"tool": name, "args": dict(arguments)}),
    "name_json": lambda name, arguments: _json({"name": name, "arguments": dict(arguments)}),
    "openai": lambda name, arguments: _json(
        {"type": "function", "function": {"name": name, "arguments": _json(dict(arguments))}}
    ),
    "list": lambda name, arguments: _json([{"name": name, "parameters": dict(arguments)}]),
    "fenced": lambda name, arguments: (
        f"```json\n{json.dumps({'tool': name, 'args': dict(arguments)}, ensure_ascii=False, indent=2)}\n```"
    ),
    "hermes": _hermes,
    "qwen_xml": _qwen_xml,
    "function_json": lambda name, arguments: f"<function={name}>{_json(dict(arguments))}</function>",
    "kimi": _kimi,
    "deepseek": _deepseek,
    "mistral": lambda name, arguments: f"[TOOL_CALLS] {_json([{'name': name, 'arguments': dict(arguments)}])}",
    "mistral_args": lambda name, arguments: f"[TOOL_CALLS]{name}[ARGS]{_json(dict(arguments))}",
    "llama": lambda name, arguments: f"<|python_tag|>{_json({'name': name, 'parameters': dict(arguments)})}<|eom_id|>",
    "pythonic": _pythonic,
    "glm": _glm,
    "minimax": _minimax,
}
