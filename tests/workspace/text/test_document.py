"""Snapshots: edits against the reference model, versions, digests, speed on huge lines."""

from __future__ import annotations

import hashlib
import random
import time

import pytest

from codeagent_lsp.workspace.text.document import Change, Document, text_digest
from codeagent_lsp.workspace.text.position import Encoding, Position
from tests.workspace import reference
from tests.workspace.text.test_position import ENCODINGS

_LINE_LIKE = ["\f", "\v", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


def _doc(text: str, version: int | None = 1) -> Document:
    return Document("file:///a", text, version)


@pytest.mark.parametrize("separator", _LINE_LIKE)
def test_an_edit_hits_the_line_the_client_means(separator: str) -> None:
    document = _doc(f"a{separator}b\nc").apply(Change("X", (1, 0), (1, 1)), "utf-16")
    assert document.text == f"a{separator}b\nX"


def test_a_full_change_replaces_everything() -> None:
    assert _doc("old\ntext").apply(Change("new"), "utf-8", version=0).text == "new"


def test_zero_is_a_version_and_none_keeps_the_known_one() -> None:
    assert _doc("a", 5).apply(Change("b"), "utf-8", version=0).version == 0
    assert _doc("a", 0).apply(Change("b"), "utf-8").version == 0


def test_the_old_snapshot_stays() -> None:
    before = _doc("one\ntwo")
    before.apply(Change("", (0, 0), (1, 0)), "utf-8")
    assert before.text == "one\ntwo"
    assert len(before.lines) == 2


def test_a_reversed_range_is_refused() -> None:
    with pytest.raises(ValueError, match="before it starts"):
        _doc("abc").apply(Change("X", (0, 2), (0, 1)), "utf-16")


def test_the_digest_is_that_of_the_text() -> None:
    document = _doc("é\n")
    assert document.digest == hashlib.sha256("é\n".encode()).hexdigest()
    assert document.digest == _doc("é\n", 9).digest != _doc("e\n").digest
    assert text_digest("\ud800") != text_digest("?")


def test_positions_of_a_document() -> None:
    document = _doc("a\U0001f600\nb")
    assert document.offset(0, 3, "utf-16") == 2
    assert document.position(2, "utf-16") == Position(0, 3)


def test_equality_is_by_value() -> None:
    first = _doc("ab").apply(Change("c", (0, 1), (0, 1)), "utf-8")
    assert first == _doc("acb")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_random_edits_equal_the_reference(encoding: Encoding) -> None:
    _edit_at_random(encoding, edits=300, seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_many_random_edits_equal_the_reference(encoding: Encoding) -> None:
    _edit_at_random(encoding, edits=20_000, seed=5)


@pytest.mark.parametrize(
    ("letter", "limit"), [("a", 0.02), ("é", 0.02), ("\U0001f600", 0.1)], ids=["ascii", "accents", "emoji"]
)
@pytest.mark.slow
def test_one_keystroke_in_a_line_of_five_megabytes(letter: str, limit: float) -> None:
    size = 5_000_000 // len(letter.encode())
    document = _doc(letter * size)
    place = (0, size // 2)
    document = document.apply(Change("x", place, place), "utf-16")
    took = []
    for _ in range(5):
        begun = time.thread_time()
        document = document.apply(Change("x", place, place), "utf-16")
        took.append(time.thread_time() - begun)
    assert min(took) < limit
    assert document.text.count("x") == 6


def _edit_at_random(encoding: Encoding, *, edits: int, seed: int) -> None:
    rng = random.Random(seed)
    document = _doc(reference.random_text(rng, 40))
    for version in range(edits):
        text = document.text
        start = (rng.randint(0, 8), rng.randint(0, 12))
        end = max(start, (rng.randint(0, 8), rng.randint(0, 12)))
        new = reference.random_text(rng, 6)
        a = reference.offset(text, *start, encoding)
        b = max(a, reference.offset(text, *end, encoding))
        document = document.apply(Change(new, start, end), encoding, version=version)
        assert document.text == text[:a] + new + text[b:], (text, start, end, new)
        if version % 50 == 0:
            assert document.lines.starts.tolist() == [begin for begin, _ in reference.lines(document.text)]
        if len(document.text) > 400:
            document = _doc(reference.random_text(rng, 40))
