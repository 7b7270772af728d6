"""Files of a private copy: written, removed, with folders made and taken away, and never through a link."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from codeagent_lsp.shadow.mirror_files import Item
from codeagent_lsp.shadow.private_copy import PrivateCopy
from tests.shadow.rig import snapshot


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    place = tmp_path / "disk"
    (place / "d").mkdir(parents=True)
    (place / "d" / "a.py").write_bytes(b"a\n")
    (place / "d" / "a.py").chmod(0o640)
    return place


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "copy"


@pytest.fixture
def copy(disk: Path, place: Path) -> PrivateCopy:
    return PrivateCopy(str(disk), str(place))


def test_a_copy_and_a_given_text_have_their_origins(copy: PrivateCopy, disk: Path, place: Path) -> None:
    info = (disk / "d" / "a.py").lstat()
    stamp = Item(info, ignored=False).stamp
    copy.begin({"d/b.py"})
    copy.write("d/a.py", stamp, info)
    copy.write("d/b.py", b"b\n", info)
    assert (place / "d" / "a.py").read_bytes() == b"a\n"
    assert stat.S_IMODE((place / "d" / "b.py").stat().st_mode) == 0o640
    assert {name: origin for name, (origin, _) in copy.origins.items()} == {"d/a.py": stamp, "d/b.py": b"b\n"}
    assert copy.has("d/a.py", stamp) and copy.has("d/b.py", b"b\n") and not copy.has("d/b.py", b"c\n")


def test_a_file_that_is_gone_from_the_disk_is_not_copied(copy: PrivateCopy, place: Path) -> None:
    copy.begin(())
    copy.write("none.py", (0, 0, 0, 0, 0), None)
    assert (list(place.iterdir()), copy.origins) == ([], {})


def test_a_given_file_makes_no_way_for_a_folder_and_others_do(copy: PrivateCopy, place: Path) -> None:
    copy.begin({"given"})
    copy.write("given", b"text", None)
    copy.write("given/below", b"text", None)
    copy.make_folder("given", 0o755)
    assert (place / "given").read_bytes() == b"text"
    copy.begin(())
    copy.write("given/below", b"text", None)
    assert (place / "given" / "below").read_bytes() == b"text"
    assert set(copy.origins) == {"given/below"}


def test_nothing_is_removed_or_written_through_a_link(copy: PrivateCopy, disk: Path, place: Path) -> None:
    before = snapshot(disk)
    (place / "link").symlink_to(disk / "d")
    copy.begin(())
    copy.remove("link/a.py")
    copy.write("link/a.py", b"other", None)
    assert snapshot(disk) == before
    assert (place / "link").is_dir() and not (place / "link").is_symlink()


def test_empty_folders_go_with_those_in_them(copy: PrivateCopy, place: Path) -> None:
    for name in ("a/b/c", "d/e"):
        (place / name).mkdir(parents=True)
    (place / "d" / "file").write_bytes(b"")
    copy.remove_empty(["a", "a/b", "a/b/c", "d", "d/e"])
    assert [str(path.relative_to(place)) for path in sorted(place.rglob("*"))] == ["d", "d/file"]
