"""The results of a test run as values: unreliable ones are detected, and compared with what failed before a change; and
the text about them for the model: one line with the counts, then the failures, within a budget.

Pure values and comparisons, and the port by which a test run gets the results on the user's own text. Not here: how
frameworks are run and what they report (`framework.py`), running the tests without the change (`session/toolbox.py`).
"""

from __future__ import annotations

import os
import re
import signal
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Literal, Protocol

from codeagent_lsp.shadow.shell import Finished
from codeagent_lsp.workspace.files.paths import relative_name, within

CaseOutcome = Literal["passed", "failed", "skipped", "error"]

MAX_CASES = 100_000
MAX_MESSAGE = 2000
TAIL = 1500

# Colours and cursor movements, titles of windows, and short sequences.
_TERMINAL = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

Fate = Literal["new", "otherwise", "as_before", "unknown"]
"""How a failure stands to the baseline: it passed before or was not there, it failed in another way, it failed in the
same way, or nobody knows.
"""

RED = ("failed", "error")

_RAISED = re.compile(r"\b[A-Za-z_][\w.]*(?:Error|Exception|Failure|Warning|Panic)\b|\bpanic(?:ked)?\b|\bSystemExit\b")
_CHANGING = re.compile(r"0x[0-9a-fA-F]+|\d+")
BUDGET = 4000
NAMES = 2500
"""Characters for the names of tests whose messages are not shown."""
SHARES = 8
"""Failures that share what is left of the budget."""
_SHORTEST = 120
_LONGEST = 1200
_POINT = re.compile(
    r"^E\s|Error\b|^\s*(?:Expected|Received|left:|right:|[-+] )"
    r"|assert|panicked at|^panic:|expected|want|got|!=|_test\.go:\d+:"
)


_UNDERLINE = re.compile(r"\s*[~^]+\s*$")
"""A line that only marks a part of the one above, as Python's tracebacks have them."""
_GAP = "[...]"


class ReportBroken(Exception):
    """Raised for a malformed report. The message completes the English sentence `the report ...`."""


@dataclass(frozen=True, slots=True)
class TestCase:
    """One test: its id, its outcome, its duration in seconds and the message of a failure. `file` is relative to the
    folder in which the tests ran; `line` (1-based) is the failure's or the test's.
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
    """The results of one run of one framework; `seconds` is its duration, `note` a remark for the model. A `problem`,
    in English, is the reason why the numbers are incomplete, '' if they are not.
    """

    __test__: ClassVar[bool] = False

    framework: str
    cases: tuple[TestCase, ...] = ()
    problem: str = ""
    seconds: float = 0.0
    note: str = ""

    @property
    def passed(self) -> int:
        """The number of tests that passed."""
        return self.count("passed")

    @property
    def failed(self) -> int:
        """The number of tests that failed, without those that could not run."""
        return self.count("failed")

    @property
    def skipped(self) -> int:
        """The number of tests that were skipped or failed as expected."""
        return self.count("skipped")

    @property
    def errors(self) -> int:
        """The number of tests, or files and classes of tests, that could not run."""
        return self.count("error")

    @property
    def ok(self) -> bool:
        """Whether tests ran and there were no failures, errors or problems."""
        return bool(self.cases) and not (self.problem or self.failed or self.errors)

    def count(self, outcome: CaseOutcome) -> int:
        """Return the number of cases with this outcome; 0 for none."""
        return sum(case.outcome == outcome for case in self.cases)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and the counts as plain JSON data, from which `report_from` makes the report again."""
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
    """Return the report from the result of `TestReport.as_dict`. KeyError or TypeError if it is malformed."""
    cases = tuple(TestCase(**case) for case in data["cases"])
    return TestReport(data["framework"], cases, data["problem"], data["seconds"], data["note"])


@dataclass(frozen=True, slots=True)
class Parsed:
    """The cases of a report. `broken` says why it is incomplete, as the end of a sentence; its cases still count."""

    cases: tuple[TestCase, ...]
    broken: str = ""


def judge_run(framework: str, finished: Finished, parsed: Parsed, *, note: str = "") -> TestReport:
    """Return the report of a finished run, with a problem if the numbers alone would mislead, as after a crash or for a
    broken report.
    """
    return TestReport(framework, parsed.cases, _problem(finished, parsed), round(finished.seconds, 3), note)


