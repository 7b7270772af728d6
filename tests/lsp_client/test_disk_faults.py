"""Every kind of failure at every operation on disk: all is as it was, nothing is left lying about, nothing is lost."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codeagent_lsp.lsp_client.disk import ChangedMeanwhile, Disk, FileWrite, commit, reason
from tests.lsp_client.test_disk import AFTER, contents, scene

FAULTS: dict[str, Callable[[], BaseException]] = {
    "full": lambda: OSError(errno.ENOSPC, "No space left on device"),
    "denied": lambda: PermissionError(errno.EACCES, "Permission denied"),
    "read only": lambda: OSError(errno.EROFS, "Read-only file system"),
    "broken": lambda: OSError(errno.EIO, "Input/output error"),
    "quota": lambda: OSError(errno.EDQUOT, "Disk quota exceeded"),
    "interrupted by the user": KeyboardInterrupt,
    "cancelled": asyncio.CancelledError,
}
OPERATIONS = ("read", "make_folder", "stage", "replace", "remove")


class Faulty(Disk):
    """Fails at the n-th call of one operation."""

    def __init__(self, root: Path, operation: str, number: int, fault: Callable[[], BaseException]) -> None:
        super().__init__(root)
        self.operation, self.left, self.fault = operation, number, fault

    def _pass(self, operation: str) -> None:
        self.left -= operation == self.operation
        if self.left == 0 and operation == self.operation:
            self.left -= 1
            raise self.fault()

    def read(self, path: Path) -> bytes | None:
        self._pass("read")
        return super().read(path)

    def make_folder(self, path: Path) -> None:
        self._pass("make_folder")
        super().make_folder(path)

    def stage(self, path: Path, data: bytes, mode: int) -> Path:
        self._pass("stage")
        return super().stage(path, data, mode)

    def replace(self, staged: Path, path: Path) -> None:
        self._pass("replace")
        super().replace(staged, path)

    def remove(self, path: Path) -> None:
        self._pass("remove")
        super().remove(path)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.parametrize("operation", OPERATIONS)
def test_one_fault_anywhere_changes_nothing(tmp_path: Path, operation: str, fault: Callable[[], BaseException]) -> None:
    for number in range(1, 30):
        folder = tmp_path / str(number)
        folder.mkdir()
        writes, before = scene(folder), contents(folder)
        try:
            commit(writes, Faulty(folder, operation, number, fault))
        except type(fault()):
            assert contents(folder) == before, f"{operation} {number}"
        else:
            assert contents(folder) == AFTER
            assert number > 1, "it has no such operation"
            return
    pytest.fail("it never came to an end")


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    """A folder in which nothing can be made."""
    folder = tmp_path / "locked"
    folder.mkdir()
    (folder / "a").write_bytes(b"old")
    folder.chmod(0o500)
    yield folder
    folder.chmod(0o700)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is locked for root")
def test_a_folder_without_rights(locked: Path, tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"old")
    writes = [FileWrite(tmp_path / "b", b"old", b"new"), FileWrite(locked / "a", b"old", b"new")]
    with pytest.raises(PermissionError):
        commit(writes, Disk(tmp_path))
    assert (tmp_path / "b").read_bytes() == b"old"


def test_a_folder_in_the_way_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").write_bytes(b"old")
    with pytest.raises(OSError, match="a"):
        commit([FileWrite(tmp_path / "b", b"old", b"new"), FileWrite(tmp_path / "a", None, b"x")], Disk(tmp_path))
    assert contents(tmp_path) == {"a": None, "b": b"old"}


def test_a_failure_names_the_file_and_not_our_own_beside_it(tmp_path: Path) -> None:
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most[1]))
    try:
        with pytest.raises(OSError) as raised:
            commit([FileWrite(tmp_path / "a.py", None, b"x" * 2000)], Disk(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
    assert reason(raised.value) == f"a.py: {os.strerror(errno.EFBIG)}." and contents(tmp_path) == {}


def test_a_file_in_the_way_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"file")
    with pytest.raises(OSError, match="a"):
        commit([FileWrite(tmp_path / "new", None, b"x"), FileWrite(tmp_path / "a" / "b", None, b"x")], Disk(tmp_path))
    assert contents(tmp_path) == {"a": b"file"}


@pytest.mark.parametrize("after", [b"new", None])
def test_a_file_that_is_gone(tmp_path: Path, after: bytes | None) -> None:
    with pytest.raises(ChangedMeanwhile):
        commit([FileWrite(tmp_path / "a", b"old", after)], Disk(tmp_path))
    assert contents(tmp_path) == {}


def test_a_link_to_nowhere_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    commit([FileWrite(tmp_path / "link", None, b"new")], Disk(tmp_path))
    assert (tmp_path / "real").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


def test_deleting_a_link_leaves_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"x")
    (tmp_path / "link").symlink_to("real")
    commit([FileWrite(tmp_path / "link", b"x", None)], Disk(tmp_path))
    assert contents(tmp_path) == {"real": b"x"}


def test_deleting_a_link_is_taken_back_with_its_text(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"x")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "z").write_bytes(b"z")
    writes = [FileWrite(tmp_path / "link", b"x", None), FileWrite(tmp_path / "z", b"z", None)]
    with pytest.raises(OSError, match="space"):
        commit(writes, Faulty(tmp_path, "remove", 2, FAULTS["full"]))
    assert contents(tmp_path) == {"real": b"x", "link": b"x", "z": b"z"}


@pytest.mark.parametrize("size", [0, 1, 4096, 3_000_000])
def test_any_size_is_written_whole(tmp_path: Path, size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    commit([FileWrite(tmp_path / "a", None, data[:size])], Disk(tmp_path))
    assert (tmp_path / "a").read_bytes() == data[:size]


def test_swapping_two_files(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    one.write_bytes(b"first")
    two.write_bytes(b"second")
    commit([FileWrite(one, b"first", b"second"), FileWrite(two, b"second", b"first")], Disk(tmp_path))
    assert contents(tmp_path) == {"1": b"second", "2": b"first"}


def test_nothing_to_do(tmp_path: Path) -> None:
    commit([], Disk(tmp_path))
    assert contents(tmp_path) == {}
