"""Replies under a grammar: a schema for every tool there is, and answers read while they arrive."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.call_forms import USE_TOOL
from codeagent_lsp.llm.calls.schema import fit
from codeagent_lsp.llm.calls.text_calls import AnswerReader, reply_schema, write_answer, write_call
from codeagent_lsp.llm.calls.text_calls import constrained_instructions as told
from codeagent_lsp.llm.calls.text_calls import instructions as told_text
from codeagent_lsp.llm.calls.toolcalling import ToolCallingModel
from codeagent_lsp.llm.model import ModelRequest
from codeagent_lsp.messages import Message, ToolCall, ToolSpec
from codeagent_lsp.tools.catalogue import BUILTIN
from tests.examples import examples
from tests.llm.support import Typewriter, collect, tool

SPECS: dict[str, ToolSpec] = {spec["name"]: spec for spec in (cls().spec() for cls in BUILTIN)}
CALLED = tuple(name for name in SPECS if name != USE_TOOL)  # its calls are those of another tool
UNDERSTOOD = {
    "type",
    "properties",
    "required",
    "items",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "minItems",
    "maxItems",
    "additionalProperties",
}
ASK = (Message("system", "s"), Message("user", "u"))


def nodes(schema: Any) -> list[dict[str, Any]]:
    """The schema and all schemas inside it."""
    if not isinstance(schema, dict):
        return []
    inner = [*schema.get("anyOf", []), *schema.get("oneOf", []), *schema.get("properties", {}).values()]
    inner.append(schema.get("items"))
    return [schema, *(node for part in inner for node in nodes(part))]


def example(schema: dict[str, Any], *, full: bool) -> Any:
    """A value that fits a reduced schema; `full` with all optional properties."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][-1]
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return example(schema[key][0], full=full)
    kind = schema.get("type")
    if kind == "object":
        wanted = schema.get("properties", {}) if full else schema.get("required", [])
        return {name: example(schema["properties"][name], full=full) for name in wanted}
    if kind == "array":
        return [example(schema.get("items", {}), full=full)] * (schema.get("minItems", 0) or int(full))
    return {"string": 'é "q" \\ \n{', "integer": 3, "number": 0.5, "boolean": True, "null": None}.get(str(kind), "x")


def option(name: str) -> dict[str, Any]:
    options = reply_schema(tuple(SPECS.values()))["oneOf"]
    found: dict[str, Any] = next(item for item in options if item["properties"]["tool"]["const"] == name)
    return found


@pytest.mark.parametrize("name", SPECS)
def test_every_tools_schema_is_one_that_grammars_understand(name: str) -> None:
    schema = option(name)
    assert schema["required"] == ["tool", "args"]
    for node in nodes(schema):
        assert set(node) <= UNDERSTOOD, node
        if "properties" in node:
            assert node["additionalProperties"] is False
            assert set(node.get("required", ())) <= set(node["properties"])
        assert node == {} or {"type", "enum", "const", "anyOf", "oneOf"} & set(node), "it would allow anything"
    assert list(schema["properties"]["args"]["properties"]) == list(SPECS[name]["parameters"]["properties"])


@pytest.mark.slow
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", CALLED)
async def test_every_tool_can_be_called_under_the_grammar(name: str, full: bool) -> None:
    value = example(option(name), full=full)
    assert value["tool"] == name
    fitted = fit(value["args"], SPECS[name]["parameters"])
    inner = Typewriter(json.dumps(value, ensure_ascii=full))
    shown, reply = await collect(ToolCallingModel(inner, "constrained"), ModelRequest(ASK, tools=tuple(SPECS.values())))
    assert (shown, reply.problem) == ("", "")
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [(name, fitted)]


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLED)
async def test_a_key_that_no_tool_has_is_left_to_the_tool(name: str) -> None:
    value = example(option(name), full=False)
    value["args"]["no_such_key"] = 1
    _, reply = await collect(
        ToolCallingModel(Typewriter(json.dumps(value)), "constrained"), ModelRequest(ASK, tools=(SPECS[name],))
    )
    assert not reply.problem and len(reply.tool_calls) == 1


@pytest.mark.parametrize("name", SPECS)
def test_every_tool_is_told_with_its_keys(name: str) -> None:
    for text in (told((SPECS[name],)), told_text((SPECS[name],))):
        line = next(line for line in text.split("\n") if line.startswith(f"- {name}("))
        for key in SPECS[name]["parameters"]["properties"]:
            optional = key not in SPECS[name]["parameters"].get("required", ())
            assert f"{key}{'?' if optional else ''}: " in line


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"type": "string", "description": "d", "title": "T", "default": "x"}, {"type": "string"}),
        ({"type": "str"}, {"type": "string"}),
        ({"enum": ["a", "b"], "type": "string"}, {"enum": ["a", "b"], "type": "string"}),
        (
            {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 3},
            {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
        ),
        (
            {"anyOf": [{"type": "string", "title": "T"}, {"type": "null"}]},
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
        ),
        (
            {"type": "object", "properties": {"a": {"type": "boolean", "title": "A"}}, "required": ["a"]},
            {
                "type": "object",
                "properties": {"a": {"type": "boolean"}},
                "required": ["a"],
                "additionalProperties": False,
            },
        ),
        ({"type": "object", "additionalProperties": True}, {"type": "object", "additionalProperties": True}),
        ({}, {}),
        (True, {}),
    ],
)
def test_schemas_are_reduced(schema: Any, wanted: Any) -> None:
    spec = tool("f", x={})
    spec["parameters"]["properties"]["x"] = schema
    made = reply_schema((spec,))["oneOf"][0]["properties"]["args"]["properties"]["x"]
    assert made == wanted


