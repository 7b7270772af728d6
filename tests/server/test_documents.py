"""The open documents: what clients say in the right order, in the wrong one, and to listeners."""

from __future__ import annotations

import logging

import pytest

from codeagent_lsp.server.documents import Documents
from codeagent_lsp.workspace.text.document import Change, Document

URI = "file:///w/a.py"


def _opened(text: str = "one\n", version: int | None = 0) -> Documents:
    documents = Documents()
    documents.open(Document(URI, text, version, "python"))
    return documents


def _insert(text: str, line: int = 0, character: int = 0) -> Change:
    return Change(text, (line, character), (line, character))


def test_changes_apply_in_order_and_carry_the_version() -> None:
    documents = _opened()
    document = documents.change(URI, 1, [_insert("ab"), _insert("c", 0, 1)])
    assert document == Document(URI, "acbone\n", 1, "python")
    assert documents.get(URI) == document


def test_a_document_is_found_under_every_spelling_and_by_path() -> None:
    documents = _opened()
    assert documents.get("file:///w/%61.py") is documents.by_path("/w/a.py") is documents.get(URI) is not None
    assert documents.by_path("/w/b.py") is None
    documents.change("file:///w/%61.py", 1, [Change("new")])
    assert documents.all() == (Document(URI, "new", 1, "python"),)


def test_untitled_documents_have_a_place_too() -> None:
    documents = Documents()
    documents.open(Document("untitled:Untitled-1", "x", 1))
    assert documents.get("untitled:Untitled-1") is not None


def test_buffers_without_a_name_are_told_apart_from_files_and_not_from_each_other() -> None:
    lost = list[str]()
    documents = Documents(lost=lost.append)
    documents.open(Document("file://", "one\n", 0))
    documents.change("file://", 1, [_insert("a")])
    assert documents.in_step("file://")
    documents.open(Document("file://", "", 0))
    documents.change("file://", 2, [_insert("b", 7)])
    assert not documents.in_step("file://")
    documents.change("file://", 3, [_insert("b")])
    assert not documents.in_step("file://"), "it may be a change of either"
    assert lost == [], "nobody misses a text that no run can see"
    documents.open(Document(URI, "one\n", 0))
    documents.change(URI, 1, [_insert("b", 7)])
    assert lost == [URI]


def test_the_texts_of_the_beginning_are_kept_until_they_are_taken() -> None:
    documents = _opened()
    documents.change(URI, 1, [_insert("typed ")])
    documents.open(Document("file:///w/b.py", "b", 0))
    documents.close("file:///w/b.py")
    documents.open(Document("file:///w/c.py", "c", 0))
    assert documents.take_beginnings() == {URI: "one\n", "file:///w/c.py": "c"}
    documents.open(Document("file:///w/d.py", "d", 0))
    assert documents.take_beginnings() == {}


def test_changes_for_what_is_not_open_are_left_out() -> None:
    documents = _opened()
    assert documents.change("file:///other", 1, [Change("x")]) is None
    documents.close(URI)
    documents.close(URI)
    assert documents.change(URI, 2, [_insert("x")]) is None
    assert documents.all() == ()


def test_the_second_open_wins(caplog: pytest.LogCaptureFixture) -> None:
    documents = _opened()
    with caplog.at_level(logging.WARNING):
        documents.open(Document(URI, "second", 7))
    assert [document.text for document in documents.all()] == ["second"]
    assert "opened twice" in caplog.text


def test_an_older_partial_change_is_left_out_and_an_older_full_one_is_taken() -> None:
    documents = _opened(version=5)
    assert documents.change(URI, 3, [_insert("x")]) == Document(URI, "one\n", 5, "python")
    assert documents.change(URI, 3, [Change("all of it")]) == Document(URI, "all of it", 3, "python")
    assert documents.change(URI, 3, [_insert("x")]) == Document(URI, "xall of it", 3, "python")


def test_a_change_without_a_version_is_taken() -> None:
    documents = _opened(version=5)
    document = documents.change(URI, None, [_insert("x")])
    assert document == Document(URI, "xone\n", 5, "python")


def test_a_version_without_a_change_is_taken() -> None:
    documents = _opened(version=5)
    assert documents.change(URI, 6, []) == Document(URI, "one\n", 6, "python")
    assert documents.change(URI, None, []) == Document(URI, "one\n", 6, "python")


def test_a_reversed_range_leaves_the_text_alone() -> None:
    documents = _opened("abc")
    documents.change(URI, 1, [_insert("x"), Change("y", (0, 2), (0, 1))])
    assert documents.get(URI) == Document(URI, "abc", 0, "python")


@pytest.mark.parametrize(("encoding", "text"), [("utf-8", "\U0001f600Xa"), ("utf-16", "\U0001f600aX")])
def test_positions_are_read_in_the_agreed_encoding(encoding: str, text: str) -> None:
    documents = _opened("\U0001f600a")
    documents.encoding = "utf-8" if encoding == "utf-8" else "utf-16"
    document = documents.change(URI, 1, [_insert("X", 0, 4)])
    assert document is not None
    assert document.text == text


def test_listeners_hear_of_everything_until_they_leave() -> None:
    documents, heard = Documents(), list[tuple[str, str | None]]()
    leave = documents.subscribe(lambda uri, doc: heard.append((uri, doc.text if doc else None)))
    documents.open(Document(URI, "a", 1))
    documents.change(URI, 2, [Change("b")])
    documents.close(URI)
    leave()
    leave()
    documents.open(Document(URI, "c", 1))
    assert heard == [(URI, "a"), (URI, "b"), (URI, None)]


def test_a_failing_listener_keeps_nothing_from_the_others() -> None:
    documents, heard = Documents(), list[str]()

    def fail(uri: str, _document: Document | None) -> None:
        raise RuntimeError(uri)

    documents.subscribe(fail)
    documents.subscribe(lambda uri, _document: heard.append(uri))
    documents.open(Document(URI, "a", 1))
    assert heard == [URI]
