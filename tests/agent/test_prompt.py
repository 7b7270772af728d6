"""The system prompt and the first words of a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.agent.prompt import (
    INSTRUCTIONS_LIMIT,
    Environment,
    Selection,
    project_instructions,
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


def test_the_projects_instructions_are_in_it_but_not_for_a_rewrite(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.")
    environment = Environment((str(tmp_path),))
    assert "Use tabs." in system_prompt("system", environment)
    assert "Use tabs." not in system_prompt("rewrite", environment)


def test_instructions_are_bounded_and_whole_characters(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("é" * INSTRUCTIONS_LIMIT, "utf-8")
    text = project_instructions([str(tmp_path)])
    assert len(text.encode()) <= INSTRUCTIONS_LIMIT
    assert set(text) == {"é"}
    assert len(project_instructions([str(tmp_path)], 101)) == 50
    assert len(system_prompt("system", Environment((str(tmp_path),)), limit=1000)) < 4000


def test_links_folders_and_missing_files_are_no_instructions(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    for folder in (one, two, three):
        folder.mkdir()
    (one / "AGENTS.md").symlink_to(secret)
    (two / "AGENTS.md").mkdir()
    (three / "AGENTS.md").write_text("found")
    assert project_instructions(list(map(str, (one, two, three)))) == "found"
    assert project_instructions([]) == ""


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
