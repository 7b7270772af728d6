"""The content of prompts as tasks."""

from __future__ import annotations

from pathlib import Path

import pytest
from acp import schema
from acp.helpers import embedded_text_resource, image_block, resource_block, resource_link_block, text_block

from codeagent_lsp.acp_agent.client_files import FolderNames
from codeagent_lsp.acp_agent.prompt_content import task_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a file.py").write_text("x = 1\n")
    (tmp_path / "b.py").write_text("y = 1\n")
    return tmp_path


def test_a_link_to_a_file_of_the_session_is_attached(folder: Path) -> None:
    uri = (folder / "src" / "a file.py").as_uri()
    task = task_of(
        [text_block("Look at"), resource_link_block("a file.py", uri), text_block("please")], FolderNames([folder])
    )
    assert task.words == "Look at `src/a file.py` please"
    assert task.attachments == ({"uri": uri},)
    assert task.files == (folder / "src" / "a file.py",)


@pytest.mark.parametrize(("mark", "lines"), [("#L3", (2, 3)), ("#L3-L9", (2, 9)), ("#L3:9", (2, 9))])
def test_lines_of_a_link_are_a_range(folder: Path, mark: str, lines: tuple[int, int]) -> None:
    task = task_of([resource_link_block("b.py", f"{(folder / 'b.py').as_uri()}{mark}")], FolderNames([folder]))
    [attachment] = task.attachments
    assert (attachment["range"]["start"]["line"], attachment["range"]["end"]["line"]) == lines


@pytest.mark.parametrize("uri", ["https://example.org/b.py", "file:///etc/hostname", "zed:///agent/thread/1"])
def test_what_is_not_in_the_session_stays_a_link(folder: Path, uri: str) -> None:
    task = task_of([resource_link_block("that", uri)], FolderNames([folder]))
    assert (task.words, task.attachments) == (f"[that]({uri})", ())


def test_an_embedded_text_of_elsewhere_is_in_the_words(folder: Path) -> None:
    block = resource_block(embedded_text_resource("untitled:one", "```\ncode\n```"))
    words = task_of([text_block("Explain"), block], FolderNames([folder])).words
    assert "untitled:one" in words
    assert "````\n```\ncode\n```\n````" in words


def test_an_embedded_file_is_read_where_it_is(folder: Path) -> None:
    block = resource_block(embedded_text_resource((folder / "b.py").as_uri(), "y = 1\n"))
    task = task_of([block], FolderNames([folder]))
    assert (task.words, task.files) == ("`b.py`", (folder / "b.py",))


def test_pictures_are_attached(folder: Path) -> None:
    blob = schema.BlobResourceContents(blob="AAAA", mime_type="image/png", uri="file:///x.png")
    task = task_of([image_block("BBBB", "image/png"), resource_block(blob)], FolderNames([folder]))
    assert task.attachments == ({"data": "BBBB"}, {"data": "AAAA"})


def test_files_that_the_words_name_are_known_and_nothing_outside(folder: Path) -> None:
    task = task_of([text_block("Fix b.py and ../../etc/passwd.d and ./nothing.py")], FolderNames([folder]))
    assert task.files == (folder / "b.py",)


@pytest.mark.parametrize(
    ("words", "command", "rest"),
    [("/plan do it\nwell", "plan", "do it\nwell"), ("/undo", "undo", ""), ("a /plan", "", ""), ("/", "", "")],
)
def test_a_command_stands_at_the_beginning(folder: Path, words: str, command: str, rest: str) -> None:
    task = task_of([text_block(words)], FolderNames([folder]))
    assert (task.command, task.rest) == (command, rest)
