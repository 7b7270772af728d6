"""The projects of a workspace: those with tests, and what each is worked on with.

Own programs, interpreters, package managers and test runners are found by the files as the run sees them, unsaved and
staged ones included. It only reads, and a bounded number of files; all functions block. Not here: what shows a project
of one ecosystem (its module), whether a Python has a framework installed (only running it shows).
"""

# ruff: noqa: PTH118, PTH120, PTH122 - paths are plain strings, as everywhere below FileView

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType

from codeagent_lsp.errors import AgentError, FileRefused
from codeagent_lsp.shadow.environment import scrub_environment
from codeagent_lsp.shadow.shell import Isolation
from codeagent_lsp.tools.testing.cargo import CARGO
from codeagent_lsp.tools.testing.framework import Ecosystem, Project
from codeagent_lsp.tools.testing.golang import GO
from codeagent_lsp.tools.testing.node import NODE
from codeagent_lsp.tools.testing.python import PYTHON
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.paths import relative_name, within

ECOSYSTEMS: tuple[Ecosystem, ...] = (PYTHON, NODE, GO, CARGO)
MAX_PROJECTS = 6
NOT_PROJECTS = frozenset(("testdata", "test_data", "test-data", "fixtures", "__fixtures__", "vendor", "third_party"))
"""Folders that hold samples and copies of others' code: what looks like a project in them is none of this workspace."""
_DEPTH = 3
_COMMANDS = re.compile("|".join(each.command for kind in ECOSYSTEMS for each in kind.frameworks))
TEST_COMMANDS = "|".join(f"{each.command}{each.some}" for kind in ECOSYSTEMS for each in kind.frameworks)
"""A pattern of command lines that run tests of a project, all or some of them, as people write them."""

VENVS = (".venv", "venv")
LOCK_FILES: Mapping[str, str] = MappingProxyType(
    {
        "uv.lock": "uv",
        "poetry.lock": "poetry",
        "pdm.lock": "pdm",
        "Pipfile": "pipenv",
        "pnpm-lock.yaml": "pnpm",
        "yarn.lock": "yarn",
        "bun.lock": "bun",
        "bun.lockb": "bun",
        "package-lock.json": "npm",
        "go.mod": "go",
        "Cargo.toml": "cargo",
        "Gemfile": "bundler",
        "composer.json": "composer",
        "pom.xml": "maven",
        "build.gradle": "gradle",
        "build.gradle.kts": "gradle",
        "mix.exs": "mix",
        "Package.swift": "swift",
        "pubspec.yaml": "dart",
    }
)
"""Files at the top of a project by which its package manager is known, the surest first."""


def known_frameworks() -> str:
    """Return the names of all frameworks, as part of an English sentence: `A, B and C`."""
    *first, last = [each.title for kind in ECOSYSTEMS for each in kind.frameworks if each.title]
    return f"{', '.join(first)} and {last}"


def runs_all_tests(command: str) -> bool:
    """Return whether a command line does nothing but run all tests of a project, as `run_tests` does."""
    return _COMMANDS.fullmatch(command) is not None


def find(view: FileView, path: str | None) -> tuple[Project, ...]:
    """Return the projects for `path` (absolute; None: everything): the nearest ones around it, else those below it. A
    workspace may mix frameworks, so there can be several, at most 6; () if there are none. One that is not installed
    has no `program`.
    """
    found: dict[tuple[str, str], Project] = {}
    for start in (path,) if path else view.roots.folders:
        for project in islice(_find(view, start, below=path is None), MAX_PROJECTS):
            # Two folders of a workspace may lie in the same project.
            found.setdefault((project.framework.name, project.folder), project)
    return tuple(found.values())[:MAX_PROJECTS]


def in_an_image(project: Project) -> Project:
    """Return the project as it is run in a container image, which lacks what is installed in the workspace: with its
    framework's program from PATH. Unchanged if the framework names none.
    """
    program = project.framework.image_program
    return replace(project, program=(program,)) if program else project


def _find(view: FileView, start: str, *, below: bool) -> Iterator[Project]:
    suffix = os.path.splitext(start)[1]
    wanted = next((ecosystem for ecosystem in ECOSYSTEMS if suffix in ecosystem.suffixes), None)
    folder = start if _is_folder(view, start) else os.path.dirname(start)
    seen: list[Ecosystem] = []
    for around in view.roots.upwards(folder):
        for ecosystem, project in _at(view, around, start, wanted):
            seen.append(ecosystem)
            yield project
        if seen:
            break
    # the whole workspace may mix ecosystems; of a path, only the nearest project is meant
    if below or not seen:
        yield from _below(view, folder, seen)


