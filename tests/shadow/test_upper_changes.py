"""What differs in an upper from its prepared state, without one that prepares it; the rest is in `test_upper.py`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from codeagent_lsp.shadow.collect import WrittenFiles, WrittenLimits
from codeagent_lsp.shadow.folder import remove_tree
from codeagent_lsp.shadow.mirror import Mirror
from codeagent_lsp.shadow.shell import Written
from codeagent_lsp.shadow.upper import UpperChanges
from codeagent_lsp.shadow.upper_walk import UpperPaths, has_files
from codeagent_lsp.workspace.files.ignore import IgnoreRules


def test_files_differ_from_the_disk_or_from_what_was_laid(tmp_path: Path) -> None:
    disk, upper = tmp_path / "disk", tmp_path / "up"
    for place in (disk, upper):
        place.mkdir()
        (place / "same").write_bytes(b"same\n")
    (disk / "new").write_bytes(b"")
    (upper / "new").write_bytes(b"new\n")
    (upper / "laid").write_bytes(b"laid\n")
    paths = UpperPaths(str(disk), str(upper))
    laid, gone = f"{disk}/laid", f"{disk}/gone"
    rules = IgnoreRules(str(disk)).at_root()
    stamps = {entry.path: entry.stamp for entry in paths.walk(rules) if entry.path == laid}
    found = WrittenFiles(WrittenLimits())
    UpperChanges(paths, {laid: b"laid\n", gone: b"wanted\n"}, stamps, rules, found).collect()
    assert found.files == {
        f"{disk}/new": Written(f"{disk}/new", "text", b"new\n"),
        gone: Written(gone, "deleted"),
    }


def test_a_folder_that_is_ignored_as_a_whole_has_no_changes(tmp_path: Path) -> None:
    (tmp_path / "up").mkdir()
    (tmp_path / "up" / "new").write_bytes(b"new\n")
    found = WrittenFiles(WrittenLimits())
    paths = UpperPaths(str(tmp_path / "disk"), str(tmp_path / "up"))
    UpperChanges(paths, {f"{tmp_path}/disk/gone": b""}, {}, None, found).collect()
    assert found.files == {}


def test_paths_of_an_upper() -> None:
    paths = UpperPaths("/w", "/private/up")
    assert paths.place("/w/a/b.py") == "/private/up/a/b.py"
    assert paths.above("/w/a/b/c.py") == ["/w/a", "/w/a/b"]
    assert paths.above("/w/a.py") == []


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder that is removed however deep it is."""
    made = tmp_path / "place"
    made.mkdir()
    yield made
    remove_tree(str(made))


def deepen(folder: Path, name: str, count: int) -> None:
    """Make folders in one another, and a file in the last one, as a command can: without their whole path."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(count):
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("file.txt", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)


DEEP = pytest.mark.parametrize(
    ("name", "count"), [("d", 1500), ("d" * 200, 100), ("d", 210), ("é" * 100, 30)], ids=lambda value: str(value)[:4]
)


@pytest.mark.slow
@DEEP
def test_a_tree_that_is_too_deep_is_told_once_and_breaks_nothing(place: Path, name: str, count: int) -> None:
    disk, upper = place / "disk", place / "up"
    for folder in (disk, upper, upper / ".git"):
        folder.mkdir()
    paths, rules = UpperPaths(str(disk), str(upper)), IgnoreRules(str(disk)).at_root()
    before = {entry.path: entry.stamp for entry in paths.walk(rules)}
    deepen(upper, name, count)
    deepen(upper / ".git", name, count)
    (upper / "new.txt").write_bytes(b"new\n")
    for stamps, deep in ((before, 1), ({entry.path: entry.stamp for entry in paths.walk(rules)}, 0)):
        found = WrittenFiles(WrittenLimits())
        UpperChanges(paths, {}, stamps, rules, found).collect()
        kinds = [file.kind for file in found.files.values()]
        assert kinds.count("deep") == deep
        assert kinds.count("text") == deep  # `new.txt` is prepared the second time
    assert has_files(str(upper)) is True


@pytest.mark.slow
@DEEP
def test_in_a_copy_too(place: Path, name: str, count: int) -> None:
    disk, copy = place / "disk", place / "copy"
    disk.mkdir()
    copy.mkdir()
    mirror = Mirror(str(disk), str(copy), IgnoreRules(str(disk)).at_root)
    mirror.prepare({})
    deepen(copy, name, count)
    (copy / "new.txt").write_bytes(b"new\n")
    for kinds in ({"deep", "text"}, {"text"}):
        found = WrittenFiles(WrittenLimits())
        mirror.collect(found)
        assert {file.kind for file in found.files.values()} == kinds
        mirror.prepare({})
        (copy / "next.txt").write_bytes(b"next\n")
