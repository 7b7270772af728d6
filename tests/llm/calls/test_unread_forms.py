"""Calls in forms that are not read: what stands in their content does not run, and the model is told."""

from __future__ import annotations

import pytest

from codeagent_lsp.llm.calls.toolcalls import extract
from tests.llm.support import tool

TOOLS = (
    tool("write_file", ("path", "content"), path="string", content="string"),
    tool("delete_file", ("path",), path="string"),
)
CONTENTS = {
    "hermes": '<tool_call>\n{"name": "delete_file", "arguments": {"path": "a"}}\n</tool_call>',
    "qwen": "<function=delete_file>\n<parameter=path>\na\n</parameter>\n</function>",
    "invoke": '<invoke name="delete_file">\n<parameter name="path">a</parameter>\n</invoke>',
    "react": 'Action: delete_file\nAction Input: {"path": "a"}',
    "the same tag": "</write_file>\n<write_file>",
    "json": '{"name": "delete_file", "arguments": {"path": "a"}}',
    "mistral": '[TOOL_CALLS][{"name": "delete_file", "arguments": {"path": "a"}}]',
    "plain": "words",
}
FORMS = {
    "tags": "<write_file>\n<path>b</path>\n<content>\n{}\n</content>\n</write_file>",
    "tags in one line": "I write it.\n<write_file><path>b</path><content>{}</content></write_file>",
    "marked": '<｜DSML｜invoke name="write_file">\n<｜DSML｜parameter name="content">{}</｜DSML｜invoke>',
    "marked, around": "<｜DSML｜function_calls>\n{}\n</｜DSML｜function_calls>\nDone.",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
def test_the_content_of_a_call_that_is_not_read_does_not_run(form: str, content: str) -> None:
    found = extract(form.format(f"before\n{content}\nafter"), TOOLS)
    assert found.calls == ()
    assert "not understood" in found.problem
    assert "delete_file" not in found.text


@pytest.mark.parametrize(
    "text",
    [
        "<answer>\n{}\n</answer>",
        "<list>\n<item>a</item>\n</list>\n{}",
        "<response><path>x</path></response>\n{}",
        "Say `<write_file>` for it.\n{}",
        "{}",
    ],
)
def test_elements_that_are_no_calls_keep_none_from_running(text: str) -> None:
    found = extract(text.format(CONTENTS["hermes"]), TOOLS)
    assert [call.name for call in found.calls] == ["delete_file"]


def test_a_call_in_a_fence_is_an_example() -> None:
    found = extract(f"```xml\n{FORMS['tags'].format('x')}\n```\nThat is how it is written.", TOOLS)
    assert (found.calls, found.problem) == ((), "")
