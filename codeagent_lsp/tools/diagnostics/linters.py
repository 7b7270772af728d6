"""The linters that a workspace has for some files: which ones, their commands, and running them in the shadow.

A linter is used if it is installed, in the workspace or on PATH, and the workspace has a settings file for it, unless
it works well without one. Linters run code of the workspace (settings that are programs, plugins, build scripts), so
they run only where a command can do no harm. Choosing them reads only, and blocks. Not here: syntax errors that need no
program (`syntax.py`).
"""

# ruff: noqa: PTH118, PTH120 - paths are plain strings, as everywhere below FileView

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from codeagent_lsp.language_servers.known import BINARIES
from codeagent_lsp.shadow.shell import REPORT_VARIABLE, Command, Finished, Shell
from codeagent_lsp.tools.diagnostics.difference import Diagnostic, Severity
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.paths import relative_name
from codeagent_lsp.workspace.text.numbers import whole_number

Read = Callable[[str], Iterator[Diagnostic]]

# `a.py:3:5: error: Message  [code]`.
_MYPY = re.compile(
    r"^(?P<path>.+?):(?P<line>\d+)(?::(?P<column>\d+))?: (?P<severity>error|warning|note): (?P<message>.*?)"
    r"(?:  \[(?P<code>[\w-]+)\])?$"
)
_TSC = re.compile(
    r"^(?P<path>.+?)\((?P<line>\d+),(?P<column>\d+)\): (?P<severity>error|warning|message) (?P<code>TS\d+):"
    r" (?P<message>.*)$"
)
# `vet: ./a.go:3:5: message`.
_GO = re.compile(r"^(?:vet: )?(?P<path>[^\s:][^:]*\.go):(?P<line>\d+):(?P<column>\d+): (?P<message>.+)$")
_GO_PLACE = re.compile(r"^(?P<path>.+):(?P<line>\d+):(?P<column>\d+)$")
_RUFF_ERRORS = ("invalid-syntax", "E9", "F7", "F82")
_LEVELS: dict[str, Severity] = {
    "error": "error",
    "failure-note": "error",
    "warning": "warning",
    "information": "info",
    "info": "info",
    "note": "info",
    "message": "info",
    "help": "hint",
    "hint": "hint",
}

TOTAL_SECONDS = 180.0
_MAX_REASON = 200


def read_ruff(output: str) -> Iterator[Diagnostic]:
    """Yield the diagnostics in the output of `ruff check --output-format json`; syntax errors and undefined names are
    errors, all else warnings. Nothing if it is no valid JSON.
    """
    for item in _items(_json(output)):
        place, code = _dict(item.get("location")), _text(item.get("code"))
        severity: Severity = "error" if code.startswith(_RUFF_ERRORS) or not code else "warning"
        yield from _diagnostic(item.get("filename"), place.get("row"), place.get("column"), severity,
                         item.get("message"), "ruff", "" if code == "invalid-syntax" else code)  # fmt: skip


def read_mypy(output: str) -> Iterator[Diagnostic]:
    """Yield the diagnostics in the output of `mypy --show-column-numbers`; notes, which belong to the error before
    them, and other lines are skipped.
    """
    for match in filter(None, map(_MYPY.match, output.splitlines())):
        if match["severity"] != "note":
            yield from _diagnostic(match["path"], match["line"], match["column"] or 1, _LEVELS[match["severity"]],
                             match["message"], "mypy", match["code"])  # fmt: skip


def read_pyright(output: str) -> Iterator[Diagnostic]:
    """Yield the diagnostics in the output of `pyright --outputjson`, whose lines and columns are 0-based. Nothing if it
    is no valid JSON.
    """
    for item in _items(_dict(_json(output)).get("generalDiagnostics")):
        start = _dict(_dict(item.get("range")).get("start"))
        yield from _diagnostic(item.get("file"), _plus_one(start.get("line")), _plus_one(start.get("character")),
                         _LEVELS.get(_text(item.get("severity")), "info"), item.get("message"), "pyright",
                         item.get("rule"))  # fmt: skip


