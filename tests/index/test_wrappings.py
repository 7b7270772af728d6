"""What belongs to a reply or a call around a text is never written into the file, whichever tool gives it; what only
looks like it, is a text.
"""

from __future__ import annotations

import html
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from codeagent_lsp.direct import TextForm
from codeagent_lsp.direct.answer import Files, read_answer
from codeagent_lsp.direct.material import Material, ShownFile
from codeagent_lsp.direct.question import RewriteLimits, RewriteRequest, SelectionQuestion
from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index.wrappings import refuse_wrapped
from codeagent_lsp.workspace.files.file_view import FileText
from tests.tools.fakes import Bench

CODE = {
    "a.py": "def f(a, b):\n    if a < b and a > 1:\n        return 'x\\n'\n    return {1: 2}\n",
    "a.js": "export const f = (a, b) => {\n  if (a < b && a > 1) {\n    return `x`;\n  }\n};\n",
    "a.ts": "export function f(a: Array<string>): number {\n  return a.length > 1 && a.length < 9 ? 1 : 2;\n}\n",
    "a.tsx": "export const F = () => {\n  return <div className='x'>{a && b}</div>;\n};\n",
    "a.go": "package a\n\nfunc f(a chan<- int, b *int) bool {\n\treturn a != nil && b != nil\n}\n",
    "a.rs": "fn f<'a>(a: &'a Vec<i32>) -> Option<i32> {\n    a.iter().map(|x| x + 1).max()\n}\n",
    "A.java": "class A {\n    List<String> f(int a) {\n        return a > 1 && a < 9 ? g() : h();\n    }\n}\n",
    "a.c": '#include <stdio.h>\n\nint f(char *a) {\n    printf("%d\\n", a->b > 1);\n    return a->b && 1;\n}\n',
    "a.cpp": "#include <map>\n\nint f(std::map<int, int> &a) {\n    return a->b < 1 && a.size() > 2;\n}\n",
    "a.cs": "class A\n{\n    List<int> F(int a) => a > 1 && a < 9 ? G() : H();\n}\n",
    "a.rb": "def f(a)\n  a << 1\n  g(a) if a > 1 && a < 9\nend\n",
    "a.php": "<?php\nfunction f(A $a) {\n    return $a->b > 1 && $a->c < 9;\n}\n",
    "a.sh": 'f() {\n  [ "$1" -gt 1 ] && cat < "$2" > out\n}\n',
    "a.kt": "fun f(a: List<Int>): Boolean {\n    return a.size > 1 && a.size < 9\n}\n",
    "a.swift": "func f(a: Array<Int>) -> Bool {\n    return a.count > 1 && a.count < 9\n}\n",
    "a.lua": "local function f(a)\n  return a > 1 and a < 9\nend\n",
}
MARKUP = {
    "a.html": '<div class="a">\n  <p>x</p>\n</div>\n',
    "a.xml": '<a>\n  <b c="d">x</b>\n</a>\n',
    "a.vue": "<template>\n  <p>{{ x }}</p>\n</template>\n",
}
DATA = {
    "a.json": '{\n  "a": "b",\n  "c": [1, 2]\n}\n',
    "a.yaml": "a:\n  b: c\n  d: e\n",
    "a.toml": '[a]\nb = "c"\nd = 1\n',
    "a.css": "a > b {\n  color: red;\n}\n",
    "a.sql": "SELECT a\nFROM b\nWHERE c < 1;\n",
}
TEXTS = CODE | MARKUP | DATA
FORMS: tuple[TextForm, ...] = ("whole", "function", "blocks")
FENCES = ("```", "```python", "```py title=x", "~~~", "````", "``` a.py", "  ```")
MARKS = (
    ("<<<<<<< HEAD", "=======", ">>>>>>> main"),
    ("<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"),
    ("<<<<<<< ORIGINAL", "=======", ">>>>>>> UPDATED"),
    ("------- SEARCH", "=======", "+++++++ REPLACE"),
)
ENDS = (
    "</content>",
    "</content>\n</write_to_file>",
    "</parameter>\n</invoke>",
    "</parameter>\n</function>\n</tool_call>",
    "</arg_value>\n</tool_call>",
    "</file_text>",
    "<|im_end|>",
    "<|eot_id|>",
    "<｜end▁of▁sentence｜>",
)


