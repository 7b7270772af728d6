"""A workspace that the client opened through a symbolic link: completions, next edits and the index work in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.workspace.files.uris import from_path, to_path
from tests.inline.fill_server import fill_server
from tests.server import test_features_index as index
from tests.server import test_features_inline as inline
from tests.server import test_features_next_edit as next_edit
from tests.server.conftest import StartEditor
from tests.server.replies import edit, say, write


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return the name of a folder by which the client knows it: a link."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    return tmp_path / "link"


def test_a_completion_is_offered(start: StartEditor, workspace: Path) -> None:
    with fill_server(lambda path, body: ["a + b\n"]) as server:
        editor = inline.begin(start, server)
        uri = editor.open(workspace / "x.py", inline.TEXT)
        (item,) = editor.client.result(inline.METHOD, inline.ask(uri))["items"]
        assert item["insertText"] == "a + b"


def test_pieces_for_a_completion_come_from_open_files(start: StartEditor, workspace: Path) -> None:
    piece = "def total(prices, taxes):\n    subtotal = sum(prices)\n    return subtotal + taxes\n"
    here = "def total_of(prices, taxes):\n    subtotal = sum(prices)\n    return \n"
    with fill_server(lambda path, body: ["a + b\n"]) as server:
        editor = inline.begin(start, server)
        editor.open(workspace / "other.py", piece)
        editor.client.result(inline.METHOD, inline.ask(editor.open(workspace / "x.py", here), (2, 11)))
        assert [piece["filename"] for piece in server.bodies[0]["input_extra"]] == ["other.py"]


def test_a_link_to_a_file_outside_is_not_sent(start: StartEditor, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text(inline.TEXT)
    link = workspace.resolve() / "x.py"
    link.symlink_to(tmp_path / "outside.py")
    with fill_server(lambda path, body: ["a + b\n"]) as server:
        editor = inline.begin(start, server)
        assert editor.client.result(inline.METHOD, inline.ask(editor.open(link))) is None
        assert server.asked == []


def test_a_next_edit_is_offered_and_applied_under_the_clients_name(start: StartEditor, workspace: Path) -> None:
    path = workspace / "a.py"
    path.write_text(next_edit.FIRST + next_edit.MORE)
    editor = start()
    uri = editor.open(path)
    next_edit.change(editor, uri)
    assert next_edit.offered(editor, uri)[0]["range"]["start"]["line"] == 12
    about = {"uri": uri, "version": editor.buffers[uri].version}
    place = {"textDocument": about, "position": {"line": 8, "character": 0}, "context": {"triggerKind": 2}}
    (edit,) = editor.client.result("textDocument/copilotInlineEdit", place)["edits"]
    assert (edit["text"], edit["textDocument"]) == ("fetch(c, retry=True)", about)
    editor.run("codeagent.nextEdit.apply")
    assert editor.text(path).count("retry=True") == 3
    assert list(editor.buffers) == [uri]


def test_the_index_hears_of_watched_files(start: StartEditor, workspace: Path) -> None:
    (workspace / "a.py").write_text("x = 1\n")
    editor = start(capabilities=index.WATCHING)
    index.ready(editor, 1)
    editor.wait_until(lambda: index.status(editor)["watched"])
    for name in ("new.py", "target.py"):
        (workspace / name).write_text("y = 2\n")
    (workspace / "pointer.py").symlink_to("target.py")
    named = [from_path(workspace / name) for name in ("new.py", "pointer.py")]
    editor.client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 1} for uri in named]})
    editor.wait_until(lambda: index.status(editor)["done"] == 2)  # the new file, and what the link leads to


def test_files_that_are_not_open_are_edited_under_the_clients_name(start: StartEditor, workspace: Path) -> None:
    """Under another name an editor would open a second buffer of a file, beside the one in its own folder."""
    (workspace / "a.py").write_text("x = 1\n")
    editor = start(edit("a.py", "x = 1", "x = 2"), write("new.py", "y = 1\n"), say("Done."))
    editor.run("codeagent.run", task="go")
    assert {Path(to_path(uri) or "") for uri in editor.buffers} == {workspace / "a.py", workspace / "new.py"}
