"""A part of a file is never taken as the whole file: the rest stays, or the answer is refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.direct import TextForm
from codeagent_lsp.direct.answer import Answer, Files, read_answer
from codeagent_lsp.direct.completeness import lost_use

CALC = "def add(a, b):\n    return a + b\n"
MULTIPLY = "def multiply(a, b):\n    return a * b\n"
JEST = (
    "const { add } = require('./add');\n\n"
    "test('a', () => {\n  expect(add(1, 2)).toBe(3);\n});\n\n"
    "test('b', () => {\n  expect(add(2, 2)).toBe(4);\n});\n"
)
NEW_TEST = "test('d', () => {\n  expect(add(5, 5)).toBe(10);\n});\n"
ROUTES = (
    "const express = require('express');\nconst app = express();\n\n"
    "app.get('/a', (req, res) => {\n  res.send('a');\n});\n\napp.listen(3000);\n"
)
README = "# Tool\n\nIt does things.\n\n## Usage\n\nRun it.\n\n## License\n\nMIT\n"
USAGE = "## Usage\n\nRun it so:\n\n    tool --all\n\nOr so:\n\n    tool --some\n"


def whole(name: str, now: str, code: str) -> Answer:
    """Read an answer for the only file, asked for whole."""
    return read_answer(f"{name}\n````\n{code}````\n", Files({name: now}), "whole")


def test_a_new_function_is_not_the_old_one_renamed() -> None:
    text = whole("calc.py", CALC, MULTIPLY).texts["calc.py"]
    assert text.startswith(CALC)
    assert MULTIPLY in text


def test_the_only_function_may_be_renamed() -> None:
    renamed = CALC.replace("add", "plus")
    assert whole("calc.py", CALC, renamed).texts == {"calc.py": renamed}


def test_a_renamed_function_may_call_itself() -> None:
    now = "def walk(tree):\n    for each in tree:\n        walk(each)\n    print(tree)\n"
    renamed = now.replace("walk", "visit").replace("print", "show")
    assert whole("a.py", now, renamed).texts == {"a.py": renamed}


@pytest.mark.parametrize(
    ("now", "code"),
    [
        (JEST, NEW_TEST),
        (JEST, f"const {{ add }} = require('./add');\n\n{NEW_TEST}"),
        (ROUTES, "app.get('/b', (req, res) => {\n  res.send('b');\n});\n"),
    ],
)
def test_statements_without_definitions_are_refused_in_part(now: str, code: str) -> None:
    answer = whole("a.test.js", now, code)
    assert answer.texts == {}
    assert "Give the file whole" in answer.problem


@pytest.mark.parametrize(
    ("now", "text"),
    [
        (JEST, JEST + "\n" + NEW_TEST),
        (JEST, JEST.replace("toBe(3)", "toEqual(3)")),
        (ROUTES, ROUTES.replace("send('a')", "json('a')")),
        (ROUTES, ROUTES.replace("3000", "8080")),
    ],
)
def test_statements_without_definitions_are_taken_whole(now: str, text: str) -> None:
    assert whole("a.test.js", now, text).texts == {"a.test.js": text}


def test_a_setting_alone_is_put_in_place() -> None:
    now = "DEBUG = True\nPORT = 80\nHOST = 'a'\n"
    assert whole("settings.py", now, "DEBUG = False\n").texts == {"settings.py": now.replace("True", "False")}


def test_a_section_is_not_the_document() -> None:
    answer = whole("README.md", README, USAGE)
    assert answer.texts == {}
    assert "Give the file whole" in answer.problem


@pytest.mark.parametrize(
    ("name", "now", "text"),
    [
        ("README.md", README, README.replace("## License", f"{USAGE}\n## License")),
        ("README.md", README, "# 工具\n\n它做事。\n\n## 用法\n\n运行它。\n\n## 许可证\n\n麻省\n"),
        ("version.txt", "1.9.0\n", "2.0.0\n"),
        ("a.yaml", "version: 1\nname: a\n", "version: 2\nname: b\nkind: c\n"),
        ("requirements.txt", "requests==2.0\nrich==13\n", "requests==2.0\nflask==3\nrich==13\n"),
    ],
)
def test_whole_texts_are_taken(name: str, now: str, text: str) -> None:
    assert whole(name, now, text).texts == {name: text}


def test_a_list_is_not_replaced_by_a_line() -> None:
    assert whole("requirements.txt", "requests==2.0\nrich==13\n", "flask==3\n").texts == {}


def test_an_import_that_changes_is_still_the_head() -> None:
    now = "from a import b\n\n\ndef f():\n    return b\n"
    text = now.replace("import b", "import b, c").replace("return b", "return b + c")
    assert whole("f.py", now, text).texts == {"f.py": text}


def test_a_closing_bracket_is_no_head_that_was_kept() -> None:
    now = "export const KINDS = new Map([\n  [1, 2],\n]);\n\nregister(() => {\n});\n\nfunction f() {\n  return 1;\n}\n"
    text = whole("a.js", now, "function f() {\n  return 2;\n}\n\nrun(() => {\n});\n").texts["a.js"]
    assert "register" in text
    assert "KINDS" in text
    assert "return 2" in text


CASE = "import unittest\n\n\nclass T(unittest.TestCase):\n    def setUp(self):\n        self.a = 1\n"
FIRST = "\n    def test_a(self):\n        self.assertEqual(self.a, 1)\n"


@pytest.mark.parametrize("now", [CASE + FIRST, CASE.partition("    def")[0] + FIRST.removeprefix("\n")])
def test_a_new_method_is_not_an_old_one_renamed(now: str) -> None:
    code = now.replace("test_a", "test_b").replace("self.assertEqual(self.a, 1)", "self.assertTrue(self)")
    text = whole("t.py", now, code).texts["t.py"]
    assert "def test_a" in text
    assert "def test_b" in text


def test_a_script_of_one_line_may_change() -> None:
    assert whole("a.py", "print('hello')\n", "print('hello world')\n").texts == {"a.py": "print('hello world')\n"}
    assert whole("a.py", "from .a import A\n", "from .b import A\n").texts == {}


def test_a_statement_is_not_dropped_in_silence() -> None:
    answer = whole("a.py", "x = 1\nshow(1)\nrun(2)\nend(3)\n", "x = 2\nstart(4)\n")
    assert answer.texts == {}
    assert "Give the file whole" in answer.problem


def test_a_script_without_definitions_is_taken_whole_where_a_function_was_asked_for() -> None:
    text = "x = 2\nshow(1)\nrun(2)\nrun(3)\nend(3)\n"
    reply = f"a.py\n```python\n{text}```"
    assert read_answer(reply, Files({"a.py": text.replace("run(3)\n", "")}), "function").texts == {"a.py": text}


@pytest.mark.parametrize(
    ("path", "now", "new"),
    [
        ("VERSION", "1.2.3\n", "1.2.4\n"),
        ("VERSION", "0.9.9.dev0\n", "1.0.0\n"),
        ("VERSION", "1.2.3\nstable\n", "1.2.4\nbeta\n"),
        ("MODE", "true\n", "false\n"),
        (".nvmrc", "v18\n", "lts/hydrogen\n"),
        ("names.txt", "a\nb\n", "a\nc\nd\n"),
        ("a.txt", "hello\n", "你好\n"),
        ("CODEOWNERS", "* @ann\n/docs @bob\n", "* @cid\n/docs @dan\n"),
    ],
)
@pytest.mark.parametrize("around", ["```\n{}```", "{path}\n```\n{}```", "Here it is:\n\n```text\n{}```\n"])
def test_a_short_text_is_replaced_whole(path: str, now: str, new: str, around: str) -> None:
    answer = read_answer(around.format(new, path=path), Files({path: now}), "whole")
    assert (dict(answer.texts), answer.problem) == ({path: new}, "")


@pytest.mark.parametrize("new", ["five\n", "one\n# ... rest unchanged\n", "a\nb\nc\nd\ne\nf\ng\n"])
def test_of_a_short_text_too_nothing_is_lost(new: str) -> None:
    now = "one\ntwo\nthree\n"
    answer = read_answer(f"```\n{new}```", Files({"list.txt": now}), "whole")
    assert not answer.texts and answer.problem


@pytest.mark.parametrize(
    ("path", "now", "kept"),
    [
        (
            "a.lua",
            "function f()\n  return 1\nend\n\nfunction g()\n  return 2\nend\n",
            "function g()\n  return 3\nend\n",
        ),
        ("a.css", "a {\n  width: 1px;\n}\n\nb {\n  width: 2px;\n}\n", "b {\n  width: 3px;\n}\n"),
        (
            "a.sql",
            "CREATE TABLE a (\n  x char(1)\n);\nCREATE TABLE b (\n  y int\n);\n",
            "CREATE TABLE b (\n  y text\n);\n",
        ),
        *(
            (
                name,
                head + "".join(row.format(n) for n in range(9)) + end,
                head + "".join(row.format(n) for n in range(5)),
            )
            for name, head, row, end in (
                ("a.json", "{\n", '  "k{0}": {0},\n', '  "z": 1\n}\n'),
                ("a.yaml", "", "s{0}:\n  image: a\n  port: {0}\n", ""),
                ("a.html", "<html>\n<body>\n", "<p>{0} words</p>\n", "</body>\n</html>\n"),
                ("a.ini", "", "[s{0}]\nkey = {0}\n", ""),
                ("a.tf", "", 'resource "a" "b{0}" {{\n  x = {0}\n}}\n', ""),
            )
        ),
    ],
)
def test_a_part_of_a_file_of_any_kind_is_not_the_file(path: str, now: str, kept: str) -> None:
    found = read_answer(f"{path}\n```\n{kept}```", Files({path: now}), "whole")
    assert found.texts == {}
    assert found.problem
    whole = read_answer(f"{path}\n```\n{now.replace('1', '7')}```", Files({path: now}), "whole")
    assert whole.texts == {path: now.replace("1", "7")}


SHORT = [
    ("VERSION", "1.2.3\n", "1.2.4\n"),
    ("VERSION", "1.2.3\n", "2.0.0-rc.1\n"),
    ("VERSION", "v1\n", "1.0.0\n"),
    ("VERSION", "dev\n", "1.0.0\n"),
    ("VERSION", '"1.2.3"\n', '"1.3.0"\n'),
    ("Procfile", "web: python app.py\n", "web: gunicorn app:app\n"),
    ("Procfile", "web: python app.py\n", "web: gunicorn app:app\nworker: celery -A app worker\n"),
    ("requirements.txt", "flask==1.0\n", "flask==2.3.2\n"),
    ("requirements.txt", "flask==1.0\nrequests==2.0\n", "flask==2.3.2\nrequests==2.31.0\n"),
    ("requirements.txt", "flask==1.0\nrequests==2.0\n", "flask==1.0\n"),
    ("requirements.txt", "flask==1.0\n", "flask==1.0\nredis\n"),
    ("requirements.txt", "flask\n", "django\n"),
    ("config.json", '{"debug": true}\n', '{"debug": false}\n'),
    ("config.json", '{"port": 80}\n', '{"port": 8080, "host": "0.0.0.0"}\n'),
    ("config.json", "{}\n", '{"a": 1}\n'),
    ("config.json", "[]\n", "[1, 2]\n"),
    ("config.json", '{\n  "debug": true\n}\n', '{\n  "debug": false\n}\n'),
    ("config.json", '{\n  "debug": true,\n  "port": 80\n}\n', '{\n  "debug": false,\n  "port": 80\n}\n'),
    ("config.json", '{\n  "debug": true,\n  "port": 80\n}\n', '{\n  "debug": true\n}\n'),
    ("config.json", '{"a": 1, "b": 2}\n', '{"a": 1}\n'),
    ("config.json", '{\n  "name": "x",\n  "version": "1.0.0"\n}\n', '{\n  "name": "y",\n  "version": "2.0.0"\n}\n'),
    ("config.yaml", "debug: true\n", "debug: false\n"),
    ("config.yaml", "debug: true\nport: 80\n", "debug: false\nport: 8080\n"),
    ("config.toml", "port = 80\n", "port = 8080\n"),
    ("config.toml", "[a]\nport = 80\n", "[a]\nport = 8080\n"),
    ("config.toml", '[server]\nhost = "a"\nport = 80\n', '[server]\nhost = "b.example.com"\nport = 443\n'),
    (".env", "DEBUG=1\n", "DEBUG=0\n"),
    (".env", "DEBUG=1\nPORT=80\n", "DEBUG=0\nPORT=8080\n"),
    (".env", "MODE=development\n", "MODE=production\n"),
    ("a.sh", "echo hello\n", "echo goodbye world\n"),
    ("a.sh", "#!/bin/sh\necho hi\n", "#!/bin/sh\necho bye\n"),
    ("a.sh", "#!/bin/sh\nmake all\n", "#!/bin/bash\nset -e\nmake all\n"),
    ("a.py", "x = 1\n", "x = 2\n"),
    ("a.py", "print('hi')\n", "print('hello, world')\n"),
    ("a.py", "X = 1\nY = 2\n", "X = 10\nY = 20\n"),
    ("a.py", "import os\nprint(os.getcwd())\n", "import os\nprint(os.getcwd().upper())\n"),
    ("a.py", "from a import b\n", "from a import b, c\n"),
    ("__init__.py", '__version__ = "1.2.3"\n', '__version__ = "1.2.4"\n'),
    ("__init__.py", '__version__ = "1.2.3"\n', '__version__ = "2.0.0a1"\n__all__ = ["x"]\n'),
    ("a.js", "module.exports = 1;\n", "module.exports = 2;\n"),
    ("a.js", "console.log('a');\n", "console.log('something else');\n"),
    ("a.js", "export const A = 1;\n", "export const A = 2;\n"),
    ("a.js", "export default {};\n", "export default { a: 1 };\n"),
    ("a.html", "<p>Hello</p>\n", "<p>Goodbye</p>\n"),
    ("a.html", "<h1>A</h1>\n<p>text</p>\n", "<h1>B</h1>\n<p>other words</p>\n"),
    ("a.sql", "SELECT 1;\n", "SELECT 2;\n"),
    ("a.sql", "SELECT * FROM a;\n", "SELECT id, name FROM users WHERE id = 1;\n"),
    ("README.md", "# Title\n", "# Better title\n"),
    ("README.md", "# Title\n\nText.\n", "# Title\n\nOther text altogether.\n"),
    ("README.md", "Hello\n", "Goodbye cruel world\n"),
    ("Makefile", "all:\n\techo a\n", "all:\n\techo b\n"),
    ("Makefile", "all:\n\techo a\n", "all: build\n\techo done\n"),
    ("a.rb", "VERSION = '1.0'\n", "VERSION = '1.1'\n"),
    ("a.rb", "puts 1\n", "puts 'hello'\n"),
    ("a.php", "<?php\nreturn 1;\n", "<?php\nreturn 2;\n"),
    ("a.svg", "<svg/>\n", '<svg width="10"/>\n'),
    ("a.txt", "", "hello\n"),
    ("a.py", "", "x = 1\n"),
    ("config.json", "", '{"a": 1}\n'),
    ("a.txt", "\n", "hello\n"),
    ("a.txt", "   \n\n", "x\n"),
    ("VERSION", "1.2.3\r\n", "1.2.4\r\n"),
    ("VERSION", "1\n", "2\n"),
    ("a.txt", "---\n", "===\n"),
    ("a.txt", "你好\n", "再见，世界\n"),
    ("a.txt", "hello\n", ""),
    ("a.py", "x = 1\n", ""),
    ("config.json", '{"a": 1}\n', "{}\n"),
    ("README.md", "# Old\n", ""),
    ("a.yaml", "a: 1\nb: 2\nc: 3\nd: 4\ne: 5\n", "a: 10\nb: 2\nc: 3\nd: 4\ne: 5\n"),
    ("a.yaml", "a: 1\nb: 2\nc: 3\nd: 4\ne: 5\n", "a: one\nb: two\nc: three\nd: four\ne: five\n"),
]
PARTS = [
    ("config.json", '{\n  "a": 1,\n  "b": 2,\n  "c": 3\n}\n', '"b": 5\n'),
    ("config.json", '{\n  "a": 1,\n  "b": 2,\n  "c": 3,\n  "d": 4\n}\n', '{\n  "b": 5\n}\n'),
    ("config.json", '{"a": 1, "b": 2, "c": 3}\n', '{"b": 5}\n'),
    ("config.json", '{"a": 1, "b": 2, "c": 3}\n', '{..., "b": 5}\n'),
    ("VERSION", "1.2.3\n", "...\n"),
    ("VERSION", "1.2.3\n", "# new version here\n"),
    ("VERSION", "1.2.3\n", "<new version>\n"),
    ("VERSION", "1.2.3\n", "# unchanged\n"),
    ("VERSION", "1.2.3\n", "(content of the file)\n"),
    ("NOTES.txt", "one\ntwo\nthree\nfour\nfive\n", "three and more\n"),
    ("NOTES.txt", "one\ntwo\nthree\n", "two\n"),
    ("README.md", "# Title\n\nIntro.\n\n## Use\n\nText.\n", "## Use\n\nOther text.\n"),
    ("requirements.txt", "flask==1.0\nrequests==2.0\nredis==3\nnumpy==1\n", "redis==4\n"),
    (".env", "DEBUG=1\nPORT=80\nHOST=a\nNAME=b\n", "PORT=81\n"),
    (".env", "DEBUG=1\nPORT=80\nHOST=a\n", "PORT=81\n"),
    ("a.toml", "[a]\nx = 1\n[b]\ny = 2\n", "[b]\ny = 3\n"),
    ("a.ini", "[a]\nx=1\n[b]\ny=2\n", "[b]\ny=3\n"),
    ("Dockerfile", "FROM a\nRUN b\nCOPY c d\nCMD e\n", "RUN other\n"),
    ("Makefile", "all: a b\n\nclean:\n\trm -f a\n", "clean:\n\trm -rf a b\n"),
    ("a.py", "X = 1\nY = 2\nZ = 3\n", "Y = 5\n"),
    ("a.css", "a { color: red; }\nb { color: blue; }\np { margin: 0; }\n", "b { color: green; }\n"),
    ("a.html", "<html>\n<body>\n<p>Hello</p>\n</body>\n</html>\n", "<p>Bye</p>\n"),
    ("a.csv", "a,b\n1,2\n3,4\n5,6\n", "3,9\n"),
    ("a.sql", "SELECT 1;\nSELECT 2;\nSELECT 3;\n", "SELECT 5;\n"),
    ("a.txt", "hello\nworld\nagain\n", "hello\n...\n"),
    ("a.yaml", "a: 1\nb: 2\n", "b: 3\n# rest of the file unchanged\n"),
    (".gitignore", "*.pyc\ndist\nbuild\nnode_modules\n", "coverage\n"),
    ("go.mod", "module a\n\ngo 1.20\n\nrequire b v1\n", "go 1.22\n"),
    ("config.yaml", "server:\n  port: 80\n  host: a\nlog:\n  level: info\n", "log:\n  level: debug\n"),
    ("config.yaml", "server:\n  port: 80\n", "  port: 8080\n"),
    ("config.toml", "[server]\nport = 80\n", "port = 8080\n"),
    ("docker-compose.yml", "services:\n  web:\n    image: a:1\n", "    image: a:2\n"),
    ("a.ini", "[a]\nx=1\n", "x=2\n"),
    ("config.json", '{\n  "debug": true\n}\n', '  "debug": false\n'),
    ("NOTES.txt", "line 0\nline 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\n", ""),
]


@pytest.mark.parametrize(("path", "now", "new"), SHORT)
def test_short_files_of_many_kinds_are_given_whole(path: str, now: str, new: str) -> None:
    answer = whole(path, now, new)
    assert (dict(answer.texts), answer.problem) == ({path: new}, "")


@pytest.mark.parametrize(("path", "now", "code"), PARTS)
def test_a_part_or_a_stand_in_is_not_a_short_file(path: str, now: str, code: str) -> None:
    text = whole(path, now, code).texts.get(path)
    assert text is None or text.strip() != code.strip()


ROWS = {"a.yaml": "{}: {}", "a.env": "{}={}", "a.ini": "{} = {}", "a.toml": '{} = "{}"', "a.json": '"{}": "{}"'}
WORD = st.text("abcdefgh", min_size=1, max_size=12)


def _text(path: str, entries: dict[str, str]) -> str:
    rows = [ROWS[path].format(key, value) for key, value in entries.items()]
    return "{\n" + ",\n".join(f"  {row}" for row in rows) + "\n}\n" if path == "a.json" else "\n".join(rows) + "\n"


@given(st.sampled_from(list(ROWS)), st.dictionaries(WORD, WORD, min_size=1, max_size=5), st.data())
def test_a_few_settings_with_any_values_are_the_file_and_fewer_changed_ones_are_not(
    path: str, before: dict[str, str], data: st.DataObject
) -> None:
    now, after = _text(path, before), {key: data.draw(WORD) for key in before}
    new = _text(path, after)
    assert whole(path, now, new).texts == ({} if new == now else {path: new})
    part = {key: value for key, value in after.items() if data.draw(st.booleans()) and value != before[key]}
    if part and len(part) < len(before):
        assert whole(path, now, _text(path, part)).texts.get(path) != _text(path, part)


# --- what a whole file may not lose


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("Makefile", "all: x\n\tcc 41 \\\n\t  -o x\n\nclean:\n\trm x\n"),
        ("a.go", "package a\n\nfunc f() int {\n\treturn 41\n}\n\nfunc g() int {\n\treturn 2\n}\n"),
        ("a.py", "def f():\n\tif x:\n\t\treturn 41\n\n\ndef g():\n\ts = '''\n    a\n'''\n\treturn s\n"),
        ("a.c", "int f(void)\n{\n\tif (x)\n\t\treturn 41;\n\treturn 2;\n}\n"),
        ("a.lua", "function f()\n\tif x then\n\t\treturn 41\n\tend\nend\n"),
        ("a.yaml", "a:\n    b: 41\n    c: 2\n"),
    ],
)
@pytest.mark.parametrize("size", [4, 8])
def test_a_whole_file_is_indented_as_the_file(path: str, text: str, size: int) -> None:
    reply = text.replace("41", "42")
    given = "".join(
        line if line.strip() == "a" else re.sub(r"^\t+", lambda tabs: " " * size * len(tabs[0]), line)
        for line in reply.splitlines(keepends=True)
    )
    assert whole(path, text, given).texts == {path: reply}


def test_a_whole_file_that_is_only_indented_otherwise_is_meant_so() -> None:
    text = "function f()\n\tif x then\n\t\treturn 41\n\tend\nend\n"
    assert whole("a.lua", text, text.expandtabs(2)).texts == {"a.lua": text.expandtabs(2)}


def test_the_columns_of_a_table_are_not_lost() -> None:
    text = "a\tb\n1\t41\n2\t3\n"
    assert "tabs" in whole("a.tsv", text, text.replace("41", "42").expandtabs(4)).problem
    assert whole("a.tsv", text, text.replace("41", "42")).texts
    assert whole("a.tsv", text, text.replace("\t", ",")).texts


FUNCTIONS = "# License MIT\n\nimport os\n\nX = 1\n\n\ndef f(a):\n    return a + X + 41\n"
USED = {
    "a constant": ("a.py", FUNCTIONS, "X = 1\n"),
    "an import": ("a.py", FUNCTIONS.replace("a + X", "os.x + X"), "import os\n"),
    "an imported name": (
        "a.py",
        f"from b import c as d\n{FUNCTIONS}\n\ndef g():\n    return d\n",
        "from b import c as d\n",
    ),
    "the main guard": (
        "a.py",
        f'{FUNCTIONS}\n\nif __name__ == "__main__":\n    f(1)\n',
        '\n\nif __name__ == "__main__":\n    f(1)\n',
    ),
    "the line of its program": ("a.py", f"#!/usr/bin/env python3\n{FUNCTIONS}", "#!/usr/bin/env python3\n"),
    "a constant of JavaScript": (
        "a.js",
        "const X = 1;\nconst Y = 2;\n\nfunction f(a) {\n  return a + X + 41;\n}\n",
        "const X = 1;\n",
    ),
    "an import of JavaScript": (
        "a.js",
        "import { X } from 'x';\nconst Y = 2;\n\nfunction f(a) {\n  return a + X + 41;\n}\n",
        "import { X } from 'x';\n",
    ),
    "a macro": ("a.c", "#define X 1\nstatic int y;\n\nint f(int a) {\n    return a + X + 41;\n}\n", "#define X 1\n"),
    "the program of a shell": ("a.sh", "#!/bin/sh\nX=1\n\nf() {\n  echo $X 41\n}\n", "#!/bin/sh\n"),
    "a constant of Rust": (
        "a.rs",
        "const X: i32 = 1;\nstatic Y: i32 = 2;\n\nfn f() -> i32 {\n    X + 41\n}\n",
        "const X: i32 = 1;\n",
    ),
    "a constant of Go": (
        "a.go",
        "package a\n\nconst X = 1\n\nvar y = 2\n\nfunc f() int {\n\treturn X + 41\n}\n",
        "const X = 1\n\n",
    ),
    "a member": (
        "a.py",
        "class A:\n    X = 1\n\n    def f(self):\n        return self.X + 41\n\n    def g(self):\n        return 2\n",
        "    X = 1\n\n",
    ),
    "a field": (
        "A.java",
        "class A {\n    static final int X = 1;\n    int y;\n\n    int f() {\n        return X + 41;\n    }\n}\n",
        "    static final int X = 1;\n",
    ),
}


@pytest.mark.parametrize("name", USED)
def test_a_whole_file_does_not_lose_what_its_code_uses(name: str) -> None:
    path, text, lost = USED[name]
    answer = whole(path, text, text.replace(lost, "").replace("41", "42"))
    assert answer.texts in ({}, {path: text.replace("41", "42")})
    assert answer.texts or "missing" in answer.problem


@pytest.mark.parametrize(
    ("path", "text", "reply"),
    [
        # It is not used any more, comes from elsewhere, or is the function's own now.
        ("a.py", FUNCTIONS, FUNCTIONS.replace("X = 1\n\n\n", "").replace(" + X", "")),
        ("a.py", FUNCTIONS, FUNCTIONS.replace("X = 1\n", "").replace("import os\n", "import os\nfrom b import X\n")),
        ("a.py", FUNCTIONS, FUNCTIONS.replace("X = 1\n", "").replace("import os\n", "import os\nfrom b import *\n")),
        ("a.py", FUNCTIONS, FUNCTIONS.replace("X = 1\n\n\n", "\n").replace("(a)", "(a, X)")),
        ("a.py", FUNCTIONS, FUNCTIONS.replace("X = 1\n\n\n", "\n").replace("    return", "    X = 2\n    return")),
        ("a.py", FUNCTIONS, FUNCTIONS.replace("X = 1\n\n\n", "\n").replace("a + X", "'X'").replace("41", "41  # no X")),
        ("a.py", FUNCTIONS, FUNCTIONS.replace("import os\n\n", "").replace("41", "42")),
        (
            "a.js",
            "class A {\n  x = 1;\n  constructor() {\n  }\n  f() {\n    return this.x;\n  }\n}\n",
            "class A {\n  constructor() {\n    this.x = 2;\n  }\n  f() {\n    return this.x;\n  }\n}\n",
        ),
        # Nothing else changes.
        ("a.py", f"#!/bin/sh\n{FUNCTIONS}", FUNCTIONS),
        ("a.py", f'{FUNCTIONS}\n\nif __name__ == "__main__":\n    f(1)\n', FUNCTIONS),
        (
            "a.c",
            "#define X 1\nint y;\nint z;\nint f(int a) {\n    return X;\n}\n",
            '#include "x.h"\nint y;\nint z;\nint f(int a) {\n    return X;\n}\n',
        ),
    ],
)
def test_what_is_used_no_more_or_comes_from_elsewhere_may_go(path: str, text: str, reply: str) -> None:
    assert whole(path, text, reply).texts == {path: reply}


# --- blocks beside the one that changes something


ADD = "def f(a):\n    return a + 41\n"
NEW = ADD.replace("41", "42")
REST = "\n\ndef g(a):\n    return 1\n"


@pytest.mark.parametrize("form", ["function", "whole"])
@pytest.mark.parametrize(
    "reply",
    [
        f"Before:\n```python\n{ADD}```\nAfter:\n```python\n{NEW}```\n",
        f"After:\n```python\n{NEW}```\nBefore:\n```python\n{ADD}```\n",
        f"```python\n{ADD}```\nbecomes\n```python\n{NEW}```\n",
        f"a.py\n```python\n{NEW}```\nUse it:\n```python\nprint(f(1))\n```\n",
        f"a.py\n```python\n{NEW}```\nUse it:\n```python\nx = f(1)\nassert x == 43\n```\n",
        f"a.py\n```python\n{NEW}```\nUse it:\n```python\n>>> f(1)\n43\n```\n",
        f"a.py\n```python\n{NEW}```\nTest:\n```python\ndef test_f():\n    assert f(1) == 43\n```\n",
        f"a.py\n```python\n{NEW}```\nTest:\n```python\nclass TestF:\n    def test_f(self):\n        f(1)\n```\n",
    ],
)
def test_a_block_beside_the_change_is_passed_over(reply: str, form: str) -> None:
    answer = read_answer(reply, Files({"a.py": ADD + REST}), "function" if form == "function" else "whole")
    assert answer.texts == {"a.py": NEW + REST}


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (f"```python\n{ADD}```\n", ""),
        (f"a.py\n```python\n{NEW}```\nand\n```python\ndef h(a):\n    return f(a)\n```\n", "def h"),
        (f"a.py\n```python\n{NEW}```\nand\n```python\ndef g(a):\n    return f(a)\n```\n", "return f(a)"),
        (f"a.py\n```python\n{NEW}```\ntest_a.py\n```python\ndef test_f():\n    assert f(1)\n```\n", "def test_f"),
    ],
)
def test_a_block_that_is_no_example_is_taken(reply: str, said: str) -> None:
    answer = read_answer(reply, Files({"a.py": ADD + REST}), "function")
    assert said in "".join(answer.texts.values())
    assert bool(answer.texts) is bool(said)


def test_a_test_given_for_a_file_of_tests_is_put_there() -> None:
    test = "def test_g():\n    assert f(1)\n"
    reply = f"```python\n{NEW}```\nand\n```python\n{test}```\n"
    assert test in read_answer(reply, Files({"test_a.py": ADD + REST}), "function").texts["test_a.py"]


USES = (  # what a new text lacks: a name that it uses, or none
    ("a.py", '"""Doc.\n\nof json\n"""\nimport json\n\n', '"""Doc.\n\nof json\n"""\n\n', ""),
    ("a.py", "import os\n\nx = os.path.join('a')\n", "from os import path\n\nx = path.join('a')\n", ""),
    ("a.py", "import os\n\nx = os.path.join('a')\n", "x = os.path.join('b')\n", "os"),
    ("a.py", "LIMIT = 3\n\ndef f():\n    return LIMIT\n", "def f():\n    return LIMIT + 1\n", "LIMIT"),
    ("a.py", "LIMIT = 3\n\ndef f():\n    return LIMIT\n", "def f(LIMIT=2):\n    return LIMIT\n", ""),
    ("a.py", "LIMIT = 3\n\ndef f():\n    return LIMIT\n", "def f():\n    LIMIT = 4\n    return LIMIT\n", ""),
    ("a.js", "const t = 5;\nfunction f() { return get(t); }\n", "function f() { return get({ t: 5 }); }\n", ""),
    ("a.js", "const t = 5;\nfunction f() { return get(t); }\n", "function f() { return get(t, 1); }\n", "t"),
    ("a.go", "package a\n\nvar n = 5\n\nvar o = O{n: n}\n", "package a\n\nvar o = O{n: 5}\n", ""),
    ("a.go", "package a\n\nvar n = 5\n\nvar o = O{n: n}\n", "package a\n\nvar o = O{n: n + 1}\n", "n"),
    ("a.tsx", 'import { T } from "x";\nlet a = <T/>;\n', "let a = <h1>T</h1>;\n", ""),
    ("a.tsx", 'import { T } from "x";\nlet a = <T/>;\n', 'let a = <T b="1"/>;\n', "T"),
    ("a.c", "#define MAX 3\nint f() { return MAX; }\n", "int f() { return MAX + 1; }\n", "MAX"),
)


@pytest.mark.parametrize(("path", "before", "after", "lost"), USES)
def test_a_name_is_lost_only_where_it_is_used(path: str, before: str, after: str, lost: str) -> None:
    assert lost_use(path, before, after) == lost


@pytest.mark.parametrize(
    ("block", "belongs"),
    [
        ("ROUTES = {'a': handle}\n", True),
        ("LIMIT = 3\nROUTES = [handle, LIMIT]\n", True),
        ("result = handle(1)\nprint(result)\n", False),
        ("assert handle(1) == 2\n", False),
        ("def test_handle():\n    assert handle(1) == 2\n", False),
    ],
)
def test_a_block_beside_the_function_belongs_to_the_file_or_shows_it(block: str, belongs: bool) -> None:
    reply = f"```python\ndef handle(a):\n    return a + 1\n```\n\nThen:\n\n```python\n{block}```\n"
    answer = read_answer(reply, Files({"a.py": "import x\n\n\ndef old():\n    return 1\n"}), "function")
    lines = answer.texts["a.py"].splitlines()
    assert "def handle(a):" in lines and {*block.splitlines()}.issubset(lines) is belongs


OBJECTS = {
    "store.ts": (
        "export const store = {\n  state: { n: 0 },\n  inc() {\n    this.state.n += 1;\n  },\n  dec: () => 1,\n};\n",
        "export const store = {\n  inc() {\n    this.state.n += 2;\n  },\n};\n",
        "+= 1",
        "+= 2",
    ),
    "Options.js": (
        "export default {\n  name: 'x',\n  data() { return { a: 1 }; },\n  methods: {\n    f() { return 1; },\n"
        "    g() { return 3; },\n  },\n};\n",
        "export default {\n  methods: {\n    f() { return 2; },\n  },\n};\n",
        "return 1",
        "return 2",
    ),
    "slice.ts": (
        "export const slice = createSlice({\n  name: 'n',\n  reducers: {\n    // Up.\n    inc(s) {\n      s.v += 1;\n"
        "    },\n    dec(s) {\n      s.v -= 1;\n    },\n  },\n});\n",
        "export const slice = createSlice({\n  reducers: {\n    inc(s) {\n      s.v += 2;\n    },\n  },\n});\n",
        "+= 1",
        "+= 2",
    ),
    "field.js": (
        "class Box {\n  static routes = {\n    get: (a) => a,\n    put: (a) => {\n      return 1;\n    },\n  };\n\n"
        "  f() {\n    return 3;\n  }\n}\n",
        "class Box {\n  static routes = {\n    put: (a) => {\n      return 2;\n    },\n  };\n}\n",
        "return 1",
        "return 2",
    ),
    "handlers.py": (
        "HANDLERS = {\n    'a': f,\n    'b': g,\n    'c': h,\n}\n\n\ndef run():\n    return 1\n",
        "HANDLERS = {\n    'b': k,\n    'd': m,\n}\n",
        "'b': g,",
        "'b': k,\n    'd': m,",
    ),
    "handlers.go": (
        'package a\n\nvar h = map[string]F{\n\t"a": f,\n\t"b": g,\n}\n\nfunc run() {}\n',
        'var h = map[string]F{\n\t"a": k,\n}\n',
        '"a": f',
        '"a": k',
    ),
    "handlers.rb": (
        "H = {\n  a: 1,\n  b: 2,\n}.freeze\n\ndef f\n  1\nend\n",
        "H = {\n  a: 3,\n}.freeze\n",
        "a: 1",
        "a: 3",
    ),
    "accessors.js": (
        "const box = {\n  get size() { return 1; },\n  set size(x) { f(x); },\n  f() { return 3; },\n};\n",
        "const box = {\n  get size() { return 2; },\n};\n",
        "return 1",
        "return 2",
    ),
}
"""By file: its text, a reply with some of the entries, and what changes to what by it."""


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("form", ["function", "whole"])
@pytest.mark.parametrize("path", OBJECTS)
def test_an_object_given_in_part_keeps_its_other_entries(path: str, form: TextForm, ends: str) -> None:
    now, part, before, after = (text.replace("\n", ends) for text in OBJECTS[path])
    answer = read_answer(f"```\n{part}```\n", Files({path: now}), form)
    assert answer.texts == {path: now.replace(before, after)}, answer.problem


@pytest.mark.parametrize(
    ("given", "right"),
    [
        # Nothing else changes: it was taken out on purpose.
        ("const box = {\n  a() { return 1; },\n  b: 2,\n};\n", "const box = {\n  a() { return 1; },\n  b: 2,\n};\n"),
        # Another name for what one of them holds.
        (
            "const box = {\n  a() { return 1; },\n  b: 2,\n  d: [1, 2, 3],\n};\n",
            "const box = {\n  a() { return 1; },\n  b: 2,\n  d: [1, 2, 3],\n};\n",
        ),
        # One line, and a new entry in front of those that stay.
        ("const box = { z: 1 };\n", ""),
    ],
)
def test_an_object_may_lose_an_entry_by_a_rename_or_where_nothing_else_changes(given: str, right: str) -> None:
    now = "const box = {\n  a() { return 1; },\n  b: 2,\n  c: [1, 2, 3],\n};\n"
    right = right or now.replace("3],\n", "3],\n  z: 1,\n")
    assert read_answer(f"```\n{given}```\n", Files({"a.js": now}), "function").texts == {"a.js": right}


SILENT = {
    "user.rb": (
        "class User < A\n{0}\n  def f\n    1\n  end\nend\n",
        ("  has_many :posts\n", "  include B\n  extend C\n", "  attr_reader :a\n"),
    ),
    "A.cs": (
        "class A\n{\n{0}\n    public int F()\n    {\n        return 1;\n    }\n}\n",
        (
            "    public int X { get; set; }\n",
            "    public event System.Action E;\n",
            "    public int X { get; set; }\n    public event System.Action E;\n",
            "    public event System.Action E { add { } remove { } }\n",
        ),
    ),
    "a.py": (
        "class A(M):\n{0}\n    def f(self):\n        return 1\n",
        ("    name = Char()\n", "    name: str\n    age: int = 3\n"),
    ),
    "a.ts": ("export class A {\n{0}\n  f() {\n    return 1;\n  }\n}\n", ("  @Input() name: string;\n", "  x = 3;\n")),
    "A.java": ("class A {\n{0}\n    int f() {\n        return 1;\n    }\n}\n", ("    public int x;\n",)),
    "a.php": ("<?php\nclass A {\n{0}\n    function f() {\n        return 1;\n    }\n}\n", ("    use T;\n",)),
}
"""By file: a class around what says something without being a function."""


@pytest.mark.parametrize("form", ["function", "whole"])
@pytest.mark.parametrize(("path", "silent"), [(path, each) for path, (_, all_) in SILENT.items() for each in all_])
def test_a_class_given_for_a_method_keeps_what_is_no_function(path: str, silent: str, form: TextForm) -> None:
    frame = SILENT[path][0]
    now = frame.replace("{0}", silent)
    part = frame.replace("{0}\n", "").replace("1", "2")
    answer = read_answer(f"````\n{part}````\n", Files({path: now}), form)
    place = now.rindex("1")
    assert answer.texts == {path: f"{now[:place]}2{now[place + 1 :]}"}, answer.problem


@pytest.mark.parametrize("form", ["function", "whole"])
def test_a_property_that_alone_is_gone_was_taken_out(form: TextForm) -> None:
    now = "class A\n{\n    public int X { get; set; }\n\n    int F() => 1;\n}\n"
    right = now.replace("    public int X { get; set; }\n\n", "")
    answer = read_answer(f"```\n{right}```\n", Files({"A.cs": now}), form)
    assert answer.texts.get("A.cs", now) in ((right,) if form == "whole" else (now, right))


CASES = {
    "a_spec.rb": (
        "RSpec.describe A do\n{0}end\n",
        "  it 'adds' do\n    expect(f(1)).to eq(2)\n  end\n",
        "  before { reset }\n",
        "  it 'subs' do\n    expect(f(2)).to eq(1)\n  end\n",
    ),
    "a.test.js": (
        "describe('a', () => {\n{0}});\n",
        "  it('adds', () => {\n    expect(f(1)).toBe(2);\n  });\n",
        "  beforeEach(() => {\n    reset();\n  });\n",
        "  it('subs', () => {\n    expect(f(2)).toBe(1);\n  });\n",
    ),
}
"""By file: the block around its tests, one that changes, and others."""


@pytest.mark.parametrize("form", ["function", "whole"])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("path", CASES)
def test_a_block_of_tests_given_in_part_is_refused(path: str, count: int, form: TextForm) -> None:
    frame, first, *rest = CASES[path]
    now = frame.replace("{0}", "\n".join((first, *rest[-count:])))
    part = frame.replace("{0}", first.replace("(1)", "(9)"))
    answer = read_answer(f"```\n{part}```\n", Files({path: now}), form)
    assert answer.texts == {}
    assert "Give the file whole" in answer.problem
    kept = now.replace("f(1)", "f(9)")
    assert read_answer(f"```\n{kept}```\n", Files({path: now}), form).texts == {path: kept}


HEADS = {
    "a.go": ("//go:build linux\n\n", 'package a\n\nimport "fmt"\n\nfunc f() {\n\tfmt.Println(1)\n}\n'),
    "a.py": (
        "#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\n# Copyright X\n#\n# All rights.\n\n",
        "def f():\n    g(1)\n",
    ),
    "a.rb": ("# frozen_string_literal: true\n\n", "def f\n  g(1)\nend\n"),
    "a.ts": (
        "/* (c) X\n * All.\n */\n/* eslint-disable */\n// @ts-check\n",
        "export function f() {\n  g(1);\n}\n",
    ),
    "a.rs": ("// SPDX-License-Identifier: MIT\n//! What it is.\n\n", "fn f() {\n    g(1)\n}\n"),
    "a.c": ("/* SPDX-License-Identifier: MIT */\n", "#include <a.h>\n\nint f(void)\n{\n    return g(1);\n}\n"),
}
"""By file: the comments about it at its top, and the rest."""


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("path", HEADS)
def test_a_whole_file_keeps_the_comments_about_it(path: str, ends: str) -> None:
    head, rest = HEADS[path]
    now, new = (head + rest).replace("\n", ends), rest.replace("g(1", "g(2").replace("Println(1", "Println(2")
    answer = whole(path, now, new)
    assert answer.texts == {path: (head + new).replace("\n", ends)}, answer.problem


def test_a_comment_about_the_file_that_alone_is_gone_was_taken_out() -> None:
    head, rest = HEADS["a.go"]
    assert whole("a.go", head + rest, rest).texts == {"a.go": rest}
