"""Calls in forms that nobody reads: they never run, and no run ends with them as its answer."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.llm.calls.toolcalls import extract
from codeagent_lsp.messages import ToolCall
from codeagent_lsp.tools.catalogue import BUILTIN
from tests.examples import examples

SPECS = tuple(cls().spec() for cls in BUILTIN)
READ, LIST = ToolCall("read_file", {"path": "a.py"}), ToolCall("todoread", {})
ALONE = [
    '{"function": "NAME"}', '[{"name": "NAME"}]', '{"command": "NAME", "args": {"path": "a.py"}}',
    '{"method": "NAME", "params": {"path": "a.py"}}', '{"thoughts": {"text": "x"}, "command": {"name": "NAME"}}',
    '{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "NAME", "arguments": {"path": "a.py"}}}',
    "<NAME/>", '<tool name="NAME"><path>a.py</path></tool>', '<call tool="NAME" path="a.py"/>',
    '<tool_use><name>NAME</name><arguments>{"path": "a.py"}</arguments></tool_use>',
    '<execute>NAME(path="a.py")</execute>', '<tool_code>\nprint(NAME(path="a.py"))\n</tool_code>',
    'NAME\n{"path": "a.py"}', 'NAME{"path": "a.py"}', '#NAME {"path": "a.py"}', 'functions.NAME:0{"path": "a.py"}',
    'Tool: NAME\nArguments: {"path": "a.py"}', '工具：NAME\n参数：{"path": "a.py"}', "行动: NAME",
    '✿FUNCTION✿: NAME\n✿ARGS✿: {"path": "a.py"}', "Action: NAME\nAction Input: a.py", "Action: NAME\nAction Input:",
    'Thought: so\nTool: NAME\nInput: {"path": "a.py"}', 'const text = await NAME({path: "a.py"});',
]  # fmt: skip
FENCED = [
    "```python\nNAME()\n```", '```js\nNAME({"path": "a.py"})\n```', '```ts\nconst a = await NAME({path: "a.py"});\n```',
    "```xml\n<NAME>\n<path>a.py</path>\n</NAME>\n```", "```yaml\nname: NAME\narguments:\n  path: a.py\n```",
    '```toml\nname = "NAME"\n[arguments]\npath = "a.py"\n```', '~~~python\nNAME(path="a.py")\n~~~',
    '```jsonc\n{"name": "NAME", "arguments": {"path": "a.py"}} // go\n```',
]  # fmt: skip


@pytest.mark.parametrize("tool", ["read_file", "todoread"])
@pytest.mark.parametrize("form", ALONE)
def test_a_reply_that_is_nothing_but_a_call_is_no_answer(form: str, tool: str) -> None:
    found = extract(form.replace("NAME", tool), SPECS)
    assert found.calls == () and found.problem and not found.unclear


@pytest.mark.parametrize("before", ["", "I look at it.\n\n"])
@pytest.mark.parametrize("form", FENCED)
def test_code_that_calls_a_tool_is_asked_about(form: str, before: str) -> None:
    found = extract(before + form.replace("NAME", "read_file"), SPECS)
    assert found.calls == () and found.unclear and "read_file" in found.problem


@pytest.mark.parametrize("form", [
    '```json\n{"name": "nothing", "arguments": {"x": 1}}\n```', '```json\n{"tool": "nothing", "args": {}}\n```',
    "Action: read_everything", 'Tool: read_everything\nInput: {"path": "a.py"}', "动作：read_everything",
])  # fmt: skip
def test_an_unknown_tool_is_no_answer(form: str) -> None:
    found = extract(form, SPECS)
    assert found.calls == () and found.problem


@pytest.mark.parametrize("form", [
    '{"function": {"name": "NAME"}}', '{"type": "function", "function": {"name": "NAME"}}',
    '{"tool_calls": [{"name": "NAME"}]}', '{"name": "NAME", "arguments": null}', '<invoke name="NAME"/>',
    '<tool_call>{"name": "NAME"}</tool_call>', '[TOOL_CALLS][{"name": "NAME"}]', '<tool_call>["x"]',
])  # fmt: skip
def test_a_name_is_enough_where_something_says_that_it_is_a_call(form: str) -> None:
    found = extract(form.replace("NAME", "todoread"), SPECS)
    assert list(found.calls) == ([LIST] if "NAME" in form else []) and bool(found.problem) is not bool(found.calls)
    if "NAME" in form:
        assert "needs 'path'" in extract(form.replace("NAME", "read_file"), SPECS).problem


@pytest.mark.parametrize("text", [
    '动作：read_file\n动作输入：{"path": "a.py"}', '**Action:** read_file\n**Action Input:** {"path": "a.py"}',
    'Action: `read_file`\nAction Input: {"path": "a.py"}', 'Action：read_file\nAction Input：{"path": "a.py"}',
    'Action: read_file\nInput: {"path": "a.py"}',
])  # fmt: skip
def test_an_action_is_read_in_other_writing(text: str) -> None:
    assert list(extract(text, SPECS).calls) == [READ]


@pytest.mark.parametrize("text", [
    "read_file reads a file.", "Tool: a hammer\nUse: it", "The tools:\n- read_file: reads\n- grep: searches",
    '{"name": "read_file", "description": "Reads a file."}', '{"name": "demo", "version": "1.0"}',
    "```python\nwith open('a') as f:\n    print(f)\n```", "```bash\ngrep -rn x .\n```", "```python\ntotal(1)\n```",
    '```json\n{"name": "demo", "version": "1"}\n```', "Use `read_file` for it.", "<p>read_file</p>",
    "```python\nread_file(path)\n```\nThat is how.", "Best function: total", "Action: none", "Note: read the file",
])  # fmt: skip
def test_an_answer_stays_one(text: str) -> None:
    found = extract(text, SPECS)
    assert (found.calls, found.problem, found.text) == ((), "", text)


@settings(max_examples=examples(100), deadline=None)
@given(st.sampled_from(ALONE + FENCED), st.sampled_from(["grep", "list_dir", "write_file"]), st.data())
def test_nothing_of_it_ever_runs(form: str, tool: str, data: st.DataObject) -> None:
    text = form.replace("NAME", tool)
    cut = data.draw(st.integers(0, len(text)))
    assert extract(text[:cut], SPECS).calls == ()


def test_long_replies_take_no_time() -> None:
    began = time.process_time()
    for line in ("Tool: read_file\nx\n", "a: b\n", "<read_file>\n", "await await ", "<a b=1 "):
        extract(line * 2000, SPECS[:3])
    assert time.process_time() - began < 3
