"""The system prompt and the first words of a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.agent.agent_files import builtin
from codeagent_lsp.agent.prompt import (
    Environment,
    Selection,
    agent_prompt,
    shorten,
    system_prompt,
    task_message,
)


@pytest.mark.parametrize("kind", ["system", "ask", "rewrite"])
def test_the_same_workspace_gives_the_same_bytes(kind: str, tmp_path: Path) -> None:
    environment = Environment((str(tmp_path),), "fake")
    first = system_prompt(kind, environment)
    assert first == system_prompt(kind, environment)
    assert str(tmp_path) in first
    assert "fake" in first
    assert len(first) < 3000


def test_the_system_is_told_with_its_version_and_work_is_not_handed_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.release", lambda: "6.1.0-25-amd64")
    prompt = system_prompt("system", Environment(("/w",)))
    assert "Environment: Linux 6.1.0, workspace /w" in prompt
    assert "Think first" in prompt and "never hand it back" in prompt
    monkeypatch.setattr("platform.release", str)
    assert "Environment: Linux, workspace /w" in system_prompt("ask", Environment(("/w",)))


def test_what_is_known_of_the_project_comes_last(tmp_path: Path) -> None:
    environment = Environment((str(tmp_path),), commands="Commands run somewhere.")
    assert system_prompt("system", environment, "Use tabs.").endswith("Commands run somewhere.\n\nUse tabs.")
    assert "Commands" not in system_prompt("ask", environment, "Use tabs.")
    assert agent_prompt("You are a reviewer.", environment).startswith("You are a reviewer.")


def test_the_task_says_what_is_selected_and_what_is_wrong() -> None:
    message = task_message("  fix it ", Selection("a.py", 3, 4, "x = 1\n"), ["line 3: bad"])
    assert message.startswith("fix it")
    assert "a.py, lines 3-4" in message
    assert "x = 1" in message
    assert "- line 3: bad" in message


def test_long_selections_are_cut_at_a_line() -> None:
    assert shorten("abc", 3) == "abc"
    short = shorten("one\ntwo\nthree\n", 9)
    assert short.startswith("one\ntwo\n\n")
    assert "6 more characters" in short


def test_an_agent_that_only_reads_answers_what_it_is_asked_and_plans_if_asked_to() -> None:
    planner = next(profile for profile in builtin() if profile.name == "planner")
    assert planner.reads_only
    assert planner.instructions.index("Answer what your task asks") < planner.instructions.index("asks for a plan")
