"""Calls as models write them that were taught to think aloud: `Action: NAME[{…}]`, `Action: name(key="value")`."""

from __future__ import annotations

import time
from typing import Any

import pytest

from codeagent_lsp.llm.calls.streamed_calls import StreamParser
from codeagent_lsp.llm.calls.toolcalls import extract
from codeagent_lsp.messages import ToolCall
from codeagent_lsp.tools.catalogue import BUILTIN

SPECS = tuple(cls().spec() for cls in BUILTIN)
READ = ToolCall("read_file", {"path": "a.py"})
CALL = 'Action: read_file[{"path": "a.py"}]'


@pytest.mark.parametrize(("text", "calls", "rest"), [
    (CALL, [READ], ""),
    (f"Thought: I look first.\n{CALL}", [READ], "Thought: I look first."),
    (f"{CALL}\nObservation: 1|made up\nThought: fine\nThe file is empty.", [READ], ""),
    (f"{CALL}\nThought: and then?", [READ], "Thought: and then?"),
    ('Action: file_read[{"file_path": "a.py"}]', [READ], ""),
    ("Action 1: todoread[]", [ToolCall("todoread", {})], ""),
    ("Thought: first the list\nAction: todoread", [ToolCall("todoread", {})], "Thought: first the list"),
    ('Action: read_file\nAction Input: {"path": "a.py"}', [READ], ""),
    ('Thought: so\nAction 1: read_file\nAction Input 1: {"path": "a.py"}\nObservation: x', [READ], "Thought: so"),
    ('Thought: so\nAction: read_file(path="a.py")', [READ], "Thought: so"),
    ('Action: read_file("a.py")\n', [READ], ""),
    ('Action: grep(pattern="f(x)\\n",\n  path="src")', [ToolCall("grep", {"pattern": "f(x)\n", "path": "src"})], ""),
    (f'Action: list_dir(path=".")\n{CALL}', [ToolCall("list_dir", {"path": "."}), READ], ""),
])  # fmt: skip
def test_an_action_is_a_call(text: str, calls: list[ToolCall], rest: str) -> None:
    found = extract(text, SPECS)
    assert (list(found.calls), found.text, found.problem) == (calls, rest, "")
    assert streamed(text) == (calls, rest)


@pytest.mark.parametrize("text", [
    f"You can write {CALL}",
    f"```\n{CALL}\n```",
    f"    `{CALL}`",
    "Action: read_file(s) is what comes next",
    "Action: read_file[0] and others",
    "Action: read the file (a.py)",
    "Action: Renamed (as you asked)",
    "Action: none",
    'Action: read_file[{"path": ]\nThat would read it.',
    'Transaction: read_file[{"path": "a.py"}]',
    "Action: edit(all of it)",
])  # fmt: skip
def test_prose_is_none(text: str) -> None:
    found = extract(text, SPECS)
    assert (found.calls, found.text, found.problem) == ((), text, "")
    assert streamed(text)[0] == []


def test_a_call_with_words_behind_it_may_be_an_example() -> None:
    found = extract(f"{CALL}\nThat would read the file.", SPECS)
    assert (found.calls, found.unusable, found.unclear) == ((), (READ,), True)


@pytest.mark.slow
def test_thousands_that_cannot_be_read_take_no_time() -> None:
    for line in ("Action: read_file(x y)\n", "Action: read_file[{\n", "Action: nothing(x y)\n"):
        began = time.process_time()
        assert extract(line * 2000, SPECS).calls == ()
        assert time.process_time() - began < 5, line


@pytest.mark.parametrize("text", [
    'Action: nothing[{"path": "a.py"}]',
    'Action: nothing(path="a.py")',
    'Thought: so\nAction: nothing\nAction Input: {"path": "a.py"}',
])  # fmt: skip
def test_an_unknown_tool_is_told(text: str) -> None:
    found = extract(text, SPECS)
    assert found.calls == () and "no tool 'nothing'" in found.problem and "path" not in found.text


@pytest.mark.parametrize("text", [
    'Action: read_file[{"path": "a.py"',
    'Action: read_file[{"path": "a.py"}, {"path": "b.py"}]',
    'Action: read_file[{"path": ]',
    'Action: read_file(path=,)',
    'Action: read_file[{"path": ]\nObservation: made up',
    'Words.\n{"tool": "read_file", "args": {"path": "a.py"',
    'Words.\n{"name": "read_file", "arguments": {"path": ',
    '{"tool": "read_file", "args": {"nope": 1}}',
    "<tool_call>\nread file a.py please\n</tool_call>",
    '<tool_call>\n{"name": "read_file", "arguments": ',
    '{"tool": "edit_file"}',
])  # fmt: skip
@pytest.mark.parametrize("said", ["", "I look.\n"])
def test_a_call_that_cannot_be_read_is_told_to_the_model_and_not_shown(text: str, said: str) -> None:
    said += "Words." if text.startswith("Words.") else ""
    text = text.removeprefix("Words.")
    found = extract(said + text, SPECS)
    assert (found.calls, found.text) == ((), said.strip()) and found.problem and found.unusable
    for size in (1, 4, 1000):
        parser, shown = StreamParser(SPECS), ""
        for piece in pieces(said + text, size):
            parser.feed(piece)
            shown += parser.visible()
        assert (shown + parser.rest()).strip() == said.strip(), size


def test_wrong_arguments_are_told() -> None:
    assert "needs 'path'" in extract("Action: read_file", SPECS).problem
    found = extract('Action: read_file[{"pth": "a.py"}]', SPECS)
    assert found.calls == () and "needs 'path'" in found.problem


def test_text_is_shown_as_it_comes_and_no_piece_of_a_call() -> None:
    for size in (1, 2, 3, 5, 8, 13, 200):
        parser, shown = StreamParser(SPECS), ""
        for piece in pieces(f"Actions follow.\nAct now.\nAction:\n{CALL}", size):
            parser.feed(piece)
            shown += parser.visible()
        assert "read_file" not in shown and shown.startswith("Actions follow.\nAct now.\n"), size


def streamed(text: str) -> tuple[list[ToolCall], Any]:
    parser = StreamParser(SPECS)
    for piece in pieces(text, 3):
        parser.feed(piece)
    return parser.close(), parser.result().text


def pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
