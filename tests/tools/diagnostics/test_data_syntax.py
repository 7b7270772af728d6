"""Data files that can be read say nothing; those that cannot say where and why, as a diagnostic after the edit."""

from __future__ import annotations

import json
import random

import pytest
import yaml

from codeagent_lsp.tools.diagnostics.syntax import data_errors, moved_entries
from codeagent_lsp.tools.edit_diagnostics import AfterEdits, BeforeAndAfter, EditDiagnostics
from codeagent_lsp.workspace.files.file_view import FileView, NothingStaged
from codeagent_lsp.workspace.files.paths import Roots
from tests.tools.fakes import Bench

READ = {
    "a.json": '{"a": [1, 2], "b": {"c": "\\n // no comment"}}\n',
    "tsconfig.json": '{\n  // why\n  "a": ["x",], /* y */ "u": "http://x/", // z\n}\n',
    ".vscode/settings.json": '{"a": 1, // x\n}\n',
    "a.ipynb": json.dumps({"cells": [{"cell_type": "code", "source": []}], "nbformat": 4}),
    "a.jsonl": '{"a": 1}\n\n{"b": 2}\n',
    "a.toml": '[a]\r\nb = """\r\nx\r\n"""\r\n',
    "a.yaml": "a: !ref x\nb:\n  - &x 1\n  - *x\n---\nc: |\n  text\n",
    "a.xml": '<?xml version="1.0" encoding="utf-16"?>\n<a b="1"><c/>é &amp;</a>\n',
    "empty.json": "",
}
BROKEN = {
    "a lost comma": ("a.json", '{"a": 1\n "b": 2}', 2, "JSON"),
    "a comma too many": ("a.json", '{"a": 1,}', 1, "JSON"),
    "a lost comma among comments": ("tsconfig.json", '{// x\n"a": 1\n "b": 2}', 3, "JSON"),
    "a notebook": ("a.ipynb", '{"cells": [{"cell_type": "code" "source": []}]}', 1, "JSON"),
    "no notebook": ("a.ipynb", '{"cell": []}', 1, "notebook"),
    "a line": ("a.jsonl", '{"a": 1}\n{"b" 2}\n', 2, "JSON"),
    "a string without end": ("a.toml", '[a]\nb = "x\n', 2, "TOML"),
    "a key twice": ("a.toml", "[a]\nb = 1\nb = 2\n", 3, "TOML"),
    "indentation": ("a.yml", "a:\n  - b\n c: 1\n", 3, "YAML"),
    "a tab": ("a.yaml", "a:\n\tb: 1\n", 2, "YAML"),
    "a bracket": ("a.yaml", "a: [1, 2\nb: 3\n", 2, "YAML"),
    "a tag": ("a.xml", "<a>\n<b>\n</a>\n", 3, "XML"),
    "too deep": ("a.json", "[" * 100_000, 1, "JSON"),
}


@pytest.mark.parametrize(("path", "text"), READ.items(), ids=READ.keys())
def test_what_can_be_read(path: str, text: str) -> None:
    assert data_errors(path, text) == ()


@pytest.mark.parametrize(("path", "text", "line", "kind"), BROKEN.values(), ids=BROKEN.keys())
def test_what_cannot(path: str, text: str, line: int, kind: str) -> None:
    found = data_errors(path, text)
    assert found is not None and len(found) == 1
    assert (found[0].line, found[0].severity) == (line, "error") and kind in found[0].message


def test_other_files_are_none_of_its() -> None:
    assert data_errors("a.py", "{") is None and data_errors("json", "{") is None


def test_every_lost_character_that_matters_to_json_is_seen() -> None:
    chance = random.Random(3)
    for _ in range(300):
        text = json.dumps(
            {f"k{n}": [n, {"x": str(n)}] for n in range(chance.randrange(1, 5))}, indent=chance.randrange(4)
        )
        at = chance.randrange(len(text))
        broken = text[:at] + text[at + 1 :]
        try:
            json.loads(broken)
        except ValueError:
            assert data_errors("a.json", broken)
        else:
            assert data_errors("a.json", broken) == ()


