"""Data files that can be read say nothing; those that cannot say where and why, as a diagnostic after the edit."""

from __future__ import annotations

import json
import random

import pytest

from codeagent_lsp.tools.diagnostics.after_edits import AfterEdits
from codeagent_lsp.tools.diagnostics.edit_diagnostics import BeforeAndAfter, EditDiagnostics
from codeagent_lsp.tools.diagnostics.syntax import data_errors
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
