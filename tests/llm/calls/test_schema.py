"""Arguments made to fit their schema, refused with a reason, and JSON mended: tables."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.llm.calls import jsontext
from codeagent_lsp.llm.calls.bare_calls import check
from codeagent_lsp.llm.calls.schema import Misfit, fit, from_text, types_of
from codeagent_lsp.messages import ToolCall
from tests.examples import examples
from tests.llm.support import tool

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}
OBJECT = {"type": "object"}
ARRAY = {"type": "array"}
MAYBE = {"anyOf": [INTEGER, {"type": "null"}]}
TEXTS = {"type": "array", "items": STRING}
STATES = {"enum": ["open", "done"]}


def of(inner: Any, *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": inner}, "required": list(required), **more}


@pytest.mark.parametrize(
    ("value", "schema", "wanted"),
    [
        ("a", STRING, "a"),
        ("", STRING, ""),
        (3, STRING, "3"),
        (2.5, STRING, "2.5"),
        (jsontext.loads("1.10"), STRING, "1.10"),
        (jsontext.loads("1e5"), STRING, "1e5"),
        (jsontext.loads("1.50"), NUMBER, 1.5),
        (jsontext.loads("3.0"), INTEGER, 3),
        ("\U0001f600", STRING, "\U0001f600"),
        (True, STRING, "true"),
        (False, STRING, "false"),
        ([1], STRING, "[\n  1\n]"),
        ({"é": 1}, STRING, '{\n  "é": 1\n}'),
        (3, INTEGER, 3),
        ("3", INTEGER, 3),
        ("-3", INTEGER, -3),
        (" 3 ", INTEGER, 3),
        ("3.0", INTEGER, 3),
        (3.0, INTEGER, 3),
        (10**20, INTEGER, 10**20),
        (str(10**20), INTEGER, 10**20),
        ("2.5", NUMBER, 2.5),
        ("2", NUMBER, 2),
        ("-2", NUMBER, -2),
        ("1e3", NUMBER, 1000.0),
        (2, NUMBER, 2),
        ("true", BOOLEAN, True),
        ("False", BOOLEAN, False),
        (" TRUE ", BOOLEAN, True),
        ("[1, 2]", ARRAY, [1, 2]),
        ('{"a": 1}', OBJECT, {"a": 1}),
        ("a", TEXTS, ["a"]),
        ([1, "b"], TEXTS, ["1", "b"]),
        ('["a"]', TEXTS, ["a"]),
        ({"a": 1}, {"type": "array", "items": OBJECT}, [{"a": 1}]),
        (None, MAYBE, None),
        (4, MAYBE, 4),
        ("4", MAYBE, 4),
        ("DONE", STATES, "done"),
        (" open ", STATES, "open"),
        ("a", {"const": "a"}, "a"),
        ({"anything": [1]}, {}, {"anything": [1]}),
        ("x", {"type": "any"}, "x"),
        ("x", {"type": "a type of tomorrow"}, "x"),
        ("5", {"type": ["integer", "string"]}, "5"),
        ("5", {"type": ["integer", "null"]}, 5),
        (2.0, {"type": "float"}, 2.0),
        ("1", {"type": "long"}, 1),
        ({"y": {"z": "1"}}, of(INTEGER) | {"properties": {"y": {"properties": {"z": INTEGER}}}}, {"y": {"z": 1}}),
    ],
)
def test_what_fits_or_can_be_made_to_fit(value: Any, schema: dict[str, Any], wanted: Any) -> None:
    fitted = fit({"x": value}, of(schema, "x"))
    assert fitted == {"x": wanted}
    assert type(fitted["x"]) is type(wanted)


@pytest.mark.parametrize(
    ("value", "schema", "says"),
    [
        ("abc", INTEGER, "x must be integer, not text"),
        ("3.5", INTEGER, "x must be integer"),
        (3.5, INTEGER, "x must be integer, not a number"),
        (True, INTEGER, "x must be integer, not boolean"),
        ("nan", INTEGER, "x must be integer"),
        ("inf", INTEGER, "x must be integer"),
        (float("inf"), INTEGER, "x must be integer"),
        ("much", NUMBER, "x must be number"),
        ("yes", BOOLEAN, "x must be boolean"),
        (1, BOOLEAN, "x must be boolean"),
        ("a", ARRAY, "x must be array"),
        ("[1", ARRAY, "x must be array"),
        ("a", OBJECT, "x must be object"),
        ([1], OBJECT, "x must be object, not an array"),
        ("[1]", OBJECT, "x must be object"),
        (None, STRING, "x must be string"),
        ("closed", STATES, 'x must be one of "open", "done"'),
        (3, STATES, "x must be one of"),
        ("b", {"const": "a"}, 'x must be one of "a"'),
        (["a", {}], {"type": "array", "items": INTEGER}, "x[0] must be integer"),
        ([{"y": "q"}], {"type": "array", "items": {"properties": {"y": INTEGER}}}, "x[0].y must be integer"),
        ({}, of(INTEGER, "x"), "x needs 'x'"),
        ("q", MAYBE, "x must be integer or null"),
        (float("nan"), STRING, "x must be string, not a number"),
        (float("-inf"), STRING, "x must be string, not a number"),
        ("a\ud800", STRING, "x has half of a character"),
        (["\udc00"], TEXTS, "x[0] has half of a character"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(value: Any, schema: dict[str, Any], says: str) -> None:
    with pytest.raises(Misfit) as caught:
        fit({"x": value}, of(schema, "x"))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "parameters", "wanted"),
    [
        ({"x": None}, of(INTEGER), {}),
        ({"x": ""}, of(INTEGER), {}),
        ({"x": ""}, of(STATES), {}),
        ({"x": ""}, of(STRING), {"x": ""}),
        ({"x": None}, of(MAYBE), {"x": None}),
        ({"x": 1, "other": 2}, of(INTEGER), {"x": 1, "other": 2}),
        ({}, of(INTEGER), {}),
        ({}, {}, {}),
        ({"a": 1}, {}, {"a": 1}),
    ],
)
def test_optional_and_unknown_arguments(arguments: Any, parameters: Any, wanted: Any) -> None:
    assert fit(arguments, parameters) == wanted


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({}, "needs 'x'"), ({"x": "q"}, "x must be integer")],
)
def test_a_refusal_names_the_tool_and_what_to_do(arguments: Any, says: str) -> None:
    spec = tool("f", ("x",), x="integer")
    spec["parameters"]["additionalProperties"] = False
    told = check("f", arguments, [spec])
    assert isinstance(told, str)
    assert told.startswith("The call of f does not fit: ") and says in told and "call again" in told


def test_a_tool_that_does_not_exist_is_answered_with_those_that_do() -> None:
    told = check("ghost", {}, [tool("f"), tool("g")])
    assert told == "There is no tool 'ghost'. The tools are: f, g."
    assert check("f", {}, [tool("f")]) == ToolCall("f", {})
    assert "not a JSON object" in str(check("f", None, [tool("f")]))


@pytest.mark.parametrize(
    ("text", "schema", "wanted"),
    [
        ("3", STRING, "3"),
        ("true", STRING, "true"),
        ('{"a": 1}', STRING, '{"a": 1}'),
        ("3", INTEGER, 3),
        ("\n3\n", INTEGER, 3),
        ("[1, 2]", ARRAY, [1, 2]),
        ("null", MAYBE, None),
        ("not JSON", INTEGER, "not JSON"),
        ("3", {}, 3),
        ("words", {}, "words"),
        ("3", {"type": ["string", "integer"]}, 3),
        ("{}", {"type": ["string", "integer"]}, "{}"),
    ],
)
def test_bare_text_is_read_as_the_schema_says(text: str, schema: Any, wanted: Any) -> None:
    assert from_text({"x": text}, of(schema)) == {"x": wanted}


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        (STRING, ("string",)),
        ({}, ()),
        ({"type": "any"}, ()),
        ({"type": ["string", "null"]}, ("string", "null")),
        ({"type": "dict"}, ("object",)),
        ({"type": "List[int]"}, ("array",)),
        ({"type": "str, optional"}, ("string",)),
        ({"anyOf": [STRING, INTEGER]}, ("string", "integer")),
        ({"oneOf": [STRING, {"type": "null"}]}, ("string", "null")),
        ({"anyOf": [STRING, {}]}, ()),
        ({"anyOf": "nonsense"}, ()),
    ],
)
def test_types(schema: dict[str, Any], types: tuple[str, ...]) -> None:
    assert types_of(schema) == types


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=8,
)
SCHEMAS = st.sampled_from([STRING, INTEGER, NUMBER, BOOLEAN, OBJECT, ARRAY, MAYBE, TEXTS, STATES, {}, of(INTEGER, "x")])


@settings(max_examples=examples(300), deadline=None)
@given(JSON, SCHEMAS)
def test_fitting_again_changes_nothing_and_only_misfits_are_raised(value: Any, schema: dict[str, Any]) -> None:
    try:
        fitted = fit({"x": value}, of(schema, "x"))
    except Misfit:
        return
    assert fit(fitted, of(schema, "x")) == fitted


@settings(max_examples=examples(200), deadline=None)
@given(JSON, JSON)
def test_a_schema_that_is_none_breaks_nothing(value: Any, nonsense: Any) -> None:
    try:
        fit({"x": value}, {"properties": {"x": nonsense}})
    except Misfit as misfit:
        assert str(misfit)


# --- mending

OBJECT_A = {"a": 1}


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ('{"a": 1}', OBJECT_A),
        ('{"a": 1,}', OBJECT_A),
        ("{'a': 1}", OBJECT_A),
        ("{a: 1}", OBJECT_A),
        ('{"a": 1', OBJECT_A),
        ('{"a": True}', {"a": True}),
        ('{"a": None}', {"a": None}),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
        ('{"a": "tab\there"}', {"a": "tab\there"}),
        (r'{"a": "C:\dir\new"}', {"a": "C:\\dir\new"}),
        (r'{"a": "\d+\s"}', {"a": r"\d+\s"}),
        (r'{"a": "it\'s"}', {"a": r"it\'s"}),
        (r'{"a": "\u00e9\ud83c\udf89"}', {"a": "é🎉"}),
        ('{"a": [1, 2', {"a": [1, 2]}),
        ('{"a": 1} // done', OBJECT_A),
    ],
)
def test_broken_json_is_mended(source: str, wanted: Any) -> None:
    assert jsontext.loads_object(source, repair=True) == wanted


@pytest.mark.parametrize(
    "source",
    [
        '{"command": "rm -rf build',
        '{"path": "a.py", "content": "def f():\\n    return 1\\n\\ndef g(',
        '{"path": "a.js", "content": "function f() {}',
        '{"a": "b',
        '{"path": "a.py"}{"path": "b.py"}',
        '{"path": "a.py"} {"path": "b.py',
        json.dumps('{"command": "rm -rf build'),
    ],
)
def test_an_end_is_never_invented(source: str) -> None:
    assert jsontext.loads_object(source, repair=True) is None


@pytest.mark.parametrize("source", ['{"a": 1,}', "{'a': 1}", '{"a": 1', "", "words", "[" * 100_000])
def test_nothing_is_mended_unasked(source: str) -> None:
    with pytest.raises(ValueError):
        jsontext.loads(source)
    assert jsontext.loads_object(source) is None


@pytest.mark.parametrize("source", ["words", "3", "[1]", "", '"text"', "null"])
def test_what_is_no_object_is_none(source: str) -> None:
    assert jsontext.loads_object(source, repair=True) is None


def test_an_object_in_a_string_is_unpacked_once() -> None:
    assert jsontext.loads_object(json.dumps(json.dumps({"a": 1}))) == {"a": 1}
    assert jsontext.loads_object("{}") == {}


@pytest.mark.parametrize(
    ("source", "end"),
    [
        ("{}", 2),
        ("{} rest", 2),
        ('{"a": "}"} x', 10),
        (r'{"a": "\"}"} x', 12),
        ("[[1], {2: 3}]]", 13),
        ("{", None),
        ('{"a', None),
    ],
)
def test_the_end_of_a_value(source: str, end: int | None) -> None:
    assert jsontext.span(source, 0) == end


@settings(max_examples=examples(300), deadline=None)
@given(JSON.filter(lambda value: isinstance(value, dict | list)), st.text(max_size=10))
def test_the_end_of_any_value(value: Any, after: str) -> None:
    source = json.dumps(value)
    assert jsontext.span(source + after, 0) == len(source)


@settings(max_examples=examples(200), deadline=None)
@given(st.text(st.sampled_from('{}[]":, \\n1a'), max_size=40))
def test_mending_raises_nothing_but_value_errors(source: str) -> None:
    value = jsontext.loads_object(source, repair=True)
    assert value is None or isinstance(value, dict)
