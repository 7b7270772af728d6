"""What was selected is found again, of several alike the one that was meant, or the model is told what it was."""

from __future__ import annotations

import pytest

from codeagent_lsp import events
from codeagent_lsp.session.request import Target
from codeagent_lsp.session.task_queue import place_of, request_of
from codeagent_lsp.workspace.files.file_view import FileText

PATH = "/w/a.py"
TWO = "def f():\n    x = 1\n\ndef g():\n    x = 1\n"


def again(before: str, start: int, selected: str, now: str) -> tuple[int, int] | None:
    """Where the selection is in the text of now; None where the model is told what it was."""
    place = place_of(Target(FileText(PATH, before, "buffer"), start, start + len(selected)))
    queued = events.TaskQueued(task="t", title="t", place=place)
    request = request_of(queued, lambda path: FileText(path, now, "buffer"))
    assert (request.target is None) == bool(request.given)
    return None if request.target is None else (request.target.start, request.target.end)


@pytest.mark.parametrize(
    ("before", "nth", "now", "line"),
    [
        (TWO, 0, TWO, 2),
        (TWO, 1, TWO, 5),
        (TWO, 1, f"# above\n{TWO}", 6),
        (TWO, 1, TWO[:-2] + "2\n", None),  # the one that was meant was rewritten
        (TWO, 0, f"{TWO}x = 1\n", 2),  # nothing before it has changed
        (TWO, 1, f"x = 1\n{TWO}", None),
        ("x = 1\ny = 2\n", 0, "x = 3\nx = 1\n", 2),
        ("x = 1\n", 0, "", None),
    ],
)
def test_of_several_alike_the_one_that_was_meant(before: str, nth: int, now: str, line: int | None) -> None:
    start = -1
    for _ in range(nth + 1):
        start = before.index("x = 1", start + 1)
    found = again(before, start, "x = 1", now)
    assert (None if found is None else now[: found[0]].count("\n") + 1) == line


def test_nothing_selected_is_a_place() -> None:
    assert again("x = 1\n", 3, "", "x = 1\n") == (3, 3)
    assert again("x = 1\n", 3, "", "x") is None


def test_a_task_that_was_queued_before_counts_as_one_of_its_kind() -> None:
    place = {"path": PATH, "start": 0, "end": 1, "selected": "x"}
    queued = events.TaskQueued(task="t", title="t", place=place)
    for now, found in (("ax", 1), ("xx", None)):
        file = FileText(PATH, now, "buffer")
        target = request_of(queued, {PATH: file}.__getitem__).target
        assert (None if target is None else target.start) == found
