"""A program that runs unittest in the user's own Python and writes one line of JSON per result.

It is passed as text to `python -c` with two arguments: a file or folder, and a pattern of names or ''. It needs Python
3.8 and imports nothing of this package. Not here: reading its report (`python.py`).
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import time
import unittest
from pathlib import Path
from typing import Any

_PASSED_OVER = frozenset({"node_modules", "site-packages", "__pycache__", "build", "dist", "venv"})


class Reporter(unittest.TextTestResult):
    """A text test result that also writes each outcome to the report at once, so that a crash loses nothing."""

    report: Any = None
    started: float = 0.0

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
        """Record the start time of a test."""
        self.started = time.monotonic()
        super().startTest(test)

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        """Record a test that passed."""
        super().addSuccess(test)
        self._write(test, "passed")

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """Record an error in a test, a class or a module."""
        super().addError(test, err)
        self._write(test, "error", self.errors[-1][1], err)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """Record a failed assertion."""
        super().addFailure(test, err)
        self._write(test, "failed", self.failures[-1][1], err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        """Record a skipped test."""
        super().addSkip(test, reason)
        self._write(test, "skipped", reason)

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """Record a test that failed as expected."""
        super().addExpectedFailure(test, err)
        self._write(test, "skipped", "expected failure")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        """Record a test that passed although it should fail."""
        super().addUnexpectedSuccess(test)
        self._write(test, "failed", "It passed, but is marked as an expected failure.")

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """Record a failed subtest as `failed` or, for another exception than AssertionError, `error`; subtests that
        pass are not recorded. Called by unittest.
        """
        super().addSubTest(test, subtest, err)
        if err is not None:
            failed = issubclass(err[0], test.failureException)
            self._write(
                subtest, "failed" if failed else "error", (self.failures if failed else self.errors)[-1][1], err
            )

    def _write(self, test: unittest.TestCase, outcome: str, text: str = "", err: Any = None) -> None:
        file, line = _place(err[2]) if err else (None, None)
        if file is None:
            file, line = _declared(test)
        seconds = time.monotonic() - self.started if self.started else 0.0
        record: dict[str, Any] = {
            "id": test.id().replace("unittest.loader._FailedTest.", ""),
            "outcome": outcome,
            "seconds": round(seconds, 4),
        }
        record.update(message=text[-4000:], file=file, line=line)
        self.report.write(json.dumps(record) + "\n")
        self.report.flush()


def main(start: str, pattern: str) -> int:
    """Run the tests in `start`, a file or folder relative to the current one, whose names match `pattern` ('' for all),
    and return the exit code: 0 only if there were some and all succeeded. The report goes into the folder in
    `CODEAGENT_REPORTS`.
    """
    here = str(Path.cwd())
    # Without the `''` of `python -c`, which would follow a test that changes the folder.
    sys.path[:] = [here, str(Path(here, "src")), *(entry for entry in sys.path if entry)]
    loader = unittest.TestLoader()
    if pattern:
        loader.testNamePatterns = [pattern if "*" in pattern else f"*{pattern}*"]
    suite = unittest.TestSuite(_load(loader, file) for file in _test_files(Path(here, start)))
    with Path(os.environ["CODEAGENT_REPORTS"], "report.jsonl").open("w", encoding="utf-8") as report:

        def reporter(*arguments: Any, **options: Any) -> Reporter:
            made = Reporter(*arguments, **options)
            made.report = report
            return made

        result = unittest.TextTestRunner(resultclass=reporter, verbosity=1).run(suite)
        report.write('{"end": true}\n')
    return 0 if result.testsRun and result.wasSuccessful() else 1


def _test_files(start: Path) -> list[Path]:
    if start.is_file():
        return [start]
    found = []
    for folder, inner, names in os.walk(str(start)):
        inner[:] = sorted(name for name in inner if name not in _PASSED_OVER and not name.startswith("."))
        found += [Path(folder, name) for name in sorted(names) if _is_test(name)]
    return found


def _is_test(name: str) -> bool:
    return name.endswith(".py") and (name.startswith("test") or name[:-3].endswith(("_test", "_tests")))


def _load(loader: unittest.TestLoader, file: Path) -> unittest.TestSuite:
    """Return the tests of one file, imported by its full module name; a failed import becomes a failing test, of
    whatever kind the error is: unittest itself does so for a missing module only. A skipped module is a skipped test.
    """
    top = file.resolve().parent
    while (top / "__init__.py").exists():
        top = top.parent
    sys.path[:] = [str(top), *(entry for entry in sys.path if entry != str(top))]
    name = ".".join(file.resolve().relative_to(top).with_suffix("").parts)
    known = getattr(sys.modules.get(name), "__file__", None)
    if known is not None and Path(known).resolve() != file.resolve():
        del sys.modules[name]  # of another folder: two files may have one name
    try:
        return loader.loadTestsFromName(name)
    except BaseException as ended:
        if isinstance(ended, (KeyboardInterrupt, GeneratorExit)):
            raise
        return unittest.TestSuite([ModuleTest(name, ended)])


class ModuleTest(unittest.TestCase):
    """Stands for the tests of a module whose import ended with an exception, and ends with it, too: error or skip."""

    def __init__(self, name: str, ended: BaseException) -> None:
        super().__init__("import_again")
        self._name, self._ended = name, ended

    def id(self) -> str:
        """Return the name of the module, by which the report lists it."""
        return self._name

    def import_again(self) -> None:
        """Raise what the import raised; the end of the program is an error of this test alone."""
        if isinstance(self._ended, Exception):
            raise self._ended
        raise RuntimeError(f"The import ended the program: {self._ended!r}") from self._ended


def _declared(test: unittest.TestCase) -> tuple[str | None, int | None]:
    """Return the file and line of a test's method; None for the placeholder of a class or module that failed."""
    method = inspect.unwrap(getattr(type(test), test.id().rsplit(".", 1)[-1], None) or _declared)
    code = getattr(method, "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code and method is not _declared else (None, None)


def _place(trace: Any) -> tuple[str | None, int | None]:
    """Return the last place in a traceback that is in the user's code, not in a library."""
    place: tuple[str | None, int | None] = (None, None)
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name.startswith(str(Path.cwd()) + os.sep) and "site-packages" not in name:
            place = (name, trace.tb_lineno)
        trace = trace.tb_next
    return place


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
