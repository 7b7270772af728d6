"""Reading, listing, searching, moving, deleting, patching: over disk, buffers and what is staged."""

from __future__ import annotations

import re
from typing import Any

import pytest

from codeagent_lsp.tools.context import Reader
from codeagent_lsp.tools.files.find_tools import relative
from codeagent_lsp.workspace.changes.changeset import FileChange
from tests.tools.fakes import Bench

# --- read_file


async def test_a_file_comes_with_line_numbers(bench: Bench) -> None:
    bench.write("a.txt", "one\r\ntwo\x0c\u2028still two\nthree")
    assert (await bench.call("read_file", path="a.txt")).text == "1|one\n2|two\x0c\u2028still two\n3|three"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"start_line": 2}, "2|b\n3|c\n(lines 2-3 of 3)"),
        ({"end_line": 2}, "1|a\n2|b\n(lines 1-2 of 3)"),
        ({"start_line": 2, "end_line": 2}, "2|b\n(lines 2-2 of 3)"),
        ({"start_line": 1, "end_line": 99}, "1|a\n2|b\n3|c"),
        ({"start_line": 4}, "(the file has only 3 lines)"),
        ({"start_line": "2", "end_line": "3"}, "2|b\n3|c\n(lines 2-3 of 3)"),
    ],
)
async def test_ranges_of_lines(bench: Bench, arguments: dict[str, Any], text: str) -> None:
    bench.write("a.txt", "a\nb\nc\n")
    assert (await bench.call("read_file", path="a.txt", **arguments)).text == text


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"start_line": -1}, "start_line"),
        ({"end_line": -2}, "end_line"),
        ({"start_line": 3, "end_line": 2}, "end_line 2"),
    ],
)
async def test_ranges_that_are_none(bench: Bench, arguments: dict[str, int], named: str) -> None:
    bench.write("a.txt", "a\nb\nc\n")
    result = await bench.call("read_file", path="a.txt", **arguments)
    assert result.status == "retry" and named in result.text


@pytest.mark.parametrize("arguments", [{}, {"start_line": 1}, {"start_line": 5}])
async def test_an_empty_file(bench: Bench, arguments: dict[str, int]) -> None:
    bench.write("a.txt", "")
    assert (await bench.call("read_file", path="a.txt", **arguments)).text == "(empty file)"


async def test_of_a_very_long_file_the_head_is_shown_and_ranges_are_offered(bench: Bench) -> None:
    bench.write("a.txt", "".join(f"{number}\n" for number in range(1, 3001)))
    result = await bench.call("read_file", path="a.txt")
    assert "100|100\n(3000 lines; the first 100 shown." in result.text
    assert (await bench.call("read_file", path="a.txt", start_line=2999)).text.startswith("2999|2999\n3000|3000")


async def test_a_window_with_room_is_shown_more_of_a_large_file(bench: Bench) -> None:
    bench.write("a.txt", "".join(f"{number}\n" for number in range(1, 3001)))
    bench.write("wide.txt", "".join(f"{number:0100}\n" for number in range(1, 3001)))
    bench.add((Reader, Reader(200_000)))
    result = await bench.call("read_file", path="a.txt")
    assert "2000|2000\n(3000 lines; the first 2000 shown." in result.text
    result = await bench.call("read_file", path="wide.txt")
    assert len(result.text) < 51_200 and re.search(r"\n(4\d\d)\|0+\1\n\(3000 lines; the first \1 shown", result.text)
    bench.add((Reader, Reader(8_192)))
    assert "the first 100 shown" in (await bench.call("read_file", path="a.txt")).text


async def test_files_that_are_no_text_or_too_large(bench: Bench) -> None:
    bench.write("large.txt", "x" * ((1 << 20) + 1))
    bench.write("latin.txt", b"caf\xe9\n")
    assert "more than the limit" in (await bench.call("read_file", path="large.txt")).text
    latin = await bench.call("read_file", path="latin.txt")
    assert latin.text.startswith("1|café\n(")
    missing = await bench.call("read_file", path="lattin.txt")
    assert missing.error is not None and missing.error.code == "NOT_FOUND" and "latin.txt" in missing.text


async def test_a_file_deleted_in_this_run_says_so(bench: Bench) -> None:
    bench.write("a.txt", "a\n")
    assert (await bench.call("delete_file", path="a.txt")).ok
    assert "pending changes" in (await bench.call("read_file", path="a.txt")).text


