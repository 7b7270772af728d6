"""Tool calls in text: every dialect round trips, prose holds none, complaints are useful."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.llm.calls.bare_calls import check, normalise_name
from codeagent_lsp.llm.calls.streamed_calls import StreamParser
from codeagent_lsp.llm.calls.text_calls import DIALECTS, render
from codeagent_lsp.llm.calls.toolcalls import extract, parse
from codeagent_lsp.messages import ToolCall, ToolSpec
from tests.examples import examples
from tests.llm.support import chunked, tool

READ = tool("read_file", ("path",), path="string", offset="integer", limit="integer")
WRITE = tool("write_file", ("path", "content"), path="string", content="string")
MIXED = tool(
    "fs.mix",
    ("s",),
    s="string",
    i="integer",
    f="number",
    b="boolean",
    a="array",
    o="object",
)
TOOLS = (READ, WRITE, MIXED, tool("list_dir", path="string"))

# what no text form can carry raw: carriage returns and surrogates; the XML forms cannot carry their own tags
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=40) | st.sampled_from(
    [
        "",
        "\n",
        "a\n",
        "\n\nx\n",
        "```py\nx = 1\n```",
        "{}",
        "123",
        "true",
        "null",
        '"q"',
        "\\n",
        "`x`",
        "a=b",
        "<b>x</b>",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
CALLS = st.builds(
    lambda s, rest: ToolCall("fs.mix", {"s": s, **rest}),
    TEXT,
    st.fixed_dictionaries(
        {},
        optional={
            "i": st.integers(-(2**40), 2**40),
            "f": st.floats(allow_nan=False, allow_infinity=False),
            "b": st.booleans(),
            "a": st.lists(VALUES, max_size=4),
            "o": st.dictionaries(TEXT, VALUES, max_size=3),
        },
    ),
)
BARE = ("json", "name_json", "openai", "list", "pythonic")


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=examples(60), deadline=None)
@given(call=CALLS, seed=st.integers(0, 10**6), prose=st.sampled_from(["", "I will look.\n\n"]))
def test_every_dialect_round_trips_however_it_is_cut(dialect: str, call: ToolCall, seed: int, prose: str) -> None:
    before = "" if dialect in BARE else prose
    parser = StreamParser(TOOLS)
    shown = ""
    for piece in chunked(before + render(call, dialect), seed):
        assert parser.feed(piece) == []
        shown += parser.visible()
    assert [(found.name, found.arguments) for found in parser.close()] == [(call.name, call.arguments)]
    assert before.startswith(shown), "something of the call was shown"


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "pythonic"])
def test_two_calls_in_a_row(dialect: str) -> None:
    first = ToolCall("read_file", {"path": "a.py", "offset": 3})
    second = ToolCall("list_dir", {"path": "src"})
    found = parse(f"{render(first, dialect)}\n{render(second, dialect)}", TOOLS)
    assert [(call.name, call.arguments) for call in found] == [(call.name, call.arguments) for call in (first, second)]


ONE = ("read_file", {"path": "a.py"})


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "read_file", "args": {"path": "a.py"}}',
        '{"name": "read_file", "arguments": "{\\"path\\": \\"a.py\\"}"}',
        '{"function": {"name": "read_file", "arguments": {"path": "a.py"}}}',
        '{"tool_calls": [{"function": {"name": "read_file", "arguments": "{\\"path\\": \\"a.py\\"}"}}]}',
        '{"action": "read_file", "action_input": {"path": "a.py"}}',
        '{"read_file": {"path": "a.py"}}',
        "{'tool': 'read_file', 'args': {'path': 'a.py'}}",
        '{"tool": "read_file", "args": {"path": "a.py"}',
        '{"tool": "read_file", "args": {"path": "a.py",}}',
        '```json\n{"tool": "read_file", "args": {"path": "a.py"}}\n```',
        '```\n{"tool": "read_file", "args": {"path": "a.py"}}\n```\n',
        'Sure.\n```json\n{"tool": "read_file", "args": {"path": "a.py"}}\n```',
        '```json\n{"tool": "read_file", "args": {"path": "a.py"}}',
        'I will read it.\n{"tool": "read_file", "args": {"path": "a.py"}}',
        'I will read it: {"tool": "read_file", "args": {"path": "a.py"}}',
        '{"tool": "read_file", "args": {"path": "a.py"}}\nLet me know.',
        '<tool_call>{"name": "read_file", "arguments": {"path": "a.py"}}',
        '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}\n</tool_call>',
        '<tool_call>\n```json\n{"name": "read_file", "arguments": {"path": "a.py"}}\n```\n</tool_call>',
        "<function=read_file><parameter=path>a.py</parameter></function>",
        "<function=read_file>\n<parameter=path>\na.py\n</function>",
        "<function=read_file>\n<parameter=path=a.py</parameter>\n</function>",
        "<tool_call>\n<function=read_file>\n<parameter=path>\na.py\n</parameter>\n</tool_call>",
        '<function=read_file>{"path": "a.py"}</function>',
        '<function name="read_file">{"path": "a.py"}</function>',
        '<|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{"path": "a.py"}<|tool_call_end|>',
        '[TOOL_CALLS] [{"name": "read_file", "arguments": {"path": "a.py"}}]',
        '[TOOL_CALLS]read_file{"path": "a.py"}',
        '<|python_tag|>{"name": "read_file", "parameters": {"path": "a.py"}}',
        '<|python_tag|>read_file(path="a.py")<|eom_id|>',
        '[read_file(path="a.py")]',
        'read_file("a.py")',
        '<think>Maybe {"tool": "list_dir", "args": {}}.</think>{"tool": "read_file", "args": {"path": "a.py"}}',
        '{"tool": "functions.read_file:2", "args": {"path": "a.py"}}',
        '{"tool": "Read_File", "args": {"path": "a.py", "offset": null}}',
        '```tool_code\nread_file(path="a.py")\n```',
    ],
)
def test_the_ways_models_write_one_call(text: str) -> None:
    assert [(call.name, call.arguments) for call in parse(text, TOOLS)] == [ONE]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The file holds a list.",
        'Use `{"tool": "read_file", "args": {"path": "a.py"}}` to read a file.',
        "Write `<tool_call>` and then JSON.",
        'A call looks like this:\n```json\n{"tool": "read_file", "args": {"path": "a.py"}}\n```\nTry it.',
        "Example:\n```xml\n<function=read_file><parameter=path>a</parameter></function>\n```\nIt reads a file.",
        '```json\n{"name": "demo", "version": "1.0"}\n```',
        '{"name": "demo", "version": "1.0"}',
        '```json\n{"name": "demo", "arguments": {"x": 1}}\n```',
        '```python\nread_file(path="a.py")\n```',
        "```python\ndef f():\n    return {'tool': 'read_file', 'args': {'path': 'a'}}\n```",
        'Sending {"tool": "read_file", "args": {"path": "a"}} would read it.',
        "Call read_file(path='a.py') to read.",
        "[1, 2, 3]",
        "if (x) { return [0]; }",
        '<think>{"tool": "read_file", "args": {"path": "a.py"}}</think>No.',
        "print('hello')",
    ],
)
def test_prose_holds_no_call(text: str) -> None:
    found = extract(text, TOOLS)
    assert found.calls == ()
    assert found.unclear or found.problem == ""


@pytest.mark.parametrize(
    "text",
    [
        'I will read it:\n```json\n{"tool": "read_file", "args": {"path": "a.py"}}\n```\nThen I will change it.',
        'Let me look. {"name": "read_file", "arguments": {"path": "a.py"}} I need its contents.',
        'First {"tool": "read_file", "args": {"path": "a.py"}}, then the rest.',
        '```\n{"tool": "read_file", "args": {"path": "a.py"}}\n```\n```\nread_file(path="b.py")\n```\n好的，我来看。',
    ],
)
def test_a_call_with_words_behind_it_is_asked_about(text: str) -> None:
    found = extract(text, TOOLS)
    assert (found.calls, found.unclear, found.text) == ((), True, text)
    assert "read_file" in found.problem
    assert {call.name for call in found.unusable} == {"read_file"}


def test_words_behind_what_does_not_fit_are_an_answer() -> None:
    for text in (
        'It is `{"tool": "read_file", "args": {"path": "a"}}` here.',
        'Use {"tool": "reed", "args": {}} there.',
    ):
        found = extract(text, TOOLS)
        assert (found.calls, found.problem, found.text) == ((), "", text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"tool": "reed", "args": {}}', "no tool 'reed'"),
        ('{"tool": "read_file", "args": {}}', "needs 'path'"),
        ('<tool_call>{"name": "read_file", "arguments": {"path": "a", "offset": "x"}}</tool_call>', "offset"),
        ('<tool_call>{"name": "read_file", "arguments": [1]}</tool_call>', "JSON object"),
        ("<tool_call>\nread the file please\n</tool_call>", "could not be read"),
    ],
)
def test_a_call_that_does_not_fit_is_explained(text: str, says: str) -> None:
    found = extract(text, TOOLS)
    assert found.calls == ()
    assert says in found.problem


@pytest.mark.parametrize(
    ("given_value", "kind", "wanted"),
    [
        ("3", "integer", 3),
        (3.0, "integer", 3),
        ("2.5", "number", 2.5),
        ("True", "boolean", True),
        ('["a"]', "array", ["a"]),
        ('{"a": 1}', "object", {"a": 1}),
        (5, "string", "5"),
        ({"a": 1}, "string", '{\n  "a": 1\n}'),
    ],
)
def test_arguments_are_coerced(given_value: Any, kind: str, wanted: Any) -> None:
    call = ToolCall("f", {"x": given_value})
    assert parse(render(call, "json"), [tool("f", x=kind)]) == [ToolCall("f", {"x": wanted})]


def test_names_are_normalised_to_known_tools_only() -> None:
    known = ["a__b", "read_file", "x.y"]
    assert normalise_name("a.b", known) == "a__b" or normalise_name("a.b", known) is None
    assert normalise_name("functions.read_file:3", known) == "read_file"
    assert normalise_name("READ_FILE", known) == "read_file"
    assert normalise_name("fs.read_file", known) == "read_file"
    assert normalise_name("x_y", known) == "x.y"
    assert normalise_name("read_file<|channel|>commentary", known) == "read_file"
    assert normalise_name("functions.read_file<|constrain|>json", known) == "read_file"
    assert normalise_name("read_file()", known) == "read_file"
    assert normalise_name("read", known) is None
    assert normalise_name("<|channel|>", known) is None


def test_a_tool_of_any_length_that_is_none_is_told_at_once() -> None:
    said = check("x" * 200_000, {}, TOOLS)
    assert isinstance(said, str)
    assert said.startswith("There is no tool 'xxx")
    assert len(said) < 1000


def test_text_around_a_call_is_kept_and_shown() -> None:
    parser = StreamParser(TOOLS)
    shown = ""
    for piece in chunked("Let me see.\n\n```python\nx = {1: 2}\n```\nOk.\n" + render(ToolCall(*ONE), "hermes"), 3):
        parser.feed(piece)
        shown += parser.visible()
    assert shown.endswith("Ok.\n")
    assert parser.result().text == shown.strip()
    assert parser.rest() == ""


def test_what_was_held_back_and_is_no_call_comes_at_the_end() -> None:
    text = 'Result:\n```json\n{"name": "demo"}\n```'
    parser = StreamParser(TOOLS)
    shown = ""
    for piece in chunked(text, 5):
        parser.feed(piece)
        shown += parser.visible()
    assert parser.close() == []
    assert shown + parser.rest() == text


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["Text. ", "\n", "`code`", "{", "}", "[", "]", '"a"', ": ", "```", "```json\n", "<", "def f():\n", "~", "`"]
        ),
        max_size=30,
    ),
    st.integers(0, 1000),
)
def test_whatever_is_no_call_is_shown_in_the_end(pieces: list[str], seed: int) -> None:
    text = "".join(pieces)
    parser = StreamParser(TOOLS)
    shown = ""
    for piece in chunked(text, seed):
        parser.feed(piece)
        shown += parser.visible()
    assert parser.close() == []
    assert shown + parser.rest() == text


LOOSE: ToolSpec = {
    "name": "math.area",
    "description": "",
    "parameters": {
        "type": "dict",
        "properties": {
            "base": {"type": "float"},
            "unit": {"type": "str, optional"},
            "points": {"type": "List[int]"},
            "pair": {"type": "tuple"},
            "flags": {"type": "any"},
        },
        "required": ["base"],
    },
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_schemas_of_other_origins_are_understood(dialect: str) -> None:
    arguments = {"base": 2.5, "unit": "3", "points": [1, 2], "pair": [1, "a"], "flags": {"x": None}}
    call = ToolCall("math.area", arguments)
    assert parse(render(call, dialect), [LOOSE]) == [call]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "{" * 30_000,
        "[" * 30_000,
        "<tool_call>" * 5_000,
        "<function=read_file><parameter=path>" * 3_000,
        '{"tool":' * 5_000,
        "`" * 30_000,
        "```\n" * 5_000,
        '<tool_call>{"name":"read_file","arguments":{' * 1_000,
    ],
)
def test_hostile_text_costs_little(text: str) -> None:
    begun = time.process_time()
    parser = StreamParser(TOOLS)
    for at in range(0, len(text), 50):
        parser.feed(text[at : at + 50])
        parser.visible()
    found = parser.result()
    assert time.process_time() - begun < 3, "linear takes a tenth of this, quadratic many times"
    assert len(found.problem) < 1000


def test_a_less_than_sign_does_not_hold_the_text_back() -> None:
    parser = StreamParser(TOOLS)
    parser.feed("so if a < b and ")
    assert parser.visible() == "so if a < b and "
    parser.feed("then <tool")
    assert parser.visible() == "then "


WRITING: list[ToolSpec] = [
    {
        "name": name,
        "description": "",
        "parameters": {
            "type": "object",
            "properties": {key: {"type": "string"} for key in ("path", "content", "old_str", "new_str")},
            "required": ["path"],
        },
    }
    for name in ("write_file", "edit_file")
]


@pytest.mark.parametrize(
    "arguments",
    [
        '{"path": "a.py", "old_str": "x = {"a": 1}", "new_str": "x = {"a": 2, "path": "b.py"}"}',
        '{"path": "a.py", "content": """"Doc."""\\n\\nx = 1\\n"}',
        '{"path": "a.py", "content": "x = ""\\ny = 1\\n"}',
        '{"path": "a.py", "content": "print("hi")"}',
        '{"content": "say "hi", then go", "path": "a.py"}',
        '{"path": "a.py", "content":',
        '{"path": "a.py", "content": }',
        '{"path": "a.py", "content": "x", "path": "b.py" ',
    ],
)
def test_what_quotes_or_a_lost_end_leave_open_is_not_guessed(arguments: str) -> None:
    found = extract(f'<tool_call>\n{{"name": "edit_file", "arguments": {arguments}}}\n</tool_call>', WRITING)
    assert found.calls == ()
    assert found.problem


@pytest.mark.parametrize(
    "arguments",
    [
        '{"path": "a.py", "content": "x",}',
        "{'path': 'a.py', 'content': 'x'}",
        '{"path": "a.py", "content": "x"  // a remark\n}',
        '{path: "a.py", content: "x"}',
        '{"path": "a.py"\n "content": "x"}',
        '{"path": "a.py", "content": "x"',
    ],
)
def test_what_can_mean_one_thing_only_is_repaired(arguments: str) -> None:
    found = extract(f'<tool_call>\n{{"name": "write_file", "arguments": {arguments}}}\n</tool_call>', WRITING)
    assert [call.arguments for call in found.calls] == [{"path": "a.py", "content": "x"}]


@pytest.mark.parametrize("opening", ["<function=write_file>", "<tool_call>\n<function=write_file>"])
def test_a_value_that_the_end_of_the_text_cuts_is_none(opening: str) -> None:
    text = f"{opening}\n<parameter=path>\na.py\n</parameter>\n<parameter=content>\ndef f():\n    return 1\n\ndef g("
    found = extract(text, WRITING)
    assert found.calls == ()
    assert found.problem
