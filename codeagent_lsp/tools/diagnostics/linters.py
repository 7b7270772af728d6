"""Selection of the linters that a workspace has for some files, and the commands that run them in the shadow.

A linter is used if it is installed, in the workspace or on PATH, and the workspace has a settings file for it, unless
it works well without one. Reads only; blocks. Not here: running (`checking.py`).
"""

# ruff: noqa: PTH118, PTH120 - paths are plain strings, as everywhere below FileView

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from codeagent_lsp.shadow.shell import REPORT_VARIABLE, Command
from codeagent_lsp.tools.diagnostics import linter_output
from codeagent_lsp.tools.diagnostics.port import Diagnostic
from codeagent_lsp.workspace.files.file_view import FileView

SECONDS = 60.0
_PYTHON = (".py", ".pyi")
_SCRIPT = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue")
_TYPED = (".ts", ".tsx", ".mts", ".cts")
_BINARIES = (".venv/bin", "venv/bin", "node_modules/.bin")
_SCRIPT_TEXT = """
import ast, json, sys
for name in sys.argv[1:]:
    try:
        with open(name, "rb") as file:
            ast.parse(file.read(), name)
    except (SyntaxError, ValueError) as error:
        place = getattr(error, "lineno", 1), getattr(error, "offset", 1)
        print(json.dumps([name, *place, str(getattr(error, "msg", error))]))
"""

Markers = tuple[tuple[str, str], ...]
"""Settings files, each with a text that it must contain ('' for any)."""


@dataclass(frozen=True, slots=True)
class Linter:
    """A linter: its program, its files, its arguments and the parser of its output.

    `markers` are files at the top of its project; with `needs_marker` it is not used without one. `whole` linters check
    their project and get no files. `instead_of` names a linter that makes this one redundant.
    """

    name: str
    suffixes: tuple[str, ...]
    words: tuple[str, ...]
    read: linter_output.Read
    markers: Markers = ()
    needs_marker: bool = True
    whole: bool = False
    instead_of: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


_PYPROJECT = "pyproject.toml"
LINTERS: tuple[Linter, ...] = (
    Linter("ruff", _PYTHON, ("ruff", "check", "--output-format", "json", "--no-cache", "--no-fix", "--force-exclude",
           "--quiet", "--"), linter_output.read_ruff, (("ruff.toml", ""), (".ruff.toml", ""), (_PYPROJECT, "")), False),
    Linter("python", (".py",), ("python3", "-I", "-c", _SCRIPT_TEXT), linter_output.read_python,
           ((_PYPROJECT, ""),), False, instead_of="ruff"),
    Linter("mypy", _PYTHON, ("mypy", "--show-column-numbers", "--no-error-summary", "--no-pretty", "--no-color-output",
           "--hide-error-context", "--"), linter_output.read_mypy,
           (("mypy.ini", ""), (".mypy.ini", ""), (_PYPROJECT, "[tool.mypy"), ("setup.cfg", "[mypy"))),
    Linter("pyright", _PYTHON, ("pyright", "--outputjson"), linter_output.read_pyright,
           (("pyrightconfig.json", ""), (_PYPROJECT, "[tool.pyright"))),
    Linter("tsc", _TYPED, ("tsc", "--noEmit", "--pretty", "false"), linter_output.read_tsc, (("tsconfig.json", ""),),
           whole=True),
    Linter("eslint", _SCRIPT, ("eslint", "-f", "json", "--no-color", "--"), linter_output.read_eslint,
           (*((f"eslint.config.{ending}", "") for ending in ("js", "mjs", "cjs", "ts", "mts", "cts")),
            *((f".eslintrc{ending}", "") for ending in ("", ".json", ".js", ".cjs", ".yml", ".yaml")),
            ("package.json", '"eslintConfig"'))),
    Linter("cargo", (".rs",), ("cargo", "check", "--quiet", "--offline", "--all-targets", "--message-format", "json"),
           linter_output.read_cargo, (("Cargo.toml", ""),), whole=True),
    Linter("go vet", (".go",), ("go", "vet", "-json", "./..."), linter_output.read_go, (("go.mod", ""),), whole=True,
           environment={"GOFLAGS": "-mod=readonly", "GOPROXY": "off", "GOTOOLCHAIN": "local"}),
)  # fmt: skip