def read_tsc(output: str) -> Iterator[Diagnostic]:
    """Yield the diagnostics in the output of `tsc --pretty false`; lines that are no diagnostics are skipped."""
    for match in filter(None, map(_TSC.match, output.splitlines())):
        severity = _LEVELS[match["severity"]]
        yield from _diagnostic(
            match["path"], match["line"], match["column"], severity, match["message"], "tsc", match["code"]
        )


def read_eslint(output: str) -> Iterator[Diagnostic]:
    """Yield the diagnostics in the output of `eslint -f json`; severity 2 is an error, all else a warning. Nothing if
    it is no valid JSON.
    """
    for file in _items(_json(output)):
        for item in _items(file.get("messages")):
            severity: Severity = "error" if item.get("severity") == 2 else "warning"
            yield from _diagnostic(file.get("filePath"), item.get("line") or 1, item.get("column") or 1, severity,
                             item.get("message"), "eslint", item.get("ruleId"))  # fmt: skip


def read_cargo(output: str) -> Iterator[Diagnostic]:
    """Yield the diagnostics in the output of `cargo check --message-format json`, one JSON object per line, at the
    first primary span of each; other lines are skipped.
    """
    for line in output.splitlines():
        row = _dict(_json(line))
        message = _dict(row.get("message"))
        spans = [span for span in _items(message.get("spans")) if span.get("is_primary")]
        if row.get("reason") == "compiler-message" and spans:
            severity = _LEVELS.get(_text(message.get("level")), "error")
            code = _dict(message.get("code")).get("code")
            yield from _diagnostic(spans[0].get("file_name"), spans[0].get("line_start"), spans[0].get("column_start"),
                             severity, message.get("message"), "cargo", code)  # fmt: skip


def read_go(output: str) -> Iterator[Diagnostic]:
    """Yield the diagnostics in the output of `go vet -json`: JSON objects by package and analyzer (warnings) between
    other lines, and compile errors as plain text.
    """
    for match in filter(None, map(_GO.match, output.splitlines())):
        yield from _diagnostic(match["path"], match["line"], match["column"], "error", match["message"], "go vet", "")
    for package in _objects(output):
        for analyzers in filter(None, map(_dict, package.values())):
            for analyzer, items in analyzers.items():
                for item in _items(items):
                    place = _GO_PLACE.match(_text(item.get("posn")))
                    if place is not None:
                        yield from _diagnostic(place["path"], place["line"], place["column"], "warning",
                                         item.get("message"), "go vet", analyzer)  # fmt: skip


def read_python(output: str) -> Iterator[Diagnostic]:
    """Yield the diagnostics in the output of our own syntax check by the workspace's Python: one JSON array per line,
    `[path, line, column, message]`; other lines are skipped.
    """
    for line in output.splitlines():
        row = _json(line)
        if isinstance(row, list) and len(row) == 4:
            yield from _diagnostic(row[0], row[1] or 1, row[2] or 1, "error", row[3], "python", "")


def _diagnostic(
    path: Any, line: Any, column: Any, severity: Severity, message: Any, source: str, code: Any
) -> Iterator[Diagnostic]:
    """Yield a diagnostic; none if a value has the wrong type."""
    numbers = [number for each in (line, column) if (number := whole_number(str(each))) is not None]
    if isinstance(path, str) and path and len(numbers) == 2 and isinstance(message, str):
        yield Diagnostic(path, max(numbers[0], 1), max(numbers[1], 1), severity, message, source, _text(code))


