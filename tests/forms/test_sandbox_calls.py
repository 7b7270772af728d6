"""Every call of the sandbox that is in the table, made by a client of a real server, which checks it by the published
schema before, with its effect.
"""

from __future__ import annotations

import json
import subprocess
import warnings
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.forms.test_table import TABLE
from tests.mcp_server.rig import Model, code_of, over_stdio, text_of
from tests.shadow.rig import needs_overlay

pytestmark = [pytest.mark.slow, needs_overlay]  # a whole server, and commands that run

CALLS: list[tuple[str, dict[str, Any], str]] = [
    (name, given, says[0])
    for row in TABLE
    for check, name, given, *says in (item for item in json.loads(row["shown by"] or "[]") if item[0] == "sandbox")
    if says
]
FILES = {
    "src/__init__.py": "",
    "src/a.py": "import os\n\n\ndef f():\n    return 1\n\n\nclass Box:\n    home = os.sep\n",
    "src/deep/b.py": "from src.a import f\n\n\ndef g():\n    return f()\n",
    "tests/test_x.py": "import unittest\n\n\nclass X(unittest.TestCase):\n    def test_x(self):\n        pass\n",
    "a.txt": "text\n",
}
WRITTEN = """\
import unittest

from src.a import f


class FTest(unittest.TestCase):
    def test_one(self):
        self.assertEqual(f(), 1)
"""
EFFECTS = {
    "write": ("new.py", "1|x"),
    "edit": ("src/a.py", "return 2"),
    "batch_edit": ("src/a.py", "return 2"),
    "patch": ("src/a.py", "import sys"),
    "edit_by_ast": ("src/a.py", "class Box"),
    "import_file": ("b.txt", "1|text"),
    "import_files_batch": ("c.txt", "1|text"),
}
LACKING = ("is not installed here", "are not installed here")


def workspace_in(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    who = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "First")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    (folder / "src/deep/c.py").write_text("STAGED = True\n")
    subprocess.run(["git", "add", "."], cwd=folder, check=True)


async def test_each_is_accepted_and_does_what_it_says(workspace: Path) -> None:
    workspace_in(workspace)
    wrong: dict[str, str] = {}
    async with over_stdio(workspace, Model("Double the rate", WRITTEN)) as client:
        schemas = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
        for name, given, says in CALLS:
            jsonschema.validate(given, schemas[name])
            await client.call_tool("write", {"file_path": "src/a.py", "content": FILES["src/a.py"]})
            result = await client.call_tool(name, given)
            told = text_of(result)
            if any(words in told for words in LACKING):
                warnings.warn(f"{name} could only say: {told}", stacklevel=1)
            elif code_of(result) or says not in told:
                wrong[name] = told
            elif name in EFFECTS:
                path, holds = EFFECTS[name]
                if holds not in (now := text_of(await client.call_tool("read", {"file_path": path}))):
                    wrong[name] = now
            if name.startswith(("start_", "restart_")):
                await client.call_tool(f"stop_{name.partition('_')[2]}", {})
    assert wrong == {}
    assert {name for name, *_ in CALLS} == set(schemas)


async def test_what_is_not_there_is_a_wrong_parameter(workspace: Path) -> None:
    workspace_in(workspace)
    wrong = {"read": {}, "edit": {"old_str": "a", "new_str": "b"}, "ast_parse": {}, "export_artifact": {}}
    async with over_stdio(workspace) as client:
        codes = {
            name: code_of(await client.call_tool(name, {"file_path": "missing.py", **given}))
            for name, given in wrong.items()
        }
    assert codes == dict.fromkeys(wrong, "PARAMETER_ERROR")
