"""What of a workspace is not on the disk as a run sees it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from codeagent_lsp.shadow.wanted import unsaved_state
from tests.shadow.fakes import Desk, desk


@pytest.fixture
def ws(workspace: Path) -> Desk:
    return desk(workspace)


def named(ws: Desk) -> dict[str, bytes | None]:
    return {path.removeprefix(f"{ws.root}/"): data for path, data in unsaved_state(ws.view).files.items()}


def test_nothing_open_and_nothing_staged_is_nothing(ws: Desk) -> None:
    ws.write("a.py", "a\n")
    seen = unsaved_state(ws.view)
    assert (seen.files, seen.read, seen.left_out) == ({}, {}, ())


def test_an_unsaved_buffer_is_wanted_and_a_clean_one_only_known(ws: Desk) -> None:
    ws.write("dirty.py", "old\n")
    ws.write("clean.py", "same\n")
    ws.open("dirty.py", "new\n", 7)
    ws.open("clean.py", "same\n", 3)
    seen = unsaved_state(ws.view)
    assert seen.files == {ws.path("dirty.py"): b"new\n"}
    assert {(file.text, file.version, file.source) for file in seen.read.values()} == {
        ("new\n", 7, "buffer"),
        ("same\n", 3, "buffer"),
    }


def test_staged_texts_deletions_and_moves(ws: Desk) -> None:
    for name in ("edited.py", "deleted.py", "moved.py"):
        ws.write(name, f"{name}\n")
    ws.stage("edited.py", "edited\n")
    ws.stage("deleted.py", None)
    ws.move("moved.py", "sub/target.py")
    ws.stage("created.py", "created\n")
    assert named(ws) == {
        "edited.py": b"edited\n",
        "deleted.py": None,
        "moved.py": None,
        "sub/target.py": b"moved.py\n",
        "created.py": b"created\n",
    }


def test_a_staged_text_stands_over_the_buffer(ws: Desk) -> None:
    ws.write("a.py", "disk\n")
    ws.open("a.py", "buffer\n")
    ws.stage("a.py", "staged\n")
    assert named(ws) == {"a.py": b"staged\n"}
    ws.stage("a.py", "disk\n")  # back to what the disk has, which is not what the buffer has
    assert named(ws) == {}


@pytest.mark.parametrize(
    ("on_disk", "expected"),
    [
        (b"\xef\xbb\xbfold\r\n", b"\xef\xbb\xbfneu \xc3\xa4\r\n"),
        ("\ufeffold\r\n".encode("utf-16-le"), "\ufeffneu ä\r\n".encode("utf-16-le")),
        ("\ufeffold\r\n".encode("utf-16-be"), "\ufeffneu ä\r\n".encode("utf-16-be")),
        (b"caf\xe9\r\n", b"neu \xe4\r\n"),
        (b"old\r\n", b"neu \xc3\xa4\r\n"),
    ],
)
def test_bytes_are_encoded_as_the_file_is_and_line_ends_stay(ws: Desk, on_disk: bytes, expected: bytes) -> None:
    ws.write("a.txt", on_disk)
    ws.open("a.txt", "neu ä\r\n")
    assert named(ws) == {"a.txt": expected}


def test_a_clean_buffer_of_a_file_with_a_mark_is_clean(ws: Desk) -> None:
    ws.write("a.txt", b"\xef\xbb\xbfsame\r\n")
    ws.open("a.txt", "same\r\n")
    assert named(ws) == {}


def test_what_has_no_bytes_in_the_encoding_is_told(ws: Desk) -> None:
    ws.write("a.txt", b"caf\xe9\n")
    ws.open("a.txt", "smile 😀\n")
    seen = unsaved_state(ws.view)
    assert not seen.files
    ((path, reason),) = seen.left_out
    assert path == ws.path("a.txt")
    assert "saw the saved file" in reason
    assert "latin-1" in reason


def test_a_buffer_that_is_too_large_is_told(workspace: Path) -> None:
    ws = desk(workspace, max_bytes=100)
    ws.write("a.txt", "a\n")
    ws.open("a.txt", "b" * 101)
    ((path, reason),) = unsaved_state(ws.view).left_out
    assert path == ws.path("a.txt")
    assert "101" in reason


def test_untitled_and_outside_documents_are_left_out(ws: Desk, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("x\n")
    ws.buffers.open(outside, "changed\n")
    ws.buffers.open("untitled:Untitled-1", "text\n")
    seen = unsaved_state(ws.view)
    assert (seen.files, seen.read, seen.left_out) == ({}, {}, ())


def test_a_binary_or_large_file_can_be_staged_as_deleted(workspace: Path) -> None:
    ws = desk(workspace, max_bytes=100)
    ws.write("large.txt", "x" * 200)
    ws.write("image.bin", b"\0\1\2")
    for name in ("large.txt", "image.bin"):
        ws.buffers.documents.clear()
        ws.open(name, "")
        ws.stage(name, None)
    assert named(ws) == {"large.txt": None, "image.bin": None}


def test_a_deletion_of_what_is_gone_already_is_nothing(ws: Desk) -> None:
    path = ws.write("a.py", "a\n")
    ws.stage("a.py", None)
    Path(path).unlink()
    assert named(ws) == {}


def test_a_new_buffer_without_a_file_is_a_file(ws: Desk) -> None:
    ws.open("new/file.py", "begun\n", 0)
    assert named(ws) == {"new/file.py": b"begun\n"}


def test_the_moment_is_before_anything_was_read(ws: Desk) -> None:
    before = time.time_ns()
    assert before <= unsaved_state(ws.view).moment <= time.time_ns()


@pytest.mark.slow
def test_a_hundred_clean_buffers_cost_little(ws: Desk) -> None:
    for number in range(100):
        ws.write(f"f{number}.py", "line\n" * 2000)
        ws.open(f"f{number}.py", "line\n" * 2000)
    started = time.thread_time()
    assert named(ws) == {}
    assert time.thread_time() - started < 0.5
