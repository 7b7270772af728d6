"""What WorkspaceEdits make of files, without a disk."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.lsp_client.disk import EditImpossible, FileWrite, plan

A, B, C = Path("/w/a.py"), Path("/w/b.py"), Path("/w/new/c.py")


def text_edit(path: Path, *edits: tuple[tuple[int, int], tuple[int, int], str]) -> dict[str, Any]:
    listed = [
        {
            "range": {
                "start": {"line": start[0], "character": start[1]},
                "end": {"line": end[0], "character": end[1]},
            },
            "newText": new,
        }
        for start, end, new in edits
    ]
    return {"textDocument": {"uri": path.as_uri(), "version": None}, "edits": listed}


def planned(files: Mapping[Path, bytes], *operations: Mapping[str, Any]) -> dict[Path, bytes | None]:
    writes = plan({"documentChanges": list(operations)}, files.get)
    assert all(write.before == files.get(write.path) for write in writes)
    return {write.path: write.after for write in writes}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"one\ntwo\n", b"one\nTWO\n"),
        (b"one\r\ntwo\r\n", b"one\r\nTWO\r\n"),
        (codecs.BOM_UTF8 + b"one\ntwo", codecs.BOM_UTF8 + b"one\nTWO"),
        ("é\ntwo\n".encode("latin-1"), "é\nTWO\n".encode("latin-1")),
        (codecs.BOM_UTF16_LE + "é\ntwo\n".encode("utf-16-le"), codecs.BOM_UTF16_LE + "é\nTWO\n".encode("utf-16-le")),
        ("一😀\ntwo".encode(), "一😀\nTWO".encode()),
    ],
)
def test_encoding_mark_and_line_ends_survive(before: bytes, after: bytes) -> None:
    assert planned({A: before}, text_edit(A, ((1, 0), (1, 3), "TWO"))) == {A: after}


def test_new_lines_end_as_the_lines_of_the_file() -> None:
    edit = text_edit(A, ((1, 0), (1, 0), "x\ny\n"))
    assert planned({A: b"1\r\n2\r\n"}, edit) == {A: b"1\r\nx\r\ny\r\n2\r\n"}
    assert planned({A: b"1\n2\r\n"}, edit) == {A: b"1\nx\ny\n2\r\n"}


def test_all_ranges_are_in_the_text_before() -> None:
    edit = text_edit(A, ((0, 0), (0, 1), "longer\nand more"), ((1, 0), (1, 1), "B"), ((2, 1), (2, 1), "!"))
    assert planned({A: b"a\nb\nc"}, edit) == {A: b"longer\nand more\nB\nc!"}


def test_insertions_at_one_place_keep_their_order() -> None:
    edit = text_edit(A, ((0, 1), (0, 1), "1"), ((0, 1), (0, 1), "2"))
    assert planned({A: b"ab"}, edit) == {A: b"a12b"}


def test_characters_count_code_points() -> None:
    assert planned({A: "😀x".encode()}, text_edit(A, ((0, 1), (0, 2), "y"))) == {A: "😀y".encode()}


def test_create_then_fill_is_one_write() -> None:
    create = {"kind": "create", "uri": C.as_uri()}
    assert planned({}, create, text_edit(C, ((0, 0), (0, 0), "hé\n"))) == {C: "hé\n".encode()}


def test_rename_moves_the_bytes_and_says_where_they_come_from() -> None:
    operation = {"kind": "rename", "oldUri": A.as_uri(), "newUri": B.as_uri()}
    writes = plan({"documentChanges": [operation]}, {A: b"\xff\xfe\x00"}.get)
    assert set(writes) == {FileWrite(A, b"\xff\xfe\x00", None), FileWrite(B, None, b"\xff\xfe\x00", like=A)}


def test_rename_then_edit() -> None:
    operation = {"kind": "rename", "oldUri": A.as_uri(), "newUri": B.as_uri()}
    assert planned({A: b"x\n"}, operation, text_edit(B, ((0, 0), (0, 1), "y"))) == {A: None, B: b"y\n"}


def test_delete_and_what_cancels_out() -> None:
    assert planned({A: b"x"}, {"kind": "delete", "uri": A.as_uri()}) == {A: None}
    assert planned({}, {"kind": "create", "uri": A.as_uri()}, {"kind": "delete", "uri": A.as_uri()}) == {}
    assert planned({A: b"x"}, text_edit(A, ((0, 0), (0, 1), "x"))) == {}


def test_plain_changes_are_taken_too() -> None:
    edit = {"changes": {A.as_uri(): text_edit(A, ((0, 0), (0, 0), "#"))["edits"]}}
    assert [write.after for write in plan(edit, {A: b"x"}.get)] == [b"#x"]


@pytest.mark.parametrize(
    ("files", "operation"),
    [
        ({A: b"x"}, {"kind": "create", "uri": A.as_uri()}),
        ({}, {"kind": "delete", "uri": A.as_uri()}),
        ({}, {"kind": "rename", "oldUri": A.as_uri(), "newUri": B.as_uri()}),
        ({A: b"", B: b"x"}, {"kind": "rename", "oldUri": A.as_uri(), "newUri": B.as_uri()}),
        ({}, {"kind": "format", "uri": A.as_uri()}),
        ({}, {"kind": "create", "uri": "untitled:one"}),
        ({}, text_edit(A, ((0, 0), (0, 0), "x"))),
        ({A: b"\x00\x01\x02"}, text_edit(A, ((0, 0), (0, 0), "x"))),
        ({A: "é".encode("latin-1")}, text_edit(A, ((0, 0), (0, 0), "一"))),
        ({A: b"one line"}, text_edit(A, ((5, 0), (7, 0), "x"))),
    ],
)
def test_what_does_not_fit_is_refused(files: Mapping[Path, bytes], operation: Mapping[str, Any]) -> None:
    with pytest.raises(EditImpossible, match=r"\w"):
        plan({"documentChanges": [operation]}, files.get)


@pytest.mark.parametrize("option", ["ignoreIfExists", "overwrite"])
def test_options_of_create(option: str) -> None:
    operation = {"kind": "create", "uri": A.as_uri(), "options": {option: True}}
    assert planned({A: b"x"}, operation) == ({} if option == "ignoreIfExists" else {A: b""})


def test_delete_of_nothing_may_be_ignored() -> None:
    assert planned({}, {"kind": "delete", "uri": A.as_uri(), "options": {"ignoreIfNotExists": True}}) == {}
