"""Skills as other agents have them: their place, modes and names of tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.agent.skills import hint, listed
from codeagent_lsp.session.conversation.tool_selection import ToolSelection
from codeagent_lsp.tools.catalogue import BUILTIN
from codeagent_lsp.tools.registry import ToolRegistry
from tests.tools.skills.samples import Shelves

FOREIGN = """---
name: release
description: How releases are made here
triggers: [release, 发布]
tools: [file_read, glob, shell_exec, bash, export_artifact]
agent_modes: [default, plan]
---

# Release

Run scripts/release.sh.
"""


def test_a_skill_of_another_agent_is_listed_and_hinted_at_for_every_run(tmp_path: Path) -> None:
    made = Shelves(tmp_path)
    made.files.write(".memstack/skills/release/SKILL.md", FOREIGN)
    made.files.write(".memstack/skills/release/scripts/release.sh", "true\n")
    made.trust.add(made.skills()["release"].digest, "release")
    found = made.look().skills
    assert [list(skill.files) for skill in found] == [["scripts/release.sh"]]
    for mode in ("direct", "ask", "plan"):
        assert "- release: How releases" in listed(found, mode, 1000), mode
        assert "release" in hint(found, "做一次发布", mode), mode
    assert listed(found, "reviewer", 1000) == ""


def test_the_project_itself_comes_first(tmp_path: Path) -> None:
    made = Shelves(tmp_path)
    made.project("release", FOREIGN.replace("How releases", "Our releases"))
    made.files.write(".memstack/skills/release/SKILL.md", FOREIGN)
    assert made.skills()["release"].description.startswith("Our releases")
    assert len(made.reasons()) == 1


@pytest.mark.parametrize(("names", "group"), [
    (("file_read", "shell_exec", "export_artifact"), "artifacts"),
    (("search_web",), "web"),
    (("nothing_like_it", "bash"), ""),
])  # fmt: skip
def test_its_tools_are_offered_by_whatever_name(names: tuple[str, ...], group: str) -> None:
    selection = ToolSelection(ToolRegistry([cls() for cls in BUILTIN]), lambda: "ask")
    selection.offer(names)
    assert selection.groups == ((group,) if group else ())
