"""Commands in Markdown files: found, named, trusted by content, called with arguments."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.agent.custom_commands import MOST_ARGUMENTS, CommandLibrary, expand_arguments
from codeagent_lsp.errors import UsageError
from codeagent_lsp.tools.skills.trust import Trust
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, NothingStaged
from codeagent_lsp.workspace.files.paths import Roots


@pytest.fixture
def library(tmp_path: Path) -> CommandLibrary:
    return CommandLibrary((tmp_path / "own", tmp_path / "claude"), Trust(tmp_path / "trusted.json"))


def put(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def view(tmp_path: Path) -> FileView:
    (tmp_path / "ws").mkdir(exist_ok=True)
    return FileView(Roots([str(tmp_path / "ws")]), NoBuffers(), NothingStaged())


HEAD = "---\ndescription: Review a file\nargument-hint: FILE\nallowed-tools: Bash(rm:*)\n---\nReview $1 well."


def test_files_of_all_places_are_found(tmp_path: Path, library: CommandLibrary) -> None:
    put(tmp_path / "own" / "mine.md", "My own.")
    put(tmp_path / "claude" / "theirs.md", "From the other agent's folder.")
    put(tmp_path / "ws" / ".codeagent" / "commands" / "review.md", HEAD)
    put(tmp_path / "ws" / ".claude" / "commands" / "web" / "page.md", "A page.")
    put(tmp_path / "ws" / ".claude" / "commands" / "mine.md", "Not this one: the user's own comes first.")
    found = {item.name: item for item in library.commands(view(tmp_path))}
    assert list(found) == ["mine", "review", "theirs", "web:page"]
    assert (found["mine"].body, found["mine"].approved, found["mine"].description) == ("My own.", True, "My own.")
    review = found["review"]
    assert (review.approved, review.description) == (False, ""), "nothing of an untrusted file is shown"
    library.trust.add(review.digest, "review")
    review = {item.name: item for item in library.commands(view(tmp_path))}["review"]
    assert (review.approved, review.description, review.hint) == (True, "Review a file", "FILE")
    put(tmp_path / "ws" / ".codeagent" / "commands" / "review.md", HEAD + " Changed.")
    assert not {item.name: item for item in library.commands(view(tmp_path))}["review"].approved


@pytest.mark.parametrize("name", ["a b.md", "-x.md", "x\u202e.md", "×.md", "x.txt", "a/b/c.md"])
def test_odd_names_are_left_out(tmp_path: Path, library: CommandLibrary, name: str) -> None:
    put(tmp_path / "ws" / ".claude" / "commands" / name, "Text.")
    assert library.commands(view(tmp_path)) == ()


@pytest.mark.parametrize("text", [b"", b"---\nnever ends", b"\xff\xfe", b"x" * 70_000, b"---\na: 1\n---\n"])
def test_files_that_are_none_are_left_out(tmp_path: Path, library: CommandLibrary, text: bytes) -> None:
    put(tmp_path / "own" / "x.md", text)
    assert library.commands(view(tmp_path)) == ()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "says nothing"),
        (b"---\nnever ends", "cannot be read"),
        (b"\xff\xfe", "not UTF-8"),
        (b"x" * 70_000, "larger than 64 KiB"),
    ],
)
def test_a_call_of_a_file_that_is_none_says_why(
    tmp_path: Path, library: CommandLibrary, content: bytes, why: str
) -> None:
    put(tmp_path / "own" / "x.md", content)
    with pytest.raises(UsageError, match=why) as caught:
        library.called(view(tmp_path), "/x now")
    assert f"{tmp_path}/own/x.md" in str(caught.value)


def test_arguments_that_are_cut_are_told(tmp_path: Path, library: CommandLibrary) -> None:
    put(tmp_path / "own" / "x.md", "Do it.")
    cut = [library.called(view(tmp_path), f"/x {'a' * length}") for length in (MOST_ARGUMENTS, MOST_ARGUMENTS + 1)]
    assert [called is not None and called.cut for called in cut] == [False, True]


def test_a_link_out_of_the_workspace_is_not_followed(tmp_path: Path, library: CommandLibrary) -> None:
    put(tmp_path / "outside.md", "Outside.")
    folder = tmp_path / "ws" / ".claude" / "commands"
    folder.mkdir(parents=True)
    (folder / "x.md").symlink_to(tmp_path / "outside.md")
    assert library.commands(view(tmp_path)) == ()


@pytest.mark.parametrize(
    ("words", "task"),
    [
        ("/review a.py", "Review a.py well."),
        ('/review "a b.py" more', "Review a b.py well.\n\nmore"),
        ("/review", "Review  well."),
        ("/review\na.py", "Review a.py well."),
        ("/nothing a.py", None),
        ("/review/a.py", None),
        ("review a.py", None),
        ("/usr/bin/python is slow", None),
        ("//review", None),
        (" /review  a.py", "Review a.py well."),
        ("/评审 购物车", "评审购物车的代码。"),
        ("/été", "In summer."),
        ("/page", "A page."),
        ("/web:page", "A page."),
        ("/twice", None),
    ],
)
def test_a_call(tmp_path: Path, library: CommandLibrary, words: str, task: str | None) -> None:
    put(tmp_path / "own" / "review.md", HEAD)
    put(tmp_path / "own" / "评审.md", "---\nargument-hint: [文件] [重点]\n---\n评审$ARGUMENTS的代码。")
    put(tmp_path / "own" / "e\u0301te\u0301.md", "In summer.")
    put(tmp_path / "own" / "web" / "page.md", "A page.")
    put(tmp_path / "own" / "web" / "twice.md", "One of two.")
    put(tmp_path / "own" / "app" / "twice.md", "The other.")
    called = library.called(view(tmp_path), words)
    assert (called.task if called else None) == task


@pytest.mark.parametrize(
    ("body", "arguments", "text"),
    [
        ("Do $ARGUMENTS.", "a b", "Do a b."),
        ("Do $1, then $2.", "'one two' three", "Do one two, then three."),
        ("Do it.", "now", "Do it.\n\nnow"),
        ("Do it.", "", "Do it."),
        (r"It costs \$1.", "", "It costs $1."),
        ("$ARGUMENTSX $HOME", "a", "$ARGUMENTSX $HOME\n\na"),
        ("Say $1", 'an "open quote', 'Say an\n\n"open quote'),
        ("Do $1.", "one two  'three four'", "Do one.\n\ntwo  'three four'"),
        ("Open $1.", r"C:\new\file.txt", r"Open C:\new\file.txt."),
        ("Do $1 and $2.", "don't it's", "Do don't and it's."),
        ("Do $2.", "one two three", "Do two.\n\none  three"),
        ("Do it.", "one\n  two", "Do it.\n\none\n  two"),
        ("Do $1.", "12 why?\n```py\nif a:\n    b()", "Do 12.\n\nwhy?\n```py\nif a:\n    b()"),
        ("$ARGUMENTS: $1", "one two", "one two: one"),
        ("Do $1.", "''", "Do ."),
        ("$1 $1", "$ARGUMENTS", "$ARGUMENTS $ARGUMENTS"),
        ("把$ARGUMENTS和$1改好", "甲 乙", "把甲 乙和甲改好"),
        ("It costs $10.", "", "It costs $10."),
    ],
)
def test_arguments_are_put_in_place_once(body: str, arguments: str, text: str) -> None:
    assert expand_arguments(body, arguments) == text


@given(st.text(max_size=60), st.text(max_size=60))
def test_anything_can_be_expanded(body: str, arguments: str) -> None:
    assert isinstance(expand_arguments(body, arguments), str)