@pytest.mark.parametrize(
    ("name", "text", "old", "new", "told"),
    [
        ("a.yaml", "a:\n  c: 1\n  e: 5\n", "  c: 1", "c:", "a.yaml:3:3 warning 'e' stood in 'a' of line 1"),
        ("a.json", '{\n  "a": 1,\n  "b": 2\n}\n', '"a": 1,', '"a": 3', "a.json:3:3 error not valid JSON"),
        ("a.ipynb", '{"cells": [],\n "x": 1}\n', "[],", "[]", "a.ipynb:2:2 error not valid JSON"),
        ("a.yaml", "a: 1\nb: 2\n", "a: 1", "a: 1: 2", "a.yaml:1:5 error not valid YAML"),
        ("a.toml", "a = 1\n", "a = 1", "a = ", "a.toml:1:5 error not valid TOML"),
    ],
)
async def test_the_model_is_told_after_the_edit(
    bench: Bench, name: str, text: str, old: str, new: str, told: str
) -> None:
    base = FileView(Roots([str(bench.root)]), bench.buffers, NothingStaged())
    bench.add((AfterEdits, AfterEdits(EditDiagnostics(BeforeAndAfter(base, bench.view), None, None))))
    bench.write(name, text)
    result = await bench.call("edit_file", path=name, old_str=old, new_str=new)
    assert "Diagnostics: 1 new" in result.text and told in result.text


BASE = """\
a:
  b: 1
  c:
    x: 1
    y: 2
  e: 5
list:
  - name: n
    run: r
  - name: m
    run: |
      echo k: v
      done
d: 3
"""
MOVED = {
    "the next lines belong to another key": ("a:\n  b: 1\n  e: 5\n", "  b: 1", "  b:\nz:", {4}),
    "the line before loses its children": ("a:\n  b: 1\nc:\n  d: 2\n", "c:\n", "", {3}),
    "entries become text": ("a:\n  b: 1\n  c: 2\nd: 3\n", "a:", "a: |", {2, 3}),
    "text becomes entries": ("a: |\n  b: 1\n  c: 2\nd: 3\n", "a: |", "a:", {2, 3}),
    "an item loses its head": ("- n: 1\n  r: 2\n- n: 3\n  s: 4\n", "- n: 3\n", "", {3}),
    "an item is joined with the one before": ("- n: 1\n  r: 2\n- q: 3\n  s: 4\n", "- q: 3\n", "  q: 3\n", {4}),
    "a list goes to another key": ("a:\n- 1\n- 2\nb: 1\n", "- 1\n", "- 1\nx:\n", {4}),
    "a new document": ("a: 1\nb: 2\nc: 3\n", "b: 2\n", "---\nb: 2\n", {3, 4}),
    "a text goes on": ("a: one\nb: 2\nc: 3\n", "b: 2\n", "  b 2\n", {1}),
    "a comment in the place of a key": ("a:\n  x: 1\nb:\n  y: 2\n", "b:", "#b:", {4}),
    "a key at the margin": ("a:\n  c: 1\n  e: 5\n", "  c: 1", "c:", {3}),
}
KEPT = {
    "a value": (BASE, "b: 1", "b: '1'"),
    "a type": (BASE, "b: 1", "b: [1, 2]"),
    "a name of a key with children": (BASE, "c:", "cc:"),
    "a new key": (BASE, "  e: 5\n", "  e: 5\n  f: 6\n"),
    "a new key with children": (BASE, "d: 3\n", "new:\n  x: 1\nd: 3\n"),
    "a key less": (BASE, "  e: 5\n", ""),
    "a block less": (BASE, "  c:\n    x: 1\n    y: 2\n", ""),
    "a block in another place": (BASE, "  c:\n    x: 1\n    y: 2\n  e: 5\n", "  e: 5\n  c:\n    x: 1\n    y: 2\n"),
    "an item more": (BASE, "  - name: m\n", "  - name: o\n    run: q\n  - name: m\n"),
    "a name of an item": (BASE, "- name: n", "- name: nn"),
    "a line of a text": (BASE, "      done\n", "      x: 2\n      done\n"),
    "a text in a block": (BASE, "run: r", "run: |\n      one\n      two"),
    "a comment": (BASE, "  e: 5\n", "  # why\n  e: 5 # 5\n"),
    "children of an empty key": ("a:\nb: 1\n", "a:\n", "a:\n  x: 1\n"),
    "a document before": ("a: 1\nb: 2\n", "a: 1\n", "z: 0\n---\na: 1\n"),
    "all is wrapped": ("a: 1\nb: 2\n", "a: 1\nb: 2\n", "w:\n  a: 1\n  b: 2\n"),
    "an alias": ("a: &x\n  k: 1\nb: *x\nc: 2\n", "c: 2", "c: *x"),
    "the end of a line": ("a:\n  b: 1\n", "b: 1\n", "b: 1"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "old", "new", "lines"), MOVED.values(), ids=MOVED.keys())
def test_a_change_of_yaml_that_moves_other_lines_is_told(text: str, old: str, new: str, lines: set[int]) -> None:
    assert text.count(old) == 1
    found = moved_entries("a.yaml", text, text.replace(old, new))
    assert {each.line for each in found} == lines, found


