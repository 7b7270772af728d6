"""Several files are written as one: every operation fails once, and each time nothing has changed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from codeagent_lsp.lsp_client.disk import ChangedMeanwhile, Disk, FileWrite, commit


class FailingDisk(Disk):
    """Fails at the n-th operation that changes something; `lasting` ones go on failing."""

    def __init__(self, root: Path, number: int, *, lasting: bool = False) -> None:
        super().__init__(root)
        self.number = number
        self.lasting = lasting
        self.count = 0

    def make_folder(self, path: Path) -> None:
        self._tick()
        super().make_folder(path)

    def remove_folder(self, path: Path) -> None:
        self._tick()
        super().remove_folder(path)

    def stage(self, path: Path, data: bytes, mode: int) -> Path:
        self._tick()
        return super().stage(path, data, mode)

    def replace(self, staged: Path, path: Path) -> None:
        self._tick()
        super().replace(staged, path)

    def remove(self, path: Path) -> None:
        self._tick()
        super().remove(path)

    def _tick(self) -> None:
        self.count += 1
        if self.count == self.number or (self.lasting and self.count > self.number):
            raise OSError(28, "No space left on device")


class Intruder(Disk):
    """Has somebody else do something right before the n-th file is put in place."""

    def __init__(self, root: Path, number: int, act: Callable[[], object], *, then_fail: bool = False) -> None:
        super().__init__(root)
        self.left = number
        self.act = act
        self.then_fail = then_fail

    def replace(self, staged: Path, path: Path) -> None:
        self.left -= 1
        if self.left == 0:
            self.act()
            if self.then_fail:
                raise OSError(5, "Input/output error")
        super().replace(staged, path)


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def scene(folder: Path) -> list[FileWrite]:
    """An edit, a creation in new folders, a deletion and a move."""
    (folder / "edit.py").write_bytes(b"old\r\n")
    (folder / "gone.py").write_bytes(b"gone")
    (folder / "from.py").write_bytes(b"moved")
    return [
        FileWrite(folder / "gone.py", b"gone", None),
        FileWrite(folder / "edit.py", b"old\r\n", b"new\r\n"),
        FileWrite(folder / "deep" / "er" / "new.py", None, b"created"),
        FileWrite(folder / "from.py", b"moved", None),
        FileWrite(folder / "to.py", None, b"moved", like=folder / "from.py"),
    ]


AFTER = {"edit.py": b"new\r\n", "deep": None, "deep/er": None, "deep/er/new.py": b"created", "to.py": b"moved"}


def test_all_is_written(tmp_path: Path) -> None:
    commit(scene(tmp_path), Disk(tmp_path))
    assert contents(tmp_path) == AFTER


def test_every_failure_leaves_all_as_it_was(tmp_path: Path) -> None:
    for number in range(1, 100):
        folder = tmp_path / str(number)
        folder.mkdir()
        writes = scene(folder)
        before = contents(folder)
        disk = FailingDisk(folder, number)
        try:
            commit(writes, disk)
        except OSError:
            assert contents(folder) == before, f"operation {number}"
        else:
            assert contents(folder) == AFTER
            assert number > 10, "the scene has more operations than that"
            return
    pytest.fail("it never came to an end")


def test_what_cannot_be_put_back_is_kept_and_named(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    one.write_bytes(b"first")
    two.write_bytes(b"second")
    writes = [FileWrite(one, b"first", b"x"), FileWrite(two, b"second", b"y")]
    with pytest.raises(OSError, match="space") as caught:
        commit(writes, FailingDisk(tmp_path, 6, lasting=True))  # four are staged, one is in place
    note = " ".join(caught.value.__notes__)
    kept = Path(note.rsplit(" ", 1)[1])
    assert kept.read_bytes() == b"first"
    assert two.read_bytes() == b"second"


def test_a_file_that_changed_before_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"theirs")
    with pytest.raises(ChangedMeanwhile, match="meanwhile"):
        commit([FileWrite(tmp_path / "b", None, b"x"), FileWrite(path, b"ours", b"new")], Disk(tmp_path))
    assert contents(tmp_path) == {"a": b"theirs"}


def test_a_file_that_appeared_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"theirs")
    with pytest.raises(ChangedMeanwhile):
        commit([FileWrite(tmp_path / "a", None, b"ours")], Disk(tmp_path))
    assert contents(tmp_path) == {"a": b"theirs"}


def test_taking_back_spares_what_somebody_else_wrote(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    one.write_bytes(b"first")
    two.write_bytes(b"second")
    disk = Intruder(tmp_path, 2, lambda: one.write_bytes(b"typed by the user"), then_fail=True)
    with pytest.raises(OSError, match="Input"):
        commit([FileWrite(one, b"first", b"x"), FileWrite(two, b"second", b"y")], disk)
    assert contents(tmp_path) == {"1": b"typed by the user", "2": b"second"}


def test_a_change_between_two_files_stops_the_second(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    one.write_bytes(b"first")
    two.write_bytes(b"second")
    with pytest.raises(ChangedMeanwhile):
        disk = Intruder(tmp_path, 1, lambda: two.write_bytes(b"typed"))
        commit([FileWrite(one, b"first", b"x"), FileWrite(two, b"second", b"y")], disk)
    assert contents(tmp_path) == {"1": b"first", "2": b"typed"}


def test_permissions_are_kept(tmp_path: Path) -> None:
    script, moved = tmp_path / "run.sh", tmp_path / "moved.sh"
    script.write_bytes(b"a")
    script.chmod(0o754)
    commit([FileWrite(script, b"a", b"b")], Disk(tmp_path))
    assert stat.S_IMODE(script.stat().st_mode) == 0o754
    commit([FileWrite(script, b"b", None), FileWrite(moved, None, b"b", like=script)], Disk(tmp_path))
    assert stat.S_IMODE(moved.stat().st_mode) == 0o754


def test_new_files_have_the_usual_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        commit([FileWrite(tmp_path / "a", None, b"x")], Disk(tmp_path))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    link.symlink_to(real)
    commit([FileWrite(link, b"old", b"new")], Disk(tmp_path))
    assert link.is_symlink()
    assert real.read_bytes() == b"new"


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("#!/bin/sh\necho\n", True),
        ("#! /usr/bin/env python3\n", True),
        ("#![no_std]\nfn main() {}\n", False),
        ("echo\n#!/bin/sh\n", False),
        ("", False),
    ],
)
def test_a_new_script_can_be_run(tmp_path: Path, text: str, runs: bool) -> None:
    place = tmp_path / "new"
    commit([FileWrite(place, None, text.encode())], Disk(tmp_path))
    assert bool(place.stat().st_mode & 0o111) is runs
    place.chmod(0o640)
    commit([FileWrite(place, text.encode(), b"#!/bin/sh\n")], Disk(tmp_path))
    assert place.stat().st_mode & 0o777 == 0o640, "an old file keeps its mode"