def _below(view: FileView, folder: str, seen: list[Ecosystem]) -> Iterator[Project]:
    """Yield the projects in folders below, of ecosystems not yet seen, without nested ones."""
    taken = [(ecosystem, folder) for ecosystem in seen]
    try:
        entries = view.list_dir(folder, _DEPTH).entries
    except FileRefused:
        return
    for entry in entries:
        if entry.kind != "folder" or NOT_PROJECTS.intersection(relative_name(entry.path, folder).split("/")):
            continue
        for ecosystem, project in _at(view, entry.path, entry.path, None):
            # A package inside a project of its kind is a part of it; one of another kind has tests of its own.
            if not any(ecosystem is kind and within(entry.path, (outer,)) for kind, outer in taken):
                taken.append((ecosystem, entry.path))
                yield project


def _at(view: FileView, folder: str, start: str, wanted: Ecosystem | None) -> Iterator[tuple[Ecosystem, Project]]:
    target = "" if start == folder else relative_name(start, folder)
    for ecosystem in ECOSYSTEMS:
        if wanted not in (None, ecosystem) or not ecosystem.may_be_in(view, folder):
            continue
        if (project := ecosystem.find(view, folder, target)) is not None:
            yield ecosystem, project


def _is_folder(view: FileView, path: str) -> bool:
    try:
        view.list_dir(path, 1, limit=1)
    except AgentError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """The interpreter, package manager and test framework of one folder, for a model; `folder` is relative, unknown
    texts are ''.
    """

    folder: str
    interpreter: str = ""
    manager: str = ""
    tests: str = ""

    def told(self) -> str:
        """Return the facts as one line for a model, with the folder before them unless it is the workspace's own."""
        parts = [self.interpreter, self.manager, f"tests: {self.tests}" if self.tests else ""]
        where = f"{self.folder}: " if self.folder not in ("", ".") else ""
        return f"{where}{', '.join(filter(None, parts))}"


def own_environment(view: FileView, folder: str, isolation: Isolation) -> dict[str, str]:
    """Return the variables by which a command in `folder` (absolute) finds the project's own programs first (`.venv`,
    `node_modules/.bin`, the nearest first). {} without isolation, as a repository's programs must not replace those of
    the system there, and in containers.
    """
    if not isolation.complete or isolation.level == "container":
        return {}
    own = [*_programs(view, folder)]
    if not own:
        return {}
    path = os.pathsep.join((*own, scrub_environment(os.environ)["PATH"]))
    # Tools such as uv and poetry look for this variable, not on PATH.
    venv = next((os.path.dirname(place) for place in own if place.endswith("/bin")), None)
    return {"PATH": path, **({"VIRTUAL_ENV": venv} if venv else {})}


def facts_of(view: FileView) -> tuple[ProjectFacts, ...]:
    """Return the facts about the projects in the workspace, at most one for each folder; () for none."""
    found: dict[str, ProjectFacts] = {}
    for project in find(view, None):
        interpreter = ""
        if project.framework in PYTHON.frameworks and project.program:
            interpreter = f"interpreter {project.program[0]}"
        name = view.roots.relative(project.folder)
        known = found.get(name)
        tests = f"{known.tests}, {project.framework.name}" if known and known.tests else project.framework.name
        manager = _manager(view, project.folder)
        found[name] = ProjectFacts(name, interpreter or (known.interpreter if known else ""), manager, tests)
    for folder in view.roots.folders:
        if (name := view.roots.relative(folder)) not in found and (manager := _manager(view, folder)):
            found[name] = ProjectFacts(name, manager=manager)
    return tuple(found.values())


def _programs(view: FileView, folder: str) -> Iterator[str]:
    for around in view.roots.upwards(folder):
        for name in VENVS:
            if view.roots.stat(os.path.join(around, name, "bin", "python")) is not None:
                yield os.path.join(around, name, "bin")
        node = os.path.join(around, "node_modules", ".bin")
        if view.roots.kind(node) == "folder":
            yield node


def _manager(view: FileView, folder: str) -> str:
    names: Iterable[str] = (name for file, name in LOCK_FILES.items() if view.exists(os.path.join(folder, file)))
    return " and ".join(list(dict.fromkeys(names))[:3])
