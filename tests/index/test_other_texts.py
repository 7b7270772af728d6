"""A whole text that is none of the file is refused, whichever door it comes by; one that only looks so is taken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codeagent_lsp.direct.answer import Files, read_answer
from codeagent_lsp.direct.completeness import lost_use
from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index.other_texts import refuse_other
from codeagent_lsp.index.placeholders import refuse_left_out
from tests.tools.fakes import Bench

CODE = "def f(a):\n    return a + 41\n\n\ndef g(a):\n    return a + 1\n"
DIFF = "--- a/a.py\n+++ b/a.py\n@@ -2 +2 @@\n-    return a + 41\n+    return a + 42\n"
NO_CODE = (
    "I have updated the file.",
    "I have updated the file.\n\nThe function now returns the right number.\n",
    "The file was changed as you asked",
    "我已经更新了这个文件，函数现在返回正确的值。",
    DIFF,
    f"diff --git a/a.py b/a.py\n{DIFF}",
    f"Index: a.py\n=====\n{DIFF}",
    DIFF.partition("\n@@")[2].join(("@@", "")),
    "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch\n",
    "undefined",
    "null\n",
    "None",
    "[object Object]",
    f"cat > a.py <<'EOF'\n{CODE}EOF\n",
    f"cd src && cat <<EOF > a.py\n{CODE}EOF\n",
    json.dumps({"path": "a.py", "content": CODE}),
    json.dumps({"name": "write_file", "arguments": {"path": "a.py", "content": CODE}}, indent=1),
)
RIGHT = (
    ("a.py", CODE, CODE.replace("41", "42")),
    ("a.py", CODE, "from a import b\nfrom c import d\n"),
    ("a.py", CODE, '"""It says what it is for, in several words."""\n'),
    ("a.py", "", "raise NotImplementedError\n"),
    ("a.py", "", "# It will have the rules of taxes.\n"),
    ("a.json", "3\n", "null\n"),
    ("a.json", '{"a": 1}', '{"content": "x", "path": "a"}'),
    ("a.yaml", "x\n", "null\n"),
    ("a.diff", "x\n", DIFF),
    ("a.patch", "", DIFF),
    ("a.txt", "", "undefined"),
    ("a.md", "# T\n\nwords of it\n", "# T\n\nI have updated the file.\n"),
    ("a.md", "# T\n", f"# T\n\n```diff\n{DIFF}```\n"),
    ("a.yaml", "a: 1\n", "---\na: 2\n"),
    ("a.lua", "return 1\n", "--- It adds.\nreturn 2\n"),
    ("a.sql", "SELECT a FROM b\n", "SELECT name FROM users\n"),
    ("a.sql", "", "SELECT name FROM users;\n"),
    ("a.sh", "ls\n", "cat > a <<EOF\nx\nEOF\n"),
    ("a.sh", "", "echo all the files\n"),
    ("a.rb", "", "puts all the files\n"),
    ("a.js", "", "use strict;\n"),
    ("words.txt", "one word\ntwo words\n", "three words more\n"),
    ("LICENSE", "Old words of a licence.\n", "New words of a licence.\n"),
    ("a.csv", "a,b\n", "some words here\n"),
    ("a.sql", "INSERT INTO logs (id) VALUES (1);\n", "SELECT name\nFROM users\nWHERE active\nORDER BY name;\n"),
    ("build.sh", "curl -s http://a.example\n", "npm ci\nnpm run build\nnpm publish\n"),
    ("tags.yml", "[]\n", "- Buy some milk\n- Walk the dog\n"),
    ("names.yaml", "{}\n", "first: Anna Smith\nsecond: Bo Lee\n"),
    ("data.yml", "a: 1\nb: 2\n", "title: Hello World\ntext: Some words\n"),
    ("answer.json", "[]\n", "null\n"),
    ("tests/expected.out", "a\n", DIFF),
    (".profile", "", "cat <<'EOF'\nwelcome\nEOF\n"),
    ("a.py", "b\n", "by the agent\n"),
)


@pytest.mark.parametrize("content", NO_CODE)
async def test_no_tool_writes_what_is_no_code(tmp_path: Path, content: str) -> None:
    bench = Bench(tmp_path)
    bench.write("a.py", CODE)
    added = "".join(f"+{line}\n" for line in content.split("\n"))
    calls = [
        await bench.call("write_file", path="a.py", content=content),
        await bench.call("write_file", path="new/a.py", content=content),
        await bench.call("edit_file", path="a.py", old_str=CODE, new_str=content),
        await bench.call("batch_edit", edits=[{"path": "new/a.py", "old_str": "", "new_str": content}]),
        await bench.call("apply_patch", patch=f"*** Begin Patch\n*** Add File: x/a.py\n{added}*** End Patch\n"),
    ]
    assert [each.ok for each in calls] == [False] * len(calls), [each.text for each in calls]
    assert not bench.changeset


@pytest.mark.parametrize("content", NO_CODE)
def test_no_answer_writes_what_is_no_code(content: str) -> None:
    answer = read_answer(f"a.py\n````python\n{content}\n````\n", Files({"a.py": CODE}), "whole")
    assert answer.texts in ({}, {"a.py": CODE.replace("41", "42")})


@pytest.mark.parametrize(("path", "before", "after"), RIGHT)
def test_a_text_that_only_looks_so_is_taken(path: str, before: str, after: str) -> None:
    refuse_other(path, before, after)
    refuse_other(path, after, after)


ASIDES = (  # comments that may stand for lines, and do not where other lines come
    ("a.py", "def t():\n    assert a\n    assert b\n    assert c\n", "def t():\n    # no changes\n    assert Diff()\n"),
    ("a.js", "if (a) {\n  b();\n  c();\n}\n", "x.slice(0, 9);\n// truncated\n"),
    ("a.py", "a = 1\nb = 2\nc = 3\n", "a = tuple(b)  # snip\n# and so on\n"),
)


@pytest.mark.parametrize(("path", "before", "after"), ASIDES)
def test_a_comment_beside_new_lines_stands_for_none(path: str, before: str, after: str) -> None:
    refuse_left_out(path, before, after)


@pytest.mark.parametrize(
    "path", ["a.py", "a.js", "a.go", "a.rs", "a.kt", "a.lua", "a.sql", "a.json", "a.css", "a.html"]
)
def test_words_take_the_place_of_no_code(path: str) -> None:
    for before in (CODE, "{\n  'a': 1;\n}\n"):
        with pytest.raises(EditRefused, match="words about it"):
            refuse_other(path, before, "I have updated the file and the tests pass.\n")


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["codeagent_lsp", "tests", "docs", "editors"])
def test_no_file_of_the_project_is_refused_with_a_small_change(folder: str) -> None:
    top = Path(__file__).parents[2]
    files = [
        path for path in sorted((top / folder).rglob("*")) if path.suffix in (".py", ".md", ".json", ".toml", ".js")
    ]
    taken = 0
    for path in files[::7]:
        text = path.read_text(encoding="utf-8")
        if len(text) > 40_000 or text.count("\n") < 5 or "node_modules" in path.parts:
            continue
        lines = text.splitlines(keepends=True)
        at = next((number for number, line in enumerate(lines) if number > 2 and not line.strip()), len(lines))
        for before in (text, "".join((*lines[:at], "zz 1\n", "zz 2\n", *lines[at:])), "".join(lines[: max(at, 4)])):
            refuse_other(path.name, before, text)
            refuse_left_out(path.name, before, text)
            assert not lost_use(path.name, before, text)
            taken += 1
    assert taken
