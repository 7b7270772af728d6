"""The later kinds of tasks: each can be solved, is not solved before, and leaves what older seeds draw alone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.bench.tasks import ALL_KINDS, KINDS, draw, lay, solved
from tests.bench.tasks.changes import FORMS, TEST_FILE, Form, change_task, laid
from tests.bench.tasks.changes import KINDS as LATER
from tests.bench.tasks.task import outcome, write_files


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.kind}-{form.names[0]}")
def test_a_form_can_be_solved_and_is_not_before(form: Form, tmp_path: Path) -> None:
    number = [each for each in FORMS if each.kind == form.kind].index(form)
    task = change_task(random.Random(1), "t", form.kind, "small", number)
    name = task.cause.rpartition(" ")[2]
    lay(task, tmp_path)
    before = outcome(task, tmp_path)
    assert not before.passed
    assert not before.hung
    write_files(laid(form.answer, {"name": name}), tmp_path)
    after = outcome(task, tmp_path)
    assert after.passed, after.output


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.kind}-{form.names[0]}")
def test_every_file_of_an_answer_has_to_change(form: Form) -> None:
    assert form.answer.keys() <= form.files.keys()
    assert next(iter(form.files)) in form.answer, "the first file is the one to change"
    assert not [file for file, text in form.answer.items() if form.files[file] == text]


@pytest.mark.slow
def test_they_are_drawn_by_their_kinds_in_two_sizes() -> None:
    tasks = draw(5, 20, kinds=LATER)
    assert {task.kind for task in tasks} == set(LATER) == {"signature", "moved", "type", "import", "docs"}
    assert {task.size for task in tasks} == {"small", "medium"}
    assert [task.words for task in tasks] == [task.words for task in draw(5, 20, kinds=LATER)]
    assert all(set(task.also) <= task.files.keys() and task.tests == (TEST_FILE,) for task in tasks)
    short, long = (next(task for task in tasks if task.size == size) for size in ("small", "medium"))
    assert len(long.files[long.place]) > 2 * len(short.files[short.place])


@pytest.mark.slow
def test_a_seed_draws_the_older_kinds_as_before() -> None:
    assert set(ALL_KINDS) == {*KINDS, *LATER}
    assert {task.kind for task in draw(3, 12)} <= set(KINDS)


@pytest.mark.slow
def test_a_longer_file_is_no_solution(tmp_path: Path) -> None:
    for at, task in enumerate(draw(9, 5, kinds=LATER, sizes=["medium"])):
        folder = tmp_path / str(at)
        folder.mkdir()
        lay(task, folder)
        assert not solved(task, folder), task.id