def describe_ending(finished: Finished) -> str:
    """Return how a run ended, as the rest of an English sentence, such as `ended with exit code 1`."""
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
    """Return the last whole lines of an output, at most about `limit` characters, without terminal codes; `[...]`
    stands for what is left out.
    """
    text = plain(output).rstrip()
    return text if len(text) <= limit else "[...]" + text[-limit:].partition("\n")[2]


def plain(text: str) -> str:
    """Return `text` without terminal codes and control characters but tab and line feed; CRLF becomes LF."""
    return _CONTROL.sub("", _TERMINAL.sub("", text.replace("\r\n", "\n")))


def message(text: str) -> str:
    """Return a failure's text without terminal codes, at most about 2,000 characters: its head and its tail."""
    clean = plain(text).strip("\n").rstrip()
    if len(clean) <= MAX_MESSAGE:
        return clean
    return f"{clean[: MAX_MESSAGE // 2].rstrip()}\n[...]\n{clean[-MAX_MESSAGE // 2 :].lstrip()}"


def relative(path: str, folder: str) -> str:
    """Return `path`, which may be a `file://` URL, relative to `folder` if it is inside, else absolute and normalised.
    By its text alone.
    """
    inside = os.path.normpath(path.removeprefix("file://"))
    return relative_name(inside, folder) if within(inside, (folder,)) else inside


def bounded_cases(cases: Iterable[TestCase]) -> tuple[TestCase, ...]:
    """Return the cases as a tuple. ReportBroken if there are more than 100,000."""
    found = tuple(cases)
    if len(found) > MAX_CASES:
        raise ReportBroken(f"has more than {MAX_CASES:,} tests")
    return found


def _problem(finished: Finished, parsed: Parsed) -> str:
    bad = any(case.outcome in ("failed", "error") for case in parsed.cases)
    # In this order: a run that was stopped may have left half a report, which is broken for that reason.
    if finished.ending != "exited" or finished.exit_code > 128:
        why = f"The test run {describe_ending(finished)}; what it had not finished is not counted."
    elif parsed.broken:
        why = f"The test run {describe_ending(finished)}, but the report {parsed.broken}."
    elif not parsed.cases:
        why = f"No tests ran: the test run {describe_ending(finished)}."
    elif finished.exit_code and not bad:
        why = f"No test failed, and yet the test run {describe_ending(finished)}."
    else:
        return ""
    printed = tail(finished.output)
    return f"{why} The end of its output:\n{printed}" if printed else f"{why} It printed nothing."


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


@dataclass(frozen=True, slots=True)
class Results:
    """The known results of tests on the user's own text, without the run's changes: the last result of each test by its
    id, and the files of which all tests ran, relative to the workspace.
    """

    cases: Mapping[str, TestCase] = field(default_factory=dict)
    files: frozenset[str] = frozenset()

    def with_reports(self, reports: Iterable[TestReport], *, whole: bool) -> Results:
        """Return these results with those of a run, which replace earlier ones of the same tests; `whole` says that it
        ran all tests of the files that it names.
        """
        cases = [case for report in reports for case in all_cases(report)]
        files = {case.file for case in cases if case.file} if whole else set()
        return Results({**self.cases, **{case.id: case for case in cases}}, self.files | files)

    def fate(self, case: TestCase) -> Fate:
        """Return what a failure is compared with these results: `new`, there in the same way (`as_before`) or another
        (`otherwise`), or `unknown`.
        """
        before = self.cases.get(case.id)
        # The test itself, before its file and its class: it knows best.
        if before is not None:
            if before.outcome not in RED:
                return "new"
            return "as_before" if _way(before) == _way(case) else "otherwise"
        if any(other.outcome in RED and contains(other.id, case.id) for other in self.cases.values()):
            return "otherwise"  # its file or class could not be loaded
        return "new" if case.file in self.files else "unknown"


@dataclass(frozen=True, slots=True)
class Compared:
    """The failures of a test run compared with one on the user's own text: `new` ones passed there, `otherwise` failed
    there in another way, `as_before` in the same way; of the `unknown` ones it has no result. `mended` are the names of
    tests that failed there and pass now.
    """

    new: tuple[TestCase, ...] = ()
    otherwise: tuple[TestCase, ...] = ()
    as_before: tuple[TestCase, ...] = ()
    unknown: tuple[TestCase, ...] = ()
    mended: tuple[str, ...] = ()


