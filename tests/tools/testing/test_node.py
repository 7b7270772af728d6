"""The JSON of jest and vitest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codeagent_lsp.tools.testing.node import parse_json
from codeagent_lsp.tools.testing.reports import ReportBroken, TestCase

THROWN = """Error: \x1b[2mexpect(\x1b[22mreceived\x1b[2m).toBe(expected)\x1b[22m

Expected: 4
Received: 3
    at helper (/w/src/help.js:9:1)
    at Object.toBe (/w/src/a.test.js:6:23)
    at run (/w/node_modules/jest-circus/build/index.js:1:2)"""


def report(*suites: dict[str, Any]) -> bytes:
    return json.dumps({"numTotalTests": 1, "testResults": suites}).encode()


def suite(*tests: dict[str, Any], status: str = "failed", message: str = "") -> dict[str, Any]:
    return {"name": "/w/src/a.test.js", "status": status, "message": message, "assertionResults": tests}


def item(title: str, status: str, **more: Any) -> dict[str, Any]:
    return {"title": title, "status": status, "ancestorTitles": ["outer"], **more}


def test_each_test_with_its_place() -> None:
    tests = (
        item("adds", "passed", duration=12.5, location={"line": 3, "column": 2}),
        item("fails", "failed", failureMessages=[THROWN], location={"line": 5, "column": 2}),
        item("later", "pending"),
        item("some day", "todo", duration=None),
    )
    adds, fails, *others = parse_json(report(suite(*tests)), "/w").cases
    assert adds == TestCase("src/a.test.js > outer > adds", "passed", 0.0125, "", "src/a.test.js", 3)
    assert (fails.outcome, fails.file, fails.line) == ("failed", "src/a.test.js", 6)
    assert "Expected: 4" in fails.message and "node_modules" not in fails.message and "\x1b" not in fails.message
    assert [case.outcome for case in others] == ["skipped", "skipped"]


def test_a_file_that_cannot_be_run_is_an_error() -> None:
    text = (
        "  ● Test suite failed to run\n\n    Cannot find module './nope'\n      at Object.require (src/a.test.js:1:1)"
    )
    (case,) = parse_json(report(suite(message=text)), "/w").cases
    assert (case.id, case.outcome, case.line) == ("src/a.test.js", "error", 1)
    assert "Cannot find module" in case.message


def test_a_file_that_failed_without_a_word_is_still_an_error() -> None:
    passed = item("adds", "passed")
    cases = parse_json(report(suite(passed)), "/w").cases
    assert [case.outcome for case in cases] == ["passed", "error"]
    assert parse_json(report(suite(passed, status="passed")), "/w").cases[-1].outcome == "passed"


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"{}", b'{"testResults": [{}]}', report(suite(item("x", "new kind"))), b"[" * 100_000],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(ReportBroken):
        parse_json(data, "/w")
