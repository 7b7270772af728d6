"""The page about project knowledge: its examples are read as they would be, and what it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codeagent_lsp.agent.agent_files import AgentLibrary, Profile
from codeagent_lsp.agent.custom_commands import CommandLibrary
from codeagent_lsp.agent.instructions import INSTRUCTIONS_LIMIT, root_instructions
from codeagent_lsp.config import Settings
from codeagent_lsp.protocol import COMMANDS, command
from codeagent_lsp.session.memory.remembering import MOST_ENTRIES
from codeagent_lsp.tools.catalogue import BUILTIN
from codeagent_lsp.tools.skills.skill_library import Skill, SkillLibrary
from codeagent_lsp.tools.skills.trust import Trust
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.paths import Roots
from tests.workspace.file_fakes import FakeBuffers, FakeStaged

PAGE = (Path(__file__).parents[1] / "docs" / "knowledge.md").read_text("utf-8")
INSTRUCTIONS, COMMAND, SKILL, AGENT = re.findall(r"^```markdown\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
TOOLS = {tool.traits.name for tool in BUILTIN}


@pytest.fixture
def view(tmp_path: Path) -> FileView:
    (tmp_path / "ws").mkdir()
    return FileView(Roots([str(tmp_path / "ws")]), FakeBuffers(), FakeStaged())


def put(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / "ws" / name
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")


def the_skill(tmp_path: Path, view: FileView) -> Skill:
    put(tmp_path, ".codeagent/skills/release/SKILL.md", SKILL)
    catalogue = SkillLibrary(tmp_path / "own", Trust(tmp_path / "trusted.json")).catalogue(view)
    assert catalogue.problems == ()
    (skill,) = catalogue.skills
    return skill


def the_agent(tmp_path: Path, view: FileView) -> Profile:
    put(tmp_path, ".codeagent/agents/tester.md", AGENT)
    profiles, problems = AgentLibrary(tmp_path / "own", Trust(tmp_path / "trusted.json")).look(view)
    assert problems == ()
    return profiles[-1]


def test_the_example_of_a_skill_is_one(tmp_path: Path, view: FileView) -> None:
    skill = the_skill(tmp_path, view)
    assert (skill.name, skill.place, skill.approved) == ("release", "project", False)
    assert skill.triggers == ("release", "changelog", "发布")
    assert set(skill.tools) <= TOOLS
    assert [mode for mode in ("direct", "plan", "ask") if skill.serves(mode)] == ["direct", "plan"]
    assert skill.body.startswith("1. Move")


def test_the_example_of_an_agent_is_one(tmp_path: Path, view: FileView) -> None:
    agent = the_agent(tmp_path, view)
    assert (agent.name, agent.place, agent.reads_only, agent.max_iterations) == ("tester", "project", False, 30)
    assert set(agent.tools) <= TOOLS
    assert agent.instructions.endswith("what failed.")


def test_the_example_of_instructions_is_told(tmp_path: Path, view: FileView) -> None:
    (tmp_path / "ws" / "AGENTS.md").write_text(INSTRUCTIONS)
    (found,) = root_instructions(view)
    assert (found.text, found.unseen) == (INSTRUCTIONS.strip(), False)


def test_the_commands_and_settings_that_it_names_are_real() -> None:
    named = set(re.findall(r"`(codeagent\.[a-z]+\.[a-zA-Z]+)`", PAGE))
    assert named <= {item.name for item in COMMANDS}
    assert {"codeagent.memory.forget", "codeagent.skills.list", "codeagent.approvals.revoke"} <= named
    forget = command("codeagent.memory.forget")
    assert forget is not None
    assert [argument.name for argument in forget.arguments] == ["id"]
    assert isinstance(Settings().memory.enabled, bool)
    assert Settings().skills.paths == ()


def test_its_numbers_are_those_of_the_code() -> None:
    assert f"at most {MOST_ENTRIES} in all" in PAGE
    assert f"at most {INSTRUCTIONS_LIMIT >> 10} KiB" in PAGE


def test_the_command_of_the_page(tmp_path: Path, view: FileView) -> None:
    put(tmp_path, ".claude/commands/review.md", COMMAND)
    called = CommandLibrary((), Trust(tmp_path / "trusted.json")).called(view, "/review a.py soon")
    assert called is not None
    assert called.task == ("Read a.py and list its faults, the worst first. a.py soon is everything after the name.")
