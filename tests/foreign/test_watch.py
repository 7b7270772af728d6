"""What other programs change is found with what was there, and nothing else is: real files, real git."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codeagent_lsp.foreign.baseline import Copies
from codeagent_lsp.foreign.disk import ABSENT, UNKNOWN, FileState
from codeagent_lsp.foreign.watch import FOLDER, Saves
from codeagent_lsp.foreign.whose import DiskChange
from tests.foreign.outside import PACE, git, repository, watched

TEXT = "one\ntwo\nthree\n"
OTHER = "one\nTWO\nthree\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = (tmp_path / "ws").resolve()
    place.mkdir()
    return place


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def program(folder: Path, script: str) -> None:
    """Another program that works in the folder."""
    subprocess.run([sys.executable, "-c", script], cwd=folder, check=True)


@pytest.mark.slow
@pytest.mark.parametrize("with_git", [True, False])
async def test_what_another_program_changes_is_found(folder: Path, state: Path, with_git: bool) -> None:
    if with_git:
        repository(folder, a_py=TEXT, gone_py="bye\n", old_py="name\n")
        (folder / "a.py").write_text("dirty\n")
        (folder / "untracked.py").write_text("mine\n")
    else:
        for name in ("a.py", "untracked.py", "gone.py", "old.py"):
            (folder / name).write_text({"a.py": "dirty\n", "gone.py": "bye\n", "old.py": "name\n"}.get(name, "mine\n"))
    async with watched(folder, state) as outside:
        program(
            folder,
            "import os, pathlib\n"
            "pathlib.Path('a.py').write_text('changed\\n')\n"
            "pathlib.Path('untracked.py').write_text('theirs\\n')\n"
            "pathlib.Path('sub').mkdir(); pathlib.Path('sub/new.py').write_text('new\\n')\n"
            "os.remove('gone.py'); os.rename('old.py', 'renamed.py')",
        )
        await outside.until(lambda: len(outside.foreign) == 6)
        await outside.rest()
        assert outside.foreign == {
            "a.py": ("dirty\n", "changed\n"),
            "untracked.py": ("mine\n", "theirs\n"),
            "sub/new.py": (None, "new\n"),
            "gone.py": ("bye\n", None),
            "old.py": ("name\n", None),
            "renamed.py": (None, "name\n"),
        }
        assert not outside.unknown
        assert len(outside.found) == 1
    assert not (state / "before").exists()


@pytest.mark.slow  # it takes its time until it rests
async def test_what_the_editor_saves_is_its_own(folder: Path, state: Path) -> None:
    repository(folder, a_py=TEXT)
    async with watched(folder, state) as outside:
        outside.saves("a.py", OTHER)
        await asyncio.sleep(0.02)
        (folder / "a.py").write_text("formatted\n")
        await outside.rest()
        assert not outside.foreign
        # What was saved is what is there from now on.
        await asyncio.sleep(1.2)
        (folder / "a.py").write_text("outside\n")
        await outside.until(lambda: bool(outside.foreign))
        assert outside.foreign == {"a.py": ("formatted\n", "outside\n")}


@pytest.mark.slow
async def test_what_another_editor_saves_is_the_users_too(folder: Path, state: Path) -> None:
    for name in ("a.py", "gone.py", "b.py"):
        (folder / name).write_text(TEXT)
    async with watched(folder, state) as outside:
        other = Saves(state)  # that of another server
        for name in ("a.py", "gone.py"):
            (folder / name).write_text(OTHER)
            other.note(str(folder / name))
        (folder / "b.py").write_text(OTHER)
        await outside.until(lambda: len(outside.changes) == 3)
        assert outside.foreign == {"b.py": (TEXT, OTHER)}
        (folder / "a.py").write_text("another program\n")
        (folder / "gone.py").unlink()
        await outside.until(lambda: len(outside.foreign) == 3)
        assert outside.foreign["a.py"] == (OTHER, "another program\n"), "the save was of what stood there before"
        assert outside.foreign["gone.py"] == (OTHER, None), "a save counts once"


def test_old_notes_of_saves_are_removed(tmp_path: Path) -> None:
    saves = Saves(tmp_path)
    saves.note("/w/old.py")
    os.utime(next((tmp_path / FOLDER).iterdir()), (1.0, 1.0))
    saves.note("/w/new.py")
    saves.clear()
    assert saves.last("/w/old.py") is None
    assert saves.last("/w/new.py") is not None


@pytest.mark.slow
async def test_a_change_right_after_a_save_is_told_on_what_was_saved(folder: Path, state: Path) -> None:
    repository(folder, a_py=TEXT)
    async with watched(folder, state) as outside:
        path = str(folder / "a.py")
        (folder / "a.py").write_text("saved\n")
        outside.watch.saved((path,), "saved\n")
        outside.watch._saved[path] = type(outside.watch._saved[path])(outside.watch._saved[path].at - 5.0, "saved\n")
        (folder / "a.py").write_text("outside\n")
        await outside.until(lambda: bool(outside.foreign))
        assert outside.changes == [
            DiskChange(path, TEXT, "saved\n", is_foreign=False),
            DiskChange(path, "saved\n", "outside\n", is_foreign=True),
        ]


@pytest.mark.slow
async def test_what_we_applied_is_no_change_from_outside(folder: Path, state: Path) -> None:
    (folder / "a.py").write_text(TEXT)
    async with watched(folder, state) as outside:
        outside.watch.expects(str(folder / "a.py"), OTHER)
        outside.watch.expects(str(folder / "new.py"), "", "new\n")
        (folder / "a.py").write_text(OTHER)
        (folder / "new.py").write_text("new\n")
        await outside.rest()
        assert not outside.foreign


@pytest.mark.slow  # it takes its time until it rests
async def test_what_commands_of_ours_write_is_no_change_from_outside(folder: Path, state: Path) -> None:
    (folder / "a.py").write_text(TEXT)
    async with watched(folder, state) as outside:
        with outside.watch.command():
            (folder / "a.py").write_text(OTHER)
            await outside.rest()
            (folder / "a.py").write_text(TEXT * 2)
        await outside.rest()
        assert not outside.foreign
        await asyncio.sleep(1.1)
        (folder / "a.py").write_text(OTHER)
        await outside.until(lambda: bool(outside.foreign))


@pytest.mark.slow  # it takes its time until it rests
async def test_git_makes_no_change_from_outside(folder: Path, state: Path) -> None:
    repository(folder, a_py=TEXT, b_py="b\n", only_py="main\n")
    git(folder, "checkout", "-q", "-b", "other")
    (folder / "a.py").write_text(OTHER)
    (folder / "made.py").write_text("made\n")
    git(folder, "rm", "-q", "only.py")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "other")
    git(folder, "checkout", "-q", "main")
    (folder / "b.py").write_text("mine, not committed\n")
    async with watched(folder, state) as outside:
        for words in (
            ("checkout", "-q", "other"),
            ("stash", "-q"),
            ("checkout", "-q", "main"),
            ("stash", "pop", "-q"),
            ("commit", "-qam", "mine"),
            ("merge", "-q", "--no-edit", "other"),
            ("reset", "-q", "--hard", "HEAD~1"),
            ("reset", "-q", "HEAD~1"),
            ("checkout", "-q", "--", "b.py"),
        ):
            git(folder, *words)
            await outside.rest()
            assert not outside.foreign, words
            assert not outside.unknown, words


@pytest.mark.slow
async def test_what_git_took_back_is_what_was_there(folder: Path, state: Path) -> None:
    repository(folder, a_py=TEXT)
    (folder / "a.py").write_text("second\n")
    git(folder, "commit", "-qam", "second")
    async with watched(folder, state) as outside:
        git(folder, "reset", "-q", "HEAD~1")  # the file stays; git has another text for it now
        await outside.rest()
        (folder / "a.py").write_text("outside\n")
        await outside.until(lambda: bool(outside.foreign))
        assert outside.foreign == {"a.py": ("second\n", "outside\n")}


@pytest.mark.slow  # it takes its time until it rests
async def test_many_files_are_one(folder: Path, state: Path) -> None:
    repository(folder)
    for number in range(500):
        (folder / f"f{number}.py").write_text(f"{number}\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "many")
    async with watched(folder, state) as outside:
        program(
            folder, "import pathlib\nfor each in pathlib.Path('.').glob('f*.py'): each.write_text(each.read_text() * 2)"
        )
        await outside.until(lambda: len(outside.foreign) == 500)
        assert outside.foreign["f7.py"] == ("7\n", "7\n7\n")
        assert len(outside.found) <= 2  # a slow machine may rest between two files


@pytest.mark.slow
async def test_what_is_ignored_is_not_followed(folder: Path, state: Path) -> None:
    repository(folder, a_py=TEXT)
    (folder / ".gitignore").write_text("build/\n*.log\n")
    async with watched(folder, state) as outside:
        for name in ("build", "node_modules", "__pycache__"):
            (folder / name).mkdir()
            (folder / name / "made.js").write_text("made\n")
        (folder / "x.log").write_text("log\n")
        await outside.rest()
        assert not outside.found


@pytest.mark.slow  # it takes its time until it rests
async def test_a_file_that_grows_without_end_is_not_told_forever(folder: Path, state: Path) -> None:
    (folder / "a.py").write_text(TEXT)
    (folder / "trace.txt").write_text("0\n")
    async with watched(folder, state) as outside:
        for number in range(1, 60):
            with (folder / "trace.txt").open("a") as log:
                log.write(f"{number}\n")
            if number == 30:
                (folder / "a.py").write_text(OTHER)
            await asyncio.sleep(0.03)
        assert outside.foreign.get("a.py") == (TEXT, OTHER)  # it keeps no other file waiting
        assert sum(outside.name(each.path) == "trace.txt" for each in outside.changes) <= 3


@pytest.mark.slow  # it takes its time until it rests
async def test_a_file_that_grows_now_and_then_is_told_less_and_less(folder: Path, state: Path) -> None:
    (folder / "trace.txt").write_text("0\n")
    async with watched(folder, state) as outside:
        for number in range(1, 30):
            with (folder / "trace.txt").open("a") as log:
                log.write(f"{number}\n")
            await asyncio.sleep(2 * PACE.quiet)
        assert 1 <= len(outside.found) <= 6


@pytest.mark.slow
async def test_what_cannot_be_read_is_named(folder: Path, state: Path) -> None:
    (folder / "a.bin").write_bytes(b"\0\1\2")
    (folder / "large.txt").write_text("x" * (2 << 20))
    (folder / ".env").write_text("A=1\n")
    async with watched(folder, state) as outside:
        (folder / "a.bin").write_bytes(b"\0\1\2\3")
        (folder / "large.txt").write_text("y" * (2 << 20))
        (folder / ".env").write_text("A=2\n")
        await outside.until(lambda: len(outside.unknown) == 3)
        assert sorted(outside.unknown) == [".env", "a.bin", "large.txt"]
        assert not outside.foreign


@pytest.mark.slow
async def test_links_out_of_the_workspace_are_not_followed(folder: Path, state: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "theirs.py").write_text(TEXT)
    (folder / "dir").symlink_to(other)
    (folder / "file.py").symlink_to(other / "theirs.py")
    async with watched(folder, state) as outside:
        (other / "theirs.py").write_text(OTHER)
        (other / "new.py").write_text("new\n")
        await outside.rest()
        assert not outside.found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"one\r\ntwo\r\n", b"one\r\nTWO\r\n"),
        (b"\xef\xbb\xbfone\n", b"\xef\xbb\xbftwo\n"),
        ("\ufeffone\n".encode("utf-16-le"), "\ufefftwo\n".encode("utf-16-le")),
        (b"caf\xe9\n", b"caf\xe9s\n"),
    ],
)
@pytest.mark.parametrize("with_git", [True, False])
async def test_texts_are_those_of_the_disk(
    folder: Path, state: Path, before: bytes, after: bytes, with_git: bool
) -> None:
    (folder / "a.txt").write_bytes(before)
    if with_git:
        git(folder, "init", "-q")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "x")
    async with watched(folder, state) as outside:
        (folder / "a.txt").write_bytes(after)
        await outside.until(lambda: bool(outside.foreign))
        encoding = {0xEF: "utf-8-sig", 0xFF: "utf-16"}.get(before[0], "latin-1")
        assert outside.foreign == {"a.txt": (before.decode(encoding), after.decode(encoding))}


@pytest.mark.slow
async def test_line_ends_that_git_converts_are_those_of_the_disk(folder: Path, state: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "config", "core.autocrlf", "true")
    (folder / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "x")
    async with watched(folder, state) as outside:
        (folder / "a.txt").write_bytes(b"one\r\nTWO\r\n")
        await outside.until(lambda: bool(outside.foreign))
        assert outside.foreign == {"a.txt": ("one\r\ntwo\r\n", "one\r\nTWO\r\n")}


@pytest.mark.slow
async def test_folders_that_a_client_reports_mean_their_files(folder: Path, state: Path) -> None:
    repository(folder, a_py=TEXT)
    (folder / "sub").mkdir()
    (folder / "sub" / "b.py").write_text("b\n")
    (folder / "loose").mkdir()
    (folder / "loose" / "c.py").write_text("c\n")
    git(folder, "add", "sub")
    git(folder, "commit", "-qm", "sub")
    async with watched(folder, state, is_told=True) as outside:
        (folder / "sub").rename(folder / "moved")
        program(folder, "import shutil; shutil.rmtree('loose')")
        outside.watch.touched(str(folder / name) for name in ("sub", "moved", "loose"))
        await outside.until(lambda: len(outside.foreign) == 3)
        assert outside.foreign == {
            "sub/b.py": ("b\n", None),
            "moved/b.py": (None, "b\n"),
            "loose/c.py": ("c\n", None),
        }


@pytest.mark.slow
@pytest.mark.parametrize("is_told", [True, False])
async def test_what_editors_write_without_a_word_is_not_foreign(folder: Path, state: Path, is_told: bool) -> None:
    silent = ("notes.ipynb", ".vscode/settings.json", "sub/.idea/workspace.xml")
    for name in silent:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}\n")
    async with watched(folder, state, is_told=is_told) as outside:
        for name in (*silent, "a.vscode"):
            (folder / name).write_text('{"by": "the editor"}\n')
        outside.watch.touched(str(folder / name) for name in (*silent, "a.vscode"))
        await outside.until(lambda: bool(outside.foreign))
        assert list(outside.foreign) == ["a.vscode"]


def test_copies_are_bounded_and_closed_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codeagent_lsp.foreign.baseline.MOST_BYTES", 10)
    copies = Copies(tmp_path / "before")
    copies.keep("/ws/a", FileState("12345"))
    copies.keep("/ws/b", FileState("1234567"))
    copies.keep("/ws/c", ABSENT)
    assert [copies.state(f"/ws/{name}") for name in "abcd"] == [FileState("12345"), UNKNOWN, ABSENT, None]
    files = [path for path in (tmp_path / "before").rglob("*") if path.is_file()]
    assert [path.stat().st_mode & 0o777 for path in files] == [0o600]
    copies.keep("/ws/a", ABSENT)
    copies.keep("/ws/b", FileState("1234567"))
    assert copies.state("/ws/b") == FileState("1234567")
    copies.remove()
    assert not (tmp_path / "before").exists()
