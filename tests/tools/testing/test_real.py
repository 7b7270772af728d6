"""The two tools with real frameworks. What this machine lacks and cannot get is skipped, with the reason."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from codeagent_lsp.tools.testing.testing_tools import AnalyzeCoverage, RunTests
from tests.tools.mcp.real import from_npm, from_pypi
from tests.tools.testing.rig import CopyShell, TestBench, case, outcomes

pytestmark = pytest.mark.slow

CARGO = shutil.which("cargo") or shutil.which("cargo", path=os.path.expanduser("~/.cargo/bin"))  # noqa: PTH111
needs_cargo = pytest.mark.skipif(CARGO is None, reason="cargo is not installed")
needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")
needs_node = pytest.mark.skipif(shutil.which("npm") is None, reason="node and npm are not installed")

PYTEST = """\
import pytest, unittest
def test_ok(): pass
def check(x):
    assert x == [1, 2, 3], "boo"
def test_bad():
    check([1, 2, 4])
@pytest.mark.skip(reason="later")
def test_skip(): pass
@pytest.mark.xfail
def test_expected(): assert 0
@pytest.mark.parametrize("n", ["a b", "c<&>"])
def test_each(n): assert n == "a b"
@pytest.fixture
def broken():
    yield 1
    raise ValueError("teardown")
def test_torn(broken): pass
class TestC:
    def test_m(self): raise RuntimeError("x\\x1b[31m\\x00")
class U(unittest.TestCase):
    def test_u(self): self.assertEqual(1, 1)
"""


def on_path(bench: TestBench, folder: str | Path) -> TestBench:
    assert isinstance(bench.shell, CopyShell)
    bench.shell.path = f"{folder}:{os.environ['PATH']}"
    return bench


@pytest.fixture
def with_pytest(tmp_path: Path) -> TestBench:
    bench = on_path(TestBench(tmp_path / "work", RunTests()), Path(sys.executable).parent)
    bench.environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")  # those of our own tests are slow to import
    return bench


async def test_pytest(with_pytest: TestBench) -> None:
    with_pytest.put("tests/test_a.py", PYTEST)
    with_pytest.put("tests/test_b.py", "import nowhere")
    output = await with_pytest.call()
    assert outcomes(output) == {
        "tests/test_b.py": "error",
        "tests/test_a.py::test_ok": "passed",
        "tests/test_a.py::test_bad": "failed",
        "tests/test_a.py::test_skip": "skipped",
        "tests/test_a.py::test_expected": "skipped",
        "tests/test_a.py::test_each[a b]": "passed",
        "tests/test_a.py::test_each[c<&>]": "failed",
        "tests/test_a.py::test_torn": "error",
        "tests/test_a.py::TestC::test_m": "failed",
        "tests/test_a.py::U::test_u": "passed",
    }
    assert output.text.startswith("tests: 3 passed, 3 failed, 2 could not run, 2 skipped in ")
    assert "FAILED tests/test_a.py::test_bad (tests/test_a.py:4)" in output.text
    assert "E   assert [1, 2, 4] == [1, 2, 3]" in output.text


async def test_pytest_by_node_by_pattern_and_wrongly(with_pytest: TestBench) -> None:
    with_pytest.put("tests/test_a.py", PYTEST)
    one = await with_pytest.call(path="tests/test_a.py::TestC::test_m")
    assert outcomes(one) == {"tests/test_a.py::TestC::test_m": "failed"}
    some = await with_pytest.call(path="tests", pattern="ok or skip")
    assert set(outcomes(some).values()) == {"passed", "skipped"}
    wrong = await with_pytest.call(pattern="a and")
    assert "no result of any test" in wrong.text and "Wrong expression" in wrong.text


async def test_pytest_that_is_told_to_stop_early_says_so(with_pytest: TestBench) -> None:
    with_pytest.put("pytest.ini", "[pytest]\naddopts = -x\n")
    with_pytest.put("test_a.py", "def test_a(): assert 0\ndef test_b(): pass\n")
    output = await with_pytest.call()
    assert outcomes(output) == {"test_a.py::test_a": "failed"}
    assert "pytest stopped early (stopping after 1 failures): not all tests ran." in output.text


async def test_pytest_that_crashes_has_no_result(with_pytest: TestBench) -> None:
    with_pytest.put("test_a.py", "def test_ok(): pass\ndef test_dies():\n    import ctypes; ctypes.string_at(0)\n")
    output = await with_pytest.call()
    assert "no result of any test" in output.text and "crashed (SIGSEGV)" in output.text


async def test_node(tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    bench = TestBench(tmp_path / "work", RunTests())
    bench.put("package.json", '{"scripts": {"test": "node --test"}}')
    bench.put(
        "a.test.js",
        "const test = require('node:test'); const assert = require('node:assert')\n"
        "test('ok', () => {})\n"
        "test('outer', async (t) => { await t.test('inner', () => { assert.strictEqual(1, 2) }) })\n"
        "test('later', { skip: 'why' }, () => {})\n",
    )
    output = await bench.call()
    assert outcomes(output) == {"ok": "passed", "outer > inner": "failed", "later": "skipped"}
    assert "1 !== 2" in output.text
    assert set(outcomes(await bench.call(path="a.test.js", pattern="ok"))) >= {"ok"}


JAVASCRIPT = """\
%s
describe('outer', () => {
  it('adds', () => { expect(sum(1, 2)).toBe(3) })
  it('fails', () => {
    expect(sum(1, 2)).toEqual({ a: 4 })
  })
  it.skip('later', () => {})
  it.todo('one day')
})
"""


@pytest.fixture(scope="module")
def node_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with modules of its own: those that a link leads to outside of a workspace are not its own."""
    folder = tmp_path_factory.mktemp("node")
    modules = from_npm("frameworks-of-tests", "vitest@3", "@vitest/coverage-v8@3", "jest@30")
    shutil.copytree(modules, folder / "node_modules", symlinks=True)
    return folder


