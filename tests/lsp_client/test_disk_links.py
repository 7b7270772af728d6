"""Links that are swapped in between the check of an accepted edit and its writing: nothing is written outside."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codeagent_lsp.lsp_client.disk import ChangedMeanwhile, Disk, FileWrite, OutsideWorkspace, commit
from tests.lsp_client.test_disk import contents

ROUNDS = 1500


class Swapping(Disk):
    """Has another program act right before one operation."""

    def __init__(self, root: Path, operation: str, act: Callable[[], object]) -> None:
        super().__init__(root)
        self.operation, self.act = operation, act

    def make_folder(self, path: Path) -> None:
        self._before("make_folder")
        super().make_folder(path)

    def stage(self, path: Path, data: bytes, mode: int) -> Path:
        self._before("stage")
        return super().stage(path, data, mode)

    def replace(self, staged: Path, path: Path) -> None:
        self._before("replace")
        super().replace(staged, path)

    def remove(self, path: Path) -> None:
        self._before("remove")
        super().remove(path)

    def _before(self, operation: str) -> None:
        if operation == self.operation:
            self.operation = ""
            self.act()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace with a folder, beside a folder outside that has files of the same names."""
    for folder in (tmp_path / "outside", tmp_path / "work" / "d"):
        folder.mkdir(parents=True)
        for name in ("edit", "gone"):
            (folder / name).write_bytes(b"old")
    return tmp_path / "work"


def swap(work: Path) -> None:
    """Put a link to the folder outside in the place of the workspace's."""
    (work / "d").rename(work / "away")
    (work / "d").symlink_to(work.parent / "outside")


def writes(work: Path) -> list[FileWrite]:
    return [
        FileWrite(work / "d" / "edit", b"old", b"new"),
        FileWrite(work / "d" / "deep" / "new", None, b"created"),
        FileWrite(work / "d" / "gone", b"old", None),
    ]


@pytest.mark.parametrize("operation", ["make_folder", "stage", "replace", "remove"])
def test_a_folder_that_becomes_a_link_between_check_and_write(work: Path, operation: str) -> None:
    with pytest.raises(ChangedMeanwhile, match="no folder any more") as caught:
        commit(writes(work), Swapping(work, operation, lambda: swap(work)))
    assert contents(work.parent / "outside") == {"edit": b"old", "gone": b"old"}
    kept = [data for data in contents(work / "away").values() if data is not None]
    assert kept.count(b"old") >= 2, f"nothing is lost: {kept}"
    if operation == "remove":
        assert any("could not be put back" in note for note in caught.value.__notes__)


def test_a_link_out_of_the_workspace_is_refused_from_the_start(work: Path) -> None:
    swap(work)
    for write in writes(work):
        with pytest.raises(OutsideWorkspace, match="leads out of the workspace"):
            commit([write], Disk(work))
    with pytest.raises(OutsideWorkspace):
        Disk(work).read(work / "d" / "edit")
    assert contents(work.parent / "outside") == {"edit": b"old", "gone": b"old"}


def test_a_link_within_the_workspace_is_followed_once(work: Path) -> None:
    (work / "link").symlink_to("d")
    commit([FileWrite(work / "link" / "edit", b"old", b"new")], Disk(work))
    assert (work / "d" / "edit").read_bytes() == b"new"


def test_a_workspace_that_is_itself_a_link(work: Path) -> None:
    (work.parent / "link").symlink_to(work)
    commit([FileWrite(work.parent / "link" / "d" / "edit", b"old", b"new")], Disk(work.parent / "link"))
    assert (work / "d" / "edit").read_bytes() == b"new"


def test_what_is_not_a_file_is_not_waited_for(work: Path) -> None:
    os.mkfifo(work / "pipe")
    with pytest.raises(OSError, match="is not a file"):
        commit([FileWrite(work / "pipe", None, b"x")], Disk(work))


@contextlib.contextmanager
def swapping_all_the_time(work: Path) -> Iterator[list[int]]:
    """Exchange the folder and a link to the outside, again and again, in a thread; yields how often."""
    stop, count = threading.Event(), [0]
    (work / "link").symlink_to(work.parent / "outside")

    def act() -> None:
        while not stop.is_set():
            for old, new in (("d", "real"), ("link", "d"), ("d", "link"), ("real", "d")):
                (work / old).rename(work / new)
            count[0] += 1

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield count
    finally:
        stop.set()
        thread.join()


@pytest.mark.slow
def test_a_program_that_swaps_the_folder_thousands_of_times(work: Path) -> None:
    outcomes = {True: 0, False: 0}
    text = b"old"
    with swapping_all_the_time(work) as count:
        number = 0
        while number < ROUNDS or count[0] < ROUNDS or not all(outcomes.values()):
            number += 1
            new = f"round {number}".encode()
            try:
                commit([FileWrite(work / "d" / "edit", text, new)], Disk(work))
                text = new
                outcomes[True] += 1
            except OSError:
                outcomes[False] += 1
    assert contents(work.parent / "outside") == {"edit": b"old", "gone": b"old"}
    assert (work / "d" / "edit").read_bytes() == text, "what was refused is not there, what was accepted is"
