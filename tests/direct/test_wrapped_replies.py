"""Code that comes in tags, thoughts, objects or with marks is the code in them; quotes and signs are not doubled."""

from __future__ import annotations

import json

import pytest

from codeagent_lsp.direct.fences import read_envelope
from codeagent_lsp.direct.material import Material, ShownFile
from codeagent_lsp.direct.question import RewriteLimits, RewriteRequest, SelectionQuestion
from codeagent_lsp.errors import AgentError
from codeagent_lsp.tools.files.edit_tools import EditParameters, make_edit, rewritten
from codeagent_lsp.workspace.files.file_view import FileText

# A file's ending, what is selected in it, and what it becomes.
PIECES = (
    ("kt", '    val text = "a: $b"\n    return text\n', '    val text = "b: $b"\n    return text\n'),
    ("swift", "    let text = a\n    return text\n", "    let text = b\n    return text\n"),
    ("lua", "  local text = a\n  return text\n", "  local text = b\n  return text\n"),
    ("sql", "SELECT a\nFROM b;\n", "SELECT c\nFROM b;\n"),
    ("css", "  color: red;\n  top: 1px;\n", "  color: red;\n  top: 2px;\n"),
    ("py", "    text = a\n    return text\n", "    text = b\n    return text\n"),
    ("js", "  const text = a;\n  return text;\n", "  const text = b;\n  return text;\n"),
    ("html", "  <code>a</code>\n  <b>1</b>\n", "  <code>a</code>\n  <b>2</b>\n"),
)
ALL = pytest.mark.parametrize(("ending", "old", "new"), PIECES)
WRAPPINGS = (
    *("<code>\n{}</code>\n", "<answer>\n{}</answer>\n", "<new_code>{}</new_code>", "<![CDATA[\n{}]]>\n"),
    *("<think>\nWhat is meant?\n</think>\n{}", "<reasoning>So it is.</reasoning>\n\n{}"),
    *("{}<|im_end|>\n", "{}<|cursor|>\n", "{}<|endoftext|>"),
)


def _read(ending: str, old: str, code: str) -> str | None:
    found = read_envelope(f"````{ending}\n{code.rstrip()}\n````", old, f"a.{ending}")
    return found.code.strip("\n") if found.code is not None else None


@ALL
@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_tags_thoughts_and_marks(ending: str, old: str, new: str, wrapping: str) -> None:
    assert _read(ending, old, wrapping.replace("{}", new)) == new.strip("\n")


@ALL
@pytest.mark.parametrize("beside", [{}, {"explanation": "The value."}, {"language": "any", "notes": "a"}])
def test_objects(ending: str, old: str, new: str, beside: dict[str, str]) -> None:
    assert _read(ending, old, json.dumps({"code": new, **beside})) == new.strip("\n")
    # Of one line it is told by what it holds.
    line, other = (each.splitlines()[1] if ending in ("css", "html") else each.splitlines()[0] for each in (old, new))
    assert _read(ending, line, json.dumps({"content": other, **beside})) == other
    assert _read(ending, line, json.dumps({"content": other, "size": 1})) != other


@ALL
def test_numbers_of_lines(ending: str, old: str, new: str) -> None:
    for numbered in ("L37: {}", "37: {}", "37 | {}"):
        code = "\n".join(numbered.replace("37", str(37 + at)).format(line) for at, line in enumerate(new.splitlines()))
        assert _read(ending, old, code) == new.strip("\n"), numbered


def test_code_of_the_same_form_stays() -> None:
    assert _read("js", "payload", '{"content": "hello"}') == '{"content": "hello"}'
    assert _read("html", "<p>1</p>", "<code>\n<p>2</p>\n</code>") == "<code>\n<p>2</p>\n</code>"
    assert _read("py", '1: "a",', '1: "b",') == '1: "b",'
    assert _read("py", 'x = "<|end|>"', 'y = "<|end|>"') == 'y = "<|end|>"'


SIGNS = (
    ("a.rs", 'panic!("|hello|");\n', '"good bye"', 'panic!("good bye");\n'),
    ("a.js", "say('|hello| you');\n", "'bye'", "say('bye you');\n"),
    ("a.py", "# |hello|\n", "# good bye", "# good bye\n"),
    ("a.sql", "-- |hello|\n", "-- good bye", "-- good bye\n"),
    ("a.py", "x = |hello|\n", '"bye"', 'x = "bye"\n'),
)


@pytest.mark.parametrize(("path", "marked", "code", "right"), SIGNS)
def test_quotes_and_signs_around_a_word(path: str, marked: str, code: str, right: str) -> None:
    start, end, text = marked.index("|"), marked.rindex("|") - 1, marked.replace("|", "")
    question = SelectionQuestion(RewriteRequest(path, text, start, end, "do it"), "", RewriteLimits())
    answer = question.read(f"```\n{code}\n```", Material((ShownFile(path, FileText(path, text, "disk")),)), "whole")
    assert answer.texts == {path: right}, answer


TEXT = "def f(a):\n    b = a\n    c = b\n    return c\n"
NEW = (
    "<code>\n    b = a\n    c = 2\n</code>\n",
    "     b = a\n+    c = 2\n",
    "+    b = 2\n     c = b\n",
)


@pytest.mark.parametrize("new", NEW)
def test_tools_refuse_them(new: str) -> None:
    with pytest.raises(AgentError):
        make_edit(TEXT, EditParameters(path="a.py", old_str="    b = a\n    c = b\n", new_str=new, replace_all=False))


def test_a_byte_order_mark_stays() -> None:
    assert rewritten(f"\ufeff{TEXT}", TEXT.replace("c", "d")) == f"\ufeff{TEXT.replace('c', 'd')}"
    assert rewritten(f"\ufeff{TEXT}", f"\ufeff{TEXT}") == f"\ufeff{TEXT}"
