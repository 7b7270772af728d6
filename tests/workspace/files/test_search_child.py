"""The child that matches lines, in this process and as a process of its own."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys

import pytest

from codeagent_lsp.workspace.files import search_child
from codeagent_lsp.workspace.text.position import content_of, split_lines

LINES = {
    "": [],
    "a": ["a"],
    "a\n": ["a"],
    "a\r\nb\rc\n\n": ["a", "b", "c", ""],
    "\n": [""],
    "a\x0cb\u2028c\x85d\n": ["a\x0cb\u2028c\x85d"],
    "\r\n\r": ["", ""],
}


@pytest.mark.parametrize(("text", "lines"), LINES.items())
def test_lines_are_those_of_the_editor(text: str, lines: list[str]) -> None:
    assert search_child.lines_of(text) == lines
    assert [content_of(line) for line in split_lines(text)] == lines


def test_find_gives_line_and_column_up_to_the_limit() -> None:
    assert search_child.find(re.compile("b"), "ab\nc\nb\nbb", 9) == [(0, 1), (2, 0), (3, 0)]
    assert search_child.find(re.compile("b"), "ab\nc\nb\nbb", 2) == [(0, 1), (2, 0)]


@pytest.mark.parametrize(("pattern", "text", "found"), [
    ("a.*c", "x\na\nb\nc\n", [(1, 0), (2, 0), (3, 0)]),
    ("b\\n", "ab\r\nc\rb\n", [(0, 1), (2, 0)]),
    ("^c$", "ab\nc", [(1, 0)]),
    ("", "", []),
    ("\\n", "a\n\n", [(0, 1), (1, 0)]),
])  # fmt: skip
def test_a_match_that_spans_lines_is_all_of_them(pattern: str, text: str, found: list[tuple[int, int]]) -> None:
    compiled = re.compile(pattern, re.MULTILINE | re.DOTALL)
    assert search_child.find_spanning(compiled, text, 9) == found
    assert search_child.find_spanning(compiled, text, 1) == found[:1]


def test_one_answer_a_request() -> None:
    requests = [["x", int(re.IGNORECASE), 5, False], ["X\ny", ""], ["no"]]
    source = io.StringIO("".join(json.dumps(request) + "\n" for request in requests))
    sink = io.StringIO()
    search_child.main(source, sink)
    assert [json.loads(line) for line in sink.getvalue().splitlines()] == [[[[0, 0]], []], [[]]]


def test_as_a_script_with_any_text() -> None:
    requests = json.dumps(["é|\udce9", 0, 5, False]) + "\n" + json.dumps(["é\n\udce9🎉\n"]) + "\n"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "utf8", search_child.__file__],
        input=requests,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert json.loads(done.stdout) == [[[0, 0], [1, 0]]]
    assert done.stderr == ""