def javascript(folder: Path, framework: str, tool: RunTests | AnalyzeCoverage) -> TestBench:
    for old in (*folder.glob("*.js"), *folder.glob("*.mjs")):
        old.unlink()
    bench = TestBench(folder, tool)
    bench.put("package.json", f'{{"private": true, "scripts": {{"test": "{framework}"}}}}')
    if framework == "jest":
        bench.put("sum.js", "exports.sum = (a, b) => a + b\nexports.never = () => {\n  return 1\n}\n")
        bench.put("a.test.js", JAVASCRIPT % "const { sum } = require('./sum')")
        bench.put("b.test.js", "require('./nowhere')\n")
    else:
        head = "import { describe, it, expect } from 'vitest'; import { sum } from './sum.mjs'"
        bench.put("sum.mjs", "export const sum = (a, b) => a + b\nexport const never = () => {\n  return 1\n}\n")
        bench.put("a.test.mjs", JAVASCRIPT % head)
        bench.put("b.test.mjs", "import { x } from './nowhere'\nx()\n")
    return bench


@needs_node
@pytest.mark.parametrize(("framework", "suffix"), [("jest", "js"), ("vitest", "mjs")])
async def test_jest_and_vitest(node_folder: Path, framework: str, suffix: str) -> None:
    bench = javascript(node_folder, framework, RunTests())
    output = await bench.call()
    assert outcomes(output) == {
        f"a.test.{suffix} > outer > adds": "passed",
        f"a.test.{suffix} > outer > fails": "failed",
        f"a.test.{suffix} > outer > later": "skipped",
        f"a.test.{suffix} > outer > one day": "skipped",
        f"b.test.{suffix}": "error",
    }
    assert f"({framework})" in output.text and "Cannot find module" in output.text
    assert case(output, "fails")["line"] == 5
    chosen = await bench.call(path=f"a.test.{suffix}", pattern="adds")
    assert chosen.data["reports"][0]["passed"] == 1 and chosen.data["reports"][0]["failed"] == 0


@needs_node
@pytest.mark.parametrize(("framework", "name"), [("jest", "sum.js"), ("vitest", "sum.mjs")])
async def test_coverage_of_jest_and_vitest(node_folder: Path, framework: str, name: str) -> None:
    output = await javascript(node_folder, framework, AnalyzeCoverage()).call()
    (file,) = [file for file in output.data["reports"][0]["files"] if file["path"] == name]
    assert file["missing"][-1][0] == 3 and 50 <= file["percent"] < 100


GO_TEST = """\
package calc

import "testing"

func TestAdd(t *testing.T) { _ = Add(1, 2) }
func TestBad(t *testing.T) {
	t.Logf("log")
	t.Errorf("Add(1, 2) = %d, want 4", Add(1, 2))
}
func TestSkip(t *testing.T) { t.Skip("later") }
func TestTable(t *testing.T) {
	t.Run("one", func(t *testing.T) {})
	t.Run("two words", func(t *testing.T) { t.Error("no") })
}
"""


def go(folder: Path, tool: RunTests | AnalyzeCoverage) -> TestBench:
    bench = TestBench(folder, tool)
    bench.put("go.mod", "module example.com/m\n\ngo 1.19\n")
    bench.put(
        "calc/calc.go", "package calc\n\nfunc Add(a, b int) int { return a + b }\n\nfunc Never() int {\n\treturn 1\n}\n"
    )
    bench.put("calc/calc_test.go", GO_TEST)
    bench.put("bad/bad.go", 'package bad\n\nfunc F() int { return "x" }\n')
    bench.put("bad/bad_test.go", 'package bad\n\nimport "testing"\n\nfunc TestF(t *testing.T) {}\n')
    return bench


