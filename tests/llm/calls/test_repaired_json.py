"""JSON that is broken between its strings is repaired, or refused; what its strings say stays as it is."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from codeagent_lsp.llm.calls.jsontext import loads_object
from codeagent_lsp.llm.calls.toolcalls import extract
from tests.llm.support import tool

WRITE = tool("write_file", ("path", "content"), path="string", content="string", mode="string")
PIECES = (
    *("x = 1", "\n", "\n\n", "  ", "\t", "\r\n", "\x0b", "\x1b[0m", "\u2028", "é", "中", "“q”", "‘", "😀", "<b>", "%s"),
    *(" // c", "# c", "/* c */", "http://a", "\\", "\\n", "\\u0041", '"', "'", "it's", "{", "}", "[", ",", ":", ",}"),
    *('"a": 1', "true", "null", "```", "```json\n{}\n```", 'a\\"b', '",\n"b": "', "True", "...", "]}"),
)  # fmt: skip


def broken(whole: str) -> Iterator[str]:
    """The object, broken as models break it."""
    yield from (f"{whole[:-1]},}}", whole[:-1], f"{whole},", f"{whole[:-1]}, ...}}")
    yield from (f"{{{remark}{whole[1:]}" for remark in ("// the file\n", " /* the file */ ", " # the file's text\n"))
    yield whole.replace('"path"', "path", 1)
    yield whole.replace('"path"', "'path'", 1)
    yield whole.replace('"path"', "“path”", 1)
    yield whole.replace('"a.py"', "a.py", 1)
    yield whole.replace('"a.py", ', '"a.py"\n ', 1)
    yield whole[:-1] + ', "done": True}'


def values(chance: random.Random) -> dict[str, Any]:
    given = {"path": "a.py", "content": "".join(chance.choices(PIECES, k=chance.randrange(5)))}
    return given if chance.random() < 0.5 else {**given, "mode": "".join(chance.choices(PIECES, k=2))}


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, pytest.param(100, marks=pytest.mark.slow)])
def test_what_the_strings_say_is_kept(first: int) -> None:
    read = 0
    for seed in range(first, first + (40 if not first else 1500)):
        chance = random.Random(seed)
        given = values(chance)
        for source in (*broken(json.dumps(given, ensure_ascii=chance.random() < 0.5)), repr(given)):
            nested = f'{{"name": "write_file", "arguments": {source}}}'
            found, inner = loads_object(source, repair=True), loads_object(nested, repair=True)
            for each in (found, inner and inner["arguments"]):
                if each is not None:
                    assert {**each, "done": 0} == {**given, "done": 0}, source
                    read += 1
    assert read > 900


@pytest.mark.parametrize("content", ["x = 1\n", "a\\\\b\n\n", '"\\"\n', "  y\n  ", "it's\n"])
def test_a_call_in_broken_json_writes_what_it_says(content: str) -> None:
    for source in broken(json.dumps({"path": "a.py", "content": content})):
        for text in (
            f'{{"tool": "write_file", "args": {source}}}',
            f'```json\n{{"name": "write_file", "arguments": {source}}}\n```',
            f'<tool_call>\n{{"name": "write_file", "arguments": {source}}}\n</tool_call>',
            f"<function=write_file>{source}</function>",
        ):
            for call in extract(text, [WRITE]).calls:
                assert (call.arguments["path"], call.arguments["content"]) == ("a.py", content), text


TEXTS = ("x = 1\n", "<p>1</p>\n<b>2</b>\n", '<a c="d">\n', "  y\n\n", "it's {1}\r\n", "\tz\n", "a, b: [c]\n", "")


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("content", TEXTS)
def test_a_text_between_backticks_is_that_text(content: str, last: bool) -> None:
    pairs = ['"path": "a.py"', f'"content": `{content}`']
    source = ", ".join(pairs if last else pairs[::-1])
    found = extract(f'{{"name": "write_file", "arguments": {{{source}}}}}', (WRITE,))
    assert [dict(call.arguments) for call in found.calls] == [{"path": "a.py", "content": content}], found.problem


@pytest.mark.parametrize("content", ["a\\n", "a\\`b", "`a` b", "a` b", "``", '"', "a`, b"])
def test_a_text_between_backticks_that_is_not_clear_is_no_call(content: str) -> None:
    found = extract(f'{{"name": "write_file", "arguments": {{"path": "a.py", "content": `{content}`}}}}', (WRITE,))
    assert found.calls == ()
    assert found.problem


@pytest.mark.parametrize("content", ["# T\n\n```sh\nls\n```\n\nend\n", "```\na\n```\n", "~~~\na\n~~~\n", "a\n"])
def test_a_text_between_three_quotes_is_no_call_and_no_answer(content: str) -> None:
    found = extract(f'{{"name": "write_file", "arguments": {{"path": "a.md", "content": """{content}"""}}}}', (WRITE,))
    assert found.calls == ()
    assert "write_file" in found.problem
