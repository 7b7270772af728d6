"""Values that hold the tags of the dialect they are written in: read whole, or refused, never cut."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from codeagent_lsp.llm.calls.toolcalls import extract
from tests.llm.support import tool

WRITE = tool("write_file", ("path", "content"), path="string", content="string", mode="string")

PIECES = (
    '<parameter name="a">1</parameter>',
    "<parameter=path>b.py</parameter>",
    "<parameter=other>\n2\n</parameter>",
    '<foo><parameter name="a">1</parameter></foo>',
    "</parameter>",
    "</function>",
    "</invoke>",
    "</tool_call>",
    "</arg_value>",
    "<arg_key>content</arg_key>\n<arg_value>x</arg_value>",
    "<function=write_file>\n<parameter=path>\nx\n</parameter>\n</function>",
    '<parameter name="empty"/>',
    "<parameter=mode>",
    "<parameter=mode>\nw",
    "<parameter=other>",
    '<parameter name="mode">',
    "see <parameter=x> there",
    "<parameter=k=v",
    "<parameter>",
    "<function=write_file>",
    '<invoke name="write_file">',
    "<function_calls>",
    "<tool_call>",
    "<arg_value>",
    "<arg_key>mode</arg_key>\n<arg_value>",
    "<plain>text</plain>",
    "\n",
    "line\n",
)
FRAMES = {
    "qwen": lambda path, content: (
        f"<tool_call>\n<function=write_file>\n<parameter=path>\n{path}\n</parameter>\n"
        f"<parameter=content>\n{content}\n</parameter>\n</function>\n</tool_call>"
    ),
    "qwen, the content first": lambda path, content: (
        f"<tool_call>\n<function=write_file>\n<parameter=content>\n{content}\n</parameter>\n"
        f"<parameter=path>\n{path}\n</parameter>\n</function>\n</tool_call>"
    ),
    "invoke": lambda path, content: (
        f'<function_calls>\n<invoke name="write_file">\n<parameter name="path">{path}</parameter>\n'
        f'<parameter name="content">{content}</parameter>\n</invoke>\n</function_calls>'
    ),
    "glm": lambda path, content: (
        f"<tool_call>write_file\n<arg_key>path</arg_key>\n<arg_value>{path}</arg_value>\n"
        f"<arg_key>content</arg_key>\n<arg_value>{content}</arg_value>\n</tool_call>"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
def test_a_value_is_whole_or_the_call_is_refused(frame: Callable[[str, str], str]) -> None:
    chance, read = random.Random(7), 0
    singles = [[piece] for piece in PIECES]
    several = [chance.choices(PIECES, k=chance.randrange(2, 6)) for _ in range(2000)]
    for pieces in itertools.chain(singles, itertools.product(PIECES, repeat=2), several):
        content = "begin\n" + "".join(pieces) + "\nend"
        found = extract(frame("c.xml", content), [WRITE])
        if found.calls:
            assert found.calls[0].arguments == {"path": "c.xml", "content": content}, content
            assert len(found.calls) == 1
            read += 1
        else:
            assert found.problem, content
    assert read > 2000


@pytest.mark.parametrize("dialect", ["qwen", "invoke", "glm"])
def test_well_formed_values_are_read(dialect: str) -> None:
    content = '<set>\n  <parameter name="a">1</parameter>\n  <parameter name="b">\n2\n</parameter>\n</set>\n'
    assert [each.arguments for each in extract(FRAMES[dialect]("c.xml", content.strip()), [WRITE]).calls] == [
        {"path": "c.xml", "content": content.strip()}
    ]


def test_text_left_over_behind_a_value_refuses_the_call() -> None:
    text = (
        "<tool_call>\n<function=write_file>\n<parameter=path>\na.py\n</parameter>\n<parameter=content>\nx = 1\n"
        "</parameter>\ny = 2\n</function>\n</tool_call>"
    )
    found = extract(text, [WRITE])
    assert not found.calls and found.problem
