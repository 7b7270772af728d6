"""Skills as other agents have them: their place, modes and names of tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.session.conversation.tool_selection import ToolSelection
from codeagent_lsp.tools.catalogue import BUILTIN
from codeagent_lsp.tools.registry import ToolRegistry
from codeagent_lsp.tools.skills.skill_library import hint, list_skills
from codeagent_lsp.tools.traits import CORE
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
        assert "- release: How releases" in list_skills(found, mode, 1000), mode
        assert "release" in hint(found, "做一次发布", mode), mode
    assert list_skills(found, "reviewer", 1000) == ""


def test_the_project_itself_comes_first(tmp_path: Path) -> None:
    made = Shelves(tmp_path)
    made.project("release", FOREIGN.replace("How releases", "Our releases"))
    made.files.write(".memstack/skills/release/SKILL.md", FOREIGN)
    assert made.skills()["release"].description.startswith("Our releases")
    assert len(made.reasons()) == 1


CLAUDES = """---
name: pdf-forms
description: >-
  Fills in PDF forms.
  Use it when somebody has a form.
license: Apache-2.0. LICENSE.txt has all terms
compatibility: needs poppler
allowed-tools: Bash(pdftotext:*), Read, mcp__files__*
argument-hint: [file] [field]
disable-model-invocation: false
user-invocable: true
model: inherit
context: fork
hooks:
  PreToolUse:
    - matcher: "Bash"
      hooks: [{type: command, command: ./check.sh}]
metadata:
  version: "1.0"
  authors: [{name: someone}]
---

Run `scripts/fill.py`.
"""


@pytest.mark.parametrize("folder", [".agents/skills", ".claude/skills", ".codeagent/skills"])
def test_skills_of_all_agents_are_those_of_the_workspace(tmp_path: Path, folder: str) -> None:
    made = Shelves(tmp_path)
    made.files.write(f"{folder}/pdf-forms/SKILL.md", CLAUDES)
    made.files.write(f"{folder}/pdf-forms/scripts/fill.py", "pass\n")
    made.files.write(f"{folder}/README.md", "no skill")
    (found,) = made.look().skills
    assert made.reasons() == []
    assert (found.place, found.approved, found.tools, list(found.files)) == ("project", False, (), ["scripts/fill.py"])
    assert 'itself: "Fills in PDF forms.' in list_skills([found], "direct", 1000)  # a quotation, until it is trusted
    made.trust.add(found.digest, found.name)
    assert "- pdf-forms: Fills in PDF forms. Use it when" in list_skills(made.look().skills, "direct", 1000)


def test_one_skill_for_several_agents_is_one_and_another_of_its_name_is_told(tmp_path: Path) -> None:
    made = Shelves(tmp_path)
    for folder in (".agents/skills", ".claude/skills"):
        made.files.write(f"{folder}/pdf-forms/SKILL.md", CLAUDES)
    assert [skill.folder for skill in made.look().skills] == [str(made.files.root / ".agents/skills/pdf-forms")]
    assert made.reasons() == []
    made.files.write(".claude/skills/pdf-forms/SKILL.md", CLAUDES.replace("Fills", "Empties"))
    assert list(made.skills()) == ["pdf-forms"]
    assert len(made.reasons()) == 1


def test_links_between_the_folders_and_out_of_the_workspace_are_not_followed(tmp_path: Path) -> None:
    made = Shelves(tmp_path)
    made.files.write(".agents/skills/pdf-forms/SKILL.md", CLAUDES)
    outside = tmp_path / "outside" / "evil"
    outside.mkdir(parents=True)
    (outside / "SKILL.md").write_text(CLAUDES.replace("pdf-forms", "evil"))
    claude = made.files.root / ".claude"
    claude.mkdir()
    (claude / "skills").symlink_to("../.agents/skills")
    assert list(made.skills()) == ["pdf-forms"]
    (claude / "skills").unlink()
    (claude / "skills").mkdir()
    (claude / "skills" / "pdf-forms").symlink_to("../../.agents/skills/pdf-forms")
    (claude / "skills" / "evil").symlink_to(outside)
    assert list(made.skills()) == ["pdf-forms"]
    assert made.reasons() == []


@pytest.mark.parametrize(("names", "group"), [
    (("file_read", "shell_exec", "export_artifact"), "artifacts"),
    (("search_web",), "web"),
    (("nothing_like_it", "bash"), ""),
])  # fmt: skip
def test_its_tools_are_offered_by_whatever_name(names: tuple[str, ...], group: str) -> None:
    selection = ToolSelection(ToolRegistry([cls() for cls in BUILTIN]), lambda: "ask")
    selection.offer(names)
    groups = {cls.traits.name: cls.traits.group for cls in BUILTIN}
    assert {groups[spec["name"]] for spec in selection.specs()} == {CORE, *filter(None, [group])}
