"""Rules and settings that name tools by other names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.config import PermissionsSettings
from codeagent_lsp.tools.catalogue import BUILTIN
from codeagent_lsp.tools.permissions.policy import decide, reading
from codeagent_lsp.tools.registry import ToolRegistry
from codeagent_lsp.workspace.files.paths import Roots
from tests.tools.fakes import Bench

TOOLS = {cls.traits.name: cls() for cls in BUILTIN}


@pytest.mark.parametrize(("rule", "tool", "arguments", "covered"), [
    ("bash(pytest *)", "run_cmd", {"command": "pytest -q"}, True),
    ("Bash(pytest *)", "run_cmd", {"command": "pytest -q"}, True),
    ("shell_exec", "run_cmd", {"command": "ls"}, True),
    ("file_read(secrets/**)", "read_file", {"path": "secrets/a"}, True),
    ("write(src/**)", "write_file", {"path": "src/a", "content": ""}, True),
    ("write(src/**)", "edit_file", {"path": "src/a", "old_str": "a", "new_str": "b"}, False),
    ("tool:run_cmd", "run_cmd", {"command": "ls"}, True),
    ("tool:shell_exec(ls)", "run_cmd", {"command": "ls"}, True),
    ("tool:read_file(", "read_file", {"path": "a"}, True),
    ("bas*", "run_cmd", {"command": "ls"}, False),
    ("read(", "read_file", {"path": "a"}, True),
])  # fmt: skip
def test_a_rule_may_name_a_tool_by_another_name(
    bench: Bench, rule: str, tool: str, arguments: dict[str, Any], covered: bool
) -> None:
    found = TOOLS[tool]
    settings = PermissionsSettings(deny=(rule,))
    decision = decide(found.traits, arguments, settings, bench.view.roots, names=found.forms.names)
    assert ("deny rule" in decision.reason) is covered


def test_what_may_be_read_unasked_follows_such_rules(tmp_path: Path) -> None:
    roots = Roots([str(tmp_path)])
    settings = PermissionsSettings(deny=("file_read(a.txt)",))
    assert [reading(str(tmp_path / name), settings, roots).verdict for name in ("a.txt", "b.txt")] == ["deny", "allow"]


async def test_calls_obey_them_by_whatever_name(bench: Bench) -> None:
    bench.write("a.txt", "one\n")
    bench.rules(deny=("file_read(a.txt)",))
    assert (await bench.call("read_file", path="a.txt")).status == "denied"
    bench.rules(allow=("bash(ls *)",))
    assert (await bench.call("run_cmd", command="ls -l")).ok and bench.asker.asked == []


def test_a_tool_is_switched_off_by_another_name() -> None:
    registry = ToolRegistry(TOOLS.values(), ("bash", "glob"))
    assert set(registry.names("disabled")) == {"run_cmd", "glob_file_search"}
    registry.enable("shell_exec")
    registry.disable("write", "by the user")
    assert set(registry.names("disabled")) == {"write_file", "glob_file_search"}
