"""A change that does not fit the text: from then on nothing is done to it, until the client tells a whole text."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codeagent_lsp.server.documents import MOST_UNOPENED, Documents
from codeagent_lsp.server.front import Client
from codeagent_lsp.server.run_services import ClientTexts
from codeagent_lsp.server.server import CodeAgentServer
from codeagent_lsp.tools.context import PresentTexts
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.files.uris import from_path
from codeagent_lsp.workspace.text.document import Change, Document
from codeagent_lsp.workspace.text.position import Encoding
from tests.examples import examples
from tests.server.editor_client import ALL, connect, obedient
from tests.server.loopback import Loopback
from tests.tools.fakes import Bench

URI = "file:///w/a.py"
_ENCODINGS = st.sampled_from(["utf-8", "utf-16", "utf-32"])
_PIECES = st.lists(st.sampled_from(["a", "ä", "😀", "\n", "\r\n", "\r", " "]), max_size=12).map("".join)


def _at(text: str, offset: int, encoding: Encoding) -> tuple[int, int]:
    return Document(URI, text).position(offset, encoding)


@st.composite
def _fitting(draw: st.DrawFn, text: str, encoding: Encoding) -> tuple[Change, str]:
    """Draw a change as clients write one, and the text that it makes."""
    first, last = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    start, end = _at(text, first, encoding), _at(text, last, encoding)
    # Ends inside of a line end count as its start.
    document = Document(URI, text)
    first, last = document.offset(*start, encoding), document.offset(*end, encoding)
    ending = draw(st.sampled_from(["as it is", "long", "behind", "far behind"]))
    if ending == "long" and last in (len(text), *(place for place, each in enumerate(text) if each in "\r\n")):
        end = (end[0], end[1] + draw(st.sampled_from([1, 10_000])))
    elif ending == "behind" and last == len(text):
        end = (len(document.lines), 0)
    elif ending == "far behind" and last == len(text) and start == (0, 0):
        end = (len(document.lines) + 9, 7)
    new = draw(_PIECES)
    return Change(new, start, end), text[:first] + new + text[last:]


@st.composite
def _unfit(draw: st.DrawFn, text: str, encoding: Encoding) -> Change:
    """Draw a change whose range is none of the text."""
    lines = len(Document(URI, text).lines)
    kinds = ["behind", "ends behind", "below zero", "reversed"]
    wide = [place for place, each in enumerate(text) if each == "😀"]
    if wide and encoding != "utf-32":
        kinds += ["cuts", "cuts at its end"]
    kind = draw(st.sampled_from(kinds))
    inside = (0, 1) if encoding == "utf-32" or not wide else _at(text, draw(st.sampled_from(wide)), encoding)
    ranges: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {
        "behind": ((lines, 1), (lines + 1, 0)),
        "ends behind": ((0, 1), (lines, 1)),
        "below zero": ((-1, 0), (0, 0)),
        "reversed": ((lines - 1, 1), (lines - 1, 0)),
        "cuts": ((inside[0], inside[1] + 1), (inside[0], inside[1] + 1)),
        "cuts at its end": ((0, 0), (inside[0], inside[1] + 1)),
    }
    return Change(draw(_PIECES), *ranges[kind])


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(300), suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), _ENCODINGS)
def test_the_text_is_the_clients_or_known_not_to_be(data: st.DataObject, encoding: Encoding) -> None:
    lost = list[str]()
    documents = Documents(encoding, lost=lost.append)
    text = data.draw(_PIECES)
    documents.open(Document(URI, text, 1))
    told, known = 0, text
    for version in range(2, data.draw(st.integers(2, 8))):
        what = data.draw(st.sampled_from(["fits", "fits", "does not", "whole", "whole behind what does not", "anew"]))
        if what == "anew":
            documents.close(URI)
            text = known = data.draw(_PIECES)
            documents.open(Document(URI, text, version))
            continue
        changes = list[Change]()
        if what in ("does not", "whole behind what does not"):
            changes.append(data.draw(_unfit(text, encoding)))
        if what.startswith("whole"):
            text = data.draw(_PIECES)
            changes.append(Change(text))
        if what != "does not":
            for _ in range(data.draw(st.integers(0, 2))):
                change, text = data.draw(_fitting(text, encoding))
                changes.append(change)
        was_known = documents.in_step(URI)
        documents.change(URI, version, changes)
        is_known = what.startswith("whole") or (was_known and what == "fits")
        told += was_known and not is_known
        known = text if is_known else known
        document = documents.get(URI)
        assert document is not None
        assert (documents.in_step(URI), document.text, len(lost)) == (is_known, known, told)
        assert documents.is_current(document) == is_known


def test_a_change_to_an_older_version_is_not_understood_either() -> None:
    lost = list[str]()
    documents = Documents(lost=lost.append)
    documents.open(Document(URI, "one\n", 5))
    documents.change(URI, 3, [])
    assert documents.in_step(URI)
    documents.change(URI, 3, [Change("x", (0, 0), (0, 0))])
    documents.change(URI, 6, [Change("x", (0, 0), (0, 0))])
    assert (documents.in_step(URI), lost) == (False, [URI])


def test_a_client_that_errs_without_end_is_told_of_so_many_and_costs_no_more() -> None:
    lost = list[str]()
    documents = Documents(lost=lost.append)
    documents.open(Document(URI, "one\n", 5))
    documents.lose(URI)
    for number in range(500):
        documents.lose(f"file:///w/{number}.py")
    assert len(lost) <= MOST_UNOPENED + 2 and len(documents._out_of_step) <= MOST_UNOPENED + 2
    assert not documents.in_step(URI)


async def test_the_model_is_told_in_the_results_that_are_about_the_file(tmp_path: Path) -> None:
    client, _ = connect(obedient, ALL)
    bench = Bench(tmp_path / "ws")
    for name in ("a.py", "b.py"):
        bench.write(name, "one\n")
        client.open(Path(bench.path(name)), "one\n", 1)
    bench.context = bench.context.having(
        (PresentTexts, ClientTexts(Client(cast("CodeAgentServer", client), policy=ALL)))
    )
    bench.executor = ToolExecutor(bench.registry, bench.context, lambda: "bypass", bench.approvals)
    calls: list[tuple[str, dict[str, Any], bool]] = [
        ("read_file", {"path": "a.py"}, True),
        ("read_file", {"path": "b.py"}, False),
        ("grep", {"pattern": "one", "path": "."}, True),
        ("edit_file", {"path": "a.py", "old_str": "nowhere", "new_str": "x"}, True),
        ("write_file", {"path": "b.py", "content": "x"}, False),
        ("todoread", {}, False),
    ]
    for lost in (False, True, False):
        for name, arguments, concerned in calls:
            told = (await bench.call(name, **arguments)).text
            assert ("in the editor is not known any more" in told) is (lost and concerned), (lost, name, told)
        version = 3 if lost else 2
        change = Change("two\n") if lost else Change("x", (7, 0), (7, 1))
        client.change(Path(bench.path("a.py")), version, change)


async def test_nothing_is_applied_until_the_text_is_known_again(tmp_path: Path) -> None:
    client, editor = connect(obedient, ALL)
    path = tmp_path / "a.py"
    client.open(path, "one\ntwo\n", 1)
    client.change(path, 2, Change("x", (7, 0), (7, 1)))
    wanted = Changeset((FileChange(str(path), "one\ntwo\n", "one\nzwei\n"),))
    applied = await editor.apply(wanted, "label")
    assert (applied.outcome, applied.left, client.sent) == ("none", wanted, [])
    assert "close it and open it again" in applied.reason
    assert editor.has_unsaved_text(str(path))
    client.documents.close(from_path(str(path)))
    client.open(path, "new\none\ntwo\n", 1)
    applied = await editor.apply(wanted, "label")
    assert (applied.outcome, client.text(path)) == ("full", "new\none\nzwei\n")


async def test_neither_a_deletion_nor_a_move_loses_a_text_that_is_not_known(tmp_path: Path) -> None:
    client, editor = connect(obedient, ALL)
    path, other = tmp_path / "a.py", tmp_path / "b.py"
    path.write_text("one\n")
    client.open(path, "one\n", 1)
    client.change(path, 2, Change("x", (7, 0), (7, 1)))
    for change in (FileChange(str(path), "one\n", None), FileChange(str(other), "one\n", "one\n", None, str(path))):
        applied = await editor.apply(Changeset((change,)), "label", frozenset({str(path)}))
        assert (applied.outcome, client.sent, path.read_text()) == ("none", [], "one\n")


_PLACE = {"line": 0, "character": 0}
_RANGE = {"start": _PLACE, "end": _PLACE}


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"range": _RANGE},
        {"range": _RANGE, "text": None},
        {"range": _RANGE, "text": 1},
        {"range": {"start": _PLACE}, "text": "x"},
        {"range": {"start": {"line": 0}, "end": _PLACE}, "text": "x"},
        {"range": {"start": {"line": "0", "character": 0}, "end": _PLACE}, "text": "x"},
        {"range": {"start": {"line": 9, "character": 0}, "end": {"line": 9, "character": 1}}, "text": "x"},
        {"range": [], "text": "x"},
        {"text": None},
        {},
        [],
        None,
    ],
)
async def test_the_user_is_told_once_what_to_do(change: Any) -> None:
    loop = Loopback(CodeAgentServer())
    loop.initialize()
    item = {"uri": URI, "languageId": "py", "version": 1, "text": "one\n"}
    loop.say(method="textDocument/didOpen", params={"textDocument": item})
    sent = list[dict[str, Any]]()
    for version in (2, 3):
        identity = {"uri": URI, "version": version}
        params = {"textDocument": identity, "contentChanges": [change]}
        sent += loop.say(method="textDocument/didChange", params=params)
    (told,) = sent
    assert told["method"] == "window/showMessage"
    assert "/w/a.py" in told["params"]["message"]
    assert "close it and open it again" in told["params"]["message"]
    assert not loop.server.documents.in_step(URI)
    params = {"textDocument": {"uri": URI, "version": 4}, "contentChanges": [{"text": "two\n"}]}
    assert loop.say(method="textDocument/didChange", params=params) == []
    document = loop.server.documents.get(URI)
    assert document == Document(URI, "two\n", 4, "py")
    assert loop.server.documents.in_step(URI)


async def test_a_range_of_null_is_none() -> None:
    loop = Loopback(CodeAgentServer())
    loop.initialize()
    item = {"uri": URI, "languageId": "py", "version": 1, "text": "one\n"}
    loop.say(method="textDocument/didOpen", params={"textDocument": item})
    params = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": "two\n", "range": None}]}
    assert loop.say(method="textDocument/didChange", params=params) == []
    assert loop.server.documents.get(URI) == Document(URI, "two\n", 2, "py")


async def test_an_opening_that_cannot_be_read_leaves_the_text_unknown() -> None:
    loop = Loopback(CodeAgentServer())
    loop.initialize()
    (told,) = loop.say(method="textDocument/didOpen", params={"textDocument": {"uri": URI, "version": 1}})
    assert told["method"] == "window/showMessage"
    assert not loop.server.documents.in_step(URI)
    loop.say(method="textDocument/didClose", params={"textDocument": {"uri": URI}})
    assert loop.server.documents.in_step(URI)
