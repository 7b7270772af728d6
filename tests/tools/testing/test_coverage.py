"""Coverage: the four formats, what the model reads, and what is said when a tool is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.shadow.shell import Finished
from codeagent_lsp.tools.testing.coverage import (
    CoverageReport,
    FileCoverage,
    describe_coverage,
    parse,
    ranges,
    worst_first,
)
from codeagent_lsp.tools.testing.framework import Project, measuring_command, read_coverage
from codeagent_lsp.tools.testing.reports import ReportBroken
from codeagent_lsp.tools.testing.testing_tools import AnalyzeCoverage
from tests.tools.testing.rig import FRAMEWORKS, SaidShell, TestBench
from tests.workspace.file_fakes import workspace


def coverage_py(**files: tuple[list[int], list[int]]) -> bytes:
    """Executed and missing lines by file."""
    rows = {f"{name}.py": {"executed_lines": hit, "missing_lines": missed} for name, (hit, missed) in files.items()}
    return json.dumps({"files": rows}).encode()


def test_coverage_py() -> None:
    worst, best = parse("coverage.py", coverage_py(a=([1, 2, 9], []), b=([1], [3, 4, 6])), "/w")
    assert worst == FileCoverage("b.py", 1, 4, ((3, 6),))
    assert (best.path, best.percent, best.missing) == ("a.py", 100.0, ())


def test_istanbul() -> None:
    place = {"start": {"line": 2, "column": 0}, "end": {"line": 2, "column": 9}}
    later = {"start": {"line": 5, "column": 0}, "end": {"line": 7, "column": 9}}
    file = {"path": "/w/a.ts", "statementMap": {"0": place, "1": later, "2": later}, "s": {"0": 3, "1": 0, "2": 0}}
    assert parse("istanbul", json.dumps({"/w/a.ts": file}).encode(), "/w") == (FileCoverage("a.ts", 1, 2, ((5, 5),)),)


def test_go_counts_statements_and_joins_packages() -> None:
    profile = b"""mode: set
