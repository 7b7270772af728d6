"""A call that is quoted, in whatever wrapper and dialect, does not run; one that stands beside such things does."""

from __future__ import annotations

import json

import pytest

from codeagent_lsp.llm.calls.toolcalls import extract
from tests.llm.calls.test_shapes import ONE_CALL, PARIS, TOOLS

QUOTED = {
    "an example": "<example>\n{}\n</example>",
    "an element on one line": "<sample>{}</sample>",
    "attributes": '<doc title="x">\n{}\n</doc>',
    "elements in elements": "<section>\n<p>So:</p>\n<pre><code>\n{}\n</code></pre>\n</section>",
    "an example in an element of calls": "<tools>\n<example>\n{}\n</example>\n</tools>",
    "a result": "<tool_result>\n{}\n</tool_result>",
    "an answer of the user": "<user>\n{}\n</user>",
    "thoughts": "Well.\n<thought>\n{}\n</thought>",
    "a comment": "<!-- {} -->",
    "a comment over lines": "<!--\n{}\n-->",
    "a quotation": ">{}",
    "a table": "| call |\n|---|\n|{}|",
    "quotes": 'It is "{}"',
    "typographic quotes": "It is “{}”",
    "Chinese quotes": "写「{}」",
    "parentheses": "It is short ({})",
    "two ticks": "It is ``{}``",
    "one tick, over lines": "It is `{}`",
    "for example": "For example:\n{}",
    "looks like": "A call looks like this:\n{}",
    "in a sentence": "A call is, e.g., {}",
    "an example and a fence": "Here is an example:\n```\n{}\n```",
    "a fence in an element": "<example>\n```\n{}\n```\n</example>",
    "Chinese": "例如:\n{}",
}
WRAPPERS = (
    *("answer", "response", "final", "output", "message", "assistant", "reply", "solution", "step", "task"),
    *("execute", "command", "use_tools", "call_tool", "plan", "act", "turn", "next", "agent"),
)
PLAIN = {
    "words": "I will look.\n{}",
    "words on the line": "Let me look: {}",
    "two lines": "I will look.\n\nNow.\n\n{}\n",
    "elements before": "There is <div>x</div> in it.\n{}",
    "an element that is not closed": "It needs a <br> there.\n{}",
    "a type": "It is a List<String>.\n{}",
    "an arrow": "It is x --> y.\n{}",
    "a name of an element": "The `<example>` is empty.\n{}",
    "it looks like": "It looks like rain.\n{}",
    "an example elsewhere": "The example fails. I will look.\n{}",
    "a sentence with an example": "For example, line 3 is wrong. I will look.\n{}",
    "a quotation before": "> what is the weather?\n\n{}",
    "a table before": "| a |\n|---|\n| b |\n\n{}",
    "quotes before": 'I will look at "it".\n{}',
    "thoughts before": "<think>Which?</think>\n{}",
    "indented": "I will look.\n  {}",
    "what it looks like": "Let me check what the file looks like:\n{}",
    "what it should look like": "The new file should look like this:\n{}",
    "for example, let me": "For example, let me look there:\n{}",
    "to add an example": "I'll add an example to it:\n{}",
    "an example of its use": "Let me search for an example of its use:\n{}",
    "Chinese, a file of examples": "我来看看示例文件：\n{}",
    **{f"<{name}> around": f"<{name}>\n{{}}\n</{name}>" for name in WRAPPERS},
}


def quoted(frame: str, call: str) -> str:
    call = call.replace("\n", "\n>") if frame.startswith(">") else call.replace("\n", "\n|") if "|{}" in frame else call
    return frame.replace("{}", call)


@pytest.mark.slow
@pytest.mark.parametrize("frame", QUOTED.values(), ids=QUOTED.keys())
def test_a_quoted_call_of_any_family_does_not_run(frame: str) -> None:
    for family, call in ONE_CALL.items():
        if "`{}" in frame and "```" in call:
            continue
        for behind in ("", "\n", "\n\nThat is all."):
            text = f"A call is one line.\n{quoted(frame, call.strip())}{behind}"
            assert extract(text, TOOLS).calls == (), (family, text)


@pytest.mark.slow
@pytest.mark.parametrize("frame", PLAIN.values(), ids=PLAIN.keys())
def test_a_call_beside_such_things_runs(frame: str) -> None:
    for family, call in ONE_CALL.items():
        in_words = frame == PLAIN["words on the line"] and call.startswith("```")
        if extract(f"I will look.\n{call}", TOOLS).calls and not in_words:  # bare Python and lists: only alone
            text = frame.replace("{}", call)
            assert [(each.name, each.arguments) for each in extract(text, TOOLS).calls] == [PARIS], (family, text)


