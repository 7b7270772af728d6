"""What differs in an upper from its prepared state, without one that prepares it; the rest is in `test_upper.py`."""

from __future__ import annotations

from pathlib import Path

from codeagent_lsp.shadow.shell import Written
from codeagent_lsp.shadow.upper_changes import UpperChanges
from codeagent_lsp.shadow.upper_walk import UpperPaths
from codeagent_lsp.shadow.written_files import WrittenFiles, WrittenLimits
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
