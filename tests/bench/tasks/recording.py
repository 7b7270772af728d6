"""What calls of a project's functions give, recorded as a unittest file in the form a developer would write.

The calls are evaluated in a process of their own; what differs from run to run, or cannot be written down, is left out.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.tasks.task import run_check, unittest_command, write_files

RECORD_SECONDS, TEST_SECONDS = 20.0, 5.0
WIDE = 110
OVER_THERE = r"""
import builtins, importlib, json, sys
module = importlib.import_module(sys.argv[1])
def is_plain(value):
    text = repr(value)
    try:
        again = eval(text, {})
    except Exception:
        return False
    return again == value and type(again) is type(value) and repr(again) == text and len(text) < 1500
answers = []
for call in json.load(sys.stdin):
    answer = {}
    try:
        value = eval(call, dict(vars(module)))
        if is_plain(value):
            answer = {"value": repr(value)}
    except Exception as error:
        name = type(error).__name__
        if getattr(builtins, name, None) is type(error) and name not in ("NameError", "TypeError", "AttributeError"):
            answer = {"raises": name}
    answers.append(answer)
print("\n" + json.dumps(answers))
"""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A call as an expression, and the text of its value or the name of the error it raises."""

    call: str
    value: str = ""
    raises: str = ""


def record(files: Mapping[str, str], module: str, calls: Sequence[str]) -> list[Recorded]:
    """What the calls give, evaluated among the names of a module of this project; those that are good in a test."""
    with tempfile.TemporaryDirectory(prefix="record-") as folder:
        write_files(files, Path(folder))
        command = [sys.executable, "-B", "-c", OVER_THERE, module]
        try:
            done = subprocess.run(
                command, cwd=folder, input=json.dumps(calls), capture_output=True, text=True, timeout=RECORD_SECONDS
            )
        except subprocess.TimeoutExpired:
            return []
    if done.returncode:
        return []
    answers = json.loads(done.stdout.splitlines()[-1])
    return [Recorded(call, **answer) for call, answer in zip(calls, answers, strict=True) if answer]


def unittest_text(module: str, text: str, subject: str, recorded: Sequence[Recorded]) -> str:
    """A unittest file about these calls; `text` is the module's, whose names the calls may use."""
    names = ", ".join(sorted(_names(recorded) & _bound(text)))
    title = "".join(word.capitalize() for word in subject.replace(".", "_").strip("_").split("_"))
    usual, edges, errors = _grouped(recorded)
    methods = [*_method("usual_cases", usual), *_method("edge_cases", edges), *_method("what_is_refused", errors)]
    body = "\n\n".join(methods)
    return f"import unittest\n\nfrom {module} import {names}\n\n\nclass {title}Test(unittest.TestCase):\n{body}\n"


def passes(files: Mapping[str, str], test: str) -> bool | None:
    """Whether a test file of a project passes; None when it hangs."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        write_files(files, Path(folder))
        ended = run_check(unittest_command([test]), Path(folder), TEST_SECONDS)
    return None if ended.hung else ended.passed


def _grouped(recorded: Sequence[Recorded]) -> tuple[Sequence[Recorded], Sequence[Recorded], Sequence[Recorded]]:
    values = [case for case in recorded if not case.raises]
    half = (len(values) + 1) // 2
    return values[:half], values[half:], [case for case in recorded if case.raises]


def _method(name: str, cases: Iterable[Recorded]) -> Iterator[str]:
    lines = [line for case in cases for line in _assertion(case)]
    if lines:
        yield "\n".join([f"    def test_{name}(self):", *(f"        {line}" for line in lines)])


def _assertion(case: Recorded) -> list[str]:
    if case.raises:
        return [f"with self.assertRaises({case.raises}):", f"    {case.call}"]
    if case.value in ("True", "False"):
        return [f"self.assert{case.value}({case.call})"]
    line = f"self.assertEqual({case.call}, {case.value})"
    return [line] if len(line) <= WIDE else ["self.assertEqual(", f"    {case.call},", f"    {case.value},", ")"]


def _names(recorded: Iterable[Recorded]) -> set[str]:
    return {node.id for case in recorded for node in ast.walk(ast.parse(case.call)) if isinstance(node, ast.Name)}


def _bound(text: str) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.ImportFrom(names=aliases) | ast.Import(names=aliases):
                names |= {alias.asname or alias.name for alias in aliases}
            case ast.Assign(targets=[ast.Name(id=name)]):
                names.add(name)
    return names
