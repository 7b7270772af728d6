"""The commands of each framework: what a model says is one word, never script, never an option."""

from __future__ import annotations

import json

import pytest

from codeagent_lsp.errors import ToolRetry
from codeagent_lsp.shadow.shell import Finished
from codeagent_lsp.tools.testing import framework as frameworks
from codeagent_lsp.tools.testing.framework import Project, Selection
from tests.tools.testing.rig import FRAMEWORKS

NASTY = "$(touch /tmp/x); `id` \"' \n--help"
ALL: tuple[str, ...] = ("pytest", "unittest", "vitest", "jest", "node", "go", "cargo")


def words(framework: str, target: str = "", pattern: str = "", node: str = "") -> tuple[str, ...]:
    project = Project(FRAMEWORKS[framework], "/w", ("program",), target)
    script = frameworks.command(project, Selection(pattern, node), offline=True).script
    assert isinstance(script, tuple)
    return script


@pytest.mark.parametrize("framework", ALL)
def test_a_pattern_is_one_word_and_the_script_is_always_the_same(framework: str) -> None:
    plain, with_pattern = words(framework), words(framework, pattern=NASTY)
    assert with_pattern[:4] == plain[:4] and plain[:2] == ("bash", "-c")
    assert sum(NASTY in word for word in with_pattern) == 1
    (word,) = [word for word in with_pattern if NASTY in word]
    assert word == NASTY or word.endswith(f"={NASTY}")


@pytest.mark.parametrize("framework", ["pytest", "vitest", "jest", "node"])
def test_a_path_is_never_an_option(framework: str) -> None:
    assert words(framework, "-rf.py")[-1] == "./-rf.py"
    assert words(framework, "a b.py")[-1] == "a b.py"


def test_selecting_in_each_framework() -> None:
    assert words("pytest", "tests/test_a.py", "x or y", "::A::b")[-2:] == ("-k=x or y", "tests/test_a.py::A::b")
    assert words("unittest", "tests", "x")[-2:] == ("tests", "x")
    assert words("unittest")[-2:] == (".", "")
    assert words("vitest", "a.test.ts", "x")[-2:] == ("--testNamePattern=x", "a.test.ts")
    assert words("go", "calc", "TestX")[-2:] == ("-run=TestX", "./calc/...")
    assert words("go", "calc/a_test.go")[-1] == "./calc"
    assert words("go")[-1] == "./..."
    assert words("cargo", "tests/it.rs", "x")[-3:] == ("--test", "it", "x")
    assert words("cargo", "src/parse.rs")[-1] == "parse::"
    assert words("cargo", "src/parse.rs", "x")[-1] == "x"
    assert words("cargo", "src/lib.rs")[-1] == "--no-fail-fast"


def test_npm_takes_no_pattern() -> None:
    assert words("npm")[-2:] == ("program", "test")
    with pytest.raises(ToolRetry, match="takes no pattern"):
        words("npm", pattern="x")


def test_without_a_network_nobody_waits_for_one() -> None:
    project = Project(FRAMEWORKS["cargo"], "/w", ("cargo",))
    offline = frameworks.command(project, Selection(), offline=True).environment
    online = frameworks.command(project, Selection(), offline=False).environment
    assert set(offline) - set(online) == {"CARGO_NET_OFFLINE", "GOPROXY"}


def test_pytest_that_is_not_there() -> None:
    project = Project(FRAMEWORKS["pytest"], "/w", ("python3",))
    instead = project.framework.instead(project, Finished(1, "/usr/bin/python3: No module named pytest\n"))
    assert instead is not None and instead[0].framework is FRAMEWORKS["unittest"]
    assert "python3 -m pip install pytest" in instead[1]
    for other in (
        Finished(1, "E   ModuleNotFoundError: No module named 'pytest'\n"),
        Finished(0, "No module named pytest"),
    ):
        assert project.framework.instead(project, other) is None


@pytest.mark.parametrize("framework", ALL)
@pytest.mark.parametrize("data", [None, b"", b"\xff\xfe garbage", b"{}", b"<x/>", b"[[[["])
def test_a_broken_or_missing_report_is_a_problem_for_every_framework(framework: str, data: bytes | None) -> None:
    names = ("report.xml", "report.json", "report.jsonl", "report.txt")
    reports = {} if data is None else dict.fromkeys(names, data)
    report = frameworks.read(
        Project(FRAMEWORKS[framework], "/w", ("x",)), Finished(1, "the last words", reports=reports)
    )
    assert report.problem and "the last words" in report.problem
    assert not report.ok and not report.cases


def test_a_framework_that_is_not_known_says_so() -> None:
    report = frameworks.read(Project(FRAMEWORKS["npm"], "/w", ("npm",)), Finished(0, "5 passing"))
    assert "no results of single tests" in report.problem and "5 passing" in report.problem


def test_paths_of_the_copy_are_the_workspaces() -> None:
    line = {"id": "a", "outcome": "failed", "seconds": 0, "file": "/copy/t.py", "line": 2}
    data = json.dumps({**line, "message": 'File "/copy/t.py", line 2'}).encode() + b'\n{"end": true}\n'
    reports = {"folder": b"/copy\n", "report.jsonl": data}
    (case,) = frameworks.read(Project(FRAMEWORKS["unittest"], "/w", ("x",)), Finished(1, "", reports=reports)).cases
    assert (case.file, case.message) == ("t.py", 'File "t.py", line 2')
