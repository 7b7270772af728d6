"""The bench runs what users run: both send the same requests, task by task."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.same_requests import REPLIES, SEED, TASKS, Compared, compared
from tests.bench.tasks import draw


@pytest.mark.slow
@pytest.mark.volume
@pytest.mark.timeout(900)
def test_a_task_of_the_bench_is_asked_of_the_model_as_a_users_is(tmp_path: Path) -> None:
    found = list(compared(draw(SEED, TASKS), "refusing", tmp_path))
    assert not [f"{each.task}: {each.told()}" for each in found if not each.same]
    assert sum(bool(each.in_bench) for each in found) >= TASKS - 2, "a rename needs no model"


@pytest.mark.slow
@pytest.mark.parametrize("replies", REPLIES)
def test_a_model_that_answers_is_asked_the_same_too(replies: str, tmp_path: Path) -> None:
    tasks = [task for task in draw(SEED, 4) if task.kind != "rename"][:2]
    found = list(compared(tasks, replies, tmp_path))
    assert [each.same for each in found] == [True, True], [each.told() for each in found]
    assert all(each.in_bench for each in found)


def test_a_difference_is_told_with_its_place() -> None:
    assert Compared("t", "refusing", ["a", "one line"], ["a", "one more"]).told().startswith("request 2, character 4")
    assert not Compared("t", "refusing", ["a"], []).same
    assert "1 requests in the bench, 0" in Compared("t", "refusing", ["a"], []).told()
