"""Detection of test projects and their frameworks from the files as the run sees them, unsaved and staged ones
included.

It only reads, and a bounded number of files; all functions block. Not here: the commands (`runners.py`), whether a
Python has a framework installed (only running it shows).
"""

# ruff: noqa: PTH118, PTH119, PTH120, PTH122 - paths are plain strings, as everywhere below FileView

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

from codeagent_lsp.errors import AgentError, FileRefused
from codeagent_lsp.tools.testing.reports import Framework
from codeagent_lsp.workspace.files.file_view import FileView

Ecosystem = Literal["python", "node", "go", "rust"]

MAX_PROJECTS = 6
NOT_PROJECTS = frozenset(("testdata", "test_data", "test-data", "fixtures", "__fixtures__", "vendor", "third_party"))
"""Folders that hold samples and copies of others' code: what looks like a project in them is none of this workspace."""
_WALKED = 5000
_TEST_FILES_READ = 40
_DEPTH = 3
_PYTHON_FILES = ("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "pytest.ini", "Pipfile", "requirements.txt")
_PYTEST_SECTIONS = (("pyproject.toml", "[tool.pytest"), ("setup.cfg", "[tool:pytest]"), ("tox.ini", "[pytest]"))
_PYTEST = re.compile(r"^\s*(?:import|from)\s+pytest\b|^(?:async )?def test|^class Test\w*:", re.MULTILINE)
_UNITTEST = re.compile(r"^\s*(?:import|from)\s+unittest\b|\bTestCase\b", re.MULTILINE)
_SUFFIXES: Mapping[str, Ecosystem] = {
    ".py": "python",
    **dict.fromkeys((".js", ".cjs", ".mjs", ".jsx", ".ts", ".cts", ".mts", ".tsx", ".vue", ".svelte"), "node"),
    ".go": "go",
    ".rs": "rust",
}


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with tests: the framework, the program that runs them, and which of them.

    `folder` is absolute. `program` starts the framework; its first word is a name on PATH or relative to `folder`, so
    that it is found in any copy of the workspace; empty if not installed. `target` is relative to `folder`, empty for
    all tests. `module` is the path of the Go module.
    """

    framework: Framework
    folder: str
    program: tuple[str, ...]
    target: str = ""
    module: str = ""


def find(view: FileView, path: str | None) -> tuple[Project, ...]:
    """Return the projects for `path` (absolute; None: everything): the nearest ones around it, else those below it.

    A workspace may mix frameworks, so there can be several, at most MAX_PROJECTS; an empty tuple if there are none.
    """
    found: dict[tuple[str, str], Project] = {}
    for start in (path,) if path else view.roots.folders:
        for project in islice(_find(view, start, below=path is None), MAX_PROJECTS):
            found.setdefault((project.framework, project.folder), project)
    return tuple(found.values())[:MAX_PROJECTS]


def in_an_image(project: Project) -> Project:
    """Return the project with programs on PATH, as a container image lacks those installed in the workspace."""
    if project.framework in ("vitest", "jest"):
        return replace(project, program=(project.framework,))
    return replace(project, program=("python3",)) if project.framework in ("pytest", "unittest") else project


def is_test_file(path: str) -> bool:
    """Return whether a file contains tests, by the naming conventions of the frameworks."""
    stem, suffix = os.path.splitext(os.path.basename(path))
    if suffix == ".py":
        return stem.startswith("test") or stem.endswith(("_test", "_tests"))
    return stem.endswith(("_test", ".test", ".spec", "_spec")) or "/tests/" in path or "/__tests__/" in path


def _find(view: FileView, start: str, *, below: bool) -> Iterator[Project]:
    wanted = _SUFFIXES.get(os.path.splitext(start)[1])
    folder = start if _is_folder(view, start) else os.path.dirname(start)
    seen: set[Ecosystem] = set()
    for around in upwards(view, folder):
        for ecosystem, project in _at(view, around, start, wanted):
            seen.add(ecosystem)
            yield project
        if seen:
            break
    if below or not seen:
        yield from _below(view, folder, seen)


def _below(view: FileView, folder: str, seen: set[Ecosystem]) -> Iterator[Project]:
    """Yield the projects in folders below, of ecosystems not yet seen, without nested ones."""
    taken: list[tuple[Ecosystem, str]] = [(ecosystem, folder) for ecosystem in seen]
    try:
        entries = view.list_dir(folder, _DEPTH).entries
    except FileRefused:
        return
    for entry in entries:
        if entry.kind != "folder" or NOT_PROJECTS.intersection(os.path.relpath(entry.path, folder).split("/")):
            continue
        for ecosystem, project in _at(view, entry.path, entry.path, None):
            if not any(ecosystem == kind and entry.path.startswith(f"{outer}/") for kind, outer in taken):
                taken.append((ecosystem, entry.path))
                yield project


def _at(view: FileView, folder: str, start: str, wanted: Ecosystem | None) -> Iterator[tuple[Ecosystem, Project]]:
    target = "" if start == folder else os.path.relpath(start, folder)
    finders: Mapping[Ecosystem, Any] = {"python": _python, "node": _node, "go": _go, "rust": _rust}
    for ecosystem, finder in finders.items():
        if wanted in (None, ecosystem):
            project = finder(view, folder, target)
            if project is not None:
                yield ecosystem, project


def _python(view: FileView, folder: str, target: str) -> Project | None:
    marked = any(view.exists(os.path.join(folder, name)) for name in _PYTHON_FILES)
    if not marked and folder not in view.roots.folders:
        return None
    framework = _python_framework(view, folder)
    return Project(framework, folder, (_interpreter(view, folder),), target) if framework else None


def _python_framework(view: FileView, folder: str) -> Framework | None:
    """Return pytest if anything indicates it, since it also runs unittest's tests; None if there are no tests."""
    if any(view.exists(os.path.join(folder, name)) for name in ("pytest.ini", "conftest.py", "tests/conftest.py")):
        return "pytest"
    if any(section in (view.text(os.path.join(folder, name)) or "") for name, section in _PYTEST_SECTIONS):
        return "pytest"
    walked = view.walk(folder, limit=_WALKED)
    tests = islice((path for path in walked if path.endswith(".py") and is_test_file(path)), _TEST_FILES_READ)
    texts = [view.text(path) or "" for path in tests]
    if any((_PYTEST.search(text) and not _UNITTEST.search(text)) or "import pytest" in text for text in texts):
        return "pytest"
    return "unittest" if any(_UNITTEST.search(text) for text in texts) else None


def _interpreter(view: FileView, folder: str) -> str:
    for around in upwards(view, folder):
        for name in (".venv", "venv"):
            python = os.path.join(around, name, "bin", "python")
            if view.exists(python):
                return _from(folder, python)
    return "python3"


def _node(view: FileView, folder: str, target: str) -> Project | None:
    try:
        package = json.loads(view.text(os.path.join(folder, "package.json")) or "")
        packages = {**(package.get("devDependencies") or {}), **(package.get("dependencies") or {})}
        script = str((package.get("scripts") or {}).get("test", ""))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    if "node --test" in script:
        return Project("node", folder, ("node",), target)
    for framework in _node_frameworks(packages, script):
        return Project(framework, folder, _installed(view, folder, framework), target)
    if not script or "no test specified" in script:
        return None
    return Project("npm", folder, ("npm",), target)


def _node_frameworks(packages: Mapping[str, Any], script: str) -> Iterator[Framework]:
    """Yield the frameworks in the test script; without a script, those among the dependencies."""
    names: tuple[Framework, ...] = ("vitest", "jest")
    yield from (name for name in names if re.search(rf"\b{name}\b", script))
    if not script or "no test specified" in script:
        yield from (name for name in names if name in packages)


def _installed(view: FileView, folder: str, name: str) -> tuple[str, ...]:
    """Return the program in the nearest node_modules upwards, as in monorepos; empty if not installed."""
    for around in upwards(view, folder):
        program = os.path.join(around, "node_modules", ".bin", name)
        if view.exists(program):
            return (_from(folder, program),)
    return ()


def _go(view: FileView, folder: str, target: str) -> Project | None:
    text = view.text(os.path.join(folder, "go.mod")) or ""
    module = re.search(r'^module\s+"?([^\s"]+)', text, re.MULTILINE)
    return Project("go", folder, ("go",), target, module[1]) if module else None


def _rust(view: FileView, folder: str, target: str) -> Project | None:
    text = view.text(os.path.join(folder, "Cargo.toml")) or ""
    if not re.search(r"^\s*\[(?:package|workspace)\b", text, re.MULTILINE):
        return None
    return Project("cargo", folder, ("cargo",), target)


def upwards(view: FileView, folder: str) -> Iterator[str]:
    """Yield the folder and its ancestors, up to its workspace folder."""
    root = view.roots.root_of(folder)
    while root is not None:
        yield folder
        if folder == root:
            return
        folder = os.path.dirname(folder)


def _is_folder(view: FileView, path: str) -> bool:
    try:
        view.list_dir(path, 1, limit=1)
    except AgentError:
        return False
    return True


def _from(folder: str, program: str) -> str:
    name = os.path.relpath(program, folder)
    return name if "/" in name else f"./{name}"