def is_for_linters(name: str) -> bool:
    """Return whether any linter is for files of this name."""
    return any(name.endswith(linter.suffixes) for linter in LINTERS)


@dataclass(frozen=True, slots=True)
class Job:
    """One linter run in one folder, absolute, for these files."""

    linter: Linter
    folder: str
    program: str
    files: tuple[str, ...]

    @property
    def command(self) -> Command:
        """Return the shell command; both streams come back separately, as reports."""
        names = () if self.linter.whole else tuple(f"./{os.path.relpath(file, self.folder)}" for file in self.files)
        words = shlex.join((self.program, *self.linter.words[1:], *names))
        reports = f'"${REPORT_VARIABLE}'
        script = f'pwd -P >{reports}/folder"; {words} >{reports}/stdout" 2>{reports}/stderr"'
        environment = {"PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1", **self.linter.environment}
        return Command(script, self.folder, SECONDS, environment=environment, proposes=False)

    def read(self, output: str, seen_as: str = "") -> Iterable[Diagnostic]:
        """Return the diagnostics in an output, with absolute paths; `seen_as` is the folder's path in that output."""
        for item in self.linter.read(output):
            inner = item.path.removeprefix(f"{seen_as}/") if seen_as else item.path
            yield replace(item, path=os.path.normpath(os.path.join(self.folder, inner)))


def jobs_for(
    view: FileView, files: Iterable[str], which: Callable[[str], str | None] = shutil.which
) -> tuple[Job, ...]:
    """Return the jobs for these files, absolute paths; `which` finds programs on PATH."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for file in files:
        present: set[str] = set()
        for linter in LINTERS:
            job = _place(view, linter, file, which) if linter.instead_of not in present else None
            if job is not None:
                present.add(linter.name)
                groups.setdefault((linter.name, *job), []).append(file)
    known = {linter.name: linter for linter in LINTERS}
    return tuple(Job(known[name], folder, program, tuple(found)) for (name, folder, program), found in groups.items())


def _place(view: FileView, linter: Linter, file: str, which: Callable[[str], str | None]) -> tuple[str, str] | None:
    """Return the folder and the program of a linter for a file; None if the linter is not used."""
    if not file.endswith(linter.suffixes):
        return None
    above = _above(view, file)
    marked = next((folder for folder in above if _is_marked(view, folder, linter.markers)), None)
    if not above or (marked is None and linter.needs_marker):
        return None
    folder = marked or above[-1]
    program = _program(view, linter.words[0], folder, above, which)
    return (folder, program) if program else None


def _above(view: FileView, file: str) -> list[str]:
    """Return the folders that contain `file`, innermost first, up to its workspace folder."""
    root = view.roots.root_of(file)
    folders: list[str] = []
    folder = os.path.dirname(file)
    while root is not None and (folder == root or folder.startswith(f"{root}/")):
        folders.append(folder)
        folder = os.path.dirname(folder)
    return folders


def _is_marked(view: FileView, folder: str, markers: Markers) -> bool:
    for name, needed in markers:
        path = os.path.join(folder, name)
        if view.exists(path) and (not needed or needed in (view.text(path) or "")):
            return True
    return False


def _program(view: FileView, name: str, folder: str, above: list[str], which: Callable[[str], str | None]) -> str:
    """Return the program as named in a command that starts in `folder`; '' if it is not installed."""
    for place in above:
        for binaries in _BINARIES:
            path = os.path.join(place, binaries, name)
            if view.roots.stat(path) is not None:
                inner = os.path.relpath(path, folder)
                return inner if "/" in inner else f"./{inner}"
    return name if which(name) else ""