def test_the_model_is_asked_whether_it_meant_the_call() -> None:
    asked = extract(f"Well.\n<example>\n{ONE_CALL['hermes']}\n</example>", TOOLS)
    assert asked.unclear and "quoted" in asked.problem and [call.name for call in asked.unusable] == [PARIS[0]]


def test_tags_in_the_arguments_of_a_call_quote_no_other_one() -> None:
    def call(text: str) -> str:
        return '<tool_call>{"name": "get_weather", "arguments": ' + json.dumps({"city": text}) + "}</tool_call>"

    for opening, closing in (("<div>", "</div>"), ("<!--", "-->"), ("<pre>", "</pre>"), ("<example>", "</example>")):
        text = "\n".join(map(call, (opening, "x", closing)))
        assert [each.arguments["city"] for each in extract(text, TOOLS).calls] == [opening, "x", closing]


@pytest.mark.parametrize("token", ["<|im_end|>", "</s>", "<|eot_id|>"])
def test_a_fence_may_end_with_the_token_of_a_reply_s_end(token: str) -> None:
    fence = '```json\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n```'
    assert [call.name for call in extract(f"I will look.\n{fence}{token}", TOOLS).calls] == ["get_weather"]


AMID_WORDS = {
    "behind a sentence": 'I will look.\n\nget_weather(city="Paris")',
    "by its place": 'I will look.\nget_weather("Paris")',
    "on the same line": 'Let me look: get_weather(city="Paris")',
    "in a list": 'I will look.\n[get_weather(city="Paris")]',
    "before a sentence": 'I will look.\nget_weather(city="Paris")\nThat is all.',
    "before one alone": 'get_weather(city="Paris")\nI look there.',
    "two": 'I will look.\nget_weather(city="Paris")\nlist_dir(path=".")',
    "in an element": '<answer>\nI will look.\nget_weather(city="Paris")\n</answer>',
    "behind a token": 'I will look.\nget_weather(city="Paris")<|im_end|>',
    "over lines": 'I will look.\nget_weather(\n    city="Paris",\n)',
    "Chinese": '我来看。\nget_weather(city="Paris")',
    "indented": 'I will look.\n  get_weather(city="Paris")',
}
NO_CALLS = {
    "a name in a sentence": "The function get_weather(city) takes a city.",
    "code of another language": "```python\nget_weather(city='Paris')\n```\nSo.",
    "an unknown function": "I will look.\nget_wind(city='Paris')",
    "within code": "def f():\n    return get_weather(city='Paris')",
    "in code of a line": "Call `get_weather(city='Paris')` there.",
    "a heading": "get_weather(city)\n\nIt takes a city.",
}


@pytest.mark.parametrize("text", AMID_WORDS.values(), ids=AMID_WORDS.keys())
def test_python_amid_words_is_not_passed_over_in_silence(text: str) -> None:
    found = extract(text, TOOLS)
    assert found.calls == () and found.unclear and "get_weather" in found.problem and found.text == text


@pytest.mark.parametrize("text", NO_CALLS.values(), ids=NO_CALLS.keys())
def test_code_that_is_no_call_is_only_text(text: str) -> None:
    found = extract(text, TOOLS)
    assert (found.calls, found.problem, found.text) == ((), "", text)


OTHER = '{"name": "list_dir", "arguments": {"path": "."}}'


@pytest.mark.parametrize("frame", QUOTED.values(), ids=QUOTED.keys())
def test_a_doubtful_call_beside_one_that_runs_is_told(frame: str) -> None:
    quotation = f"A call is one line.\n{quoted(frame, f'<tool_call>{OTHER}</tool_call>')}"
    for text in (f"{quotation}\n\n{ONE_CALL['hermes']}", f"{ONE_CALL['hermes']}\n\n{quotation}\n"):
        found = extract(text, TOOLS)
        assert [(call.name, call.arguments) for call in found.calls] == [PARIS] and not found.unclear, text
        assert ("list_dir" in found.problem) or "`<tool_call>" in text, text
    same = f"{quoted(frame, ONE_CALL['hermes'])}\n\n{ONE_CALL['hermes']}"
    assert extract(same, TOOLS).problem == ""
