"""`AGENTS.md`: which ones count for a file, what the user has in the buffer, and what is not to be trusted."""

from __future__ import annotations

from pathlib import Path

from codeagent_lsp.agent.instructions import (
    INSTRUCTIONS_LIMIT,
    nested_instructions,
    rendered,
    root_instructions,
)
from tests.workspace.file_fakes import workspace


def test_every_folder_of_the_workspace_has_its_own(tmp_path: Path) -> None:
    made = workspace(tmp_path / "one", tmp_path / "two")
    (tmp_path / "two").mkdir()
    made.write("AGENTS.md", "Use tabs.\n")
    (tmp_path / "two" / "AGENTS.md").write_text("Use spaces.")
    text = rendered(root_instructions(made.view))
    assert text == (
        "Project instructions (one/AGENTS.md):\nUse tabs.\n\nProject instructions (two/AGENTS.md):\nUse spaces."
    )


def test_the_nearest_comes_first_and_the_root_is_left_out(tmp_path: Path) -> None:
    made = workspace(tmp_path)
    for folder in ("", "src/", "src/deep/", "other/"):
        made.write(f"{folder}AGENTS.md", f"In {folder or 'root'}.")
    found = nested_instructions(made.view, [made.path("src/deep/er/a.py"), made.path("src/b.py")])
    assert [item.name for item in found] == ["src/deep/AGENTS.md", "src/AGENTS.md"]
    assert nested_instructions(made.view, [made.path("a.py"), "untitled:1", "/etc/passwd", str(made.root)]) == ()


def test_an_unsaved_buffer_is_the_truth_and_a_staged_text_is_not(tmp_path: Path) -> None:
    made = workspace(tmp_path)
    made.write("AGENTS.md", "on the disk")
    made.stage("AGENTS.md", "obey me")
    assert root_instructions(made.view)[0].text == "on the disk"
    made.open("AGENTS.md", "typed")
    made.open("src/AGENTS.md", "not saved yet")
    assert root_instructions(made.view)[0].text == "typed"
    assert nested_instructions(made.view, [made.path("src/a.py")])[0].text == "not saved yet"


def test_they_are_bounded_at_a_line(tmp_path: Path) -> None:
    made = workspace(tmp_path / "w")
    made.write("AGENTS.md", "é" * INSTRUCTIONS_LIMIT)
    (long,) = root_instructions(made.view)
    assert len(long.text.encode()) <= INSTRUCTIONS_LIMIT + 20
    assert long.text.endswith("é\n(… cut)")
    made.write("AGENTS.md", "first line\nsecond line\n")
    assert root_instructions(made.view, 15)[0].text == "first line\n(… cut)"
    made.write("a/AGENTS.md", "x" * 20)
    made.write("a/b/AGENTS.md", "y" * 20)
    assert [item.name for item in nested_instructions(made.view, [made.path("a/b/c")], 20)] == ["a/b/AGENTS.md"]


def test_links_folders_binaries_and_empty_files_are_none(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    made = workspace(tmp_path / "w")
    made.write("b/AGENTS.md", b"\x00\x01\x02")
    made.write("c/AGENTS.md", " \n")
    made.write("d/AGENTS.md/x", "")
    (tmp_path / "w" / "AGENTS.md").symlink_to(secret)
    (tmp_path / "w" / "e").symlink_to(tmp_path)
    (tmp_path / "AGENTS.md").write_text("outside")
    assert root_instructions(made.view) == ()
    assert nested_instructions(made.view, [made.path(f"{name}/a.py") for name in "bcde"]) == ()


def test_hidden_characters_are_shown_and_told_of(tmp_path: Path) -> None:
    made = workspace(tmp_path)
    made.write("AGENTS.md", "Be \u202enice\u200b \U0001f600 <!-- and do this -->")
    (item,) = root_instructions(made.view)
    assert item.text == "Be \\u202enice\\u200b \U0001f600 <!-- and do this -->"
    assert item.unseen
    made.write("AGENTS.md", "Plain. \U0001f600\r\n")
    assert not root_instructions(made.view)[0].unseen
