"""When the numbers of a test run may be believed, and how much of a failure is shown."""

from __future__ import annotations

import pytest

from codeagent_lsp.shadow.shell import Finished
from codeagent_lsp.tools.testing.reports import (
    MAX_MESSAGE,
    Parsed,
    TestCase,
    TestReport,
    details,
    headline,
    judge_run,
    message,
    plain,
    relative,
    shorten,
    tail,
)

PASSED = Parsed((TestCase("a", "passed"),))
FAILED = Parsed((TestCase("a", "failed", message="E   assert 1 == 2", file="t.py", line=3),))


def test_a_run_without_doubt_has_no_problem() -> None:
    assert judge_run("pytest", Finished(0, "fine"), PASSED).problem == ""
    assert judge_run("pytest", Finished(1, "1 failed"), FAILED).problem == ""
    assert judge_run("pytest", Finished(0, ""), PASSED).ok
    assert not judge_run("pytest", Finished(1, ""), FAILED).ok


@pytest.mark.parametrize(
    ("finished", "parsed", "said"),
    [
        (Finished(139, "Fatal Python error"), Parsed((), "is missing"), "crashed (SIGSEGV)"),
        (Finished(137, "x", ending="timeout", seconds=300), PASSED, "stopped at the time limit, after 300 s"),
        (Finished(1, "x", ending="memory"), PASSED, "stopped at the memory limit"),
        (Finished(1, "x", ending="output"), PASSED, "printed more than the limit"),
        (Finished(2, "ImportError: conftest"), Parsed((), "is missing"), "report is missing"),
        (Finished(5, "no tests ran"), Parsed(()), "No tests ran"),
        (Finished(0, ""), Parsed(()), "No tests ran"),
        (Finished(1, "coverage too low"), PASSED, "No test failed, and yet"),
        (Finished(1, "x"), Parsed(FAILED.cases, "breaks off"), "the report breaks off"),
    ],
)
def test_what_makes_numbers_doubtful_is_told_with_the_end_of_the_output(
    finished: Finished, parsed: Parsed, said: str
) -> None:
    report = judge_run("pytest", finished, parsed)
    assert said in report.problem
    assert finished.output in report.problem
    assert not report.ok


def test_nothing_that_ran_is_never_zero_failures() -> None:
    line = headline(TestReport("pytest", problem="it crashed"))
    assert "failed" not in line and "no result of any test" in line
    assert "INCOMPLETE" in headline(TestReport("pytest", PASSED.cases, "stopped"))


def test_the_headline_counts_what_there_is() -> None:
    cases = (*PASSED.cases, *FAILED.cases, TestCase("s", "skipped"), TestCase("e", "error"))
    line = headline(TestReport("go", cases, seconds=3.21), " of a.go", ", on the unsaved buffers")
    assert line == (
        "tests of a.go: 1 passed, 1 failed, 1 could not run, 1 skipped in 3.2 s (go), on the unsaved buffers"
    )


def test_programs_get_every_case() -> None:
    data = TestReport("jest", FAILED.cases, seconds=1.0).as_dict()
    assert (data["failed"], data["passed"], data["cases"][0]["line"]) == (1, 0, 3)


def test_many_failures_stay_within_the_budget_and_all_are_named() -> None:
    long = "\n".join([*(f"    step {n}" for n in range(100)), "E   assert left == right"])
    cases = tuple(TestCase(f"test_{n}", "failed", message=long, file="sub/t.py", line=n) for n in range(100))
    text = details(TestReport("pytest", cases), 4000)
    assert len(text) < 4500
    assert text.count("E   assert left == right") >= 8
    assert "FAILED test_0 (sub/t.py)" in text
    assert all(f"test_{number}" in text for number in range(100))


def test_thousands_of_failures_are_counted() -> None:
    cases = tuple(TestCase(f"tests/test_many.py::test_{n}", "failed", message="no", file="t.py") for n in range(3000))
    text = details(TestReport("pytest", cases), 4000)
    assert len(text) < 4500 and text.rstrip().endswith("more")


def test_shortening_keeps_the_assertion_and_the_order() -> None:
    text = "\n".join(["first", *["noise" * 10] * 50, "E   assert 1 == 2", "last"])
    assert shorten(text, 40).splitlines()[-1] == "E   assert 1 == 2"
    assert shorten("a\nb", 100) == "a\nb"
    assert len(shorten("E " + "x" * 5000, 100)) <= 300


def test_shortening_keeps_where_it_begins_and_where_it_was_raised() -> None:
    frames = [f"app/part{n}.py:{n}: in part{n}\n    go_on({n})\n    ^^^^^^^^" for n in range(20)]
    raised = "app/last.py:18: in last\n    raise ValueError('no')\nE   ValueError: no"
    told = shorten("\n".join(["tests/test_a.py:7: in test_a", *frames, raised]), 240).splitlines()
    assert told[0] == "tests/test_a.py:7: in test_a"
    assert told[-3:] == raised.splitlines()
    assert told.count("[...]") == 1 and not any("^^^" in line for line in told)


def test_messages_are_plain_and_bounded() -> None:
    assert plain("\x1b[31mred\x1b[0m\x00\r\nnext\x1b]8;;http://x\x07") == "red\nnext"
    long = message("head" + "x" * 10_000 + "tail")
    assert len(long) < MAX_MESSAGE + 20 and long.startswith("head") and long.endswith("tail")


def test_the_tail_begins_at_a_line() -> None:
    assert tail("a" * 50 + "\nlast line\n", 20) == "[...]last line"
    assert tail("short\n") == "short"


def test_paths_become_relative_only_inside() -> None:
    assert relative("/w/a/b.py", "/w") == "a/b.py"
    assert relative("file:///w/b.js", "/w") == "b.js"
    assert relative("/wide/b.py", "/w") == "/wide/b.py"
    assert relative("./a/../b.py", "/w") == "b.py"