def _objects(output: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    # Programs print words and progress around their JSON, on the same stream.
    position = output.find("{")
    while position >= 0:
        try:
            value, position = decoder.raw_decode(output, position)
        except (ValueError, RecursionError):
            position += 1
        else:
            yield _dict(value)
        position = output.find("\n{", position) + 1 or -1


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _items(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _plus_one(value: Any) -> Any:
    return value + 1 if isinstance(value, int) else value


SECONDS = 60.0
_PYTHON = (".py", ".pyi")
_SCRIPT = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue")
_TYPED = (".ts", ".tsx", ".mts", ".cts")
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
    """A linter: its program (`name`), the suffixes of its files, its arguments (`words`), further variables of its
    environment, and the parser of its output.

    `markers` are files at the top of its project; with `needs_marker` it is not used without one. `whole` linters check
    their project and get no files. `instead_of` names a linter that makes this one redundant.
    """

    name: str
    suffixes: tuple[str, ...]
    words: tuple[str, ...]
    read: Read
    markers: Markers = ()
    needs_marker: bool = True
    whole: bool = False
    instead_of: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


_PYPROJECT = "pyproject.toml"
LINTERS: tuple[Linter, ...] = (
    Linter("ruff", _PYTHON, ("ruff", "check", "--output-format", "json", "--no-cache", "--no-fix", "--force-exclude",
           "--quiet", "--"), read_ruff, (("ruff.toml", ""), (".ruff.toml", ""), (_PYPROJECT, "")), False),
    Linter("python", (".py",), ("python3", "-I", "-c", _SCRIPT_TEXT), read_python,
           ((_PYPROJECT, ""),), False, instead_of="ruff"),
    Linter("mypy", _PYTHON, ("mypy", "--show-column-numbers", "--no-error-summary", "--no-pretty", "--no-color-output",
           "--hide-error-context", "--"), read_mypy,
           (("mypy.ini", ""), (".mypy.ini", ""), (_PYPROJECT, "[tool.mypy"), ("setup.cfg", "[mypy"))),
    Linter("pyright", _PYTHON, ("pyright", "--outputjson"), read_pyright,
           (("pyrightconfig.json", ""), (_PYPROJECT, "[tool.pyright"))),
    Linter("tsc", _TYPED, ("tsc", "--noEmit", "--pretty", "false"), read_tsc, (("tsconfig.json", ""),),
           whole=True),
    Linter("eslint", _SCRIPT, ("eslint", "-f", "json", "--no-color", "--"), read_eslint,
           (*((f"eslint.config.{ending}", "") for ending in ("js", "mjs", "cjs", "ts", "mts", "cts")),
            *((f".eslintrc{ending}", "") for ending in ("", ".json", ".js", ".cjs", ".yml", ".yaml")),
            ("package.json", '"eslintConfig"'))),
    Linter("cargo", (".rs",), ("cargo", "check", "--quiet", "--offline", "--all-targets", "--message-format", "json"),
           read_cargo, (("Cargo.toml", ""),), whole=True),
    Linter("go vet", (".go",), ("go", "vet", "-json", "./..."), read_go, (("go.mod", ""),), whole=True,
           environment={"GOFLAGS": "-mod=readonly", "GOPROXY": "off", "GOTOOLCHAIN": "local"}),
)  # fmt: skip


def is_for_linters(name: str) -> bool:
    """Return whether any linter is for files of this name, by its ending; whether it is installed is not looked at."""
    return any(name.endswith(linter.suffixes) for linter in LINTERS)


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a linter in one folder, for these files: folder and files are absolute paths; `program` is named as in
    a command that starts in the folder.
    """

    linter: Linter
    folder: str
    program: str
    files: tuple[str, ...]

    @property
    def command(self) -> Command:
        """The command to run in the shadow, limited to 60 s; both streams come back as reports, and files it writes are
        dropped.
        """
        # With `./`, no name can be an option.
        names = () if self.linter.whole else tuple(f"./{relative_name(file, self.folder)}" for file in self.files)
        words = shlex.join((self.program, *self.linter.words[1:], *names))
        reports = f'"${REPORT_VARIABLE}'
        # Where it ran: in a copy of the workspace, absolute paths in the output lead there.
        script = f'pwd -P >{reports}/folder"; {words} >{reports}/stdout" 2>{reports}/stderr"'
        environment = {"PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1", **self.linter.environment}
        return Command(script, self.folder, SECONDS, environment=environment, proposes=False)

    def read(self, output: str, seen_as: str = "") -> Iterable[Diagnostic]:
        """Yield the diagnostics in an output, with absolute paths; `seen_as` is the folder's path in that output, '' if
        the same.
        """
        for item in self.linter.read(output):
            inner = item.path.removeprefix(f"{seen_as}/") if seen_as else item.path
            yield replace(item, path=os.path.normpath(os.path.join(self.folder, inner)))


def jobs_for(
    view: FileView, files: Iterable[str], which: Callable[[str], str | None] = shutil.which
) -> tuple[Job, ...]:
    """Return the jobs for these files, absolute paths; `which` finds programs on PATH. () for files without a linter
    here. Blocks for looking at the disk.
    """
    groups: dict[tuple[str, str, str], list[str]] = {}
    for file in files:
        # In the order of the table: a linter stands behind the one that makes it redundant.
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
    above = view.roots.upwards(os.path.dirname(file))
    marked = next((folder for folder in above if _is_marked(view, folder, linter.markers)), None)
    if not above or (marked is None and linter.needs_marker):
        return None
    # The nearest project; without one, the folder of the workspace.
    folder = marked or above[-1]
    program = _program(view, linter.words[0], folder, above, which)
    return (folder, program) if program else None


def _is_marked(view: FileView, folder: str, markers: Markers) -> bool:
    for name, needed in markers:
        path = os.path.join(folder, name)
        if view.exists(path) and (not needed or needed in (view.text(path) or "")):
            return True
    return False


def _program(view: FileView, name: str, folder: str, above: list[str], which: Callable[[str], str | None]) -> str:
    """Return the program as named in a command that starts in `folder`; '' if it is not installed."""
    for place in above:
        for binaries in BINARIES:
            path = os.path.join(place, binaries, name)
            if view.roots.stat(path) is not None:
                inner = relative_name(path, folder)
                return inner if "/" in inner else f"./{inner}"
    return name if which(name) else ""


@dataclass(frozen=True, slots=True)
class Checked:
    """The results of linters. `used` are the names of those that worked, `failed` pairs of name and reason for the
    others.

    `files` are those that at least one linter has checked.
    """

    found: tuple[Diagnostic, ...] = ()
    used: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    files: frozenset[str] = frozenset()


async def check(shell: Shell, jobs: Iterable[Job]) -> Checked:
    """Run the jobs one after the other until 180 s have passed; later ones are reported as failed. Never raises
    ToolFailed.
    """
    found: list[Diagnostic] = []
    used: list[str] = []
    failed: list[tuple[str, str]] = []
    files: set[str] = set()
    deadline = time.monotonic() + TOTAL_SECONDS
    for job in jobs:
        if time.monotonic() > deadline:
            failed.append((job.linter.name, "there was no time left"))
            continue
        finished = (await shell.run(job.command)).finished
        said = _findings(job, finished)
        # many linters exit with an error when they find something, so the exit code counts only without findings
        if reason := "" if said else _reason_of_failure(finished):
            failed.append((job.linter.name, reason))
            continue
        found += said
        used.append(job.linter.name)
        files.update(job.files)
    return Checked(tuple(found), tuple(dict.fromkeys(used)), tuple(dict.fromkeys(failed)), frozenset(files))


def _findings(job: Job, finished: Finished) -> tuple[Diagnostic, ...]:
    """Return the findings from the first stream that has any: programs differ in which they use."""
    folder = _decode_report(finished, "folder").rstrip("\n")
    streams = (_decode_report(finished, stream) for stream in ("stdout", "stderr"))
    return next((found for text in streams if (found := tuple(job.read(text, folder)))), ())


def _reason_of_failure(finished: Finished) -> str:
    """Return why a linter without findings has not checked anything; '' if it has."""
    if finished.ending != "exited":
        return f"stopped at a limit ({finished.ending})"
    if finished.exit_code == 0:
        return ""
    said = f"{_decode_report(finished, 'stderr')}\n{_decode_report(finished, 'stdout')}\n{finished.output}"
    line = next((line.strip() for line in said.splitlines() if line.strip()), "")
    return line[:_MAX_REASON] or f"exit code {finished.exit_code}"


def _decode_report(finished: Finished, stream: str) -> str:
    return finished.reports.get(stream, b"").decode("utf-8", "replace")