# --- list_dir and glob_file_search


async def test_a_listing_shows_what_the_run_sees(bench: Bench) -> None:
    bench.write("src/a.py", "")
    bench.write("gone.txt", "x")
    bench.write(".gitignore", "build/\n")
    bench.write("build/out.o", "")
    await bench.call("delete_file", path="gone.txt")
    await bench.call("write_file", path="new/b.py", content="")
    result = await bench.call("list_dir")
    assert result.text.split("\n") == [".gitignore", "new/", "src/"]
    assert (await bench.call("list_dir", path="", depth=2)).data == [
        ".gitignore",
        "new/",
        "new/b.py",
        "src/",
        "src/a.py",
    ]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ({"path": "none"}, "failed", "does not exist"),
        ({"path": "a.txt"}, "failed", "not a folder"),
        ({"depth": -1}, "retry", "depth"),
        ({"depth": 6}, "retry", "depth"),
        ({"path": ".."}, "failed", "outside"),
    ],
)
async def test_listings_that_are_refused(bench: Bench, arguments: dict[str, Any], status: str, said: str) -> None:
    bench.write("a.txt", "")
    result = await bench.call("list_dir", **arguments)
    assert result.status == status and said in result.text


async def test_an_empty_folder(bench: Bench) -> None:
    assert (await bench.call("list_dir")).text == "(empty folder)"


async def test_finding_files(bench: Bench) -> None:
    bench.write("src/a.py", "")
    bench.write("b.txt", "")
    await bench.call("write_file", path="src/new.py", content="")
    result = await bench.call("glob_file_search", pattern="**/*.py")
    assert sorted(result.data) == ["src/a.py", "src/new.py"]
    assert (await bench.call("glob_file_search", pattern="*.py", path="src")).data == result.data
    assert (await bench.call("glob_file_search", pattern="*.rs")).text == "No file matches *.rs."
    assert (await bench.call("glob_file_search", pattern="")).status == "retry"


# --- grep


async def test_grep_finds_disk_buffer_and_staged_text(bench: Bench) -> None:
    bench.write("disk.txt", "a\nneedle disk\nb\n")
    bench.write("open.txt", "needle gone\n")
    bench.open("open.txt", "needle buffer\n")
    await bench.call("write_file", path="staged.txt", content="x\nneedle staged\n")
    result = await bench.call("grep", pattern="needle")
    assert sorted(result.text.split("\n")) == [
        "disk.txt:2:needle disk",
        "open.txt:1:needle buffer",
        "staged.txt:2:needle staged",
    ]
    around = await bench.call("grep", pattern="NEEDLE", case_insensitive=True, context=1, glob="disk*")
    assert around.text == "disk.txt-1-a\ndisk.txt:2:needle disk\ndisk.txt-3-b"


async def test_grep_tells_of_nothing_of_more_and_of_bad_patterns(bench: Bench) -> None:
    bench.write("a.txt", "x\n" * 10)
    assert (await bench.call("grep", pattern="y")).text == "No match for 'y'."
    assert "(more matches exist; only 3 shown)" in (await bench.call("grep", pattern="x", max_results=3)).text
    assert (await bench.call("grep", pattern="(")).status == "retry"
    assert (await bench.call("grep", pattern="x", max_results=-1)).status == "retry"
    assert (await bench.call("grep", pattern="x", path="../x")).status == "failed"


async def test_grep_leaves_out_secrets_and_says_so(bench: Bench) -> None:
    bench.write("a.txt", "TOKEN\n")
    bench.write("deploy/.env", "TOKEN=s3cret\n")
    result = await bench.call("grep", pattern="TOKEN", context=2)
    assert "s3cret" not in result.text and "s3cret" not in str(result.data)
    assert result.text == "a.txt:1:TOKEN\n(left out, as reading them needs the user's approval: deploy/.env)"
    assert bench.asker.asked == []


async def test_grep_shows_secrets_that_the_user_allows(bench: Bench) -> None:
    bench.write("deploy/.env", "TOKEN=s3cret\n")
    bench.asker.answers = ["Allow once"]
    assert "s3cret" in (await bench.call("grep", pattern="TOKEN", path="deploy/.env")).text
    bench.rules(allow=("read_file(deploy/**)",))
    assert "s3cret" in (await bench.call("grep", pattern="TOKEN")).text
    bench.rules(mode="bypass")  # type: ignore[arg-type]
    assert "s3cret" in (await bench.call("grep", pattern="TOKEN")).text


