"""Files of a private copy: written, removed, with folders made and taken away, and never through a link.

Every version of a text has a second of its own, whatever the clock says.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.shadow.private_copy import Item, PrivateCopy, TextTimes
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


def second(path: Path) -> int:
    return int(path.stat().st_mtime)


def laid(path: Path, times: TextTimes, below: Path | None = None) -> int:
    path.write_text("text")
    times.give(str(path), None if below is None else below.stat())
    return second(path)


def test_it_is_now(tmp_path: Path) -> None:
    assert laid(tmp_path / "a", TextTimes(lambda: 1_000.9)) == 1_000


def test_texts_that_are_laid_together_share_a_second(tmp_path: Path) -> None:
    times = TextTimes(lambda: 1_000.0)
    assert [laid(tmp_path / name, times) for name in "abc"] == [1_000] * 3


def test_the_next_version_is_later_in_the_same_second_too(tmp_path: Path) -> None:
    times = TextTimes(lambda: 1_000.0)
    found = []
    for _ in range(3):
        times.begin()
        found.append(laid(tmp_path / "a", times))
    assert found == [1_000, 1_001, 1_002]


def test_preparing_without_laying_costs_no_second(tmp_path: Path) -> None:
    times = TextTimes(lambda: 1_000.0)
    for _ in range(9):
        times.begin()
    assert laid(tmp_path / "a", times) == 1_000


def test_it_is_never_that_of_the_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.write_text("text")
    times = TextTimes(lambda: second(disk))
    assert laid(tmp_path / "a", times, disk) == second(disk) + 1
    times.begin()
    assert laid(tmp_path / "a", times, disk) == second(disk) + 2


def test_it_is_never_that_of_what_a_command_left(tmp_path: Path) -> None:
    left = tmp_path / "left"
    left.write_text("text")
    os.utime(left, (1_000, 1_000))
    path = tmp_path / "a"
    path.write_text("text")
    TextTimes(lambda: 1_000.0).give(str(path), None, left.stat())
    assert second(path) == 1_001


@given(st.lists(st.floats(1_000, 1_010), min_size=2, max_size=30))
def test_no_second_twice_with_a_clock_that_jumps(times_told: list[float]) -> None:
    told = iter(times_told)
    times = TextTimes(lambda: next(told))
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in times_told:
            times.begin()
            found.append(laid(Path(folder, "a"), times))
    assert found == sorted(set(found))