class Baseline(Protocol):
    """Port: the results of tests on the user's own text."""

    @property
    def changed(self) -> bool:
        """Whether the run has staged changes: results are then not those of the user's own text."""

    def record(self, reports: Sequence[TestReport], *, whole: bool) -> None:
        """Keep the results of a run on the user's own text; `whole` says that all tests of the files that it names have
        run.
        """

    async def compare(self, reports: Sequence[TestReport]) -> Compared:
        """Return how these results differ from those on the user's own text. Tests whose results are not known yet are
        run there first, as far as a bounded time allows.
        """


def compare_reports(reports: Iterable[TestReport], before: Results) -> Compared:
    """Return the failures of a run by what became of the same tests before the change, and the tests that it
    repaired.
    """
    cases = [case for report in reports for case in all_cases(report)]
    fates: dict[Fate, list[TestCase]] = {"new": [], "otherwise": [], "as_before": [], "unknown": []}
    for case in cases:
        if case.outcome in RED:
            fates[before.fate(case)].append(case)
    red = {name for name, case in before.cases.items() if case.outcome in RED}
    mended = tuple(case.id for case in cases if case.outcome == "passed" and case.id in red)
    new, otherwise, as_before, unknown = map(tuple, fates.values())
    return Compared(new, otherwise, as_before, unknown, mended)


def all_cases(report: TestReport) -> tuple[TestCase, ...]:
    """Return the tests of a report; a `problem` with no failed test beside it becomes a case of its own, with the
    outcome `error`.
    """
    # With failures of tests the problem is told beside them; alone, nothing would be red.
    if report.problem and not any(case.outcome in RED for case in report.cases):
        problem = TestCase(f"{report.framework}: no test ran", "error", message=report.problem)
        return (*report.cases, problem)
    return report.cases


def contains(outer: str, inner: str) -> bool:
    """Return whether the test id `outer` is that of a file or class, and `inner` that of a test in it, by their texts
    alone; False for equal ones.
    """
    return inner.startswith(outer) and inner[len(outer) : len(outer) + 1] in (".", ":", "/", " ")


def headline(report: TestReport, scope: str = "", state: str = "", differs: Compared | None = None) -> str:
    """Return the line `tests: 41 passed, 2 failed (1 new, 1 as before), 1 skipped in 3.2 s (pytest), on the open
    buffers`; `scope` names the tests.
    """
    counts = [
        (report.passed, "passed"),
        (report.failed, f"failed{_by_fate(report, 'failed', differs)}"),
        (report.errors, f"could not run{_by_fate(report, 'error', differs)}"),
        (report.skipped, "skipped"),
    ]
    told = [f"{number} {word}" for number, word in counts if number] or ["no result of any test"]
    doubt = "INCOMPLETE, " if report.problem and report.cases else ""
    return f"tests{scope}: {doubt}{', '.join(told)} in {report.seconds:.1f} s ({report.framework}){state}"


def details(
    report: TestReport,
    budget: int = BUDGET,
    differs: Compared | None = None,
    own: frozenset[str] = frozenset(),
) -> str:
    """Return the problems and the failed tests with their messages, in about `budget` characters, '' for nothing; those
    for which there is no room by their names. With a baseline, those of the files `own` come first, then what failed in
    no such way before, and what failed as before only by its names.
    """
    parts = [text for text in (report.note, report.problem) if text]
    bad = [case for case in report.cases if case.outcome in RED]
    before = frozenset(case.id for case in differs.as_before) if differs else frozenset()
    changed = frozenset(case.id for case in differs.otherwise) if differs else frozenset()
    caused = [case for case in bad if case.id not in before]
    if differs is not None:
        # Stable: within each kind, the order in which they ran stays, as the first failure often explains the rest.
        caused.sort(key=lambda case: (case.file not in own, case.id in changed))
    # Room for their names is kept free first: a name costs little, and says what to look at next.
    many = caused if len(caused) > SHARES else []
    names = sum(len(name) + 2 for name in (*before, *(case.id for case in many)))
    left = budget - sum(map(len, parts)) - min(names, NAMES)
    shown = _failures(caused, left, changed)
    mended = [case.id for case in report.cases if differs and case.id in frozenset(differs.mended)]
    if mended:
        shown.append(f"Failed before your changes and pass now: {_names_line(mended)}")
    if before:
        shown.append(f"Failed before your changes, too, in the same way: {_names_line(sorted(before))}")
    return "\n".join([*parts, *shown])