def test_a_tool_without_parameters_takes_none() -> None:
    made = reply_schema(({"name": "f", "description": "", "parameters": {}},))["oneOf"][0]["properties"]["args"]
    assert made == {"type": "object", "properties": {}, "additionalProperties": False}


def test_a_schema_without_end_is_cut() -> None:
    parameters: dict[str, Any] = {"type": "object"}
    parameters["properties"] = {"again": parameters}
    assert len(json.dumps(reply_schema(({"name": "f", "description": "", "parameters": parameters},)))) < 5000


def test_the_same_tools_give_the_same_bytes() -> None:
    tools = tuple(SPECS.values())
    assert json.dumps(reply_schema(tools)) == json.dumps(reply_schema(tools))
    assert told(tools) == told(tools)


# --- the answer's text while it arrives

ESCAPES = {
    "quote": r"a\"b",
    "backslash": r"a\\b",
    "backslash at the end": "a\\\\",
    "slash": r"a\/b",
    "line break": r"a\nb",
    "all short ones": r"\b\f\n\r\t",
    "ascii": r"\u0041",
    "accent": r"\u00e9",
    "pair": r"\ud83c\udf89",
    "two pairs": r"\ud83c\udf89\ud83c\udf89",
    "half a pair": r"a\ud83cb",
    "the other half": r"a\udf89b",
    "half before a quote": "a\\ud83c",
    "plain": "plain é 🎉 中",
    "an escaped escape": r"\\u0041",
    "three backslashes": r"\\\"",
    "braces": r"} ] { [ \"}}",
    "nothing": "",
}


def whole(source: str) -> str:
    text: str = json.loads(f'"{source}"')
    return text.encode("utf-8", "replace").decode()


@pytest.mark.parametrize("name", ESCAPES)
def test_every_escape_split_everywhere(name: str) -> None:
    source = f'{{"tool": "final_answer", "args": {{"text": "{ESCAPES[name]}"}}}}'
    for cut in range(len(source) + 1):
        reader = AnswerReader()
        assert reader.feed(source[:cut]) + reader.feed(source[cut:]) == whole(ESCAPES[name])
    reader = AnswerReader()
    assert "".join(map(reader.feed, source)) == whole(ESCAPES[name])
    assert reader.feed(' {"tool"') == ""


@pytest.mark.parametrize("name", ESCAPES)
def test_what_is_shown_only_ever_grows_towards_the_answer(name: str) -> None:
    reader, shown = AnswerReader(), ""
    for piece in f'{{"tool": "final_answer", "args": {{"text": "{ESCAPES[name]}"}}}}':
        shown += reader.feed(piece)
        assert whole(ESCAPES[name]).startswith(shown)


@pytest.mark.parametrize(
    "source",
    [
        '{"tool":"final_answer","args":{"text":"Hi"}}',
        '\n{\n  "tool": "final_answer",\n  "args": {\n    "text": "Hi"\n  }\n}\n',
        '{ "tool" : "final_answer" , "args" : { "text" : "Hi" } }',
    ],
)
def test_white_space_is_free(source: str) -> None:
    reader = AnswerReader()
    assert "".join(map(reader.feed, source)) == "Hi"


@pytest.mark.parametrize(
    "source",
    [
        write_call(ToolCall("read_file", {"path": "a", "text": "b"})),
        '{"tool": "final_answers", "args": {"text": "no"}}',
        '{"args": {"text": "order"}, "tool": "final_answer"}',
        'Prose with {"tool": "final_answer", "args": {"text": "inside"}}',
        "",
    ],
)
def test_what_is_no_answer_is_not_shown(source: str) -> None:
    reader = AnswerReader()
    assert "".join(map(reader.feed, source)) == ""


@settings(max_examples=examples(100), deadline=None)
@given(st.text(max_size=80), st.integers(1, 7))
async def test_an_answer_is_shown_as_it_is_kept(text: str, size: int) -> None:
    text = text.encode("utf-8", "replace").decode()
    model = ToolCallingModel(Typewriter(write_answer(text), size=size), "constrained")
    shown, reply = await collect(model, ModelRequest(ASK, tools=tuple(SPECS.values())))
    assert shown == reply.text == text


@pytest.mark.parametrize(
    ("text", "shown", "problem"),
    [
        ('{"tool": "final_answer", "args": {"text": "Half an ans', "Half an ans", ""),
        ('{"tool": "final_answer", "args": {"te', "", "token limit"),
        ('{"tool": "write_file", "args": {"path": "a", "content": "x', "", "token limit"),
    ],
)
async def test_an_answer_may_be_cut_and_a_call_may_not(text: str, shown: str, problem: str) -> None:
    model = ToolCallingModel(Typewriter(text, finish="length"), "constrained")
    seen, reply = await collect(model, ModelRequest(ASK, tools=tuple(SPECS.values())))
    assert (seen, reply.text, reply.tool_calls) == (shown, shown, ())
    assert problem in reply.problem and bool(reply.problem) == bool(problem)