async def test_grep_obeys_rules_about_reading(bench: Bench) -> None:
    bench.write("private/a.txt", "TOKEN\n")
    bench.rules(deny=("read_file(private/**)",))
    assert "private/a.txt:1" not in (await bench.call("grep", pattern="TOKEN")).text
    assert "private/a.txt:1" not in (await bench.call("grep", pattern="TOKEN", path="private/a.txt")).text
    bench.rules(ask=("read_file(private/**)",))
    assert "private/a.txt:1" not in (await bench.call("grep", pattern="TOKEN", path="private/a.txt")).text


async def test_a_secret_folder_that_was_allowed_is_searched(bench: Bench) -> None:
    bench.write(".ssh/notes", "TOKEN\n")
    bench.asker.answers = ["Allow once"]
    assert ".ssh/notes:1:TOKEN" in (await bench.call("grep", pattern="TOKEN", path=".ssh")).text


# --- move_file and delete_file


async def test_moving_and_deleting_are_staged(bench: Bench) -> None:
    bench.write("a.txt", "a\n")
    bench.write("b.txt", "b\n")
    assert (
        await bench.call("move_file", path="a.txt", new_path="sub/c.txt")
    ).text == "Staged: moved a.txt to sub/c.txt."
    assert (await bench.call("delete_file", path="b.txt")).text == "Staged: deleted b.txt."
    assert [change.kind for change in bench.changeset] == ["move", "delete"]
    assert (bench.seen("a.txt"), bench.seen("sub/c.txt"), bench.seen("b.txt")) == (False, True, False)
    assert bench.disk() == {"a.txt": b"a\n", "b.txt": b"b\n"}


async def test_moving_an_open_file_takes_its_unsaved_text_and_version(bench: Bench) -> None:
    path = bench.write("a.txt", "disk\n")
    bench.open("a.txt", "typed\n", version=0)
    await bench.call("move_file", path="a.txt", new_path="b.txt")
    assert bench.changeset.files == (FileChange(bench.path("b.txt"), "typed\n", "typed\n", 0, path),)


@pytest.mark.parametrize("target", ["a.txt", "b.txt", "sub"])
async def test_nothing_is_moved_over_something(bench: Bench, target: str) -> None:
    bench.write("a.txt", "a\n")
    bench.write("b.txt", "b\n")
    bench.write("sub/x", "")
    result = await bench.call("move_file", path="a.txt", new_path=target)
    assert not result.ok and "exists already" in result.text
    assert not bench.changeset


async def test_moving_onto_a_file_moved_away_is_refused_with_advice(bench: Bench) -> None:
    bench.write("a.txt", "a\n")
    bench.write("b.txt", "b\n")
    await bench.call("move_file", path="a.txt", new_path="c.txt")
    for result in (
        await bench.call("move_file", path="b.txt", new_path="a.txt"),
        await bench.call("write_file", path="a.txt", content="x"),
    ):
        assert result.status == "failed" and "another name" in result.text
    assert (await bench.call("move_file", path="c.txt", new_path="a.txt")).ok
    assert not bench.changeset


@pytest.mark.parametrize("path", ["none.txt", "sub", "bin"])
async def test_what_cannot_be_deleted_or_moved(bench: Bench, path: str) -> None:
    bench.write("sub/x", "")
    bench.write("bin", b"\0\1")
    assert not (await bench.call("delete_file", path=path)).ok
    assert not (await bench.call("move_file", path=path, new_path="y")).ok
    assert not bench.changeset


# --- apply_patch and undo_patch

TWO_FILES = """*** Begin Patch
*** Update File: a.txt
@@
-one
+1
*** Add File: new.txt
+n
*** Delete File: gone.txt
*** End Patch"""


