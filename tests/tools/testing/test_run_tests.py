"""The tool `run_tests`, with real unittest (it is fast) and with prepared endings."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp.errors import AgentError, ToolFailed, ToolRetry
from codeagent_lsp.llm.wire import tool_list
from codeagent_lsp.shadow.shell import Command, CommandResult, Finished, Isolation, OnOutput, no_output
from codeagent_lsp.texts import text
from codeagent_lsp.tools.context import OnTested, Tally
from codeagent_lsp.tools.testing.framework import Project
from codeagent_lsp.tools.testing.golang import GoTest
from codeagent_lsp.tools.testing.reports import TestCase, TestReport
from codeagent_lsp.tools.testing.testing_tools import RunTests, covered_by, told_short
from tests.tools.testing.rig import CopyShell, SaidShell, TestBench, case, outcomes

SUITE = """\
import unittest

def setUpModule(): pass

class A(unittest.TestCase):
    def test_ok(self): pass
    def test_bad(self): self.assertEqual({"a": 1}, {"a": 2})
    def test_err(self): {}["k"]
    def test_sub(self):
        for i in range(3):
            with self.subTest(i=i): self.assertNotEqual(i, 1)
    @unittest.skip("later")
    def test_skip(self): pass
    @unittest.expectedFailure
    def test_expected(self): self.fail()
    @unittest.expectedFailure
    def test_unexpected(self): pass

