"""Instructions for a model without native tools, in the system message: the call format and the list of tools.

Short, as small models have small context windows; the same tools always give the same text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from codeagent_lsp.llm.calls import schema
from codeagent_lsp.llm.calls.constrained import ANSWER
from codeagent_lsp.messages import ToolSpec

_CONSTRAINED = f"""\
# How to reply
Every reply is exactly one JSON object: {{"tool": NAME, "args": {{...}}}}. Nothing stands before or after it.
Call one tool at a time; its result comes back in the next message. When the work is done, or no tool is
needed, reply {{"tool": "{ANSWER}", "args": {{"text": "your answer to the user"}}}}.

# Tools
"""

_TEXT = """\
# How to call tools
To call a tool, end your reply with one block like this, and write nothing after it:
<tool_call>
{"name": "NAME", "arguments": {"KEY": VALUE}}
</tool_call>
Its result comes back in the next message. When the work is done, answer the user without any such block.

# Tools
"""


def constrained(tools: tuple[ToolSpec, ...]) -> str:
    """Return the instructions for replies that a grammar forces to be one JSON object each."""
    answer = f"- {ANSWER}(text: string): answer the user; ends the task"
    return _CONSTRAINED + "\n".join([*map(_line, tools), answer])


def text(tools: tuple[ToolSpec, ...]) -> str:
    """Return the instructions for replies in free text."""
    return _TEXT + "\n".join(map(_line, tools))


def _line(tool: ToolSpec) -> str:
    parameters = tool["parameters"]
    required = parameters.get("required") or ()
    shown = [
        f"{name}{'' if name in required else '?'}: {_type(inner)}"
        for name, inner in (parameters.get("properties") or {}).items()
    ]
    described = " ".join(tool["description"].split())
    details = "".join(
        f"\n    {name}: {' '.join(inner['description'].split())}"
        for name, inner in (parameters.get("properties") or {}).items()
        if isinstance(inner, Mapping) and inner.get("description")
    )
    return f"- {tool['name']}({', '.join(shown)}): {described}{details}"


def _type(inner: Any, depth: int = 0) -> str:
    if not isinstance(inner, Mapping):
        return "any"
    if isinstance(inner.get("enum"), list):
        return " | ".join(json.dumps(option, ensure_ascii=False) for option in inner["enum"])
    types = [name for name in schema.types_of(inner) if name != "null"]
    if types == ["array"]:
        return f"[{_type(inner.get('items'), depth + 1)}]"
    # Deeper levels cost more tokens than they help, and a schema that refers to itself must end.
    if types == ["object"] and inner.get("properties") and depth < 3:
        fields = ", ".join(
            f"{name}{'' if name in (inner.get('required') or ()) else '?'}: {_type(value, depth + 1)}"
            for name, value in inner["properties"].items()
        )
        return f"{{{fields}}}"
    return " | ".join(types) or "any"