async def test_lines_around_two_matches_are_shown_once(bench: Bench) -> None:
    bench.write("a.txt", "".join(f"line {number}\n" for number in range(1, 31)))
    result = await bench.call("grep", pattern="line (4|6|20)$", context=2)
    assert result.text.splitlines() == [
        *("a.txt-2-line 2", "a.txt-3-line 3", "a.txt:4:line 4", "a.txt-5-line 5", "a.txt:6:line 6"),
        *("a.txt-7-line 7", "a.txt-8-line 8", "--"),
        *("a.txt-18-line 18", "a.txt-19-line 19", "a.txt:20:line 20", "a.txt-21-line 21", "a.txt-22-line 22"),
    ]


async def test_a_patch_over_several_files_is_one_step(bench: Bench) -> None:
    bench.write("a.txt", "one\r\ntwo\r\n")
    bench.write("gone.txt", "g\n")
    result = await bench.call("apply_patch", patch=TWO_FILES)
    assert result.text == "Staged:\na.txt\n  line 1 in place of 1 line: 1\ncreated new.txt (1 line)\ndeleted gone.txt"
    assert (bench.text("a.txt"), bench.text("new.txt"), bench.seen("gone.txt")) == ("1\r\ntwo\r\n", "n\n", False)
    undone = await bench.call("undo_patch")
    assert undone.ok and "a.txt, new.txt, gone.txt" in undone.text
    assert not bench.changeset


@pytest.mark.parametrize(
    "patch",
    [
        TWO_FILES,
        "no patch at all",
        "",
        "--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n",
        "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n--- a/x/../a.txt\n+++ b/x/../a.txt\n@@ -2 +2 @@\n-two\n+2\n",
    ],
)
async def test_a_patch_that_does_not_apply_as_a_whole_changes_nothing(bench: Bench, patch: str) -> None:
    bench.write("a.txt", "one\ntwo\n")
    assert not (await bench.call("apply_patch", patch=patch)).ok
    assert not bench.changeset and bench.told == []


async def test_one_file_under_two_names_is_refused(bench: Bench) -> None:
    bench.write("a.txt", "one\ntwo\n")
    (bench.root / "b.txt").symlink_to("a.txt")
    patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n--- a/b.txt\n+++ b/b.txt\n@@ -2 +2 @@\n-two\n+2\n"
    assert "are the same file" in (await bench.call("apply_patch", patch=patch)).text
    assert not bench.changeset


async def test_undo_by_id_and_without_anything_to_undo(bench: Bench) -> None:
    assert "nothing to undo" in (await bench.call("undo_patch")).text
    for name in ("a", "b", "c"):
        await bench.call("write_file", path=name, content="x")
    assert "No change 'c7'" in (await bench.call("undo_patch", change_id="c7")).text
    assert (await bench.call("undo_patch", change_id="c2")).text == "Taken back c2: b, c."
    assert bench.changeset.paths == (bench.path("a"),)


@pytest.mark.parametrize("unsaved", [False, True])
async def test_brackets_in_a_pattern_that_are_a_name(bench: Bench, unsaved: bool) -> None:
    bench.write("app/i/page.tsx", "other\n")
    (bench.open if unsaved else bench.write)("app/[id]/page.tsx", "mine\n")
    found = [
        await bench.call("glob_file_search", pattern="app/[id]/*.tsx"),
        await bench.call("grep", pattern="mine|other", glob="app/[id]/*.tsx"),
        await bench.call("read_files", files=[{"path": "app/[id]/*.tsx"}]),
    ]
    for result in found:
        assert "app/[id]/page.tsx" in result.text and "app/i" not in result.text
    assert "app/i/page.tsx" in (await bench.call("glob_file_search", pattern="app/[ij]/*.tsx")).text


@pytest.mark.parametrize(
    ("pattern", "windows", "wanted"),
    [
        ("/w/src/**/*.py", False, ("src/**/*.py", "/w")),
        ("src/*.py", False, ("src/*.py", None)),
        ("/way/x.py", False, ("/way/x.py", None)),
        (r"C:\Code\src\**\*.py", True, ("src/**/*.py", r"C:\code")),
        ("c:/code/src/*.py", True, ("src/*.py", r"C:\code")),
        (r"src\**\*.py", True, ("src/**/*.py", None)),
        (r"C:\coders\a.py", True, ("C:/coders/a.py", None)),
    ],
)
def test_a_pattern_may_begin_with_a_folder(pattern: str, windows: bool, wanted: tuple[str, str | None]) -> None:
    folders = (r"C:\code",) if windows else ("/w",)
    assert relative(pattern, None, folders, windows=windows) == wanted
