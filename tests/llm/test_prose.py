"""Nothing that is only said is ever run, and nothing that is said gets lost."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.llm.calls.streamed_calls import StreamParser
from codeagent_lsp.llm.calls.text_calls import DIALECTS, render
from codeagent_lsp.llm.calls.toolcalls import extract
from codeagent_lsp.messages import ToolCall, ToolSpec
from tests.examples import examples
from tests.llm.prose import CODE, DATA, PROSE, SPEECH
from tests.llm.support import chunked, tool

TOOLS: tuple[ToolSpec, ...] = (
    tool("read_file", ("path",), path="string", offset="integer"),
    tool("write_file", ("path", "content"), path="string", content="string"),
    tool("list_dir", path="string"),
)
CALL = ToolCall("write_file", {"path": "a.py", "content": 'x = {"a": [1]}\n# `b` <c>\n'})


def told(text: str, seed: int) -> tuple[StreamParser, str]:
    """The parser after the text came in pieces, and all that was shown until the end."""
    parser = StreamParser(TOOLS)
    shown = ""
    for piece in chunked(text, seed):
        parser.feed(piece)
        shown += parser.visible()
    return parser, shown


def test_there_is_enough_prose() -> None:
    assert len(set(PROSE)) == len(PROSE) >= 60


@pytest.mark.parametrize("text", PROSE)
def test_prose_holds_no_call(text: str) -> None:
    found = extract(text, TOOLS)
    assert found.calls == ()
    assert found.unclear or found.problem == ""
    assert found.text == text


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_shown_whole_and_holds_no_call_while_it_arrives(text: str) -> None:
    for seed in range(4):
        parser, shown = told(text, seed)
        assert parser.close() == []
        assert text.startswith(shown)
        assert shown + parser.rest() == text


@pytest.mark.parametrize("text", [*DATA, *CODE])
def test_a_block_that_is_explained_is_no_call(text: str) -> None:
    for around in (f"Here it is:\n\n{text}\n\nThat is all.", f"{text}\n\nIt does what you asked for."):
        assert extract(around, TOOLS).calls == ()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_in_a_fence_with_an_explanation_is_an_example(dialect: str) -> None:
    example = f"This is how it looks:\n\n````\n{render(CALL, dialect)}\n````\n\nDo you want me to run it?"
    found = extract(example, TOOLS)
    assert (found.calls, found.text) == ((), example)
    assert found.unclear or found.problem == ""
    parser, shown = told(example, 5)
    assert shown + parser.rest() == example


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name not in ("json", "name_json", "openai", "list")])
def test_thinking_about_a_call_is_no_call(dialect: str) -> None:
    found = extract(f"<think>\nPerhaps {render(CALL, dialect)}?\n</think>\nNo, it is fine as it is.", TOOLS)
    assert found.calls == ()
    assert "fine as it is" in found.text and "write_file" not in found.text


def test_pairs_of_prose_hold_no_call() -> None:
    dice = random.Random(1)
    pairs = list(itertools.product(PROSE, SPEECH[2:]))
    for first, second in dice.sample(pairs, 300):
        text = f"{first}\n\n{second}"
        assert extract(text, TOOLS).calls == (), text


FOLLOWED = [name for name in DIALECTS if name not in ("json", "name_json", "openai", "list", "pythonic")]


@pytest.mark.parametrize("dialect", FOLLOWED)
@pytest.mark.parametrize("before", ["Let me see.\n\n", f"{CODE[0]}\n\nNow I write it.\n", "Use `<tool_call>` so:\n"])
def test_prose_before_a_call_is_shown_and_the_call_never(dialect: str, before: str) -> None:
    for seed in range(6):
        parser, shown = told(before + render(CALL, dialect), seed)
        assert [(call.name, call.arguments) for call in parser.close()] == [(CALL.name, CALL.arguments)]
        assert before.startswith(shown)
        assert (shown + parser.rest()).strip() == parser.result().text == before.strip()


WHOLE = [render(CALL, dialect) for dialect in DIALECTS]
JUNK = ["", " ", "\n", '"', "\\", "{", "}", "[", "]", "<", ">", "`", "```", "\x00", "\ud800", "é", "</tool_call>"]


@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from(WHOLE), st.data())
def test_damaged_calls_raise_nothing_and_run_only_known_tools(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 5))
        text = text[:at] + data.draw(st.sampled_from(JUNK)) + text[at + length :]
    found = extract(text, TOOLS)
    assert all(call.name in {tool["name"] for tool in TOOLS} for call in found.calls)
    parser, _ = told(text, data.draw(st.integers(0, 99)))
    assert parser.close() == list(found.calls)


@settings(max_examples=examples(200), deadline=None)
@given(st.text(max_size=200), st.sampled_from(WHOLE))
def test_any_text_before_a_call_raises_nothing(noise: str, call: str) -> None:
    parser, _ = told(noise + call, 1)
    assert parser.result() == extract(noise + call, TOOLS) or parser.result().calls


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_that_breaks_off_anywhere_raises_nothing(dialect: str) -> None:
    text = render(CALL, dialect)
    for end in range(len(text)):
        for call in extract(text[:end], TOOLS).calls:
            assert call.name in ("write_file", "list_dir", "read_file")
