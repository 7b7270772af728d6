"""Real linters, in the copy of the test rig and in the real shadow workspace. What is not installed is skipped."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.shadow.probe import Isolator
from codeagent_lsp.shadow.shell import Layer
from codeagent_lsp.shadow.workspace import ShadowWorkspace, executing
from codeagent_lsp.tools.diagnostics.diagnostic_tools import GetDiagnostics
from codeagent_lsp.tools.diagnostics.difference import Diagnostic
from tests.shadow.rig import needs_overlay
from tests.tools.testing.rig import CopyShell, TestBench

pytestmark = pytest.mark.slow

BINARIES = Path(sys.executable).parent
CARGO = shutil.which("cargo") or shutil.which("cargo", path=os.path.expanduser("~/.cargo/bin"))  # noqa: PTH111


@pytest.fixture
def bench(tmp_path: Path) -> TestBench:
    made = TestBench(tmp_path / "work", GetDiagnostics())
    assert isinstance(made.shell, CopyShell)
    made.shell.path = f"{BINARIES}:{made.shell.path}"
    return made


async def found(bench: TestBench, path: str) -> list[Diagnostic]:
    return [Diagnostic(**item) for item in (await bench.call(path=path)).data]


async def test_mypy(bench: TestBench) -> None:
    bench.put("mypy.ini", "[mypy]\ncache_dir = /dev/null\n")
    bench.put("a.py", "x: int = 'a'\ny: str = 1\n")
    bench.put("b.py", "def f(:\n")
    assert [(item.line, item.column, item.code) for item in await found(bench, "a.py")] == [
        (1, 10, "assignment"),
        (2, 10, "assignment"),
    ]
    assert {item.source for item in await found(bench, "b.py")} == {"ruff", "mypy"}


async def test_python_itself(bench: TestBench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.put(".venv/bin/python3", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (bench.root / ".venv/bin/python3").chmod(0o755)
    bench.put("a.py", "x = 1\nreturn = 2\n")
    bench.put("b.py", "raise SystemExit('this must not run')\n")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # no ruff there
    (item,) = await found(bench, "a.py")
    clean = await bench.call(path="b.py")
    assert (item.line, item.column, item.source) == (2, 8, "python")
    assert "No problems found" in clean.text and "(checked by: python)" in clean.text


@pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")
async def test_go(bench: TestBench) -> None:
    bench.put("go.mod", "module example.org/x\n\ngo 1.18\n")
    bench.put("a.go", 'package main\n\nimport "fmt"\n\nfunc main() {\n\tfmt.Printf("%d", "x")\n}\n')
    (item,) = await found(bench, "a.go")
    assert (item.line, item.severity, item.code) == (6, "warning", "printf")
    bench.stage("a.go", "package main\n\nfunc main() {\n\tundefined()\n}\n")
    (item,) = await found(bench, "a.go")
    assert (item.line, item.column, item.severity) == (4, 2, "error")


@pytest.mark.skipif(CARGO is None, reason="cargo is not installed")
async def test_cargo(bench: TestBench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(bench.shell, CopyShell) and CARGO is not None
    monkeypatch.setenv("PATH", f"{Path(CARGO).parent}{os.pathsep}{os.environ['PATH']}")
    bench.shell.path = f"{Path(CARGO).parent}:{bench.shell.path}"
    bench.put("Cargo.toml", '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n')
    bench.put("src/main.rs", 'fn main() {\n    let a: i32 = "x";\n}\n')
    items = await found(bench, "src/main.rs")
    assert (items[0].line, items[0].severity, items[0].code) == (2, "error", "E0308")


@needs_overlay
async def test_in_the_real_shadow(bench: TestBench, tmp_path: Path) -> None:
    """The linter sees the staged text; what it writes is neither proposed nor on the disk."""
    bench.put("a.py", "x = 1\n")
    bench.put(".venv/bin/ruff", '#!/bin/sh\necho litter > litter.txt\nexec .venv/bin/its-ruff "$@"\n')
    (bench.root / ".venv/bin/ruff").chmod(0o755)
    shutil.copy(f"{BINARIES}/ruff", bench.root / ".venv/bin/its-ruff")  # ours may be in a folder that is hidden
    bench.stage("a.py", "import os\n")
    settings = ShellSettings(isolation="overlay")
    isolator = Isolator(str(tmp_path / "state"))
    before = bench.bench.disk()

    def opened(folders: tuple[str, ...]) -> Layer:
        return isolator.open(settings, folders)

    async def yes(paths: tuple[str, ...]) -> bool:
        return True

    isolation = isolator.isolation(settings, [str(bench.root)])
    shadow = ShadowWorkspace(isolation, opened, executing(lambda: settings, tmp_path / "spool"))
    inner = bench.bench
    try:
        context = replace(inner.context, shell=shadow.bind(inner.view, inner.staging, yes))
        output = await bench.tool.run(bench.tool.parameters.model_validate({"path": "a.py"}), context)
    finally:
        await shadow.close()
    assert output.text == "a.py:1:8 warning F401 `os` imported but unused (ruff)\n(checked by: ruff)"
    assert list(inner.staging.paths()) == [inner.path("a.py")]
    assert inner.disk() == before
