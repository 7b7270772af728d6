"""The child that matches lines, in this process and as a process of its own."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys

import pytest

from codeagent_lsp.workspace.files import search_child
from codeagent_lsp.workspace.text.lines import content_of, split_lines

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


def test_one_answer_a_request() -> None:
    requests = [["x", int(re.IGNORECASE), 5], ["X\ny", ""], ["no"]]
    source = io.StringIO("".join(json.dumps(request) + "\n" for request in requests))
    sink = io.StringIO()
    search_child.main(source, sink)
    assert [json.loads(line) for line in sink.getvalue().splitlines()] == [[[[0, 0]], []], [[]]]


def test_as_a_script_with_any_text() -> None:
    requests = json.dumps(["é|\udce9", 0, 5]) + "\n" + json.dumps(["é\n\udce9🎉\n"]) + "\n"
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
