"""What becomes of what a command wrote.

What one command wrote, within limits: the rest is only counted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp.shadow.collect import Collected, CollectLimits, WrittenFiles, WrittenLimits, collect, pairs
from codeagent_lsp.shadow.shell import Writings, Written, WrittenKind
from codeagent_lsp.shadow.wanted import unsaved_state
from tests.shadow.fakes import Desk, desk, gone, other, text


@pytest.fixture
def ws(workspace: Path) -> Desk:
    return desk(workspace)


def collected(ws: Desk, *files: Written, limits: CollectLimits | None = None, more: int = 0) -> Collected:
    return collect(Writings(files, more), ws.view, unsaved_state(ws.view), limits)


def reasons(found: Collected, ws: Desk) -> dict[str, str]:
    return {path.removeprefix(f"{ws.root}/"): reason for path, reason in found.left_out}


def test_changed_created_and_deleted_texts(ws: Desk) -> None:
    changed, deleted, created = ws.write("a.py", "a\n"), ws.write("b.py", "b\n"), ws.path("new/c.py")
    found = collected(ws, text(changed, "A\n"), gone(deleted), text(created, "c\n"))
    assert found.texts == {changed: "A\n", deleted: None, created: "c\n"}
    assert {path: file.text for path, file in found.read.items()} == {changed: "a\n", deleted: "b\n"}
    assert found.moves == ()
    assert found.left_out == ()


def test_bytes_are_decoded_as_everywhere(ws: Desk) -> None:
    latin = ws.write("latin.txt", b"caf\xe9\n")
    utf16 = ws.write("utf16.txt", "\ufeffold\r\n".encode("utf-16-le"))
    found = collected(ws, text(latin, b"caf\xe9s\r\n"), text(utf16, "\ufeffnew\r\n".encode("utf-16-le")))
    assert found.texts == {latin: "cafés\r\n", utf16: "new\r\n"}


def test_only_another_encoding_is_told(ws: Desk) -> None:
    path = ws.write("a.txt", "same\n")
    found = collected(ws, text(path, b"\xef\xbb\xbfsame\n"))
    assert found.texts == {}
    assert "encoding" in reasons(found, ws)["a.txt"]


@pytest.mark.parametrize("data", [b"caf\xe9\n", b"\xef\xbb\xbftext\n", "\ufefftext\n".encode("utf-16-le")])
def test_a_new_file_in_another_encoding_is_told(ws: Desk, data: bytes) -> None:
    """An editor would make it in UTF-8: other bytes than the command wrote."""
    found = collected(ws, text(ws.path("a.txt"), data), text(ws.path("b.txt"), "caf\xe9\n"))
    assert found.texts == {ws.path("b.txt"): "caf\xe9\n"}
    assert "UTF-8" in reasons(found, ws)["a.txt"]


def test_a_move_keeps_the_encoding(ws: Desk) -> None:
    old, new = ws.write("old.txt", b"caf\xe9\n"), ws.path("new.txt")
    found = collected(ws, gone(old), text(new, b"caf\xe9\n"))
    assert (found.moves, found.texts, found.left_out) == (((old, new),), {}, ())


def test_a_file_that_is_written_anew_in_another_encoding_is_not_deleted_alone(ws: Desk) -> None:
    old, new = ws.write("old.txt", "caf\xe9\n".encode()), ws.path("new.txt")
    found = collected(ws, gone(old), text(new, b"caf\xe9\n"))
    assert not found.paths
    assert set(reasons(found, ws)) == {"old.txt", "new.txt"}


def test_what_was_made_executable_is_so_in_the_changes(ws: Desk) -> None:
    old, made, moved = ws.write("old.sh", "a\n"), ws.path("made.sh"), ws.path("moved.sh")
    found = collected(ws, replace(text(made, "b\n"), runs=True), gone(old), replace(text(moved, "a\n"), runs=True))
    assert found.texts == {made: "b\n"} and found.moves == ((old, moved),)
    assert found.runs == (made,) and found.left_out == ()
    refused = found.without([made], "refused")
    assert refused.runs == () and [reason for _, reason in refused.left_out] == ["refused"]


def test_a_mode_alone_is_a_change_of_a_text_and_told_of_all_else(ws: Desk) -> None:
    script, binary = ws.write("run.sh", "a\n"), ws.write("tool", b"\0\1")
    modes = [replace(other(path, "mode"), runs=True) for path in (script, binary, ws.path("gone.sh"))]
    found = collected(ws, *modes, other(ws.write("b.sh", "b\n"), "mode"))
    assert (found.runs, found.paths) == ((script,), (script,))
    assert set(reasons(found, ws)) == {"tool", "gone.sh", "b.sh"}


def test_a_mode_of_a_staged_file_is_a_change_as_well(ws: Desk) -> None:
    """The agent makes a script by its tool, and a command makes it executable: the user has no such file yet."""
    script, gone_since = ws.path("run.sh"), ws.write("old.sh", "a\n")
    ws.stage("run.sh", "a\n")
    ws.stage("old.sh", None)
    found = collected(ws, *(replace(other(path, "mode"), runs=True) for path in (script, gone_since)))
    assert (found.runs, found.paths) == ((script,), (script,))


@pytest.mark.parametrize("kind", ["mode", "symlink", "binary", "large", "special", "git"])
def test_what_is_no_edit_is_told(ws: Desk, kind: WrittenKind) -> None:
    found = collected(ws, other(ws.path("x"), kind))
    assert not found.paths
    assert "private copy" in reasons(found, ws)["x"]


def test_bytes_that_are_no_text_after_all_are_told(ws: Desk) -> None:
    found = collected(ws, text(ws.path("a.bin"), b"\0\0\1"), text(ws.path("b.py"), "b\n"))
    assert list(found.texts) == [ws.path("b.py")]
    assert "binary" in reasons(found, ws)["a.bin"]


def test_too_large_a_file_is_told(workspace: Path) -> None:
    ws = desk(workspace, max_bytes=10)
    found = collected(ws, text(ws.path("a.txt"), "x" * 11), text(ws.path("b.txt"), "x" * 10))
    assert list(found.texts) == [ws.path("b.txt")]
    assert "large" in reasons(found, ws)["a.txt"]


def test_a_deleted_binary_is_told_and_not_proposed(ws: Desk) -> None:
    found = collected(ws, gone(ws.write("a.bin", b"\0\1")))
    assert not found.paths
    assert "binary" in reasons(found, ws)["a.bin"]


def test_too_many_files_are_none(ws: Desk) -> None:
    files = [text(ws.path(f"{number}.txt"), "x") for number in range(4)]
    found = collected(ws, *files, limits=CollectLimits(files=3))
    assert not found.paths
    ((_, reason),) = found.left_out
    assert reason.startswith("4 files were written")
    assert len(collected(ws, *files, limits=CollectLimits(files=4)).texts) == 4


def test_files_beyond_the_limit_of_the_layer_count(ws: Desk) -> None:
    found = collected(ws, text(ws.path("a"), "x"), more=70_000)
    assert not found.paths
    assert "70,001" in found.left_out[0][1]


def test_too_many_bytes_are_none(ws: Desk) -> None:
    found = collected(ws, *(text(ws.path(n), "x" * 6) for n in "ab"), limits=CollectLimits(total_bytes=11))
    assert not found.paths
    assert "12 bytes" in found.left_out[0][1]


def test_equal_reasons_are_summarised(ws: Desk) -> None:
    found = collected(ws, *(other(ws.path(f"{number}.png"), "binary") for number in range(500)))
    assert len(found.left_out) == 20
    assert found.left_out[-1][1].endswith("480 more.")


def test_ignored_files_are_never_proposed_nor_told(ws: Desk) -> None:
    ws.write(".gitignore", "build/\n*.log\n")
    names = ("build/out.txt", "a.log", "node_modules/x/index.js", "src/__pycache__/a.txt")
    found = collected(ws, *(text(ws.path(name), "x") for name in names), gone(ws.write("b.log", "b\n")))
    assert found == Collected()


def test_outside_is_never_proposed(ws: Desk, tmp_path: Path) -> None:
    assert collected(ws, text(str(tmp_path / "x"), "x"), text("/etc/x", "x")) == Collected()


def test_a_path_behind_a_link_is_told(ws: Desk, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (ws.root / "link").symlink_to(tmp_path / "outside")
    (ws.root / "inner").mkdir()
    (ws.root / "alias").symlink_to("inner")
    found = collected(ws, text(ws.path("link/x"), "x"), text(ws.path("alias/x"), "x"))
    assert not found.paths
    assert "outside the workspace" in reasons(found, ws)["link/x"]
    assert "symbolic link" in reasons(found, ws)["alias/x"]


def test_a_name_that_only_looks_like_another_is_told_as_that(ws: Desk) -> None:
    (ws.root / "caf\u00e9.py").write_text("x\n")
    found = collected(ws, text(ws.path("cafe\u0301.py"), "y\n"))
    assert not found.paths and "only looks the same" in reasons(found, ws)["cafe\u0301.py"]


def test_a_file_in_place_of_a_folder_is_told(ws: Desk) -> None:
    ws.write("d/x.py", "x\n")
    found = collected(ws, text(ws.path("d"), "x"))
    assert not found.paths
    assert "folder" in reasons(found, ws)["d"]


# --- files that run later


def test_protected_paths_wait_for_the_user(ws: Desk) -> None:
    created, deleted, plain = ws.path(".vscode/tasks.json"), ws.write("sitecustomize.py", "1\n"), ws.path("a.py")
    found = collected(ws, text(created, "{}"), gone(deleted), text(plain, "a\n"))
    assert set(found.protected) == {created, deleted}
    rest = found.without_protected()
    assert rest.texts == {plain: "a\n"}
    assert rest.protected == ()
    assert {path for path, _ in rest.left_out} == {created, deleted}


def test_a_move_out_of_a_protected_place_goes_only_as_a_whole(ws: Desk) -> None:
    old, new = ws.write(".vscode/tasks.json", "{1}"), ws.path("tasks.json")
    found = collected(ws, gone(old), text(new, "{1}"))
    assert found.moves == ((old, new),)
    assert found.protected == (old,)
    rest = found.without_protected()
    assert not rest.paths
    assert {path for path, _ in rest.left_out} == {old, new}


def test_a_file_with_a_second_name_is_protected(ws: Desk) -> None:
    path = ws.write("a.py", "a\n")
    os.link(path, ws.path("twin.py"))
    time.sleep(0.02)
    assert collected(ws, text(path, "b\n")).protected == (path,)


# --- what it was made from


def test_the_base_is_the_buffer_that_was_laid_over(ws: Desk) -> None:
    path = ws.write("a.py", "disk\n")
    ws.open("a.py", "typed\n", 4)
    seen = unsaved_state(ws.view)
    ws.type("a.py", "typed", "typed on")
    found = collect(Writings((text(path, "TYPED\n"),)), ws.view, seen)
    assert (found.read[path].text, found.read[path].version) == ("typed\n", 4)


def test_the_base_of_a_file_opened_meanwhile_is_the_disk(ws: Desk) -> None:
    path = ws.write("a.py", "one\ntwo\n")
    seen = unsaved_state(ws.view)
    ws.open("a.py", "one\ntwo\nthree\n", 2)
    found = collect(Writings((text(path, "ONE\ntwo\n"),)), ws.view, seen)
    assert (found.read[path].text, found.read[path].version) == ("one\ntwo\n", None)


def test_a_file_saved_meanwhile_is_left_to_the_user(ws: Desk) -> None:
    path = ws.write("a.py", "one\n")
    seen = unsaved_state(ws.view)
    time.sleep(0.02)
    ws.write("a.py", "one\ntwo\n")
    found = collect(Writings((text(path, "ONE\n"),)), ws.view, seen)
    assert not found.paths
    assert "Run it again" in reasons(found, ws)["a.py"]


def test_an_open_file_saved_meanwhile_is_known_and_merged(ws: Desk) -> None:
    path = ws.write("a.py", "one\n")
    ws.open("a.py", "one\ntwo\n", 2)
    seen = unsaved_state(ws.view)
    ws.write("a.py", "one\ntwo\n")
    found = collect(Writings((text(path, "ONE\ntwo\n"),)), ws.view, seen)
    assert found.texts == {path: "ONE\ntwo\n"}
    assert found.read[path].text == "one\ntwo\n"


def test_a_file_begun_meanwhile_is_left_to_the_user(ws: Desk) -> None:
    seen = unsaved_state(ws.view)
    ws.open("new.py", "mine\n")
    found = collect(Writings((text(ws.path("new.py"), "theirs\n"),)), ws.view, seen)
    assert not found.paths
    assert "Run it again" in reasons(found, ws)["new.py"]


def test_a_file_staged_as_deleted_comes_back_as_new(ws: Desk) -> None:
    path = ws.write("a.py", "a\n")
    ws.stage("a.py", None)
    found = collected(ws, text(path, "again\n"))
    assert found.texts == {path: "again\n"}
    assert found.read == {}


# --- moves


def test_a_file_that_went_and_came_with_the_same_text_is_a_move(ws: Desk) -> None:
    old, new = ws.write("a.py", "a\n"), ws.path("lib/b.py")
    found = collected(ws, gone(old), text(new, "a\n"))
    assert found.moves == ((old, new),)
    assert found.texts == {}
    assert found.read[old].text == "a\n"


def test_a_copy_or_an_overwritten_file_is_no_move(ws: Desk) -> None:
    old, over = ws.write("a.py", "a\n"), ws.write("b.py", "b\n")
    assert collected(ws, text(ws.path("c.py"), "a\n")).moves == ()
    found = collected(ws, gone(old), text(over, "a\n"))
    assert found.moves == ()
    assert found.texts == {old: None, over: "a\n"}


PAIRS: list[tuple[str, dict[str, str], dict[str, str], set[tuple[str, str]]]] = [
    ("one and one", {"/a": "t"}, {"/b": "t"}, {("/a", "/b")}),
    ("another text", {"/a": "t"}, {"/b": "u"}, set()),
    ("two candidates", {"/a": "t"}, {"/b": "t", "/c": "t"}, set()),
    ("the same name first", {"/a": "t"}, {"/d/a": "t", "/c": "t"}, {("/a", "/d/a")}),
    ("what is left over is no guess", {"/x": "t", "/y": "t"}, {"/d/x": "t", "/z": "t"}, {("/x", "/d/x"), ("/y", "/z")}),
    ("two of the same name", {"/p/a": "t", "/q/a": "t"}, {"/r/a": "t", "/s/a": "t"}, set()),
    ("empty files of other names", {"/a": ""}, {"/b": ""}, set()),
    ("empty files of the same name", {"/p/a": ""}, {"/q/a": ""}, {("/p/a", "/q/a")}),
    (
        "a renamed folder of equal files",
        {"/p/i": "", "/p/s/i": "", "/p/s/t/i": ""},
        {"/q/i": "", "/q/s/i": "", "/q/s/t/i": ""},
        {("/p/i", "/q/i"), ("/p/s/i", "/q/s/i"), ("/p/s/t/i", "/q/s/t/i")},
    ),
]


@pytest.mark.parametrize(("what", "old", "new", "expected"), PAIRS, ids=[row[0] for row in PAIRS])
def test_pairs(what: str, old: Mapping[str, str], new: Mapping[str, str], expected: set[tuple[str, str]]) -> None:
    assert set(pairs(old, new)) == expected


def test_a_thousand_equal_files_are_paired_in_no_time() -> None:
    old = {f"/p/{number}/f{number % 7}": "same" for number in range(1000)}
    new = {f"/q/{number}/f{number % 7}": "same" for number in range(1000)}
    started = time.perf_counter()
    assert len(list(pairs(old, new))) == 1000
    assert time.perf_counter() - started < 1


def test_a_file_is_there_once() -> None:
    found = WrittenFiles(WrittenLimits())
    found.add("/a", "deleted")
    found.add("/a", "text", b"late")
    assert (found.files, found.more, found.size) == ({"/a": Written("/a", "deleted")}, 0, 0)


def test_more_files_than_the_limit_are_counted() -> None:
    found = WrittenFiles(WrittenLimits(files=2))
    for name in "/a", "/b", "/c", "/d", "/a":
        found.add(name, "binary")
    assert (list(found.files), found.more) == (["/a", "/b"], 2)


def test_more_bytes_than_the_limit_are_counted_and_a_smaller_file_still_fits() -> None:
    found = WrittenFiles(WrittenLimits(total_bytes=5))
    for name, data in (("/a", b"1234"), ("/b", b"12"), ("/c", b"1")):
        found.add(name, "text", data)
    assert (list(found.files), found.more, found.size) == (["/a", "/c"], 1, 5)
