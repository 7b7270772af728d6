"""JUnit XML as pytest and node write it, and as somebody hostile would."""

from __future__ import annotations

import pytest

from codeagent_lsp.tools.testing import junit
from codeagent_lsp.tools.testing.reports import ReportBroken, TestCase

PYTEST = """<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" errors="1">
<testcase classname="" name="tests.test_b" time="0.000">
<error message="collection failure">tests/test_b.py:1: in &lt;module&gt;
    import nope
E   ModuleNotFoundError: No module named 'nope'</error></testcase>
<testcase classname="tests.test_a" name="test_ok" file="tests/test_a.py" line="1" time="0.250" />
<testcase classname="tests.test_a.TestC.TestD" name="test_m[a b]" file="tests/test_a.py" line="3" time="0.001">
<failure message="assert 1 == 2">tests/test_a.py:5: in test_m
    check(1)
helpers.py:9: in check
    assert x == 2
E   assert 1 == 2</failure></testcase>
<testcase classname="tests.test_a" name="test_skip" file="tests/test_a.py" line="6" time="0.000">
<skipped type="pytest.skip" message="later">/somewhere/tests/test_a.py:7: later</skipped></testcase>
<testcase classname="tests.test_a" name="test_x" file="tests/test_a.py" line="8">
<skipped type="pytest.xfail" message=""/></testcase>
<testcase classname="tests.test_a" name="test_both" file="tests/test_a.py" line="9" time="oops">
<failure message="call">call</failure><error message="teardown">teardown</error></testcase>
</testsuite></testsuites>"""


def parse(text: str) -> dict[str, TestCase]:
    return {case.id: case for case in junit.parse(text.encode(), "/w").cases}


def test_a_report_of_pytest() -> None:
    cases = parse(PYTEST)
    assert {name: case.outcome for name, case in cases.items()} == {
        "tests/test_b.py": "error",
        "tests/test_a.py::test_ok": "passed",
        "tests/test_a.py::TestC::TestD::test_m[a b]": "failed",
        "tests/test_a.py::test_skip": "skipped",
        "tests/test_a.py::test_x": "skipped",
        "tests/test_a.py::test_both": "failed",
    }
    assert cases["tests/test_a.py::test_ok"] == TestCase(
        "tests/test_a.py::test_ok", "passed", 0.25, "", "tests/test_a.py", 2
    )
    assert cases["tests/test_b.py"].line == 1 and "No module named 'nope'" in cases["tests/test_b.py"].message
    assert cases["tests/test_a.py::test_skip"].message == "later"
    assert cases["tests/test_a.py::test_both"].seconds == 0.0


def test_a_failure_is_placed_in_the_test_and_not_in_its_helper() -> None:
    failed = parse(PYTEST)["tests/test_a.py::TestC::TestD::test_m[a b]"]
    assert (failed.file, failed.line) == ("tests/test_a.py", 5)
    assert failed.message.endswith("E   assert 1 == 2")


def test_tests_of_node_are_named_by_the_suites_around_them() -> None:
    cases = parse(
        '<testsuites><testsuite name="outer"><testcase name="inner" time="0.1" classname="test">'
        '<failure type="testCodeFailure" message="no">'
        "Error: no\n    at TestContext.&lt;anonymous&gt; (/w/a.test.js:3:38)"
        '</failure></testcase></testsuite><testcase name="ok" classname="test"/></testsuites>'
    )
    assert {name: case.outcome for name, case in cases.items()} == {"outer > inner": "failed", "ok": "passed"}
    assert (cases["outer > inner"].file, cases["outer > inner"].line) == ("a.test.js", 3)


BOMB = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 9))


@pytest.mark.parametrize(
    "hostile",
    [
        f'<!DOCTYPE x [<!ENTITY e0 "ha">{BOMB}]><testsuites>&e8;</testsuites>',
        '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><testsuites>&f;</testsuites>',
        '<!DOCTYPE x SYSTEM "http://127.0.0.1/x.dtd"><testsuites/>',
        "<testsuites>" + "<testsuite>" * 100 + "</testsuite>" * 100 + "</testsuites>",
        "<testsuites>&unknown;</testsuites>",
        PYTEST[:700],
        "<html></html>",
        "",
        "not xml",
    ],
)
def test_what_no_framework_writes_is_refused(hostile: str) -> None:
    with pytest.raises(ReportBroken):
        parse(hostile)


def test_a_report_can_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(junit, "MAX_CASES", 3)
    with pytest.raises(ReportBroken, match="larger"):
        parse(PYTEST)
