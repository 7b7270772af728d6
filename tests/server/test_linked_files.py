"""A workspace or a file that the client opened through a symbolic link: its buffers are the truth all the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types

from codeagent_lsp.errors import UsageError
from codeagent_lsp.server.actions import lenses, pending_changes, waiting_actions
from codeagent_lsp.server.commands.convert import run_request
from codeagent_lsp.server.documents import Documents
from codeagent_lsp.server.run_services import Views
from codeagent_lsp.workspace.files.uris import from_path
from codeagent_lsp.workspace.text.document import Document
from tests.server.editor_client import TEXT, change, connect

UNSAVED = "unsaved\n" + TEXT


@pytest.fixture(params=["folder", "file"])
def linked(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, Path]:
    """Return the name of a file by which the client knows it, and its real path; the text on disk is `TEXT`."""
    real = tmp_path.resolve() / "real" / "a.py"
    real.parent.mkdir()
    real.write_text(TEXT)
    if request.param == "folder":
        (tmp_path / "link").symlink_to(real.parent)
        return tmp_path / "link" / "a.py", real
    link = real.parent / "link.py"
    link.symlink_to(real.name)
    return link, real


def opened(path: Path, text: str = UNSAVED) -> Documents:
    documents = Documents()
    documents.open(Document(from_path(path), text, 1))
    return documents


def test_the_buffer_is_found_by_the_real_path_until_it_is_closed(linked: tuple[Path, Path]) -> None:
    link, real = linked
    documents = opened(link)
    document = documents.by_path(str(real))
    assert document is not None
    assert (document.uri, documents.paths()) == (from_path(link), (str(real),))
    documents.close(from_path(link))
    assert (documents.by_path(str(real)), documents.paths()) == (None, ())


def test_of_two_buffers_of_a_file_that_of_the_very_name_counts(linked: tuple[Path, Path]) -> None:
    link, real = linked
    documents = opened(real, "real\n")
    documents.open(Document(from_path(link), "link\n", 1))
    assert [documents.by_path(str(path)) for path in (real, link)] == list(documents.all())
    documents.close(from_path(real))
    assert documents.by_path(str(real)) == documents.get(from_path(link))


def test_a_file_that_is_not_open_has_the_clients_name(tmp_path: Path) -> None:
    real, link = tmp_path.resolve() / "real", tmp_path / "link"
    (real / "inner").mkdir(parents=True)
    link.symlink_to(real)
    (tmp_path / "other").mkdir()
    documents = Documents(folders=lambda: [str(tmp_path / "other"), str(link), str(link / "inner")])
    named = {"a.py": link / "a.py", "inner/b.py": link / "inner" / "b.py", "../c.py": tmp_path.resolve() / "c.py"}
    for path, name in named.items():
        assert documents.uri(str((real / path).resolve())) == from_path(name)
    assert documents.uri(str(tmp_path / "other" / "x.py")) == from_path(tmp_path / "other" / "x.py")
    assert documents.uri("untitled:Untitled-1") == "untitled:Untitled-1"
    assert Documents().uri(str(real / "a.py")) == from_path(real / "a.py")


def test_what_a_run_reads_is_the_buffer(linked: tuple[Path, Path]) -> None:
    link, real = linked
    view = Views(lambda: [str(link.parent)], opened(link)).plain()
    assert (view.read(str(real)).text, view.read(str(real)).source) == (UNSAVED, "buffer")
    assert view.over_disk() == {str(real)}


def test_a_selection_is_of_the_buffers_text(linked: tuple[Path, Path]) -> None:
    link, _ = linked
    documents = opened(link)
    view = Views(lambda: [str(link.parent)], documents).plain()
    span = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 3}}
    arguments = {"uri": from_path(link), "range": span, "instruction": "shorter"}
    target = run_request("edit", arguments, documents, view, "en").target
    assert target is not None
    assert target.file.text[target.start : target.end] == "one"


def test_a_selection_in_a_text_that_is_not_known_is_refused(linked: tuple[Path, Path]) -> None:
    link, _ = linked
    documents = opened(link)
    view = Views(lambda: [str(link.parent)], documents).plain()
    documents.lose(from_path(link))
    span = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 3}}
    with pytest.raises(UsageError, match="close it and open it again"):
        run_request("edit", {"uri": from_path(link), "range": span, "instruction": "shorter"}, documents, view, "en")


async def test_an_edit_goes_to_the_buffer_under_the_clients_name(linked: tuple[Path, Path]) -> None:
    link, real = linked
    client, editor = connect()
    client.open(link, UNSAVED)
    applied = await editor.apply(change(real, UNSAVED, UNSAVED + "more\n"), "label")
    assert (applied.outcome, client.text(link)) == ("full", UNSAVED + "more\n")
    assert len(client.documents.all()) == 1


async def test_unsaved_text_is_not_deleted_without_leave(linked: tuple[Path, Path]) -> None:
    link, real = linked
    client, editor = connect()
    client.open(link, UNSAVED)
    assert editor.has_unsaved_text(str(real))
    assert (await editor.apply(change(real, UNSAVED, None), "label")).outcome == "none"
    assert real.exists()


async def test_the_file_is_deleted_and_not_a_link_to_it(linked: tuple[Path, Path]) -> None:
    link, real = linked
    client, editor = connect()
    client.open(link, TEXT)
    applied = await editor.apply(change(real, TEXT, None), "label")
    assert (applied.outcome, real.exists()) == ("full", False)
    named = (client.sent[0].edit.document_changes or [])[0]
    assert isinstance(named, types.DeleteFile)
    assert named.uri == from_path(real if link.is_symlink() else link)


def test_lenses_and_actions_are_offered_under_the_clients_name(linked: tuple[Path, Path]) -> None:
    link, real = linked
    waiting = pending_changes("run", (str(real),), "en")
    assert len(lenses(waiting, from_path(link))) == len(waiting_actions(waiting, from_path(link), (0, 0))) == 3
    assert lenses(waiting, from_path(link.parent / "other.py")) == []
