"""Published shapes of function calls, family by family, whole and in random pieces."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codeagent_lsp.llm.calls.streamed_calls import StreamParser
from codeagent_lsp.llm.calls.toolcalls import extract
from codeagent_lsp.messages import ToolSpec
from tests.llm.support import chunked, tool

WEATHER = tool(
    "get_weather",
    ("city",),
    city="string",
    unit={"enum": ["celsius", "fahrenheit"]},
    days="integer",
    detailed="boolean",
    point={"type": "object", "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}}},
    tags={"type": "array", "items": {"type": "string"}},
)
WRITE = tool("write_file", ("path", "content"), path="string", content="string")
TOOLS: tuple[ToolSpec, ...] = (WEATHER, WRITE, tool("list_dir", path="string"))

PARIS = ("get_weather", {"city": "Paris"})
ROME = ("get_weather", {"city": "Rome", "days": 3})
PARIS_JSON = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
ROME_JSON = '{"name": "get_weather", "arguments": {"city": "Rome", "days": 3}}'
FULL: dict[str, Any] = {
    "city": 'São "Paulo" {x} `y` <b>',
    "unit": "celsius",
    "days": 0,
    "detailed": False,
    "point": {"lat": -23.5, "lon": 1e-3},
    "tags": ["a", "", "é🎉", "]"],
}

ARGUMENTS = '{"city": "Paris"}'
ONE_CALL = {
    "cohere": 'Action: ```json\n[\n    {"tool_name": "get_weather", "parameters": {"city": "Paris"}}\n]```',
    "cohere in its own tokens": (
        '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris"}}\n]'
        "<|END_ACTION|>"
    ),
    "granite 3": f"<|tool_call|>[{PARIS_JSON}]",
    "granite 3.1": f"<tool_call>[{PARIS_JSON}]",
    "granite 20b": f"<function_call> {PARIS_JSON}",
    "phi 4": f"<|tool_call|>[{PARIS_JSON}]<|/tool_call|>",
    "functools": f"functools[{PARIS_JSON}]",
    "xlam": f"[{PARIS_JSON}]",
    "xlam fenced": f"```json\n[{PARIS_JSON}]\n```",
    "functionary 3.1": '<function=get_weather>{"city": "Paris"}</function>',
    "gemma": '```tool_code\nget_weather(city="Paris")\n```',
    "gemma printing": '```tool_code\nprint(get_weather(city="Paris"))\n```',
    "llama 3.1": '{"name": "get_weather", "parameters": {"city": "Paris"}}',
    "llama 3.1 with a type": '{"type": "function", "name": "get_weather", "parameters": {"city": "Paris"}}',
    "llama 3.1 tagged": '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris"}}<|eom_id|>',
    "llama 3.1 call": '<|python_tag|>get_weather.call(city="Paris")',
    "llama 3.2": '[get_weather(city="Paris")]<|eot_id|>',
    "llama 4": '<|python_start|>[get_weather(city="Paris")]<|python_end|>',
    "lfm 2": '<|tool_call_start|>[get_weather(city="Paris")]<|tool_call_end|>',
    "mistral 7b": f'[TOOL_CALLS] [{PARIS_JSON[:-1]}, "id": "abc123def"}}]</s>',
    "mistral with args": '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}</s>',
    "mistral with an id": '[TOOL_CALLS]get_weather[CALL_ID]abc123def[ARGS]{"city": "Paris"}',
    "kimi k2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
        '{"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>'
    ),
    "glm 4.5": ("<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>"),
    "glm 4.7": "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>",
    "minimax m1": f"<tool_calls>\n{PARIS_JSON}\n</tool_calls>",
    "minimax m2": (
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n</invoke>\n'
        "</minimax:tool_call>"
    ),
    "invoke": (
        '<function_calls>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n</invoke>\n'
        "</function_calls>"
    ),
    "olmo": '<function_calls>\nget_weather(city="Paris")\n</function_calls>',
    "deepseek v3": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
        '```json\n{"city": "Paris"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
    ),
    "deepseek v3.1": (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Paris"}<｜tool▁call▁end｜>'
        "<｜tool▁calls▁end｜><｜end▁of▁sentence｜>"
    ),
    "hermes": f"<tool_call>\n{PARIS_JSON}\n</tool_call><|im_end|>",
    "hermes with single quotes": ("<tool_call>\n{'name': 'get_weather', 'arguments': {'city': 'Paris'}}\n</tool_call>"),
    "qwen 3 coder": (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>"
    ),
    "internlm": ('<|action_start|><|plugin|>\n{"name": "get_weather", "parameters": {"city": "Paris"}}<|action_end|>'),
    "jamba": f"<tool_calls>[\n  {PARIS_JSON}\n]</tool_calls>",
    "nemotron": f"<TOOLCALL>[{PARIS_JSON}]</TOOLCALL>",
    "gpt-oss": '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}<|call|>',
    "gpt-oss in its thoughts": f"<|channel|>analysis to=functions.get_weather code<|message|>{ARGUMENTS}<|call|>",
    "gpt-oss with the name first": (
        f"<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{ARGUMENTS}<|call|>"
    ),
    "gpt-oss without its tokens": f"commentary to=functions.get_weather json{ARGUMENTS}",
    "in one key": '{"tool_call": {"name": "get_weather", "arguments": {"city": "Paris"}}}',
    "openai": (
        '{"tool_calls": [{"id": "call_1", "type": "function", '
        '"function": {"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}}]}'
    ),
    "openai legacy": '{"function_call": {"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}}',
    "gemini": '{"functionCall": {"name": "get_weather", "args": {"city": "Paris"}}}',
    "tool use": '{"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Paris"}}',
}

TWO_CALLS = {
    "openai parallel": json.dumps(
        {
            "tool_calls": [
                {"id": "1", "type": "function", "function": json.loads(source)} for source in (PARIS_JSON, ROME_JSON)
            ]
        }
    ),
    "hermes": f"<tool_call>\n{PARIS_JSON}\n</tool_call>\n<tool_call>\n{ROME_JSON}\n</tool_call>",
    "hermes on one line": f"<tool_call>{PARIS_JSON}</tool_call><tool_call>{ROME_JSON}</tool_call>",
    "hermes, both in one": f"<tool_call>\n[{PARIS_JSON}, {ROME_JSON}]\n</tool_call>",
    "qwen 3 coder": (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>\n"
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n<parameter=days>\n3\n"
        "</parameter>\n</function>\n</tool_call>"
    ),
    "bfcl": "[get_weather(city=\"Paris\"), get_weather(city='Rome', days=3)]",
    "llama": f"<|python_tag|>{PARIS_JSON}; {ROME_JSON}",
    "mistral": f"[TOOL_CALLS] [{PARIS_JSON}, {ROME_JSON}]",
    "mistral with args": (
        '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}[TOOL_CALLS]get_weather[ARGS]{"city": "Rome", "days": 3}'
    ),
    "kimi k2": (
        "<|tool_calls_section_begin|>"
        '<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|>'
        '<|tool_call_begin|>functions.get_weather:1<|tool_call_argument_begin|>{"city": "Rome", "days": 3}'
        "<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "glm 4.5": (
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>\n"
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n"
        "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>"
    ),
    "minimax m2": (
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n</invoke>\n'
        '<invoke name="get_weather">\n<parameter name="city">Rome</parameter>\n<parameter name="days">3</parameter>\n'
        "</invoke>\n</minimax:tool_call>"
    ),
    "deepseek v3": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
        '{"city": "Paris"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n'
        '{"city": "Rome", "days": 3}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
    ),
    "xlam": f"[{PARIS_JSON}, {ROME_JSON}]",
    "one line each": f"{PARIS_JSON}\n{ROME_JSON}",
    "two fences": f"```json\n{PARIS_JSON}\n```\n```json\n{ROME_JSON}\n```",
    "cohere": (
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris"}}, '
        '{"tool_call_id": "1", "tool_name": "get_weather", "parameters": {"city": "Rome", "days": 3}}]<|END_ACTION|>'
    ),
}

CODE = {
    "quotes": 'print("a \'b\' \\"c\\"")\n',
    "braces": 'func main() { if x := map[string]int{"a": 1}; len(x) > 0 { return } }\n',
    "markup": '<div class="a">\n  <p>{{ name }}</p> </b> <parameter> </function_x>\n</div>\n',
    "fence": "# Title\n\n```python\nx = '{'\n```\n\nDone `here`.\n",
    "json": '{"name": "list_dir", "arguments": {"path": "."}}\n',
    "blank lines": "\n\n  indented\n\ttab\n\n",
    "no line break": "x = 1",
    "shell": 'grep -rn "a\\|b" . | awk \'{print $1}\' && echo "${HOME}"\n',
    "regex": "re.compile(r'^\\s*(?:[\\w.\\-]+)\\((.*)\\)$')\n",
    "many languages": "// 你好 🎉 \u2028 ﷽\nlet s = 'naïve';\n",
    "tags of calls": "Write <tool_call> and [TOOL_CALLS] in text.\n",
}


def found(text: str) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in extract(text, TOOLS).calls]


def streamed(text: str, seed: int) -> tuple[list[tuple[str, Any]], str]:
    parser = StreamParser(TOOLS)
    shown = ""
    for piece in chunked(text, seed):
        assert parser.feed(piece) == []
        shown += parser.visible()
    return [(call.name, call.arguments) for call in parser.close()], shown


@pytest.mark.parametrize("family", ONE_CALL)
def test_one_call_of_every_family(family: str) -> None:
    result = extract(ONE_CALL[family], TOOLS)
    assert [(call.name, call.arguments) for call in result.calls] == [PARIS]
    assert result.problem == ""


@pytest.mark.slow
@pytest.mark.parametrize("family", ONE_CALL)
@pytest.mark.parametrize("prose", ["", "I will look that up.\n\n"])
def test_one_call_in_random_pieces(family: str, prose: str) -> None:
    bare = ONE_CALL[family][0] in "{[" and "TOOL_CALLS" not in ONE_CALL[family] and "](" not in family
    if prose and bare and "get_weather(" in ONE_CALL[family]:
        pytest.skip("Python after prose is an example")
    for seed in range(8):
        calls, shown = streamed(prose + ONE_CALL[family], seed)
        assert calls == [PARIS]
        assert "get_weather" not in shown and "Paris" not in shown


@pytest.mark.parametrize("family", TWO_CALLS)
def test_two_calls_of_every_family(family: str) -> None:
    assert found(TWO_CALLS[family]) == [PARIS, ROME]
    for seed in range(5):
        calls, shown = streamed(TWO_CALLS[family], seed)
        assert calls == [PARIS, ROME]
        assert "get_weather" not in shown


def written(arguments: dict[str, Any], name: str) -> dict[str, str]:
    """One call in the families that carry any value."""
    packed = json.dumps(arguments)
    plain = json.dumps(arguments, ensure_ascii=False)
    bare = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
    pairs = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in bare.items())
    glm = "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n" for key, value in bare.items())
    invoke = "".join(f'<parameter name="{key}">{value}</parameter>\n' for key, value in bare.items())
    keywords = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return {
        "hermes": f'<tool_call>\n{{"name": "{name}", "arguments": {plain}}}\n</tool_call>',
        "escaped": f'<tool_call>\n{{"name": "{name}", "arguments": {packed}}}\n</tool_call>',
        "in a string": json.dumps({"name": name, "arguments": packed}),
        "indented": json.dumps({"tool": name, "args": arguments}, indent=4),
        "qwen": f"<tool_call>\n<function={name}>\n{pairs}</function>\n</tool_call>",
        "glm": f"<tool_call>{name}\n{glm}</tool_call>",
        "invoke": f'<function_calls>\n<invoke name="{name}">\n{invoke}</invoke>\n</function_calls>',
        "mistral": f"[TOOL_CALLS]{name}[ARGS]{plain}",
        "kimi": f"<|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{plain}<|tool_call_end|>",
        "deepseek": f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{plain}<｜tool▁call▁end｜>",
        "harmony bare": f"commentary to=functions.{name} json{plain}",
        "harmony": f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{plain}<|call|>",
        "wrapped": f'<|tool_call|>[{{"name": "{name}", "arguments": {packed}}}]<|/tool_call|>',
        "pythonic": f"[{name}({keywords})]",
    }


@pytest.mark.parametrize("family", written({}, "x"))
def test_every_kind_of_value_comes_through(family: str) -> None:
    text = written(FULL, "get_weather")[family]
    assert found(text) == [("get_weather", FULL)]
    assert streamed(text, 7)[0] == [("get_weather", FULL)]


@pytest.mark.parametrize("code", CODE)
@pytest.mark.parametrize("family", written({}, "x"))
def test_code_comes_through_unchanged(family: str, code: str) -> None:
    arguments = {"path": "src/a b.txt", "content": CODE[code]}
    text = written(arguments, "write_file")[family]
    wanted = dict(arguments)
    if family in ("glm", "invoke") and code == "blank lines":
        pytest.skip("these forms cannot tell the template's line breaks from the text's")
    assert found(text) == [("write_file", wanted)]
    assert streamed(text, 3)[0] == [("write_file", wanted)]


@pytest.mark.parametrize("family", [name for name in written({}, "x") if name not in ("pythonic", "escaped")])
def test_a_call_without_arguments(family: str) -> None:
    assert found(written({}, "list_dir")[family]) == [("list_dir", {})]
