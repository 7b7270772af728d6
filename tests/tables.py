"""A table is one test: a parametrized function that needs no fixture, or only a folder (`tmp_path`, each row its own),
runs all its rows and tells all that failed. Most of what a thousand small tests cost is the thousand times that pytest
sets up and reports one. `pytest --rows`, or the name of a row, makes each row a test again.
"""

from __future__ import annotations

import inspect
import itertools
import reprlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from _pytest.python import PyCollector

FOLDER = "tmp_path"
TOLD = 5
"""So many rows that failed are told with their tracebacks, all others by name."""
NOT_A_TABLE = {"slow", "alone", "usefixtures"}
"""Marks of what stays one test a row: long ones are shared among workers, and a fixture is made for each."""


class Row(NamedTuple):
    """One set of arguments, with the ids that were given for it."""

    ids: tuple[str, ...]
    arguments: dict[str, Any]

    @property
    def name(self) -> str:
        """Return the ids and the values, each of some characters."""
        return ", ".join([*self.ids, *map(reprlib.repr, self.arguments.values())])


def as_one_test(collector: pytest.Collector, name: str, test: object) -> pytest.Function | None:
    """Return the item for this parametrized `test`, or `None` for pytest to collect it as always."""
    if not isinstance(collector, PyCollector) or not inspect.isfunction(test) or not collector.funcnamefilter(name):
        return None
    own: list[pytest.Mark] = list(getattr(test, "pytestmark", []))
    marks = [mark for mark in own if mark.name == "parametrize"]
    if not marks or hasattr(test, "hypothesis") or hasattr(collector.obj, "setup_method"):
        return None
    if NOT_A_TABLE & {mark.name for mark in [*own, *collector.iter_markers()]}:
        return None
    rows = _rows(marks)
    wanted = set(inspect.signature(test).parameters) - {"self"}
    if not rows or wanted - {FOLDER} != rows[0].arguments.keys():
        return None
    if isinstance(collector, pytest.Class):
        if FOLDER in wanted:  # pytest takes a first argument for `self`
            return None
        test = getattr(collector.obj(), name)
    run = _in_turn(cast("Callable[..., Any]", test), rows, FOLDER in wanted)
    run.pytestmark = [mark for mark in own if mark.name != "parametrize"]  # type: ignore[attr-defined]
    return pytest.Function.from_parent(collector, name=name, callobj=run)


def _rows(marks: Sequence[pytest.Mark]) -> list[Row]:
    """Return all combinations of what the marks list, or nothing where one row has marks of its own."""
    axes = []
    for mark in marks:
        if len(mark.args) != 2 or set(mark.kwargs) - {"ids"}:
            return []
        names, listed = mark.args
        if iter(listed) is listed:  # it can be read only once, and that is for pytest if this is no table
            return []
        names = [each.strip() for each in names.split(",")] if isinstance(names, str) else list(names)
        axis = [_row(names, values, mark.kwargs.get("ids"), number) for number, values in enumerate(listed)]
        if any(row is None for row in axis):
            return []
        axes.append([row for row in axis if row])
    return [
        Row(sum((row.ids for row in rows), ()), dict(pair for row in rows for pair in row.arguments.items()))
        for rows in itertools.product(*axes)
    ]


def _row(names: list[str], values: Any, ids: Any, number: int) -> Row | None:
    """Return the row of one entry, as pytest reads it."""
    name = None
    if isinstance(values, type(pytest.param())):
        if values.marks:
            return None
        name, values = values.id, values.values
    elif len(names) == 1:
        values = (values,)
    if not name and ids is not None and not callable(ids):
        name = list(ids)[number]
    return Row((str(name),) if name else (), dict(zip(names, values, strict=True)))


def _in_turn(test: Callable[..., Any], rows: list[Row], in_folder: bool) -> Callable[..., Any]:
    """Return a function that runs `test` on each row and then tells what failed."""

    def arguments(row: Row, number: int, folder: Path | None) -> dict[str, Any]:
        if folder is None:
            return row.arguments
        own = folder / str(number)
        own.mkdir()
        return {**row.arguments, FOLDER: own}

    async def run_async(tmp_path: Path | None = None) -> None:
        verdict = _Verdict(len(rows))
        for number, row in enumerate(rows):
            with verdict.of(row):
                await test(**arguments(row, number, tmp_path))
        verdict.tell()

    def run(tmp_path: Path | None = None) -> None:
        verdict = _Verdict(len(rows))
        for number, row in enumerate(rows):
            with verdict.of(row):
                test(**arguments(row, number, tmp_path))
        verdict.tell()

    chosen: Callable[..., Any] = run_async if inspect.iscoroutinefunction(test) else run
    chosen.__doc__, chosen.__name__, chosen.__module__ = test.__doc__, test.__name__, test.__module__
    if in_folder:  # pytest gives what has no default
        chosen.__defaults__ = None
    return chosen


class _Verdict:
    """What became of the rows so far."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._failed: list[tuple[Row, Exception]] = []
        self._left_out: list[str] = []

    @contextmanager
    def of(self, row: Row) -> Iterator[None]:
        """Note how the block ends instead of ending the table."""
        try:
            yield
        except pytest.skip.Exception as reason:
            self._left_out.append(str(reason))
        except (Exception, pytest.fail.Exception) as error:
            failure = error if isinstance(error, Exception) else AssertionError(str(error))
            failure.add_note(f"in the row {row.name}")
            self._failed.append((row, failure))

    def tell(self) -> None:
        """Fail with all rows that failed; be skipped if any was, with the reason."""
        if self._failed:
            names = "".join(f"\n  {row.name}" for row, _error in self._failed)
            summary = f"{len(self._failed)} of {self._rows} rows failed (each is a test with --rows):{names}"
            raise ExceptionGroup(summary, [error for _row, error in self._failed[:TOLD]])
        if self._left_out:
            pytest.skip(f"{len(self._left_out)} of {self._rows} rows: {self._left_out[0]}")
