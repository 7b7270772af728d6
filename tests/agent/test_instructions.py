"""`AGENTS.md` and `CLAUDE.md`: which ones count for a file, what the user has in the buffer, what they import, and what
is not to be trusted.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from codeagent_lsp.agent.instructions import (
    IMPORT_DEPTH,
    INSTRUCTIONS_LIMIT,
    MOST_IMPORTS,
    nested_instructions,
    render_instructions,
    root_instructions,
)
from codeagent_lsp.config import PermissionsSettings
from codeagent_lsp.tools.permissions.policy import may_read
from tests.workspace.file_fakes import Workspace, workspace


def test_every_folder_of_the_workspace_has_its_own(tmp_path: Path) -> None:
    made = workspace(tmp_path / "one", tmp_path / "two")
    (tmp_path / "two").mkdir()
    made.write("AGENTS.md", "Use tabs.\n")
    (tmp_path / "two" / "AGENTS.md").write_text("Use spaces.")
    text = render_instructions(root_instructions(made.view))
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


def imported(made: Workspace, permissions: PermissionsSettings | None = None) -> list[str]:
    """The names of the workspace's instruction files, with what they import."""
    allowed = may_read(permissions or PermissionsSettings(), made.view.roots)
    return [item.name for item in root_instructions(made.view, may_read=allowed)]


def test_claude_md_counts_where_there_is_no_agents_md_beside_it(tmp_path: Path) -> None:
    made = workspace(tmp_path)
    made.write("CLAUDE.md", "Use tabs.")
    made.write("src/AGENTS.md", "In src.")
    made.write("src/CLAUDE.md", "For others.")
    made.write("src/deep/CLAUDE.md", "Deep.")
    assert render_instructions(root_instructions(made.view)) == "Project instructions (CLAUDE.md):\nUse tabs."
    found = nested_instructions(made.view, [made.path("src/deep/a.py")])
    assert [item.name for item in found] == ["src/deep/CLAUDE.md", "src/AGENTS.md"]
    made.open("AGENTS.md", "typed")
    assert imported(made) == ["AGENTS.md"]


def test_a_link_from_one_to_the_other_is_read_once(tmp_path: Path) -> None:
    made = workspace(tmp_path)
    made.write("CLAUDE.md", "Use tabs.")
    (tmp_path / "AGENTS.md").symlink_to("CLAUDE.md")
    assert imported(made) == ["CLAUDE.md"]


def test_imports_follow_the_file_that_names_them_relative_to_it(tmp_path: Path) -> None:
    made = workspace(tmp_path)
    made.write("CLAUDE.md", "See @docs/style.md, (@README) and @docs/with\\ blank.md.\n- @package.json\n")
    made.write("docs/style.md", "Style. @more.md and @../README again")
    made.write("docs/more.md", "More.")
    made.write("more.md", "Not this one.")
    made.write("docs/with blank.md", "Blank.")
    made.write("README", "Read me.")
    made.write("package.json", "{}")
    names = ["CLAUDE.md", "docs/style.md", "docs/more.md", "README", "docs/with blank.md", "package.json"]
    assert imported(made) == names
    made.open("docs/more.md", "Unsaved.")
    text = render_instructions(root_instructions(made.view, may_read=may_read(PermissionsSettings(), made.view.roots)))
    assert "Project instructions (docs/more.md):\nUnsaved.\n" in text
    assert [item.name for item in root_instructions(made.view)] == ["CLAUDE.md"], "none without leave to read"


def test_agents_md_imports_nothing(tmp_path: Path) -> None:
    made = workspace(tmp_path)
    made.write("AGENTS.md", "@a.md")
    made.write("a.md", "x")
    assert imported(made) == ["AGENTS.md"]


@pytest.mark.parametrize(
    "text",
    [
        "`@a.md`",
        "``code ` @a.md``",
        "a `span that\ngoes @a.md on` there",
        "```\n@a.md\n```",
        "~~~text\n@a.md\n```\n@a.md\n~~~~",
        "- item\n  ````md\n  ```\n  @a.md\n  ````",
        "> ```\n> @a.md\n> ```",
        "```\nnever closed\n\n@a.md",
        "me@a.md",
        "\\@a.md",
        "@a.md#part/../..",
        "@",
        "@@a.md",
        "@./missing.md",
        "@folder",
        "@ a.md",
    ],
)
def test_what_is_no_import(tmp_path: Path, text: str) -> None:
    made = workspace(tmp_path)
    made.write("a.md", "x")
    made.write("folder/b.md", "x")
    made.write("CLAUDE.md", text)
    assert imported(made) == ["CLAUDE.md"]