@pytest.mark.parametrize(("text", "old", "new"), KEPT.values(), ids=KEPT.keys())
def test_a_change_of_yaml_that_keeps_other_lines_says_nothing(text: str, old: str, new: str) -> None:
    assert text.count(old) == 1
    changed = text.replace(old, new)
    assert data_errors("a.yaml", changed) == ()
    assert moved_entries("a.yaml", text, changed) == ()
    assert moved_entries("a.json", text, changed) == ()


def test_every_indentation_of_every_line_is_seen_where_it_matters() -> None:
    """Where a change of one line's blanks gives the other lines other places, it is told, and only there."""
    lines = BASE.splitlines(keepends=True)
    told = 0
    for number, line in enumerate(lines):
        for blanks in ("", "  ", "    ", "      "):
            changed = "".join((*lines[:number], blanks + line.lstrip(" "), *lines[number + 1 :]))
            if changed == BASE or data_errors("a.yaml", changed):
                continue
            moved = _places(BASE, number) != _places(changed, number)
            found = bool(moved_entries("a.yaml", BASE, changed))
            assert found >= moved, changed
            told += found
    assert told


def _places(text: str, left_out: int) -> list[tuple[int, str, tuple[int, ...]]]:
    """Return where the keys stand that are not on one line: the line, the key, the lines of the keys above."""
    found: list[tuple[int, str, tuple[int, ...]]] = []

    def walk(node: yaml.Node, above: tuple[int, ...]) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.start_mark.line != left_out:
                    found.append((key.start_mark.line, key.value, above))
                walk(value, (*above, key.start_mark.line))
        elif isinstance(node, yaml.SequenceNode):
            for item in node.value:
                walk(item, (*above, item.start_mark.line))

    root = yaml.compose(text)
    assert root is not None
    walk(root, ())
    return found


NAMED = {
    "json": (
        ("composer.lock", "Pipfile.lock", "flake.lock", "a.avsc", "a.tfstate", "a.gltf", "a.code-workspace"),
        '{"a": 1}\n',
        '{"a": 1\n',
    ),
    "json with comments": (
        (
            *("deno.json", "turbo.json", "tslint.json", "api-extractor.json", ".swcrc", "language-configuration.json"),
            *(".eslintrc", ".prettierrc", ".stylelintrc", "a.code-snippets", "a.sublime-settings", ".zed/tasks.json"),
            *(".eslintrc.json", "nx.json", "common/config/rush/pnpm-config.json"),
        ),
        '{ // why\n "a": 1,\n "b": 2, /* last */\n}\n',
        '{"a": 1\n "b": 2}\n',
    ),
    "YAML without an ending": ((".eslintrc", ".prettierrc", ".stylelintrc"), "a: 1 # why\n", "a: [1\n"),
    "toml": (("Cargo.lock", "poetry.lock", "uv.lock", "pdm.lock", "Pipfile"), "a = 1\n", "a =\n"),
    "yaml": ((".clang-format", ".clang-tidy", "CITATION.cff", ".yamllint", "pubspec.lock"), "a: 1\n", "a: [1\n"),
    "xml": (
        ("a.xaml", "a.resx", "a.xlf", "a.storyboard", "a.xib", "a.targets", "a.wsdl", "a.kml", "a.iml", "a.fxml"),
        "<a><b/></a>\n",
        "<a><b></a>\n",
    ),
    "ini": (("setup.cfg", "tox.ini", "pytest.ini", "mypy.ini", ".coveragerc"), "[a]\nb = 1\n", "[a]\nb = 1\nb = 2\n"),
}


@pytest.mark.parametrize(("paths", "whole", "broken"), NAMED.values(), ids=NAMED.keys())
def test_data_files_of_other_names(paths: tuple[str, ...], whole: str, broken: str) -> None:
    for path in paths:
        assert data_errors(f"/w/{path}", whole) == (), path
        assert data_errors(f"/w/{path}", broken), path


@pytest.mark.parametrize(
    "text",
    [
        "{{- if .Values.x }}\na: {{ .Values.y | quote }}\n{{- end }}\n",
        "a:\n  {{- toYaml .Values.a | nindent 2 }}\n",
        "{% if x %}\na: {{ y }}\n{% endif %}\n",
        "a:\n  b: 1\n  {{/* why */}}\n  c: {{ .x }}\n",
    ],
)
def test_a_template_is_no_yaml(text: str) -> None:
    assert data_errors("chart/templates/a.yaml", text) == ()
    assert data_errors("a.yaml", "{a: 1}\n") == () and data_errors("a.yaml", "{ {a: 1}\n")


@pytest.mark.parametrize("path", ["yarn.lock", "a.lock", "a.ini", "a.cfg", "a.conf", "Gemfile.lock"])
def test_other_files_of_such_an_end_are_not_judged(path: str) -> None:
    assert data_errors(f"/w/{path}", "a = [\n") is None
