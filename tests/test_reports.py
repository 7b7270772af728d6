"""What a worker does not send is what nobody reads: a run in workers ends with the same counts as one without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOOK = """
from tests.reports import run_in_worker

def pytest_runtest_protocol(item, nextitem):
    return run_in_worker(item, nextitem)
"""
ENDS = """
import pytest

@pytest.fixture
def never_up():
    print("on the way up")
    raise RuntimeError("up")

@pytest.fixture
def never_down():
    yield
    print("on the way down")
    raise RuntimeError("down")

def test_passes(): ...

def test_fails():
    print("in the middle")
    assert False

def test_is_not_set_up(never_up): ...

def test_is_not_taken_down(never_down): ...

def test_fails_twice(never_down):
    assert False

def test_leaves_itself_out():
    pytest.skip("itself")

@pytest.mark.skip(reason="marked")
def test_is_left_out(): ...

@pytest.mark.xfail
def test_is_known_to_fail():
    assert False

@pytest.mark.xfail
def test_passes_by_chance(): ...
"""
COUNTS = ("2 failed", "2 passed", "2 skipped", "1 xfailed", "1 xpassed", "3 errors")


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["-n", "1"], ["-n", "1", "--durations=1"]], ids=" ".join)
def test_every_end_is_told(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "conftest.py").write_text(HOOK)
    (tmp_path / "test_ends.py").write_text(ENDS)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT}\n")
    ran = subprocess.run([sys.executable, "-m", "pytest", *options], cwd=tmp_path, capture_output=True, text=True)
    said = ran.stdout.splitlines()
    assert [count for count in COUNTS if count not in said[-1]] == [], ran.stdout + ran.stderr
    for words in ("on the way up", "in the middle", "on the way down"):
        assert words in said
