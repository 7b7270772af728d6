"""What a task begins with: the names of the files, and the text of those it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.agent.context.gather import NAMED_FILES, named_files, starting_context
from tests.clock import processor_seconds
from tests.workspace.file_fakes import workspace

FILES = ["/w/src/app.py", "/w/src/util/text.py", "/w/tests/text.py", "/w/README.md", "/w/a/b.test.ts"]
BARE = ["/w/VERSION", "/w/.nvmrc", "/w/Makefile", "/w/bin/run", "/w/sub/makefile", "/w/LICENSE", "/w/Run"]


@pytest.mark.parametrize(
    ("task", "found"),
    [
        ("fix app.py", ["/w/src/app.py"]),
        ("fix `src/app.py`, then README.md.", ["/w/src/app.py", "/w/README.md"]),
        ("fix ./src/app.py:12", ["/w/src/app.py"]),
        ("fix src\\app.py", ["/w/src/app.py"]),
        ("修复src/app.py里的问题，再看README.md。", ["/w/src/app.py", "/w/README.md"]),
        ("fix text.py", []),
        ("fix util/text.py", ["/w/src/util/text.py"]),
        ("app.py app.py app.py", ["/w/src/app.py"]),
        ("see b.test.ts", ["/w/a/b.test.ts"]),
        ("version 3.11 and e.g. nothing", []),
        ("set VERSION to 2, as .nvmrc and the Makefile say", ["/w/VERSION", "/w/.nvmrc", "/w/Makefile"]),
        ("make bin/run executable, and `makefile` too", ["/w/bin/run", "/w/sub/makefile"]),
        ("把VERSION改成2", ["/w/VERSION"]),
        ("the version, a license, run makefile, VERSIONS and VERSION.txt", []),
        ("Run it", []),
        ("wrapp.py", []),
        ("", []),
    ],
)
def test_files_that_a_task_names(task: str, found: list[str]) -> None:
    assert named_files(task, [*FILES, *BARE]) == found


def test_files_that_are_known_already_are_left_out_and_the_number_is_bounded() -> None:
    assert named_files("app.py README.md", FILES, ["/w/src/app.py"]) == ["/w/README.md"]
    many = [f"/w/f{number}.py" for number in range(20)]
    assert len(named_files(" ".join(f"f{n}.py" for n in range(20)), many)) == NAMED_FILES


@pytest.mark.slow
@pytest.mark.parametrize("task", ["a" * 200_000, "a/" * 100_000, "." * 200_000, "x.py " * 40_000, "a.b" * 60_000])
def test_a_huge_task_is_read_in_no_time(task: str) -> None:
    with processor_seconds(3.0):
        named_files(task, FILES * 500)


def test_what_stands_in_the_conversation_is_not_said_again(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    for name in ("app.py", "new.py"):
        space.write(name, f"{name} = 1\n")
    space.write("big.py", "x = 1\n" * 2001)
    asked: list[tuple[str, str]] = []

    def stands(name: str, text: str) -> bool:
        asked.append((name, text))
        return name != "new.py"

    text = starting_context(space.view, "app.py, new.py and big.py", 3000, stands=stands)
    assert text == (
        "The whole file app.py stands above, unchanged.\n\n"
        "The whole file new.py, as it is now:\n1|new.py = 1\n\n"
        "The beginning of the file big.py stands above, unchanged."
    )
    assert [name for name, _ in asked] == ["", "app.py", "new.py", "big.py"]
    assert asked[1][1] == "1|app.py = 1"


def test_the_context_has_names_and_buffers_and_keeps_to_its_budget(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    space.write("app.py", "on disk\n")
    space.write("big.py", "x = 1\n" * 1900)
    space.open("app.py", "in the buffer\n")
    text = starting_context(space.view, "look at app.py and big.py", 3000)
    assert "app.py" in text
    assert "in the buffer" in text
    assert "on disk" not in text
    assert "x = 1" not in text
    assert len(text) < 3000


def test_a_file_that_is_shown_in_part_is_not_called_whole(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    space.write("big.py", "x = 1\n" * 5000)
    text = starting_context(space.view, "look at big.py", 3000)
    assert "The whole file" not in text
    assert "5000 lines" in text


def test_secrets_and_binaries_are_not_shown(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    space.write(".env", "word=hidden\n")
    space.write("pic.bin", b"\0\1\2" * 100)
    text = starting_context(space.view, "read .env and pic.bin", 3000)
    assert "hidden" not in text
    assert "\0" not in text


def test_an_empty_workspace_gives_nothing(tmp_path: Path) -> None:
    assert starting_context(workspace(tmp_path).view, "do x.py", 1000) == ""


@pytest.mark.parametrize(
    "form", ["~§", "§~", "#§#", ".§.swp", ".#§", "§.bak", "§.orig", "§.~1~", "§,v", "+§", "_§", "§c"]
)
@pytest.mark.parametrize("own", ["a.py", "src/a.tsx"])
def test_a_name_beside_another_names_only_its_own_file(own: str, form: str) -> None:
    folder, slash, name = own.rpartition("/")
    other = f"{folder}{slash}{form.replace('§', name)}"
    for files in ([own, other], [own], [other]):
        for named in (own, other):
            for words in (f"fix {named}", f"fix `{named}` please", f"in {named}: change it", f"看 `{named}` 吧"):
                found = named_files(words, [f"/w/{each}" for each in files])
                assert found in ([f"/w/{named}"], []), (words, files)
                assert found or named not in files or named == other
