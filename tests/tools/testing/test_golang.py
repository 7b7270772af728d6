"""The events of `go test -json`: of Go 1.19 as they were seen, of Go 1.24's build events as they are documented."""

from __future__ import annotations

import json
from typing import Any

from codeagent_lsp.tools.testing import golang
from codeagent_lsp.tools.testing.framework import TestRun
from codeagent_lsp.tools.testing.reports import Parsed, TestCase


def event(action: str, test: str = "", package: str = "calc", **more: Any) -> str:
    name = {"Test": test} if test else {}
    return json.dumps({"Action": action, "Package": f"example.com/m/{package}", **name, **more})


def parse(*lines: str, printed: str = "") -> Parsed:
    return golang.parse(TestRun("\n".join(lines).encode(), "/w", printed, "example.com/m"))


def by_id(parsed: Parsed) -> dict[str, TestCase]:
    return {case.id.removeprefix("example.com/m/"): case for case in parsed.cases}


def test_outcomes_and_places() -> None:
    cases = by_id(
        parse(
            event("run", "TestAdd"),
            event("output", "TestAdd", Output="=== RUN   TestAdd\n"),
            event("pass", "TestAdd", Elapsed=0.25),
            event("output", "TestBad", Output="    calc_test.go:11: a log\n"),
            event("output", "TestBad", Output="    calc_test.go:12: got 3, want 4\n"),
            event("output", "TestBad", Output="--- FAIL: TestBad (0.00s)\n"),
            event("fail", "TestBad", Elapsed=0),
            event("skip", "TestSkip", Elapsed=0),
            event("output", Output="FAIL\n"),
            event("fail", Elapsed=0.3),
        )
    )
    assert {name: case.outcome for name, case in cases.items()} == {
        "calc.TestAdd": "passed",
        "calc.TestBad": "failed",
        "calc.TestSkip": "skipped",
    }
    assert cases["calc.TestAdd"].seconds == 0.25
    bad = cases["calc.TestBad"]
    assert (bad.file, bad.line) == ("calc/calc_test.go", 12)
    assert bad.message.splitlines() == ["    calc_test.go:11: a log", "    calc_test.go:12: got 3, want 4"]


def test_a_test_that_holds_others_counts_only_when_it_failed_by_itself() -> None:
    through_others = parse(event("pass", "T/a"), event("fail", "T/b"), event("fail", "T"), event("fail"))
    assert set(by_id(through_others)) == {"calc.T/a", "calc.T/b"}
    by_itself = parse(event("pass", "T/a"), event("fail", "T"), event("fail"))
    assert set(by_id(by_itself)) == {"calc.T/a", "calc.T"}
    other_package = parse(event("pass", "T"), event("fail", "T/b", package="else"), event("pass"))
    assert by_id(other_package)["calc.T"].outcome == "passed"


def test_a_package_that_does_not_build_is_an_error_with_what_the_compiler_said() -> None:
    printed = "# example.com/m/calc [example.com/m/calc.test]\ncalc/calc.go:3:23: cannot use x\n# other\nelse\n"
    parsed = parse("FAIL\texample.com/m/calc [build failed]", event("pass", "T", package="b"), printed=printed)
    case = by_id(parsed)["calc"]
    assert parsed.broken == ""
    assert (case.outcome, case.file, case.line) == ("error", "calc/calc.go", 3)
    assert case.message == "calc/calc.go:3:23: cannot use x"


def test_build_events_of_newer_versions() -> None:
    path = "example.com/m/calc [example.com/m/calc.test]"
    (case,) = parse(
        json.dumps({"ImportPath": path, "Action": "build-output", "Output": "# example.com/m/calc\n"}),
        json.dumps({"ImportPath": path, "Action": "build-output", "Output": "calc/calc.go:3:23: cannot use x\n"}),
        json.dumps({"ImportPath": path, "Action": "build-fail"}),
        event("fail", Elapsed=0, FailedBuild=path),
    ).cases
    assert (case.outcome, case.file, case.line) == ("error", "calc/calc.go", 3)


def test_a_panic_is_placed_in_the_users_code() -> None:
    (case,) = parse(
        event("output", "TestPanic", Output="panic: assignment to entry in nil map\n"),
        event("output", "TestPanic", Output="\t/usr/lib/go/src/testing/testing.go:1396 +0x24e\n"),
        event("output", "TestPanic", Output="\t/w/calc/calc_test.go:8 +0x2e\n"),
        event("fail", "TestPanic"),
        event("fail"),
    ).cases
    assert (case.outcome, case.file, case.line) == ("failed", "calc/calc_test.go", 8)
    assert "tests after it did not run" in case.message


def test_what_never_ended_is_an_error() -> None:
    (case,) = parse(event("run", "TestHangs"), event("output", "TestHangs", Output="waiting\n")).cases
    assert (case.outcome, case.message) == ("error", "It never ended.\nwaiting")


def test_packages_without_tests_say_nothing() -> None:
    assert parse(event("output", Output="?   \tcalc\t[no test files]\n"), event("skip")).cases == ()


def test_foreign_lines_make_the_report_broken_and_keep_what_came() -> None:
    parsed = parse(event("pass", "T"), '{"Action": "pass", "Pack', event("pass"))
    assert parsed.broken and [case.outcome for case in parsed.cases] == ["passed"]