@pytest.mark.parametrize("text", ["```one```\n@a.md", "it's `\n\n@a.md `", "``` `x` @a.md", "```\ncode\n```\n@a.md"])
def test_what_only_looks_like_code(tmp_path: Path, text: str) -> None:
    made = workspace(tmp_path)
    made.write("a.md", "x")
    made.write("CLAUDE.md", text)
    assert imported(made) == ["CLAUDE.md", "a.md"]


def test_nothing_is_imported_from_outside_the_workspace(tmp_path: Path) -> None:
    made = workspace(tmp_path / "w" / "project")
    (tmp_path / "secrets").write_text("hidden")
    (tmp_path / "w" / "sibling").mkdir()
    (tmp_path / "w" / "sibling" / "notes.md").write_text("hidden")
    made.write("sub/x.md", "@../../sibling/notes.md")
    (made.root / "link.md").symlink_to(tmp_path / "secrets")
    (made.root / "inside").symlink_to(tmp_path / "w" / "sibling")
    (made.root / "loop.md").symlink_to("loop.md")
    (made.root / "known.md").symlink_to("sub/x.md")
    written = (
        "../../secrets ../sibling/notes.md link.md inside/notes.md loop.md ~/.profile /etc/passwd file:///etc/passwd"
    )
    odd = f"{tmp_path}/secrets sub/../../../../secrets {'../' * 400}etc/passwd {'x/' * 480} known.md"
    made.write("CLAUDE.md", "\n".join(f"@{name}" for name in f"{written} {odd}".split(" ")))
    assert imported(made) == ["CLAUDE.md", "sub/x.md"]


def test_an_absolute_path_into_the_workspace_is_one(tmp_path: Path) -> None:
    made = workspace(tmp_path)
    made.write("docs/a.md", "x")
    made.write("CLAUDE.md", f"@{made.path('docs/a.md')}")
    assert imported(made) == ["CLAUDE.md", "docs/a.md"]


def test_what_may_not_be_read_without_asking_is_not_imported(tmp_path: Path) -> None:
    made = workspace(tmp_path)
    for name in (".env", "id_rsa", "private/plan.md", "open.md"):
        made.write(name, "x")
    (tmp_path / "env.md").symlink_to(".env")
    made.write("CLAUDE.md", "@.env @id_rsa @env.md @private/plan.md @open.md")
    assert imported(made) == ["CLAUDE.md", "private/plan.md", "open.md"]
    assert imported(made, PermissionsSettings(ask=("read_file(private/**)",))) == ["CLAUDE.md", "open.md"]
    assert imported(made, PermissionsSettings(deny=("read(*)",))) == ["CLAUDE.md"]


def test_imports_are_bounded_in_depth_and_go_round_once(tmp_path: Path) -> None:
    made = workspace(tmp_path)
    made.write("CLAUDE.md", "@1.md")
    for number in range(1, 10):
        made.write(f"{number}.md", f"@{number + 1}.md @CLAUDE.md @1.md @{number}.md")
    assert imported(made) == ["CLAUDE.md", *(f"{number}.md" for number in range(1, IMPORT_DEPTH + 1))]


@pytest.mark.slow
def test_ten_thousand_imports_end_soon(tmp_path: Path) -> None:
    made = workspace(tmp_path)
    for number in range(300):
        made.write(f"{number}.md", f"n{number}")
    begun = time.process_time()
    made.write("CLAUDE.md", " ".join(f"@{number}.md" for number in range(3_000)))
    assert len(imported(made)) == MOST_IMPORTS + 1
    made.write("CLAUDE.md", " ".join(f"@{number}.md" for number in range(10_000)))
    assert imported(made) == ["CLAUDE.md"], "there is no room left"
    made.write("CLAUDE.md", "@../x.md\n" * 3_000)
    assert imported(made) == ["CLAUDE.md"]
    made.write("CLAUDE.md", "`" + " @x`" * 8_000)
    imported(made)
    made.write("CLAUDE.md", "".join(f"{'`' * (number % 200 + 1)} " for number in range(1_000)))
    imported(made)
    assert time.process_time() - begun < 5


def test_imports_share_the_room_of_all(tmp_path: Path) -> None:
    made = workspace(tmp_path)
    made.write("CLAUDE.md", "first @a.md @b.md")
    made.write("a.md", "a" * INSTRUCTIONS_LIMIT)
    made.write("b.md", "b")
    allowed = may_read(PermissionsSettings(), made.view.roots)
    found = root_instructions(made.view, may_read=allowed)
    assert [item.name for item in found] == ["CLAUDE.md", "a.md"]
    assert sum(len(item.text) for item in found) <= INSTRUCTIONS_LIMIT + 20
