"""Opening without following links, locks and process trees, on the system of these tests."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codeagent_lsp.system import (
    Folder,
    copy_new,
    end_tree,
    is_alive,
    lock,
    open_appending,
    open_following,
    open_new,
    open_reading,
    read_at,
)


def test_a_link_is_opened_only_where_it_is_asked_for(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"text")
    link.symlink_to(target)
    for opens in (open_reading, open_new, open_appending):
        with pytest.raises(OSError):
            opens(link)
    descriptor = open_following(link)
    try:
        assert read_at(descriptor, 9, 1) == b"ext"
    finally:
        os.close(descriptor)


def test_a_folder_stays_the_one_that_was_opened(tmp_path: Path) -> None:
    (tmp_path / "root/in").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    with Folder(str(tmp_path / "root"), ["in"]) as folder:
        (tmp_path / "root/in").rename(tmp_path / "moved")
        (tmp_path / "root/in").symlink_to(tmp_path / "outside")
        os.close(folder.open_new("a.txt"))
        folder.replace("a.txt", "b.txt")
        folder.make_folder("c")
        assert sorted(entry.name for entry in folder.entries()) == ["b.txt", "c"]
        folder.remove("b.txt")
        folder.remove_folder("c")
    assert list((tmp_path / "outside").iterdir()) == []
    with pytest.raises(OSError):
        Folder(str(tmp_path / "root"), ["in"])  # it is a link now


def test_a_lock_is_seen_by_others_and_goes_with_its_file(tmp_path: Path) -> None:
    held, other = open_appending(tmp_path / "file"), open_appending(tmp_path / "file")
    try:
        lock(held)
        for shared in (False, True):
            with pytest.raises(BlockingIOError):
                lock(other, shared=shared)
        os.close(held)
        lock(other, wait=True)
    finally:
        os.close(other)


def test_a_copy_has_the_bytes_and_is_made_only_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 3_000_000)
    with (tmp_path / "a").open("rb") as source:
        os.close(copy_new(source.fileno(), tmp_path / "b"))
        with pytest.raises(FileExistsError):
            copy_new(source.fileno(), tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == (tmp_path / "a").read_bytes()


def test_a_tree_ends_also_where_its_leader_has(tmp_path: Path) -> None:
    script = "import subprocess, sys; print(subprocess.Popen(['sleep', '60']).pid, flush=True)"
    leader = subprocess.Popen((sys.executable, "-S", "-c", script), stdout=subprocess.PIPE, start_new_session=True)
    assert leader.stdout is not None
    child = int(leader.stdout.readline())
    leader.wait()
    leader.stdout.close()
    assert is_alive(child)
    end_tree(leader.pid)
    deadline = time.monotonic() + 10
    while is_alive(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_alive(child)