def wrapped(path: str, text: str) -> Iterator[str]:
    """A text as models give it by mistake."""
    for fence in FENCES:
        closing = fence.strip()[: len(fence.strip()) - len(fence.strip().lstrip("`~"))]
        yield f"{fence}\n{text}{closing}\n"
        yield f"{fence}\n{text}{closing}"
        yield f"\n{fence}\n{text}"
        yield f"{text}{closing}\n"
    yield from (f"{text}{end}\n" for end in ENDS)
    if path in CODE and text.count("\n") > 3:
        lines = list(enumerate(text.splitlines(), 1))
        for form in ("{:6d}\t{}\n", "{:6d}\u2192{}\n", "{} | {}\n", "{:4d}\u2502{}\n"):
            yield "".join(form.format(number, line) for number, line in lines)
    yield from (f"{first}\n{text}{middle}\n{text}{last}\n" for first, middle, last in MARKS)
    if path in CODE and path not in ("a.lua", "a.sh"):
        yield html.escape(text, quote=False)
        yield html.escape(text)
    if path in MARKUP:
        yield html.escape(text)
    if path in CODE and path != "a.sh":  # in one line it may be meant
        yield json.dumps(text)[1:-1]


@pytest.mark.slow
@pytest.mark.parametrize("path", TEXTS)
def test_no_wrapping_is_written(path: str) -> None:
    text = TEXTS[path]
    for before, given in itertools.product(("", text, text + text.replace("b", "y")), wrapped(path, text)):
        with pytest.raises(EditRefused):
            refuse_wrapped(path, before, given)
            pytest.fail(f"{before[:9]!r}: {given}")
        refuse_wrapped(path, given, f"{given}\n{text}")  # it was there before
    refuse_wrapped(path, "", text)
    refuse_wrapped(path, text, text.replace("b", "y"))


@pytest.mark.slow
@pytest.mark.parametrize("path", TEXTS)
async def test_no_tool_writes_a_wrapping(path: str, tmp_path: Path) -> None:
    text = TEXTS[path]
    for number, given in enumerate(wrapped(path, text)):
        bench = Bench(tmp_path / str(number))
        bench.write(path, text)
        amid = path in MARKUP and "&" in given  # there a line of escapes may be meant
        removed = "".join(f"-{line}\n" for line in text.splitlines())
        added = "".join(f"+{line}\n" for line in given.split("\n"))
        calls = [
            await bench.call("write_file", path=path, content=given),
            await bench.call("write_file", path=f"new/{path}", content=given),
            await bench.call("edit_file", path=path, old_str=text, new_str=given),
            await bench.call("batch_edit", edits=[{"path": path, "old_str": text, "new_str": given}]),
            *([] if "?php" in given or amid else [await bench.call("insert_text", path=path, text=given)]),
            await bench.call("apply_patch", patch=f"*** Begin Patch\n*** Add File: x/{path}\n{added}*** End Patch\n"),
            await bench.call(
                "apply_patch", patch=f"*** Begin Patch\n*** Update File: {path}\n@@\n{removed}{added}*** End Patch\n"
            ),
        ]
        assert [each.status for each in calls] == ["failed"] * len(calls), (given, [each.text for each in calls])
        assert not bench.changeset


@pytest.mark.parametrize("path", [path for path in TEXTS if path not in ("a.lua", "a.sh", *DATA)])
def test_no_answer_writes_escapes(path: str) -> None:
    text = TEXTS[path]
    given = html.escape(text, quote=False)
    for form in FORMS:
        answer = read_answer(f"{path}\n````\n{given}````\n", Files({path: text}), form)
        assert not answer.texts and answer.problem, answer
    question = SelectionQuestion(RewriteRequest(path, text, 0, len(text), "better"), "", RewriteLimits())
    material = Material((ShownFile(path, FileText(path, text, "disk")),))
    answer = question.read(f"```\n{given}```", material, "whole")
    assert not answer.texts and answer.problem, answer


PLACES = {
    "a number in a style": ("a.css", ".a {\n  color: red;\n}\n", ".a {\n2|  color: blue;\n}\n"),
    "a number in a list": ("a.yaml", "a: 1\nb: 2\n", "a: 1\n2|b: 3\n"),
    "numbers with colons": ("a.py", "x = 1\n", "1: x = 2\n2: y = 3\n3: z = 4\n"),
    "signs": ("a.py", "a = 1\nb = 1\n", "-a = 1\n+a = 2\nb = 1\n"),
    "signs alone": ("a.toml", "a = 1\n", "+a = 2\n+b = 3\n"),
    "a tag in the line": ("a.py", "x = 1\n", "<new_str>x = 2\n</new_str>\n"),
    "a tag with a path": ("a.sql", "SELECT 1;\n", '<file path="a.sql">\nSELECT 2;\n</file>\n'),
    "the end of a tag": ("a.css", "a { top: 0; }\n", "a { top: 1; }</parameter>\n"),
    "the end of a sequence": ("a.ini", "[a]\nb = 1\n", "[a]\nb = 2\n</s>"),
    "a text of JSON": ("a.py", "def f():\n    return 1\n", '"def f():\\n    return 2\\n"'),
    "an argument of JSON": ("Dockerfile", "FROM a\nRUN b\n", '{"content": "FROM a\\nRUN c\\n"}'),
    "a fence in a Dockerfile": ("Dockerfile", "FROM a\nRUN b\n", "```dockerfile\nFROM a\nRUN c\n```\n"),
    "a fence in a list of packages": ("requirements.txt", "flask==1\n", "```\nflask==2\n```\n"),
}


