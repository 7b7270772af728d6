"""What `cargo test` prints: as it was seen with cargo 1.95, and with tests that try to look like it."""

from __future__ import annotations

from codeagent_lsp.tools.testing import cargo
from codeagent_lsp.tools.testing.reports import Parsed

WHOLE = """\
   Compiling demo v0.1.0 (/w)
    Finished `test` profile [unoptimized + debuginfo] target(s) in 0.5s
     Running unittests src/lib.rs (target/debug/deps/demo_lib-0123456789abcdef)

running 4 tests
test tests::adds ... ok
test tests::skipped ... ignored, slow
test tests::panics - should panic ... ok
test tests::fails ... FAILED

failures:

---- tests::fails stdout ----
test tests::fake ... ok
test result: ok. 9 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

thread 'tests::fails' (26059) panicked at src/lib.rs:18:9:
assertion `left == right` failed: sums
  left: 3
 right: 4
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace


failures:
    tests::fails

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

error: test failed, to rerun pass `--lib`
     Running tests/it.rs (target/debug/deps/it-fedcba9876543210)

running 1 test
test works ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

   Doc-tests demo_lib

running 2 tests
test src/lib.rs - add (line 2) ... ok
test src/lib.rs - add (line 5) - compile ... FAILED

failures:

---- src/lib.rs - add (line 5) - compile stdout ----
error[E0425]: cannot find value `x`


failures:
    src/lib.rs - add (line 5) - compile

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s

error: 2 targets failed:
"""


def parse(text: str) -> Parsed:
    return cargo.parse(text.encode())


def outcomes(parsed: Parsed) -> dict[str, str]:
    return {case.id: case.outcome for case in parsed.cases}


def test_unit_tests_integration_tests_and_doc_tests() -> None:
    parsed = parse(WHOLE)
    assert parsed.broken == ""
    assert outcomes(parsed) == {
        "demo_lib::tests::adds": "passed",
        "demo_lib::tests::skipped": "skipped",
        "demo_lib::tests::panics": "passed",
        "demo_lib::tests::fails": "failed",
        "it::works": "passed",
        "demo_lib: src/lib.rs - add (line 2)": "passed",
        "demo_lib: src/lib.rs - add (line 5) - compile": "failed",
    }


def test_failures_have_their_place_and_their_words() -> None:
    cases = {case.id: case for case in parse(WHOLE).cases}
    fails = cases["demo_lib::tests::fails"]
    assert (fails.file, fails.line) == ("src/lib.rs", 18)
    assert fails.message.endswith("left: 3\n right: 4")
    docs = cases["demo_lib: src/lib.rs - add (line 5) - compile"]
    assert (docs.file, docs.line, docs.message) == ("src/lib.rs", 5, "error[E0425]: cannot find value `x`")
    assert cases["demo_lib::tests::skipped"].message == "slow"
    assert cases["it::works"].file == "tests/it.rs"


def test_a_test_cannot_add_or_hide_one_by_printing() -> None:
    assert "demo_lib::tests::fake" not in outcomes(parse(WHOLE))
    assert sum(case.outcome == "failed" for case in parse(WHOLE).cases) == 2


def test_totals_that_do_not_agree_make_the_report_broken() -> None:
    lying = WHOLE.replace("2 passed; 1 failed; 1 ignored", "3 passed; 0 failed; 1 ignored")
    assert "demo_lib" in parse(lying).broken


def test_a_line_that_output_of_a_child_spoilt_makes_the_report_broken() -> None:
    assert "it" in parse(WHOLE.replace("test works ... ok", "hellotest works ... ok")).broken


def test_a_run_that_breaks_off_keeps_what_came() -> None:
    parsed = parse(WHOLE[: WHOLE.index("test tests::panics")])
    assert parsed.broken == "breaks off in demo_lib"
    assert outcomes(parsed) == {"demo_lib::tests::adds": "passed", "demo_lib::tests::skipped": "skipped"}


def test_after_a_crash_the_next_program_still_counts() -> None:
    crashed = WHOLE.replace(
        "test result: FAILED. 2 passed", "process didn't exit successfully (signal: 11)\n# 2 passed"
    )
    parsed = parse(crashed)
    assert "demo_lib" in parsed.broken and outcomes(parsed)["it::works"] == "passed"


def test_an_error_of_the_compiler_is_no_test() -> None:
    assert parse("error[E0308]: mismatched types\n --> src/lib.rs:1:1\n") == Parsed(())
