"""Focused files: fresh, bounded, the least recently used one goes first, those being edited last."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.agent.context.history import FocusedFile, FocusedFiles, render_focused_file

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])


@st.composite
def worked_on(draw: st.DrawFn) -> FocusedFiles:
    files = FocusedFiles(limit=draw(st.integers(0, 60)))
    for _ in range(draw(st.integers(0, 12))):
        match draw(st.sampled_from(["seen", "used", "editing", "without", "refreshed"])):
            case "seen":
                files = files.seen(draw(NAMES), draw(st.text("xy", max_size=40)))
            case "used":
                files = files.used(draw(NAMES))
            case "editing":
                files = files.editing(draw(st.lists(NAMES)))
            case "without":
                files = files.without(draw(NAMES))
            case _:
                files = files.refreshed({draw(NAMES): draw(st.none() | st.text("z", max_size=90))})
    return files


@given(worked_on())
def test_it_never_holds_more_than_the_limit_nor_a_file_twice(files: FocusedFiles) -> None:
    assert files.size <= files.limit
    assert len(set(files.paths)) == len(files.paths)


@given(worked_on())
def test_it_survives_being_stored(files: FocusedFiles) -> None:
    assert FocusedFiles.from_dict(json.loads(json.dumps(files.to_dict()))) == files


@given(worked_on(), NAMES, st.text("xy", max_size=40))
def test_what_was_just_seen_is_there_if_it_can_be(files: FocusedFiles, name: str, text: str) -> None:
    found = files.seen(name, text).get(name)
    assert (found is not None) == (len(text) <= files.limit)
    assert found is None or found.text == text


@given(worked_on(), st.integers(0, 100))
def test_what_is_shown_fits_the_room(files: FocusedFiles, room: int) -> None:
    assert sum(len(render_focused_file(file.path, file.text)) for file in files.newest(room)) <= room


def three() -> FocusedFiles:
    return FocusedFiles(limit=30).seen("a", "1" * 10).seen("b", "2" * 10).seen("c", "3" * 10)


def test_the_least_recently_used_file_goes_first() -> None:
    assert three().seen("d", "4" * 10).paths == ("b", "c", "d")
    assert three().used("a").seen("d", "4" * 10).paths == ("c", "a", "d")
    assert three().used("unknown") == three()


def test_a_file_being_edited_goes_last() -> None:
    assert three().editing(["a"]).seen("d", "4" * 10).paths == ("a", "c", "d")
    assert three().editing(["a", "b", "c"]).seen("d", "4" * 10).paths == ("b", "c", "d")
    assert three().editing(["a"]).editing([]).seen("d", "4" * 10).paths == ("b", "c", "d")


def test_reading_again_keeps_the_mark_of_editing() -> None:
    file = three().editing(["a"]).seen("a", "new").get("a")
    assert file == FocusedFile("a", "new", editing=True)


def test_a_file_larger_than_everything_pushes_nothing_out() -> None:
    assert three().seen("huge", "x" * 31).paths == ("a", "b", "c")
    assert three().seen("a", "x" * 31).paths == ("b", "c")


def test_texts_are_refreshed_and_lost_files_leave() -> None:
    files = three().refreshed({"a": "new", "b": None})
    assert [(file.path, file.text) for file in files.files] == [("a", "new"), ("c", "3" * 10)]


def test_files_being_edited_are_shown_first_then_the_latest() -> None:
    shown = three().editing(["a"]).newest(1000)
    assert [file.path for file in shown] == ["a", "c", "b"]
    assert [file.path for file in three().newest(15)] == ["c"]


@pytest.mark.parametrize("data", [{}, {"files": [{}], "limit": 1}, {"files": [{"path": "a", "x": 1}], "limit": 1}])
def test_what_makes_no_sense_is_refused(data: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError)):
        FocusedFiles.from_dict(data)
