"""What would be installed: which skill of a folder, which files, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.errors import ToolFailed, ToolRetry
from codeagent_lsp.tools.skills.skill_tools import bundle_in, is_script, skill_folders
from tests.tools.skills.samples import skill


def put(folder: Path, name: str, content: str | bytes) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def test_a_folder_that_is_a_skill(tmp_path: Path) -> None:
    put(tmp_path, "SKILL.md", skill("pdf"))
    put(tmp_path, "run.sh", "#!/bin/sh\n")
    put(tmp_path, "docs/more.md", "More.")
    put(tmp_path, ".git/config", "not taken")
    bundle = bundle_in(tmp_path)
    assert list(bundle.files) == ["SKILL.md", "docs/more.md", "run.sh"]
    assert bundle.scripts == ("run.sh",)
    listing = bundle.listing()
    assert "- run.sh, 10 bytes (a script)" in listing
    assert "- docs/more.md, 5 bytes\n" in listing
    assert "Do it well." in listing


def test_one_of_several_by_folder_path_or_name(tmp_path: Path) -> None:
    put(tmp_path, "skills/a/SKILL.md", skill("first"))
    put(tmp_path, "skills/b/SKILL.md", skill("second"))
    put(tmp_path, "skills/b/inner/SKILL.md", skill("inside-of-b"))
    put(tmp_path, "node_modules/x/SKILL.md", skill("not-ours"))
    assert [folder.name for folder in skill_folders(tmp_path)] == ["a", "b"]
    for wanted in ("b", "second", "skills/b"):
        assert bundle_in(tmp_path, wanted).skill.name == "second"
    with pytest.raises(ToolRetry, match=r"more than one skill in it.*: a, b"):
        bundle_in(tmp_path)
    with pytest.raises(ToolRetry, match="no skill 'c'"):
        bundle_in(tmp_path, "c")


def test_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match=r"no SKILL\.md"):
        bundle_in(tmp_path)
    put(tmp_path, "SKILL.md", "no head")
    with pytest.raises(ToolFailed, match="it has no head"):
        bundle_in(tmp_path)
    put(tmp_path, "SKILL.md", b"---\n\xff")
    with pytest.raises(ToolFailed, match="not UTF-8"):
        bundle_in(tmp_path)


@pytest.mark.parametrize("name", ["a\u202eb.md", "new\nline", "a:b", "-", "x" * 130, "a.", " a"])
def test_names_that_deceive(tmp_path: Path, name: str) -> None:
    put(tmp_path, "SKILL.md", skill("pdf"))
    put(tmp_path, name, "x")
    if name == "-":
        assert bundle_in(tmp_path).files[name] == b"x"
    else:
        with pytest.raises(ToolFailed, match="is not allowed"):
            bundle_in(tmp_path)


def test_capitals_alone_make_no_other_name(tmp_path: Path) -> None:
    put(tmp_path, "SKILL.md", skill("pdf"))
    put(tmp_path, "a.md", "x")
    put(tmp_path, "A.md", "x")
    with pytest.raises(ToolFailed, match="capitals"):
        bundle_in(tmp_path)


def test_links_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "s", "SKILL.md", skill("pdf"))
    (tmp_path / "s" / "out").symlink_to(tmp_path)
    with pytest.raises(ToolFailed, match="out is a link"):
        bundle_in(tmp_path / "s")
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "SKILL.md").symlink_to(tmp_path / "s" / "SKILL.md")
    with pytest.raises(ToolFailed, match=r"no SKILL\.md"):
        bundle_in(tmp_path / "t")


@pytest.mark.parametrize(
    ("name", "data", "script"),
    [
        ("a.PY", b"", True),
        ("run", b"#!/bin/sh", True),
        ("x", b"\x7fELF", True),
        ("a.md", b"text", False),
        ("sh", b"", False),
    ],
)
def test_scripts(name: str, data: bytes, script: bool) -> None:
    assert is_script(name, data) is script
