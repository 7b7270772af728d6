"""Which linters are used: installed, meant by the workspace, and as the run sees its settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.shadow.shell import REPORT_VARIABLE
from codeagent_lsp.tools.diagnostics.linters import Job, jobs_for
from tests.tools.fakes import Bench


def everything(name: str) -> str | None:
    return f"/usr/bin/{name}"


def nothing(name: str) -> str | None:
    return None


def jobs(bench: Bench, *names: str, installed: bool = True) -> tuple[Job, ...]:
    return jobs_for(bench.view, [bench.path(name) for name in names], everything if installed else nothing)


def used(bench: Bench, *names: str, installed: bool = True) -> dict[str, str]:
    """Linters by name, with their folder below the workspace."""
    return {job.linter.name: bench.view.roots.relative(job.folder) for job in jobs(bench, *names, installed=installed)}


def test_python_without_settings(bench: Bench) -> None:
    bench.write("src/a.py", "")
    assert used(bench, "src/a.py") == {"ruff": "."}
    assert used(bench, "src/a.py", installed=False) == {}


def test_python_checks_itself_where_ruff_is_not(bench: Bench) -> None:
    found = jobs_for(bench.view, [bench.path("a.py")], lambda name: name if name == "python3" else None)
    assert [job.linter.name for job in found] == ["python"]


@pytest.mark.parametrize(
    ("name", "text", "linters"),
    [
        ("pyproject.toml", "[tool.mypy]\n", {"ruff", "mypy"}),
        ("pyproject.toml", "[project]\n", {"ruff"}),
        ("setup.cfg", "[mypy]\n", {"ruff", "mypy"}),
        ("mypy.ini", "", {"ruff", "mypy"}),
        ("pyrightconfig.json", "{}", {"ruff", "pyright"}),
    ],
)
def test_type_checkers_need_their_settings(bench: Bench, name: str, text: str, linters: set[str]) -> None:
    bench.write(name, text)
    assert set(used(bench, "a.py")) == linters


@pytest.mark.parametrize(
    ("settings", "file", "linters"),
    [
        ("tsconfig.json", "a.ts", {"tsc"}),
        ("tsconfig.json", "a.js", set()),
        ("eslint.config.mjs", "a.js", {"eslint"}),
        (".eslintrc.json", "a.tsx", {"eslint"}),
        ("Cargo.toml", "a.rs", {"cargo"}),
        ("go.mod", "a.go", {"go vet"}),
        ("README.md", "a.go", set()),
        ("go.mod", "a.txt", set()),
    ],
)
def test_other_languages(bench: Bench, settings: str, file: str, linters: set[str]) -> None:
    bench.write(settings, "{}")
    assert set(used(bench, file)) == linters


def test_settings_that_are_staged_count(bench: Bench) -> None:
    bench.write("mypy.ini", "")
    bench.staging.write({bench.path("mypy.ini"): None, bench.path("setup.cfg"): "[mypy]\n"})
    assert set(used(bench, "a.py")) == {"ruff", "mypy"}
    bench.staging.write({bench.path("setup.cfg"): None})
    assert set(used(bench, "a.py")) == {"ruff"}


def test_the_innermost_project_is_the_folder(bench: Bench) -> None:
    bench.write("go.mod", "")
    bench.write("tools/x/go.mod", "")
    assert used(bench, "tools/x/deep/a.go") == {"go vet": "tools/x"}
    both = jobs(bench, "tools/x/a.go", "b.go", "tools/c.go")
    assert [len(job.files) for job in both] == [1, 2]


def test_what_the_workspace_has_installed_comes_first(bench: Bench) -> None:
    bench.write("node_modules/.bin/tsc", "")
    bench.write("packages/one/tsconfig.json", "{}")
    (job,) = jobs(bench, "packages/one/a.ts", installed=False)
    assert job.program == "../../node_modules/.bin/tsc"
    bench.write(".venv/bin/ruff", "")
    (job,) = jobs(bench, "a.py")
    assert job.program == ".venv/bin/ruff"


def test_a_command(bench: Bench) -> None:
    (job,) = jobs(bench, "a b.py", "-c.py")
    command = job.command
    assert isinstance(command.script, str)
    assert command.script.endswith(
        f""" -- './a b.py' ./-c.py >"${REPORT_VARIABLE}/stdout" 2>"${REPORT_VARIABLE}/stderr\""""
    )
    assert (command.cwd, command.proposes, command.network) == (str(bench.root), False, False)


def test_paths_are_made_whole(bench: Bench) -> None:
    (job,) = jobs(bench, "src/a.py")
    rows = '[{"code": "F1", "filename": "%s", "location": {"row": 1, "column": 1}, "message": "m"}]'
    for written in ("src/a.py", "./src/a.py", bench.path("src/a.py"), "/seen/as/src/a.py"):
        (found,) = job.read(rows % written, "/seen/as")
        assert found.path == bench.path("src/a.py")


def test_files_outside_have_no_linter(bench: Bench, tmp_path: Path) -> None:
    assert jobs_for(bench.view, [str(tmp_path / "a.py")], everything) == ()
