"""Every version of a text has a second of its own, whatever the clock says."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.shadow.text_times import TextTimes


def second(path: Path) -> int:
    return int(path.stat().st_mtime)


def laid(path: Path, times: TextTimes, below: Path | None = None) -> int:
    path.write_text("text")
    times.give(str(path), None if below is None else below.stat())
    return second(path)


def test_it_is_now(tmp_path: Path) -> None:
    assert laid(tmp_path / "a", TextTimes(lambda: 1_000.9)) == 1_000


def test_texts_that_are_laid_together_share_a_second(tmp_path: Path) -> None:
    times = TextTimes(lambda: 1_000.0)
    assert [laid(tmp_path / name, times) for name in "abc"] == [1_000] * 3


def test_the_next_version_is_later_in_the_same_second_too(tmp_path: Path) -> None:
    times = TextTimes(lambda: 1_000.0)
    found = []
    for _ in range(3):
        times.begin()
        found.append(laid(tmp_path / "a", times))
    assert found == [1_000, 1_001, 1_002]


def test_preparing_without_laying_costs_no_second(tmp_path: Path) -> None:
    times = TextTimes(lambda: 1_000.0)
    for _ in range(9):
        times.begin()
    assert laid(tmp_path / "a", times) == 1_000


def test_it_is_never_that_of_the_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.write_text("text")
    times = TextTimes(lambda: second(disk))
    assert laid(tmp_path / "a", times, disk) == second(disk) + 1
    times.begin()
    assert laid(tmp_path / "a", times, disk) == second(disk) + 2


def test_it_is_never_that_of_what_a_command_left(tmp_path: Path) -> None:
    left = tmp_path / "left"
    left.write_text("text")
    os.utime(left, (1_000, 1_000))
    path = tmp_path / "a"
    path.write_text("text")
    TextTimes(lambda: 1_000.0).give(str(path), None, left.stat())
    assert second(path) == 1_001


@given(st.lists(st.floats(1_000, 1_010), min_size=2, max_size=30))
def test_no_second_twice_with_a_clock_that_jumps(times_told: list[float]) -> None:
    told = iter(times_told)
    times = TextTimes(lambda: next(told))
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in times_told:
            times.begin()
            found.append(laid(Path(folder, "a"), times))
    assert found == sorted(set(found))
