"""The results of a test run as values, and the detection of unreliable ones.

Not here: how frameworks are run and what they report (`framework.py`), the text a model reads (`summary.py`).
"""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from codeagent_lsp.shadow.shell import Finished

CaseOutcome = Literal["passed", "failed", "skipped", "error"]

MAX_REPORT_BYTES = 32 << 20
MAX_CASES = 100_000
MAX_MESSAGE = 2000
TAIL = 1500

# Colours and cursor movements, titles of windows, and short sequences.
_TERMINAL = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class ReportBroken(Exception):
    """Raised for a malformed report. The message completes the English sentence `the report ...`."""


@dataclass(frozen=True, slots=True)
class TestCase:
    """One test. `file` is relative to the folder in which the tests ran; `line` (1-based) is the failure's or the
    test's.
    """

    __test__: ClassVar[bool] = False  # the name is not meant for pytest

    id: str
    outcome: CaseOutcome
    seconds: float = 0.0
    message: str = ""
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class TestReport:
    """One run of one framework. A `problem`, in English, is the reason why the numbers are incomplete."""

    __test__: ClassVar[bool] = False

    framework: str
    cases: tuple[TestCase, ...] = ()
    problem: str = ""
    seconds: float = 0.0
    note: str = ""

    @property
    def passed(self) -> int:
        """Return the number of tests that passed."""
        return self.count("passed")

    @property
    def failed(self) -> int:
        """Return the number of tests that failed."""
        return self.count("failed")

    @property
    def skipped(self) -> int:
        """Return the number of tests that were skipped or failed as expected."""
        return self.count("skipped")

    @property
    def errors(self) -> int:
        """Return the number of tests, or files and classes of tests, that could not run."""
        return self.count("error")

    @property
    def ok(self) -> bool:
        """Return whether tests ran and there were no failures, errors or problems."""
        return bool(self.cases) and not (self.problem or self.failed or self.errors)

    def count(self, outcome: CaseOutcome) -> int:
        """Return the number of cases with this outcome."""
        return sum(case.outcome == outcome for case in self.cases)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and the counts as a JSON-like object."""
        counts = Counter(case.outcome for case in self.cases)
        return {
            "framework": self.framework,
            "passed": counts["passed"],
            "failed": counts["failed"],
            "skipped": counts["skipped"],
            "errors": counts["error"],
            "seconds": self.seconds,
            "problem": self.problem,
            "note": self.note,
            "cases": [asdict(case) for case in self.cases],
        }


def report_from(data: Mapping[str, Any]) -> TestReport:
    """Return the report that `TestReport.as_dict` made plain."""
    cases = tuple(TestCase(**case) for case in data["cases"])
    return TestReport(data["framework"], cases, data["problem"], data["seconds"], data["note"])


@dataclass(frozen=True, slots=True)
class Parsed:
    """The cases of a report. `broken` says why it is incomplete, as the end of a sentence; its cases still count."""

    cases: tuple[TestCase, ...]
    broken: str = ""


def judged(framework: str, finished: Finished, parsed: Parsed, *, note: str = "") -> TestReport:
    """Return the report of a finished run, with a problem if the numbers alone would mislead."""
    return TestReport(framework, parsed.cases, _problem(finished, parsed), round(finished.seconds, 3), note)


def ended(finished: Finished) -> str:
    """Return how a run ended, as the rest of an English sentence."""
    stops = {
        "timeout": f"was stopped at the time limit, after {finished.seconds:.0f} s",
        "output": "was stopped, because it printed more than the limit",
        "memory": "was stopped at the memory limit",
        "processes": "was stopped at the limit of processes",
        "disk": "was stopped, because it wrote more than the limit",
    }
    if finished.ending in stops:
        return stops[finished.ending]
    # So shells report a signal.
    if finished.exit_code > 128 and (name := _signal(finished.exit_code - 128)):
        return f"crashed ({name})"
    return f"ended with exit code {finished.exit_code}"


def tail(output: str, limit: int = TAIL) -> str:
    """Return the last lines of an output, at most about `limit` characters, without terminal codes."""
    text = plain(output).rstrip()
    return text if len(text) <= limit else "[...]" + text[-limit:].partition("\n")[2]


def plain(text: str) -> str:
    """Return `text` without terminal escape codes and control characters."""
    return _CONTROL.sub("", _TERMINAL.sub("", text.replace("\r\n", "\n")))


def message(text: str, limit: int = MAX_MESSAGE) -> str:
    """Return a failure's text without terminal codes, at most about `limit` characters: its head and its tail."""
    clean = plain(text).strip("\n").rstrip()
    if len(clean) <= limit:
        return clean
    return f"{clean[: limit // 2].rstrip()}\n[...]\n{clean[-limit // 2 :].lstrip()}"


def relative(path: str, folder: str) -> str:
    """Return `path` relative to `folder` if it is inside, else normalised."""
    if path.startswith("file://"):
        path = path[7:]
    inside = os.path.normpath(path)
    return inside[len(folder) + 1 :] if inside.startswith(folder.rstrip("/") + "/") else inside


def bounded(cases: Iterable[TestCase]) -> tuple[TestCase, ...]:
    """Return the cases as a tuple. ReportBroken if there are more than MAX_CASES."""
    found = tuple(cases)
    if len(found) > MAX_CASES:
        raise ReportBroken(f"has more than {MAX_CASES:,} tests")
    return found


def _problem(finished: Finished, parsed: Parsed) -> str:
    bad = any(case.outcome in ("failed", "error") for case in parsed.cases)
    if finished.ending != "exited" or finished.exit_code > 128:
        why = f"The test run {ended(finished)}; what it had not finished is not counted."
    elif parsed.broken:
        why = f"The test run {ended(finished)}, but the report {parsed.broken}."
    elif not parsed.cases:
        why = f"No tests ran: the test run {ended(finished)}."
    elif finished.exit_code and not bad:
        why = f"No test failed, and yet the test run {ended(finished)}."
    else:
        return ""
    printed = tail(finished.output)
    return f"{why} The end of its output:\n{printed}" if printed else f"{why} It printed nothing."


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