@needs_go
async def test_go(tmp_path: Path) -> None:
    bench = go(tmp_path / "work", RunTests())
    output = await bench.call()
    assert {name.removeprefix("example.com/m/"): outcome for name, outcome in outcomes(output).items()} == {
        "calc.TestAdd": "passed",
        "calc.TestBad": "failed",
        "calc.TestSkip": "skipped",
        "calc.TestTable/one": "passed",
        "calc.TestTable/two_words": "failed",
        "bad": "error",
    }
    assert output.data["reports"][0]["problem"] == ""
    assert case(output, "TestBad")["line"] == 8 and case(output, "/bad")["file"] == "bad/bad.go"
    assert set(outcomes(await bench.call(path="calc/calc_test.go", pattern="Add"))) == {"example.com/m/calc.TestAdd"}


@needs_go
async def test_coverage_of_go(tmp_path: Path) -> None:
    output = await go(tmp_path / "work", AnalyzeCoverage()).call(path="calc")
    (file,) = output.data["reports"][0]["files"]
    assert (file["path"], file["percent"], file["missing"]) == ("calc/calc.go", 50.0, ((5, 7),))


RUST = """\
/// ```
/// assert_eq!(rs_demo::add(1, 2), 4);
/// ```
pub fn add(a: i32, b: i32) -> i32 { a + b }

#[cfg(test)]
mod tests {
    #[test]
    fn adds() { assert_eq!(super::add(1, 2), 3); }
    #[test]
    fn fails() {
        println!("test tests::fake ... ok");
        assert_eq!(super::add(1, 2), 4, "sums");
    }
    #[test]
    #[ignore = "slow"]
    fn skipped() {}
    #[test]
    #[should_panic]
    fn panics() { panic!("x"); }
}
"""


@needs_cargo
async def test_cargo(tmp_path: Path) -> None:
    assert CARGO is not None
    bench = on_path(TestBench(tmp_path / "work", RunTests()), Path(CARGO).parent)
    bench.put("Cargo.toml", '[package]\nname = "rs-demo"\nversion = "0.1.0"\nedition = "2021"\n')
    bench.put("src/lib.rs", RUST)
    bench.put("tests/it.rs", "#[test]\nfn works() { assert!(rs_demo::add(0, 0) == 0); }\n")
    output = await bench.call()
    assert outcomes(output) == {
        "rs_demo::tests::adds": "passed",
        "rs_demo::tests::fails": "failed",
        "rs_demo::tests::skipped": "skipped",
        "rs_demo::tests::panics": "passed",
        "it::works": "passed",
        "rs_demo: src/lib.rs - add (line 1)": "failed",
    }
    assert output.data["reports"][0]["problem"] == ""
    assert case(output, "fails")["line"] == 13 and "left: 3" in output.text
    assert set(outcomes(await bench.call(path="tests/it.rs"))) == {"it::works"}
    bench.put("src/lib.rs", "pub fn add() -> i32 { nonsense }\n")
    broken = await bench.call()
    assert "no result of any test" in broken.text and "cannot find value `nonsense`" in broken.text


@pytest.mark.parametrize("framework", ["pytest", "unittest"])
async def test_coverage_of_python(tmp_path: Path, framework: str) -> None:
    packages = ("pytest", "pytest-cov") if framework == "pytest" else ("coverage",)
    tools = from_pypi(f"coverage-{framework}-{sys.version_info[0]}.{sys.version_info[1]}", *packages)
    bench = on_path(TestBench(tmp_path / "work", AnalyzeCoverage()), tools)
    bench.put("src/pkg/__init__.py", "")
    bench.put("src/pkg/m.py", "def a():\n    return 1\n\n\ndef b():\n    x = 1\n\n    return x\n")
    bench.put("src/pkg/never.py", "x = 1\n")
    test = "import sys; sys.path.insert(0, 'src')\nimport unittest\nfrom pkg.m import a\n"
    bench.put("test_m.py", f"{test}class A(unittest.TestCase):\n    def test_a(self): self.assertEqual(a(), 1)\n")
    bench.put("pytest.ini" if framework == "pytest" else "setup.py", "")
    output = await bench.call(path="src")
    assert output.text.splitlines() == [
        f"coverage: 50.0 % of 6 lines in 3 files ({framework})",
        "src/pkg/never.py 0 %, uncovered: 1",
        "src/pkg/m.py 60 %, uncovered: 6-8",
    ]
