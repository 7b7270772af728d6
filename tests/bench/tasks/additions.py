"""Tasks to add something small that is described in words, with tests that fail until it is there."""

from __future__ import annotations

import ast
import random
from collections.abc import Mapping
from string import Template

from tests.bench.tasks.addition_forms import FORMS, Form
from tests.bench.tasks.sources import FOLDERS, MODULES, companions, surroundings
from tests.bench.tasks.task import Task, unittest_command
from tests.bench.tasks.words import addition_words

STEP = {"small": 0, "medium": 4, "large": 8}  # so that the sizes begin with different forms


def addition_task(chance: random.Random, task_id: str, size: str, number: int) -> Task:
    """A task of this size; forms follow each other, names and surroundings are drawn."""
    form = FORMS[(STEP[size] + number) % len(FORMS)]
    drawn = chance.choice(form.choices)
    name = chance.choice(MODULES)
    folder = f"{chance.choice(FOLDERS)}/" if size == "large" else ""
    place, test = f"{folder}{name}.py", f"test_{name}.py"
    code = surroundings(chance, filled(form.code, drawn).lstrip(), size, drawn.values())
    files = {place: code, test: _test(form, drawn, place)}
    if folder:
        files[f"{folder}__init__.py"] = ""
        files |= {f"{folder}{other}": text for other, text in companions(chance, {name}, 2).items()}
    values = {**drawn, "file": place}
    words = addition_words(
        chance, english=filled(form.english, values), chinese=filled(form.chinese, values), test=test
    )
    cause = f"{form.name} is to be added"
    return Task(task_id, "addition", size, words, files, (test,), unittest_command([test]), place, cause)


def answered(form: Form, drawn: Mapping[str, str], code: str) -> str:
    """A text with the answer of a form in it."""
    for old, new in form.answer:
        text = filled(new, drawn)
        code = code.replace(filled(old, drawn), text, 1) if old else f"{code}\n\n{text}"
    return code


def filled(text: str, drawn: Mapping[str, str]) -> str:
    """A text of a form with the drawn words in their places."""
    return Template(text).substitute(drawn)


def _test(form: Form, drawn: Mapping[str, str], place: str) -> str:
    """The names that the test needs are imported in each test, so that the others still run."""
    body = filled(form.test, drawn).strip("\n")
    module = place.removesuffix(".py").replace("/", ".")
    code = ast.parse(filled(form.code, drawn))
    known = {node.name for node in code.body if isinstance(node, ast.FunctionDef | ast.ClassDef)} | {drawn.get("name")}
    used = {node.id for node in ast.walk(ast.parse(f"class T:\n{body}")) if isinstance(node, ast.Name)}
    names = ", ".join(sorted(used & {name for name in known if name}))
    title = form.name.capitalize()
    return f"import unittest\n\nfrom {module} import {names}\n\n\nclass {title}Test(unittest.TestCase):\n{body}\n"
