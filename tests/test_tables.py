"""Tables as one test: every row runs, every row that fails is told, and what cannot be one test stays many."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tables import as_one_test

SEEN: list[tuple[int, str, int]] = []
FOLDERS: list[Path] = []


@pytest.mark.parametrize("even", [0, 2])
@pytest.mark.parametrize(("number", "word"), [(1, "one"), pytest.param(2, "two", id="second"), (3, "three")])
def rows_of_two(number: int, word: str, even: int) -> None:
    SEEN.append((number, word, even))
    assert number != 2
    if number == 3:
        pytest.fail("three")


@pytest.mark.parametrize("number", [1, 2])
async def rows_that_wait(number: int) -> None:
    assert number == 1


@pytest.mark.parametrize("number", [1, 2])
def rows_with_folders(number: int, tmp_path: Path) -> None:
    FOLDERS.append(tmp_path)
    (tmp_path / "new").mkdir()


@pytest.mark.parametrize("number", [1, 2])
def rows_left_out(number: int) -> None:
    if number == 2:
        pytest.skip("no two here")


@pytest.mark.parametrize("number", [1, pytest.param(2, marks=pytest.mark.slow)])
def with_a_slow_row(number: int) -> None: ...


@pytest.mark.parametrize("number", [1, 2])
def with_a_fixture(number: int, capsys: object) -> None: ...


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2])
def marked_slow(number: int) -> None: ...


@pytest.mark.parametrize("number", (number for number in (1, 2)))
def with_rows_read_once(number: int) -> None: ...


def no_table() -> None: ...


def _one(request: pytest.FixtureRequest, test: Callable[..., Any]) -> pytest.Function | None:
    """The item of this module's `test`, whose name pytest does not look for."""

    class Module(pytest.Module):
        def funcnamefilter(self, name: str) -> bool:
            return True

    module = Module.from_parent(request.session, path=Path(__file__))
    module.obj = sys.modules[__name__]
    return as_one_test(module, test.__name__, test)


def test_all_rows_run_and_all_that_fail_are_told(request: pytest.FixtureRequest) -> None:
    SEEN.clear()
    item = _one(request, rows_of_two)
    assert item is not None and item.name == "rows_of_two"
    with pytest.raises(ExceptionGroup, match="4 of 6 rows failed") as failed:
        item.obj()
    assert sorted(SEEN) == [
        (number, word, even) for number, word in ((1, "one"), (2, "two"), (3, "three")) for even in (0, 2)
    ]
    assert "second, 2, 'two', 0" in str(failed.value) and "3, 'three', 2" in str(failed.value)
    assert {type(error) for error in failed.value.exceptions} == {AssertionError}
    assert all(error.__notes__[0].startswith("in the row ") for error in failed.value.exceptions)


async def test_rows_that_wait(request: pytest.FixtureRequest) -> None:
    item = _one(request, rows_that_wait)
    assert item is not None
    with pytest.raises(ExceptionGroup, match="1 of 2 rows failed"):
        await item.obj()


def test_each_row_has_a_folder_of_its_own(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    FOLDERS.clear()
    item = _one(request, rows_with_folders)
    assert item is not None and "tmp_path" in item.fixturenames
    item.obj(tmp_path=tmp_path)
    assert len(set(FOLDERS)) == 2


def test_what_a_row_leaves_out_is_told(request: pytest.FixtureRequest) -> None:
    item = _one(request, rows_left_out)
    assert item is not None
    with pytest.raises(pytest.skip.Exception, match="1 of 2 rows: no two here"):
        item.obj()


def test_what_cannot_be_one_test_stays_many(request: pytest.FixtureRequest) -> None:
    for test in (with_a_slow_row, with_a_fixture, marked_slow, with_rows_read_once, no_table):
        assert _one(request, test) is None, test