@pytest.mark.parametrize(("path", "before", "after"), PLACES.values(), ids=PLACES.keys())
def test_what_stands_around_a_line_is_refused(path: str, before: str, after: str) -> None:
    with pytest.raises(EditRefused):
        refuse_wrapped(path, before, after)
    refuse_wrapped(path, after, f"{after}\n{before}")


MEANT = {
    "a table by numbers": ("a.csv", "1|a\n2|b\n3|c\n"),
    "a sum over lines": ("a.js", "x = a\n+ b\n+ c;\n"),
    "a list of keys": ("a.yaml", "1: a\n2: b\n3: c\n"),
    "negative numbers": ("a.json", "[\n-1,\n-2\n]\n"),
    "items": ("a.yaml", "- a\n- b\n"),
    "struck out": ("a.html", "<p><s>\nx\n</s></p>\n"),
    "fences of a document": ("a.md", "```py\nx\n```\n"),
    "a conflict in a document": ("a.md", "So:\n\n```\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n```\n"),
    "a fence in a docstring": ("a.py", 'def f():\n    """It.\n\n    ```\n    f()\n    ```\n    """\n'),
    "a fence in a comment": ("a.js", "/**\n * ```js\n * f()\n * ```\n */\nf();\n"),
    "a fence in a block comment": ("a.js", "/*\n```\nf()\n```\n*/\nf();\n"),
    "a conflict in a string": ("a.py", 'A = """\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n"""\n'),
    "a conflict in a template": ("a.ts", "const a = `\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n`;\n"),
    "escapes in a string": ("a.py", 'A = {"<": "&lt;", "&": "&amp;"}\n'),
    "escapes in a string alone": ("a.kt", 'val a = "&lt;b&gt;"\n'),
    "escapes in a regex": ("a.ts", "assert(/&lt;b&gt; x/.test(a));\n"),
    "escapes in a comment": ("a.java", "/** It is a &lt; b &amp;&amp; c. */\nclass A {}\n"),
    "escapes in JSX": ("a.tsx", "const A = () => <p>a &lt; b &amp; c</p>;\n"),
    "escapes in HTML": ("a.html", "<p>a &lt; b &amp; c</p>\n"),
    "an address": ("a.c", "void f(int lt) {\n    int *p = &lt;\n    g(&amp, &gt);\n}\n"),
    "a text of one line": ("a.py", "print('a\\nb\\nc')\n"),
    "a namespace": ("a.php", "<?php use A\\nb\\nc;\n"),
    "a printf": ("a.sh", "printf 'a\\nb\\n'\n"),
    "an element": ("a.xml", "<a>\n<content>\nx\n</content>\n</a>\n"),
    "a token": ("a.py", 'END = "<|im_end|>"\nOTHER = 1\n'),
    "an underline": ("a.txt", "Title\n~~~~~~~~~~~~\n\nx\n"),
    "a table": ("a.tsv", "1\ta\n2\tb\n3\tc\n"),
    "numbers in a string": ("a.py", 'A = """\n1\ta\n2\tb\n3\tc\n"""\n'),
    "data of one line": ("a.json", '{"a": "b\\nc\\nd"}\n'),
    "a list of one line": ("a.csv", "a,b\\nc\\nd,e\n"),
}


@pytest.mark.parametrize(("path", "text"), MEANT.values(), ids=MEANT.keys())
def test_what_may_be_meant_is_written(path: str, text: str) -> None:
    refuse_wrapped(path, "", text)
    refuse_wrapped(path, "x = 1\n", text)


def test_an_escape_that_was_there_before_does_not_count() -> None:
    old = "$page = 'a &lt;? b';\n"  # in the template of a page, which itself has no `<?php`
    refuse_wrapped("a.php", old, old + '$x = "a\\n\\"b";\n')