def shorten(text: str, limit: int) -> str:
    """Return the most informative lines of a failure within `limit` characters, in their original order: those that
    say what is wrong, then where the failure begins and, twice as many, what leads to it. A line `[...]` stands for
    those left out between them.
    """
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    if sum(len(line) + 5 for line in lines) <= limit:
        return "\n".join(lines)
    lines = [line for line in lines if not _UNDERLINE.match(line)]
    points = [index for index, line in enumerate(lines) if _POINT.search(line)]
    last = points[-1] if points else len(lines)
    others = [index for index in range(len(lines)) if index not in points]
    near, rest = [index for index in reversed(others) if index < last], [index for index in others if index > last]
    kept: set[int] = set()
    for index in (*points, *_mix(near), *rest):
        cost = min(len(lines[index]), 300) + 5
        # the best line is shown even where it is too long: without it, a failure says nothing
        if cost > limit and kept:
            break
        limit -= cost
        kept.add(index)
    shown: list[str] = []
    for before, index in pairwise((-1, *sorted(kept))):
        shown += [_GAP] * (index - before > 1 and before >= 0) + [lines[index][:300]]
    return "\n".join(shown)


def _mix(near: Sequence[int]) -> Iterator[int]:
    """Yield the indices of lines, given from the end, two of them and then one from the beginning, and so on."""
    left = deque(near)
    while left:
        yield from [left.popleft() for _ in range(min(2, len(left)))]
        if left:
            yield left.pop()


def _way(case: TestCase) -> tuple[str, ...]:
    """Return in which way a test failed: what was raised, else the message without its numbers."""
    raised = _RAISED.findall(case.message)
    if raised:
        return tuple(sorted({name.rpartition(".")[2] for name in raised}))
    lines = [line.strip() for line in case.message.splitlines() if line.strip()]
    return tuple(_CHANGING.sub("#", line) for line in lines[:3])


def _by_fate(report: TestReport, outcome: str, differs: Compared | None) -> str:
    """Return how many of the failures are new and as before, in brackets; '' without a baseline."""
    if differs is None:
        return ""
    ids = {case.id for case in report.cases if case.outcome == outcome}
    kinds = (
        (differs.new, "new"),
        (differs.otherwise, "in another way than before"),
        (differs.as_before, "as before"),
        (differs.unknown, "not known before"),
    )
    counted = [(sum(case.id in ids for case in cases), words) for cases, words in kinds]
    return f" ({', '.join(f'{number} {words}' for number, words in counted if number)})" if ids else ""


def _failures(bad: Sequence[TestCase], budget: int, changed: frozenset[str]) -> list[str]:
    """Return as many failures as fit, each with its share of the budget, and the names of the rest."""
    shown: list[str] = []
    for number, case in enumerate(bad):
        share = min(_LONGEST, budget // min(len(bad) - number, SHARES))
        if budget < _SHORTEST:
            shown.append(f"Also failed: {_names_line([each.id for each in bad[number:]])}")
            break
        text = _failure(case, max(share, _SHORTEST), otherwise=case.id in changed)
        budget -= len(text) + 1
        shown.append(text)
    return shown


def _names_line(ids: Sequence[str]) -> str:
    """Return the names of tests in at most `NAMES` characters."""
    lines, room = [], NAMES
    for number, name in enumerate(ids):
        room -= len(name) + 2
        if room < 0:
            lines.append(f"and {len(ids) - number} more")
            break
        lines.append(name)
    return ", ".join(lines)


def _failure(case: TestCase, limit: int, *, otherwise: bool = False) -> str:
    word = "ERROR" if case.outcome == "error" else "FAILED"
    place = f" ({case.file}{f':{case.line}' if case.line else ''})" if case.file else ""
    head = f"{word} {case.id}{place}{', in another way than before your changes' if otherwise else ''}"
    body = shorten(case.message, limit - len(head))
    return "\n".join([head, *(f"    {line}" for line in body.splitlines())])
