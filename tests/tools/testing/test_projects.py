"""Which framework a workspace or a path uses, seen through unsaved buffers and staged files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.tools.testing.framework import Project, is_test_file
from codeagent_lsp.tools.testing.projects import find, in_an_image
from tests.tools.testing.rig import FRAMEWORKS
from tests.workspace.file_fakes import Workspace, workspace

PYTEST = "import pytest\n\ndef test_a(): pass\n"
UNITTEST = "import unittest\n\nclass A(unittest.TestCase):\n    def test_a(self): pass\n"


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    return workspace(tmp_path / "work")


def found(work: Workspace, name: str | None = None) -> list[tuple[str, str, str]]:
    """Framework, folder and target of what is found."""
    projects = find(work.view, work.path(name) if name else None)
    return [(p.framework.name, str(Path(p.folder).relative_to(work.root)), p.target) for p in projects]


def package(**fields: Any) -> str:
    return json.dumps(fields)


@pytest.mark.parametrize(
    ("files", "framework"),
    [
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, "pytest"),
        ({"pytest.ini": ""}, "pytest"),
        ({"setup.cfg": "[tool:pytest]\n"}, "pytest"),
        ({"tox.ini": "[pytest]\n"}, "pytest"),
        ({"setup.py": "", "tests/conftest.py": ""}, "pytest"),
        ({"pyproject.toml": "", "tests/test_a.py": PYTEST}, "pytest"),
        ({"test_a.py": "def test_a(): pass\n"}, "pytest"),
        ({"test_a.py": "class TestA:\n    def test_a(self): pass\n"}, "pytest"),
        ({"setup.py": "", "tests/test_a.py": UNITTEST}, "unittest"),
        ({"a_test.py": UNITTEST}, "unittest"),
        ({"pyproject.toml": "", "tests/test_a.py": UNITTEST, "tests/test_b.py": PYTEST}, "pytest"),
        ({"go.mod": "module example.com/m\n"}, "go"),
        ({"Cargo.toml": "[package]\n"}, "cargo"),
        ({"Cargo.toml": "[workspace]\n"}, "cargo"),
        ({"package.json": package(devDependencies={"vitest": "3"})}, "vitest"),
        ({"package.json": package(dependencies={"jest": "30"})}, "jest"),
        ({"package.json": package(scripts={"test": "jest --ci"}, devDependencies={"vitest": "3"})}, "jest"),
        ({"package.json": package(scripts={"test": "node --test src"})}, "node"),
        ({"package.json": package(scripts={"test": "mocha"})}, "npm"),
    ],
)
def test_frameworks(work: Workspace, files: dict[str, str], framework: str) -> None:
    for name, text in files.items():
        work.write(name, text)
    assert found(work) == [(framework, ".", "")]


@pytest.mark.parametrize(
    "files",
    [
        {"README.md": "pytest"},
        {"pyproject.toml": "", "a.py": "import unittest\n"},
        {"package.json": package(scripts={"test": 'echo "Error: no test specified" && exit 1'})},
        {"package.json": "{broken"},
        {"package.json": "[1]"},
        {"go.mod": "// empty\n"},
        {"Cargo.toml": "nothing\n"},
    ],
)
def test_nothing_to_test(work: Workspace, files: dict[str, str]) -> None:
    for name, text in files.items():
        work.write(name, text)
    assert found(work) == []


def test_unsaved_and_staged_files_count_and_deleted_ones_do_not(work: Workspace) -> None:
    work.write("go.mod", "module old\n")
    work.stage("go.mod", None)
    work.stage("tests/test_new.py", UNITTEST)
    assert found(work) == [("unittest", ".", "")]
    work.open("tests/test_other.py", PYTEST)
    assert found(work) == [("pytest", ".", "")]


def test_the_nearest_project_around_a_path(work: Workspace) -> None:
    work.write("pyproject.toml", "[tool.pytest.ini_options]\n")
    work.write("libs/inner/pyproject.toml", "[tool.pytest.ini_options]\n")
    work.write("libs/inner/tests/test_a.py", PYTEST)
    work.write("tests/test_b.py", PYTEST)
    assert found(work, "libs/inner/tests/test_a.py") == [("pytest", "libs/inner", "tests/test_a.py")]
    assert found(work, "libs/inner/tests") == [("pytest", "libs/inner", "tests")]
    assert found(work, "tests/test_b.py") == [("pytest", ".", "tests/test_b.py")]
    assert found(work, "libs/inner") == [("pytest", "libs/inner", "")]


def test_mixed_workspaces(work: Workspace) -> None:
    work.write("pyproject.toml", "[tool.pytest.ini_options]\n")
    work.write("web/package.json", package(devDependencies={"vitest": "3"}))
    work.write("web/a.test.ts", "")
    work.write("native/Cargo.toml", "[package]\n")
    work.write("native/inner/Cargo.toml", "[package]\n")
    assert found(work) == [("pytest", ".", ""), ("cargo", "native", ""), ("vitest", "web", "")]
    assert found(work, "web/a.test.ts") == [("vitest", "web", "a.test.ts")]
    assert found(work, "native") == [("cargo", "native", "")]


def test_a_path_asks_only_for_its_own_kind(work: Workspace) -> None:
    work.write("pyproject.toml", "[tool.pytest.ini_options]\n")
    work.write("package.json", package(devDependencies={"jest": "30"}))
    assert found(work, "src/a.js") == [("jest", ".", "src/a.js")]
    assert found(work, "src/a.py") == [("pytest", ".", "src/a.py")]
    assert len(found(work)) == 2


def test_projects_are_found_only_so_many(work: Workspace) -> None:
    for number in range(20):
        work.write(f"p{number}/go.mod", f"module m{number}\n")
    assert len(found(work)) == 6


def test_several_workspace_folders(tmp_path: Path) -> None:
    work = workspace(tmp_path / "one", tmp_path / "two")
    work.write("go.mod", "module one\n")
    (tmp_path / "two").mkdir()
    (tmp_path / "two/Cargo.toml").write_text("[package]\n")
    assert [project.framework.name for project in find(work.view, None)] == ["go", "cargo"]


def one(work: Workspace, name: str | None = None) -> Project:
    (project,) = find(work.view, work.path(name) if name else None)
    return project


def test_the_python_of_the_workspace_before_that_of_path(work: Workspace) -> None:
    work.write("libs/a/pyproject.toml", "[tool.pytest.ini_options]\n")
    assert one(work, "libs/a").program == ("python3",)
    work.write("venv/bin/python", "")
    assert one(work, "libs/a").program == ("../../venv/bin/python",)
    (work.root / "libs/a/.venv/bin").mkdir(parents=True)
    (work.root / "libs/a/.venv/bin/python").symlink_to("/nowhere/python3")
    assert one(work, "libs/a").program == (".venv/bin/python",)


def test_the_programs_of_node_are_the_workspaces_own(work: Workspace) -> None:
    work.write("web/package.json", package(devDependencies={"vitest": "3"}))
    assert one(work, "web").program == ()
    work.write("node_modules/.bin/vitest", "")
    assert one(work, "web").program == ("../node_modules/.bin/vitest",)
    work.write("web/node_modules/.bin/vitest", "")
    assert one(work, "web").program == ("node_modules/.bin/vitest",)


def test_the_module_of_go(work: Workspace) -> None:
    work.write("go.mod", '// comment\nmodule "example.com/m"\n\ngo 1.22\n')
    assert one(work).module == "example.com/m"


@pytest.mark.parametrize(
    ("path", "holds"),
    [
        ("/w/test_a.py", True),
        ("/w/a_test.py", True),
        ("/w/attest.py", False),
        ("/w/tests/helper.py", False),
        ("/w/a.test.ts", True),
        ("/w/a.spec.js", True),
        ("/w/__tests__/a.js", True),
        ("/w/a_test.go", True),
        ("/w/a.go", False),
        ("/w/tests/it.rs", True),
        ("/w/conftest.py", False),
        ("/w/src/FooTest.java", True),
        ("/w/FooTests.cs", True),
        ("/w/a_spec.rb", True),
        ("/w/Contest.java", False),
    ],
)
def test_names_of_test_files(path: str, holds: bool) -> None:
    assert is_test_file(path) is holds


@pytest.mark.parametrize(
    ("project", "program"),
    [
        (Project(FRAMEWORKS["pytest"], "/w", ("../.venv/bin/python",)), ("python3",)),
        (Project(FRAMEWORKS["unittest"], "/w", ("python3",)), ("python3",)),
        (Project(FRAMEWORKS["vitest"], "/w", ("node_modules/.bin/vitest",)), ("vitest",)),
        (Project(FRAMEWORKS["jest"], "/w", ()), ("jest",)),
        (Project(FRAMEWORKS["go"], "/w", ("go",)), ("go",)),
        (Project(FRAMEWORKS["npm"], "/w", ("npm",)), ("npm",)),
    ],
)
def test_programs_of_an_image_are_its_own(project: Project, program: tuple[str, ...]) -> None:
    assert in_an_image(project) == replace(project, program=program)