example.com/m/calc/calc.go:3.33,3.48 1 0
example.com/m/calc/calc.go:5.17,7.2 3 0
example.com/m/calc/calc.go:3.33,3.48 1 1
"""
    assert parse("go", profile, "/w", "example.com/m") == (FileCoverage("calc/calc.go", 1, 4, ((5, 7),)),)


def test_lcov() -> None:
    report = b"SF:/w/src/lib.rs\nFN:1,add\nDA:1,2\nDA:2,0\nDA:3,0\nDA:5,1\nend_of_record\n"
    assert parse("lcov", report, "/w") == (FileCoverage("src/lib.rs", 2, 4, ((2, 3),)),)


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("coverage.py", b""),
        ("coverage.py", b'{"files": {"a.py": {}}}'),
        ("istanbul", b"[]"),
        ("istanbul", b'{"a": {"statementMap": {"0": {}}}}'),
        ("go", b""),
        ("go", b"mode: set\nrubbish\n"),
        ("lcov", b"SF:/w/a.rs\nDA:1,1\n"),
        ("lcov", b"SF:/w/a.rs\nDA:x\nend_of_record\n"),
    ],
)
def test_broken_reports_are_refused(form: str, data: bytes) -> None:
    with pytest.raises(ReportBroken):
        parse(form, data, "/w")


def test_ranges_join_over_lines_that_do_not_count() -> None:
    assert ranges([3, 4, 8, 12], [5, 1]) == ((3, 4), (8, 12))
    assert ranges([], [1]) == ()
    assert ranges([7, 7, 2], []) == ((2, 7),)


def test_worst_first_and_within_the_budget() -> None:
    files = [FileCoverage(f"f{n}.py", n, 100, tuple((k, k) for k in range(1, 99, 2))) for n in range(100)]
    report = CoverageReport("pytest", worst_first(files))
    text = describe_coverage(report, lambda path: path, ", on the unsaved buffers", 2000)
    lines = text.splitlines()
    assert lines[0] == "coverage: 49.5 % of 10000 lines in 100 files (pytest), on the unsaved buffers"
    assert lines[1].startswith("f0.py 0 %, uncovered: 1, 3, 5") and "more places" in lines[1]
    assert (
        len(text) < 2100
        and lines[-1] == f"... and {100 - (len(lines) - 2)} more files. Ask for a part of them with path."
    )


@pytest.mark.parametrize(
    ("framework", "finished", "advice"),
    [
        ("pytest", Finished(96, ""), "`python -m pip install pytest-cov`"),
        ("unittest", Finished(96, ""), "`python -m pip install coverage`"),
        ("cargo", Finished(101, "error: no such command: `llvm-cov`\n"), "`cargo install cargo-llvm-cov`"),
        (
            "vitest",
            Finished(1, " MISSING DEPENDENCY  Cannot find dependency '@vitest/coverage-v8'\n"),
            "`npm install --save-dev @vitest/coverage-v8`",
        ),
    ],
)
def test_what_is_missing_is_named(framework: str, finished: Finished, advice: str) -> None:
    with pytest.raises(ToolFailed) as caught:
        read_coverage(Project(FRAMEWORKS[framework], "/w", ("python",)), finished)
    assert advice in str(caught.value)


def read(finished: Finished) -> CoverageReport:
    return read_coverage(Project(FRAMEWORKS["pytest"], "/w", ("python",)), finished)


def test_a_run_that_left_no_report_is_no_coverage_of_zero() -> None:
    report = read(Finished(139, "Fatal Python error"))
    assert "crashed (SIGSEGV)" in report.problem and "Fatal Python error" in report.problem
    assert "nothing was measured" in describe_coverage(report, str, "", 1000)
    assert "is not whole" in read(Finished(0, "", reports={"coverage": b"{"})).problem


def test_tests_do_not_count_and_failures_are_told() -> None:
    data = coverage_py(a=([1], [2]), test_a=([1, 2, 3], []), conftest=([1], []))
    report = read(Finished(1, "", reports={"coverage": data}))
    assert ([file.path for file in report.files], report.percent) == (["a.py"], 50.0)
    assert "exit code 1" in report.problem


def test_the_projects_own_choice_of_what_to_measure_is_kept(tmp_path: Path) -> None:
    work = workspace(tmp_path / "work")
    project = Project(FRAMEWORKS["pytest"], str(work.root), ("python3",))

    def measured() -> str:
        return measuring_command(project, work.view, offline=True).script[5]

    assert measured() == "."
    work.write("src/a.py", "")
    assert measured() == ".,src"
    work.open(".coveragerc", "[run]\nsource = a\n")
    assert measured() == ""


def test_not_every_framework_can_be_measured(tmp_path: Path) -> None:
    work = workspace(tmp_path / "work")
    with pytest.raises(ToolFailed, match="cannot be measured for node"):
        measuring_command(Project(FRAMEWORKS["node"], str(work.root), ("node",)), work.view, offline=True)


async def call(tmp_path: Path, **arguments: Any) -> tuple[Any, SaidShell]:
    bench = TestBench(tmp_path / "work", AnalyzeCoverage())
    for name in ("pytest.ini", "src/a.py", "src/b.py", "tests/test_a.py"):
        bench.put(name, "")
    data = coverage_py(**{"src/a": ([1], [2]), "src/b": ([], [1, 2])})
    shell = bench.shell = SaidShell([Finished(0, "", reports={"coverage": data})])
    return await bench.call(**arguments), shell


async def test_a_path_chooses_what_is_reported_and_not_what_runs(tmp_path: Path) -> None:
    output, shell = await call(tmp_path, path="src/a.py")
    assert output.text == "coverage: 50.0 % of 2 lines in 1 file (pytest)\nsrc/a.py 50 %, uncovered: 2"
    assert output.data["reports"][0]["files"][0]["missing"] == ((2, 2),)
    assert "src/a.py" not in shell.commands[0].script
    folder, _ = await call(tmp_path, path="src")
    assert folder.text.startswith("coverage: 25.0 % of 4 lines in 2 files")


async def test_a_test_file_runs_alone_and_everything_is_reported(tmp_path: Path) -> None:
    output, shell = await call(tmp_path, path="tests/test_a.py")
    assert output.text.splitlines()[1:] == ["src/b.py 0 %, uncovered: 1-2", "src/a.py 50 %, uncovered: 2"]
    assert shell.commands[0].script[-1] == "tests/test_a.py"


async def test_of_several_projects_one_that_cannot_be_measured_does_not_hide_the_others(tmp_path: Path) -> None:
    bench = TestBench(tmp_path / "work", AnalyzeCoverage())
    bench.put("pytest.ini", "")
    bench.put("go.mod", "module m\n")
    bench.put("web/package.json", '{"devDependencies": {"vitest": "3"}}')
    profile = b"mode: set\nm/a.go:1.1,2.2 1 1\n"
    bench.shell = SaidShell([Finished(96, ""), Finished(0, "", reports={"coverage": profile})])
    python, go, web = (await bench.call()).text.split("\n\n")
    assert "pip install pytest-cov" in python and go.startswith("coverage: 100.0 %") and "npm install" in web


def test_it_belongs_to_the_group_of_tests() -> None:
    assert (AnalyzeCoverage.traits.group, AnalyzeCoverage.traits.effect) == ("tests", "run")
