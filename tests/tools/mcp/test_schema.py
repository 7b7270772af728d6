"""Foreign schemas: small, resolved, harmless; and what is plainly wrong with arguments."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.tools.mcp.adapter import MAX_SCHEMA, bounded_schema, misfit

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["type", "properties", "$ref", "items", "required", "description", "a", "#/$defs/a", "$defs"]),
        inner,
        max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip


def big(count: int, words: int = 50) -> dict[str, Any]:
    field = {"type": "object", "description": "word " * words, "properties": {"x": {"type": "string"}}}
    return {"type": "object", "properties": {f"field{at}": field for at in range(count)}, "required": ["field0"]}


def test_a_small_schema_stays_without_what_says_nothing() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Arguments",
        "type": "object",
        "properties": {
            "title": {"type": "string", "title": "Title", "description": "Its\u200b title.", "pattern": "(a+)+$"},
            "kind": {"enum": ["a", "b"], "default": "a", "examples": ["b"]},
        },
        "required": ["title"],
        "additionalProperties": False,
    }
    assert bounded_schema(schema) == {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "Its\\u200b title."},
            "kind": {"enum": ["a", "b"], "default": "a"},
        },
        "required": ["title"],
        "additionalProperties": False,
    }


def test_references_within_are_resolved_and_others_are_not_followed() -> None:
    schema = {
        "properties": {
            "near": {"$ref": "#/$defs/point"},
            "far": {"$ref": "https://evil.example/schema.json"},
            "self": {"$ref": "#"},
            "gone": {"$ref": "#/$defs/nothing"},
            "loop": {"$ref": "#/$defs/loop"},
        },
        "$defs": {
            "point": {"type": "object", "properties": {"x": {"type": "number"}}},
            "loop": {"$ref": "#/$defs/loop"},
        },
    }
    told = bounded_schema(schema)["properties"]
    assert told["near"] == {"type": "object", "properties": {"x": {"type": "number"}}}
    assert (told["far"], told["gone"], told["loop"]) == ({}, {}, {})
    assert len(json.dumps(told)) < MAX_SCHEMA


@pytest.mark.parametrize("schema", [big(5), big(60), big(60, 1), big(2000), big(200, 0)])
def test_it_is_bounded_and_keeps_what_is_required(schema: dict[str, Any]) -> None:
    told = bounded_schema(schema)
    assert len(json.dumps(told)) <= MAX_SCHEMA
    assert "field0" in told["properties"] and told["required"] == ["field0"]


def test_what_blows_up_when_resolved_is_bounded() -> None:
    levels = {f"l{at}": {"properties": {"a": {"$ref": f"#/$defs/l{at + 1}"}, "b": {"$ref": f"#/$defs/l{at + 1}"}}}
              for at in range(60)}  # fmt: skip
    assert len(json.dumps(bounded_schema({"$ref": "#/$defs/l0", "$defs": levels}))) <= MAX_SCHEMA


@pytest.mark.slow
@given(JSON)
def test_any_json_gives_the_schema_of_an_object(value: Any) -> None:
    schema = value if isinstance(value, dict) else {"properties": value}
    told = bounded_schema(schema)
    assert told["type"] == "object" and isinstance(told["properties"], dict)
    assert isinstance(told.get("required", []), list)
    json.dumps(told)
    misfit(schema, {"a": value})


SCHEMA = {
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "share": {"type": ["number", "null"]},
        "any": {},
        "odd": {"type": "unheard-of"},
        "list": {"type": "array"},
    },
    "required": ["text"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"text": "a"}, ""),
        ({"text": "a", "count": 3, "share": None, "any": [1], "odd": 1, "list": []}, ""),
        ({"text": "a", "count": 3.0, "share": 1.5}, ""),
        ({}, "missing: text"),
        ({"text": 1}, "text: should be string"),
        ({"text": "a", "count": True}, "count: should be integer"),
        ({"text": "a", "count": 1.5}, "count: should be integer"),
        ({"text": "a", "count": float("inf")}, "count: should be integer"),
        ({"text": "a", "share": "1"}, "share: should be ['number', 'null']"),
        ({"text": "a", "list": {}}, "list: should be array"),
        ({"text": "a", "txet": 1}, "txet: there is no such parameter; known: text, count"),
    ],
)
def test_what_is_plainly_wrong(arguments: dict[str, Any], problem: str) -> None:
    assert misfit(SCHEMA, arguments)[: len(problem) or None] == problem


def test_a_schema_that_is_none_refuses_nothing() -> None:
    assert misfit({}, {"a": 1}) == misfit({"properties": 3, "required": "a"}, {}) == ""


A, B = ({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]} for name in "ab")
BRANCHES = [
    ({"anyOf": [A, B]}, {"a": {"type": "string"}, "b": {"type": "string"}}, []),
    ({"oneOf": [A, {"type": "null"}]}, {"a": {"type": "string"}}, ["a"]),
    ({"allOf": [A, B]}, {"a": {"type": "string"}, "b": {"type": "string"}}, ["a", "b"]),
    ({**B, "anyOf": [A, A]}, {"b": {"type": "string"}, "a": {"type": "string"}}, ["b", "a"]),
    ({**A, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": {"type": "string"}}, ["a"]),
    ({"allOf": [A, {"oneOf": [A, B]}]}, {"a": {"type": "string"}, "b": {"type": "string"}}, ["a"]),
    ({"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": A}}, {"a": {"type": "string"}}, ["a"]),
    # What tells the branches apart may be either.
    (
        {"oneOf": [{"properties": {"kind": {"const": each}}, "required": ["kind"]} for each in ("x", "y", "z", "x")]},
        {"kind": {"anyOf": [{"const": "x"}, {"const": "y"}, {"const": "z"}]}},
        ["kind"],
    ),
    (
        {"allOf": [A, {"properties": {"a": {"minLength": 1}}}]},
        {"a": {"type": "string", "minLength": 1}},
        ["a"],
    ),
    ({**A, "not": {"required": ["b"]}, "enum": [{}]}, {"a": {"type": "string"}}, ["a"]),
    (
        {**A, "anyOf": "none", "oneOf": [1, None, {"properties": ["a"], "required": "a"}]},
        {"a": {"type": "string"}},
        ["a"],
    ),
]
"""Schemas with branches at their root, the properties that the model is told, and those that are required."""


@pytest.mark.parametrize(("schema", "properties", "required"), BRANCHES)
def test_branches_at_the_root_become_one_object(
    schema: dict[str, Any], properties: dict[str, Any], required: list[str]
) -> None:
    told = bounded_schema(schema)
    assert told.pop("required", []) == required
    assert told == {"type": "object", "properties": properties}


def test_branches_of_a_parameter_stay() -> None:
    inner = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert bounded_schema({"properties": {"a": inner}})["properties"] == {"a": inner}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_does_not_have_are_left_out(number: float) -> None:
    told = bounded_schema(
        {
            "properties": {
                "a": {"type": "number", "default": number, "maximum": number, "minimum": 0.5},
                "b": {"enum": [1.5, number]},
            }
        }
    )
    assert told["properties"] == {"a": {"type": "number", "minimum": 0.5}, "b": {"enum": [1.5]}}
    json.dumps(told, allow_nan=False)
