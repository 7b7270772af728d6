"""Published exercises: the QuixBugs programs (40 small algorithms, one wrong line each), from a checkout that is given.

Nothing of them is kept here. A program is a task if its recorded cases pass with the published repair and fail without.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.bench.tasks.task import Task, run_check, unittest_command, write_files

CASE_SECONDS = 5  # a wrong line may loop for ever
CHECK_SECONDS = 90.0


def exercise_tasks(checkout: Path) -> Iterator[Task]:
    """The tasks of a checkout of QuixBugs, in the order of their names."""
    for cases in sorted((checkout / "json_testcases").glob("*.json")):
        name = cases.stem
        wrong, right = (checkout / folder / f"{name}.py" for folder in ("python_programs", "correct_python_programs"))
        if not (wrong.is_file() and right.is_file()):
            continue
        test = f"test_{name}.py"
        files = {f"{name}.py": wrong.read_text(), test: test_text(name, list(_cases(cases.read_text())))}
        if not _passes(files, test) and _passes({**files, f"{name}.py": right.read_text()}, test):
            yield Task(
                id=f"exercise-{name.replace('_', '-')}",
                kind="exercise",
                size="small",
                words=f"{name} in {name}.py has a fault: {test} fails. Repair it.",
                files=files,
                tests=(test,),
                check=unittest_command([test]),
                place=f"{name}.py",
                cause=f"QuixBugs: {name}",
            )


def test_text(name: str, cases: Sequence[tuple[list[Any], Any]]) -> str:
    """A test that compares a function's results with the recorded ones, each within a limit of time."""
    lines = "".join(f"    ({arguments!r}, {wanted!r}),\n" for arguments, wanted in cases)
    return f"""import signal
import types
import unittest

from {name} import {name}

CASES = [
{lines}]


def stop(*_):
    raise TimeoutError("it does not end")


class RecordedCases(unittest.TestCase):
    def test_recorded_cases(self):
        signal.signal(signal.SIGALRM, stop)
        for arguments, wanted in CASES:
            with self.subTest(arguments=arguments):
                signal.alarm({CASE_SECONDS})
                try:
                    found = {name}(*arguments)
                    found = list(found) if isinstance(found, types.GeneratorType) else found
                finally:
                    signal.alarm(0)
                self.assertEqual(plain(found), plain(wanted))


def plain(value):
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value
"""


def _cases(text: str) -> Iterator[tuple[list[Any], Any]]:
    """The recorded cases of a file: one JSON pair a line, arguments and result."""
    for line in filter(str.strip, text.splitlines()):
        arguments, wanted = json.loads(line)
        yield (arguments if isinstance(arguments, list) else [arguments]), wanted


def _passes(files: dict[str, str], test: str) -> bool:
    with tempfile.TemporaryDirectory(prefix="exercise-") as folder:
        write_files(files, Path(folder))
        return run_check(unittest_command([test]), Path(folder), CHECK_SECONDS).passed
