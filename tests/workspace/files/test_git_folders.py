"""Which folders of a repository lie outside of a workspace: those of objects that it borrows, and no others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from codeagent_lsp.workspace.files.git_folders import borrowed_by, outer_folders


def _git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    subprocess.run(("git", *identity, *arguments), cwd=folder, check=True, capture_output=True)


@pytest.fixture
def first(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "first"
    folder.mkdir()
    _git(folder, "init", "-q", ".")
    (folder / "a").write_text("a\n")
    _git(folder, "add", "a")
    _git(folder, "commit", "-q", "-m", "first")
    return folder


def test_a_chain_of_clones(first: Path) -> None:
    names = ["b", 'c "ü', "d"]
    source = first
    for name in names:
        _git(first, "clone", "-q", "--shared", str(source), str(first.parent / name))
        source = first.parent / name
    chain = [str(first.parent / name / ".git/objects") for name in ('c "ü', "b", "first")]
    assert list(outer_folders(str(source))) == chain
    assert borrowed_by(str(first / ".git")) == ()


def test_a_reference_beside_a_worktree(first: Path) -> None:
    _git(first, "clone", "-q", "--reference", str(first), str(first), str(first.parent / "b"))
    _git(first.parent / "b", "worktree", "add", "-q", str(first.parent / "tree"))
    assert str(first / ".git/objects") in outer_folders(str(first.parent / "tree"))


@pytest.mark.parametrize(
    "written", ["{}/first/.git/objects", "../../../first/.git/objects", '"{}/f\\151rst/.git/objects"']
)
def test_names_as_git_reads_them(first: Path, written: str) -> None:
    other = first.parent / "other"
    other.mkdir()
    _git(other, "init", "-q", ".")
    (other / ".git/objects/info").mkdir(exist_ok=True)
    lines = ["# a word", written.format(first.parent), "/nowhere/objects", ""]
    (other / ".git/objects/info/alternates").write_text("\n".join(lines))
    _git(other, "log", "--format=%s", "-1", "--all")
    assert borrowed_by(str(other / ".git")) == (str(first / ".git/objects"),)


def test_a_list_names_no_other_folder_of_the_user(first: Path) -> None:
    private, named = first.parent / "private", first.parent / "objects"
    private.mkdir()
    named.mkdir()
    link = first.parent / "link"
    link.mkdir()
    (link / "HEAD").write_text("ref: x\n")
    (link / "objects").symlink_to(private)
    names = [private, named, link / "objects", first, first / ".git", Path("/")]
    info = first / ".git/objects/info/alternates"
    info.parent.mkdir(exist_ok=True)
    info.write_text("".join(f"{name}\n" for name in names))
    assert borrowed_by(str(first / ".git")) == ()


def test_a_ring_ends(first: Path) -> None:
    _git(first, "clone", "-q", "--shared", str(first), str(first.parent / "b"))
    info = first / ".git/objects/info/alternates"
    info.parent.mkdir(exist_ok=True)
    info.write_text(f"{first.parent}/b/.git/objects\n")
    assert set(borrowed_by(str(first / ".git"))) <= {
        str(first.parent / name / ".git/objects") for name in ("first", "b")
    }