class B(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise OSError("no database")
    def test_b(self): pass
"""
ONE = "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): self.assertEqual(1, {})\n"


@pytest.fixture
def bench(tmp_path: Path) -> TestBench:
    return TestBench(tmp_path / "work", RunTests())


def test_of_runners_that_name_no_files_the_folder_is_green(bench: TestBench) -> None:
    bench.put("go.mod", "module m\n")
    bench.put("pkg/a_test.go", "")
    root, context = str(bench.root), bench.bench.context
    project = Project(GoTest(), root, ("go",))
    good, bad = (TestReport("go", (TestCase("m.TestA", outcome),)) for outcome in ("passed", "failed"))
    assert covered_by([project], [good], None, context) == {"", "/"}
    assert covered_by([project], [good], f"{root}/pkg", context) == {"pkg/"}
    assert covered_by([project], [good], f"{root}/pkg/a_test.go", context) == set()
    assert covered_by([project, project], [good, bad], None, context) == {"/"}


async def test_every_outcome_of_unittest(bench: TestBench) -> None:
    bench.put("tests/test_a.py", SUITE)
    bench.put("tests/test_broken.py", "import unittest, nowhere\n")
    output = await bench.call()
    assert outcomes(output) == {
        "test_a.A.test_ok": "passed",
        "test_a.A.test_bad": "failed",
        "test_a.A.test_err": "error",
        "test_a.A.test_sub (i=1)": "failed",
        "test_a.A.test_skip": "skipped",
        "test_a.A.test_expected": "skipped",
        "test_a.A.test_unexpected": "failed",
        "setUpClass (test_a.B)": "error",
        "test_broken": "error",
    }
    assert output.text.startswith("tests: 1 passed, 3 failed, 3 could not run, 2 skipped in ")
    assert (
        re.fullmatch(r"6 failed, 1 passed, 2 skipped in \d+\.\d s", output.summary) and output.failed == output.summary
    )
    assert "FAILED test_a.A.test_bad (tests/test_a.py:7)" in output.text
    assert "AssertionError: {'a': 1} != {'a': 2}" in output.text
    assert "No module named 'nowhere'" in output.text
    assert case(output, "test_ok")["file"] == "tests/test_a.py"


async def test_a_module_whose_import_fails_is_a_failed_test_whatever_it_raises(bench: TestBench) -> None:
    ends = {
        "name": "callable_[str]",
        "end": "import sys; sys.exit(3)",
        "skip": "import unittest; raise unittest.SkipTest('later')",
    }
    for name, line in ends.items():
        bench.put(f"test_{name}.py", f"{line}\n")
    bench.put("test_ok.py", ONE.format(1))
    output = await bench.call()
    assert outcomes(output) == {
        "test_name": "error",
        "test_end": "error",
        "test_skip": "skipped",
        "test_ok.A.test_a": "passed",
    }
    assert "name 'callable_' is not defined" in output.text
    assert case(output, "test_name")["file"] == "test_name.py"


def test_a_run_in_a_few_words() -> None:
    as_before = frozenset({"test_x"})
    assert told_short(Tally(7, 0), 1.24, text) == "7 passed in 1.2 s"
    assert told_short(Tally(7, 0, skipped=2), 1.24, text) == "7 passed, 2 skipped in 1.2 s"
    none = "no result of any test in 1.0 s"
    assert told_short(Tally(0, 0), 1, text, "pytest is not here.\nMore.") == f"{none}: pytest is not here."
    assert told_short(Tally(0, 0), 1, text, "The end of its output:\nx") == none
    assert told_short(Tally(7, 0), 1.24, lambda key, **values: text(key, "zh-cn", **values)) == "7 个通过，用时 1.2 秒"
    mixed = Tally(7, 3, whole=False, as_before=as_before)
    assert told_short(mixed, 2, text) == "2 failed, 1 failed as before, 7 passed, not all results are known in 2.0 s"
    assert mixed.red and not Tally(7, 1, as_before=as_before).red
    assert Tally(7, 0, whole=False).red and not Tally(7, 0).red


async def test_packages_and_files_of_one_name(bench: TestBench) -> None:
    bench.put("pkg/__init__.py", "")
    bench.put("pkg/tests/__init__.py", "")
    bench.put("pkg/tests/test_a.py", "from pkg import __name__ as n\n" + ONE.format("'pkg'").replace("1,", "n,"))
    bench.put("one/test_a.py", ONE.format(1))
    bench.put("two/test_a.py", ONE.format(2))
    output = await bench.call()
    found = {(case["id"], case["file"], case["outcome"]) for case in output.data["reports"][0]["cases"]}
    assert found == {
        ("pkg.tests.test_a.A.test_a", "pkg/tests/test_a.py", "passed"),
        ("test_a.A.test_a", "one/test_a.py", "passed"),
        ("test_a.A.test_a", "two/test_a.py", "failed"),
    }


async def test_path_and_pattern_choose_and_the_summary_says_so(bench: TestBench) -> None:
    bench.put("tests/test_a.py", SUITE)
    bench.put("tests/test_b.py", ONE.format(1))
    output = await bench.call(path="tests/test_a.py", pattern="test_ok")
    assert outcomes(output) == {"test_a.A.test_ok": "passed"}
    assert output.text.startswith("tests of tests/test_a.py matching 'test_ok': 1 passed in ")
    assert set(outcomes(await bench.call(path="tests/test_b.py"))) == {"test_b.A.test_a"}


async def test_a_pattern_that_matches_nothing_is_no_success(bench: TestBench) -> None:
    bench.put("tests/test_b.py", ONE.format(1))
    output = await bench.call(pattern="nothing_like_it")
    assert "no result of any test" in output.text and "No tests ran" in output.text
    assert output.failed == output.summary and output.failed.startswith("no result of any test in ")


async def test_it_fails_on_disk_and_passes_on_what_is_unsaved_and_staged(bench: TestBench) -> None:
    bench.put("test_b.py", "import unittest, calc\n" + ONE.format(3).replace("1,", "calc.add(1, 2),"))
    bench.put("calc.py", "def add(a, b):\n    return 0\n")
    before = bench.bench.disk()
    on_disk = await bench.call()
    assert on_disk.text.startswith("tests: 1 failed") and ", on the " not in on_disk.text.splitlines()[0]
    bench.bench.open("calc.py", "from other import add\n")
    bench.stage("other.py", "def add(a, b):\n    return a + b\n")
    output = await bench.call()
    assert output.text.endswith("(unittest), on the open buffers and staged changes")
    assert outcomes(output) == {"test_b.A.test_a": "passed"}
    assert bench.bench.disk() == before


async def test_on_the_real_folder_it_says_that_unsaved_text_is_not_in_it(bench: TestBench) -> None:
    bench.put("test_b.py", ONE.format(1))
    bench.bench.open("other.py", "x = 1\n")
    bench.shell = SaidShell([Finished(0, "")], Isolation("direct", confined=False, offline=False, hidden=False))
    assert "on the saved files only" in (await bench.call()).text.splitlines()[0]


async def test_a_crash_keeps_what_was_finished_and_says_so(bench: TestBench) -> None:
    bench.put("test_a.py", ONE.format(1) + "    def test_b(self):\n        import os; os.abort()\n")
    output = await bench.call()
    assert output.text.startswith("tests: INCOMPLETE, 1 passed in ")
    assert "crashed (SIGABRT)" in output.text


async def test_a_time_limit_keeps_what_was_finished_and_says_so(bench: TestBench) -> None:
    bench.put("test_a.py", ONE.format(1) + "    def test_b(self):\n        import time; time.sleep(60)\n")
    assert isinstance(bench.shell, CopyShell)
    bench.shell.seconds = 0.6
    output = await bench.call()
    assert output.text.startswith("tests: INCOMPLETE, 1 passed in ") and "time limit" in output.text


async def test_cancelling_ends_it(bench: TestBench) -> None:
    bench.put("test_a.py", "import time\ntime.sleep(60)\n" + ONE.format(1))
    task = asyncio.ensure_future(bench.call())
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)


async def test_without_pytest_unittest_runs_with_a_note(bench: TestBench) -> None:
    bench.put("pytest.ini", "")
    bench.put("test_a.py", ONE.format(1))
    bench.put(".venv/bin/python", "")
    shell = bench.shell
    assert isinstance(shell, CopyShell)
    bench.shell = Without(shell)  # type: ignore[assignment]
    output = await bench.call()
    assert "pytest is not installed for .venv/bin/python" in output.text
    assert output.text.startswith("tests: 1 passed") and "(unittest)" in output.text


async def test_an_environment_that_a_command_has_made_is_used_and_named(bench: TestBench) -> None:
    bench.put("test_a.py", ONE.format(1))
    shell = bench.shell
    assert isinstance(shell, CopyShell)
    bench.shell = Making(shell)  # type: ignore[assignment]
    output = await bench.call()
    assert output.text.startswith("tests: 1 passed") and "Ran with .venv/bin/python" in output.text


async def test_without_pytest_tests_that_need_it_are_no_result(bench: TestBench) -> None:
    bench.put("test_a.py", "import pytest\ndef test_a(): pass\n")
    missing = Finished(1, "python3: No module named pytest")
    bench.shell = SaidShell([missing, Finished(1, "", reports={"report.jsonl": b'{"end": true}\n'}), missing])
    output = await bench.call()
    assert "no result of any test" in output.text and "python3 -m pip install pytest" in output.text
    assert "pip install pytest" in (await bench.call(path="test_a.py::test_a")).text


class Without:
    """A Python without pytest: the first command says so, and the rest run by the machine's own."""

    def __init__(self, shell: CopyShell) -> None:
        self.shell, self.isolation = shell, shell.isolation

    async def run(self, command, on_output):  # type: ignore[no-untyped-def]
        words = list(command.script)
        at = words.index(".venv/bin/python")
        if "pytest" in words:
            return replace(await self.shell.run(replace(command, script=("true",))), finished=NO_PYTEST)
        words[at] = "python3"
        return await self.shell.run(replace(command, script=tuple(words)), on_output)


class Making:
    """A shell in whose copy of the workspace a command has made an environment."""

    def __init__(self, shell: CopyShell) -> None:
        self.shell, self.isolation = shell, shell.isolation

    async def run(self, command, on_output):  # type: ignore[no-untyped-def]
        _, option, script, *words = command.script
        make = 'mkdir -p .venv/bin; ln -s "$(command -v python3)" .venv/bin/python; '
        return await self.shell.run(replace(command, script=("bash", option, make + script, *words)), on_output)


NO_PYTEST = Finished(1, ".venv/bin/python: No module named pytest\n")


async def refusal(bench: TestBench, **arguments: str) -> AgentError:
    with pytest.raises(AgentError) as caught:
        await bench.call(**arguments)
    return caught.value


async def test_what_cannot_run_says_why(bench: TestBench) -> None:
    assert "No tests were found" in str(await refusal(bench))
    bench.put("web/package.json", '{"devDependencies": {"vitest": "3"}}')
    error = await refusal(bench)
    assert isinstance(error, ToolFailed) and "npm install" in str(error)
    assert "No tests were found for web/a.py" in str(await refusal_of_new_file(bench))
    bench.shell = None
    assert "cannot run" in str(await refusal(bench))


async def test_of_several_projects_one_that_is_not_installed_does_not_hide_the_others(bench: TestBench) -> None:
    bench.put("test_a.py", ONE.format(1))
    bench.put("web/package.json", '{"devDependencies": {"vitest": "3"}}')
    output = await bench.call()
    first, second = output.text.split("\n\n")
    assert first.startswith("tests: 1 passed") and "(unittest)" in first
    assert "no result of any test" in second and "npm install" in second


async def refusal_of_new_file(bench: TestBench) -> AgentError:
    bench.put("web/a.py", "")
    return await refusal(bench, path="web/a.py")


async def test_wrong_arguments_are_told_before_anything_runs(bench: TestBench) -> None:
    bench.put("test_a.py", ONE.format(1))
    for arguments in ({"pattern": "--help"}, {"path": "test_b.py"}, {"path": "test_a.py::A"}):
        assert isinstance(await refusal(bench, **arguments), ToolRetry)
    assert "outside the workspace" in str(await refusal(bench, path="../x.py"))
    assert isinstance(bench.shell, CopyShell) and not bench.shell.commands


async def test_the_numbers_are_passed_on_and_the_output_streams(tmp_path: Path) -> None:
    bench = TestBench(tmp_path / "work", RunTests())
    bench.put("test_a.py", ONE.format(1))
    told: list[Tally] = []
    bench.bench.context = bench.bench.context.having((OnTested, lambda: told.append))
    await bench.call()
    await bench.call(path="test_a.py")
    passing = frozenset({"test_a.A.test_a"})
    assert told == [
        Tally(1, 0, passing=passing, green=frozenset({"test_a.py", ""})),
        Tally(1, 0, passing=passing, green=frozenset({"test_a.py"})),
    ]
    assert "Ran 1 test" in "".join(bench.printed)


async def test_what_the_run_itself_stages_is_not_what_it_ran_on(bench: TestBench) -> None:
    bench.put("test_a.py", ONE.format(1))

    class Staging(SaidShell):
        async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
            bench.stage("Cargo.lock", "x\n")
            return await super().run(command, on_output)

    bench.shell = Staging([Finished(0, ""), Finished(0, "")])
    assert "staged changes" not in (await bench.call()).text
    assert "on the staged changes" in (await bench.call()).text


async def test_what_the_tests_wrote_is_told(bench: TestBench) -> None:
    bench.put("test_a.py", ONE.format(1))
    written = tuple(bench.bench.path(f"snap{n}.txt") for n in range(2))
    bench.shell = SaidShell([Finished(0, "")], staged=written, left_out=((bench.bench.path("a.bin"), "binary"),))
    assert (await bench.call()).text.splitlines()[-2:] == [
        "Written by the run and now staged: snap0.txt, snap1.txt",
        "Not staged: 1 other file it wrote",
    ]


def test_the_model_is_told_little_about_it() -> None:
    spec = RunTests().spec()
    assert set(spec["parameters"]["properties"]) == {"path", "pattern"}
    assert len(str(tool_list([spec]))) < 450
