"""What the projects of a workspace are worked on with: own programs, interpreters, package managers, test runners.

It reads names and small files only; all functions block. Not here: running anything (`commands/`, `testing/`).
"""

# ruff: noqa: PTH118, PTH120 - paths are plain strings, as everywhere below FileView

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from codeagent_lsp.shadow.environment import scrubbed
from codeagent_lsp.shadow.shell import Isolation
from codeagent_lsp.tools.testing import projects
from codeagent_lsp.tools.testing.framework import upwards
from codeagent_lsp.tools.testing.python import PYTHON
from codeagent_lsp.workspace.files.file_view import FileView

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


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """What one folder with tests or a package manager is worked on with; `folder` is relative, '' texts are unknown."""

    folder: str
    interpreter: str = ""
    manager: str = ""
    tests: str = ""

    def told(self) -> str:
        """Return it as a line for a model."""
        parts = [self.interpreter, self.manager, f"tests: {self.tests}" if self.tests else ""]
        where = f"{self.folder}: " if self.folder not in ("", ".") else ""
        return f"{where}{', '.join(filter(None, parts))}"


def own_environment(view: FileView, folder: str, isolation: Isolation) -> dict[str, str]:
    """Return the variables by which a command in `folder` finds the project's own programs first (`.venv`,
    `node_modules/.bin`, the nearest first). Empty where commands are not isolated: there a repository's programs must
    not stand before those of the system.
    """
    if not isolation.complete or isolation.level == "container":
        return {}
    own = [*_programs(view, folder)]
    if not own:
        return {}
    path = os.pathsep.join((*own, scrubbed(os.environ)["PATH"]))
    venv = next((os.path.dirname(place) for place in own if place.endswith("/bin")), None)
    return {"PATH": path, **({"VIRTUAL_ENV": venv} if venv else {})}


def facts_of(view: FileView) -> tuple[ProjectFacts, ...]:
    """Return what is known of the projects in the workspace, at most one for each folder."""
    found: dict[str, ProjectFacts] = {}
    for project in projects.find(view, None):
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
    for around in upwards(view, folder):
        for name in VENVS:
            if view.roots.stat(os.path.join(around, name, "bin", "python")) is not None:
                yield os.path.join(around, name, "bin")
        node = os.path.join(around, "node_modules", ".bin")
        if view.roots.kind(node) == "folder":
            yield node


def _manager(view: FileView, folder: str) -> str:
    names: Iterable[str] = (name for file, name in LOCK_FILES.items() if view.exists(os.path.join(folder, file)))
    return " and ".join(list(dict.fromkeys(names))[:3])
