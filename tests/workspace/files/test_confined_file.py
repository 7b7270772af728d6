"""Access by descriptors to one file; links that are swapped in, devices and limits are in `test_paths.py`."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.workspace.files.paths import Child, ConfinedFile, kind_of


def confined(root: Path, *parts: str) -> ConfinedFile:
    return ConfinedFile(str(root.joinpath(*parts)), str(root), parts, lambda path: Path(path).name.upper())


def test_a_file_and_the_folder_itself(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_bytes(b"a")
    assert confined(tmp_path, "d", "a").read_bytes(1) == b"a"
    assert confined(tmp_path).scan() == (Child("d", "folder"),)
    assert confined(tmp_path, "d").scan() == (Child("a", "file"),)
    info = confined(tmp_path).stat()
    assert info is not None and kind_of(info.st_mode) == "folder"


@pytest.mark.parametrize("parts", [("none",), ("none", "none"), ("a", "below"), ("link", "a")])
def test_what_cannot_be_reached_is_refused_by_its_name(tmp_path: Path, parts: tuple[str, ...]) -> None:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_bytes(b"a")
    (tmp_path / "link").symlink_to("d")
    file = confined(tmp_path, *parts)
    assert file.stat() is None
    for access in (lambda: file.read_bytes(9), file.scan):
        with pytest.raises(FileRefused, match=f"^{parts[-1].upper()} "):
            access()


@pytest.mark.parametrize(
    ("mode", "kind"),
    [(stat.S_IFREG, "file"), (stat.S_IFDIR, "folder"), (stat.S_IFLNK, "link"), (stat.S_IFIFO, "other")],
)
def test_kinds(mode: int, kind: str) -> None:
    assert kind_of(mode | 0o644) == kind
