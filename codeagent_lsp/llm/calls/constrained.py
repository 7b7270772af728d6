"""Replies that a grammar forces to be one JSON object each: `{"tool": NAME, "args": {…}}`, plain answers included.

The JSON Schema for it, serialization for the history, and incremental reading of an answer's text. Not here: the
instructions that go with it (`text_calls.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from codeagent_lsp.llm.calls import schema
from codeagent_lsp.messages import ToolCall, ToolSpec

ANSWER = "final_answer"

# keywords that llama.cpp's grammar compiler and others understand; the rest only describe
_KEPT = ("type", "enum", "const", "required", "anyOf", "oneOf", "minItems", "maxItems", "additionalProperties")
# The keys in this order, as the schema has them: grammars made from a schema keep its order.
_ANSWER_START = re.compile(rf'\s*\{{\s*"tool"\s*:\s*"{ANSWER}"\s*,\s*"args"\s*:\s*\{{\s*"text"\s*:\s*"')
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[^u])")
_PAIR = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def reply_schema(tools: tuple[ToolSpec, ...]) -> dict[str, Any]:
    """Return a schema with one alternative per tool, and one for the plain answer."""
    answer = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    options = [_option(tool["name"], tool["parameters"]) for tool in tools]
    return {"oneOf": [*options, _option(ANSWER, answer)]}


def write_call(call: ToolCall) -> str:
    """Serialize a call in the form that the model has to use."""
    return json.dumps({"tool": call.name, "args": dict(call.arguments)}, ensure_ascii=False)


def write_answer(text: str) -> str:
    """Serialize a plain answer in the form that the model has to use."""
    return write_call(ToolCall(ANSWER, {"text": text}))


class AnswerReader:
    """An incremental reader of a plain answer's text inside the JSON of one reply."""

    def __init__(self) -> None:
        self._held = ""
        self._state = "before"

    def feed(self, piece: str) -> str:
        """Return the part of the answer that this piece completes; '' for calls."""
        if self._state == "done":
            return ""
        self._held += piece
        if self._state == "before":
            if not (match := _ANSWER_START.match(self._held)):
                return ""
            self._state, self._held = "inside", self._held[match.end() :]
        return self._inside()

    def _inside(self) -> str:
        match = re.match(r'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*', self._held)
        whole = match.end() if match else 0
        ended = self._held[whole : whole + 1] == '"'
        if not ended:  # a first half of a surrogate pair waits for its second
            half = re.search(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z", self._held[:whole])
            whole = half.start() if half else whole
        decoded = _unescape(self._held[:whole])
        self._held = self._held[whole:]
        self._state = "done" if ended else "inside"
        return decoded


def _unescape(source: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _SIMPLE.get(code, code)

    text = _ESCAPE.sub(one, source)
    # `\ud83d\ude00` is two escapes in JSON, and one character.
    text = _PAIR.sub(lambda match: match[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    # A lone half cannot be stored or sent.
    return text.encode("utf-8", "replace").decode("utf-8")


def _option(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"tool": {"const": name}, "args": _plain(parameters)},
        "required": ["tool", "args"],
        "additionalProperties": False,
    }


def _plain(source: Any, depth: int = 0) -> dict[str, Any]:
    """Reduce a schema to what every grammar compiler understands; objects allow no unknown keys."""
    # `{}` allows anything: a schema too deep for a grammar is checked after the reply instead.
    if not isinstance(source, Mapping) or depth > 8:
        return {}
    plain = {key: source[key] for key in _KEPT if key in source}
    types = schema.types_of(source)
    if isinstance(source.get("type"), str) and types:
        # In JSON's own words: servers and users write `dict`, `float` or `str, optional`.
        plain["type"] = types[0]
    for key in ("anyOf", "oneOf"):
        if key in plain:
            plain[key] = [_plain(option, depth + 1) for option in source[key]]
    if isinstance(source.get("items"), Mapping):
        plain["items"] = _plain(source["items"], depth + 1)
    if isinstance(source.get("properties"), Mapping):
        plain["properties"] = {key: _plain(value, depth + 1) for key, value in source["properties"].items()}
        plain["additionalProperties"] = False
    # A tool without parameters: without this any object would fit, and small models invent arguments.
    elif depth == 0:
        plain |= {"type": "object", "properties": {}, "additionalProperties": False}
    return plain
