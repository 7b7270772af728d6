"""The commands that measure a project's coverage, and the messages about missing tools.

Not here: the formats (`coverage.py`), plain test runs (`runners.py`).
"""

# ruff: noqa: PTH118 - paths are plain strings, as everywhere below FileView

from __future__ import annotations

import os
import re

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.shadow.shell import Command, Finished
from codeagent_lsp.tools.testing import coverage, unittests
from codeagent_lsp.tools.testing.coverage import CoverageReport
from codeagent_lsp.tools.testing.projects import Project, is_test_file
from codeagent_lsp.tools.testing.reports import ReportBroken, ended, tail
from codeagent_lsp.tools.testing.runners import (
    REPORTS,
    Selection,
    cargo_words,
    go_packages,
    pytest_words,
    ran_in,
    scripted,
)
from codeagent_lsp.workspace.files.file_view import FileView

_REPORT = "coverage"
_NO_TOOL = 96  # our scripts' exit code
_FORMS = {
    "pytest": "coverage.py",
    "unittest": "coverage.py",
    "vitest": "istanbul",
    "jest": "istanbul",
    "go": "go",
    "cargo": "lcov",
}
_PROVIDER = re.compile(r"(?i)missing dependency.*?(@vitest/coverage-\w+)", re.DOTALL)
_CONFIGURED = (
    ("pyproject.toml", "[tool.coverage."),
    ("setup.cfg", "[coverage:run]"),
    ("tox.ini", "[coverage:run]"),
    (".coveragerc", ""),
)
# Arguments: the Python, the folders to measure parted by commas (or nothing), then the words of pytest or our runner.
_MEASURE = f"""
python=$1; folders=$2; shift 2
whole=(); part=()
for folder in ${{folders//,/ }}; do whole+=("--cov=$folder"); part=("--source=$folders"); done
export COVERAGE_FILE="{REPORTS}/data"
has() {{ "$python" -c "import $1" 2>/dev/null; }}
"""
_SAVE = f"""
code=$?
"$python" -m coverage combine -q 2>/dev/null
"$python" -m coverage json -q -o "{REPORTS}/{_REPORT}"
rm -f "{REPORTS}"/data* "{REPORTS}/runner.py"
exit $code
"""
_PYTEST = f"""{_MEASURE}
if ! has pytest; then exit {_NO_TOOL}; fi
if has pytest_cov; then
  "$python" -m pytest "${{whole[@]:---cov}}" "--cov-report=json:{REPORTS}/{_REPORT}" "$@"
  code=$?; rm -f "{REPORTS}"/data*; exit $code
fi
if ! has coverage; then exit {_NO_TOOL}; fi
"$python" -m coverage run "${{part[@]}}" -m pytest "$@"
{_SAVE}"""
_UNITTEST = f"""{_MEASURE}
if ! has coverage; then exit {_NO_TOOL}; fi
printf %s "$1" > "{REPORTS}/runner.py"; shift
"$python" -m coverage run "${{part[@]}}" "{REPORTS}/runner.py" "$@"
{_SAVE}"""
_NODE = f"""
"$@" "$directory={REPORTS}/measured"
code=$?
mv "{REPORTS}/measured/coverage-final.json" "{REPORTS}/{_REPORT}" 2>/dev/null; rm -rf "{REPORTS}/measured"
exit $code
"""


def command(project: Project, view: FileView, *, offline: bool) -> Command:
    """Return the command that runs the tests and measures coverage. ToolFailed for a framework without support."""
    words, script = _command(project, view)
    return scripted(script, words, project.folder, offline=offline)


def read(project: Project, finished: Finished) -> CoverageReport:
    """Return the coverage of a finished command. ToolFailed, with how to install it, if a tool is missing."""
    _require_tool(project, finished)
    data = finished.reports.get(_REPORT)
    if data is None:
        return CoverageReport(project.framework, (), _problem(finished, "left no coverage report"))
    folder = ran_in(project, finished)
    try:
        files = coverage.parse(_FORMS[project.framework], data, folder, project.module)
    except ReportBroken as error:
        return CoverageReport(project.framework, (), _problem(finished, f"left a coverage report that {error}"))
    inside = tuple(file for file in files if not file.path.startswith("/") and not _of_tests(file.path))
    note = f"The test run {ended(finished)}; run_tests shows which tests fail." if finished.exit_code else ""
    return CoverageReport(project.framework, inside, note if inside else _problem(finished, "measured no file"))


def _command(project: Project, view: FileView) -> tuple[tuple[str, ...], str]:
    target = (project.target,) if project.target else ()
    match project.framework:
        case "pytest":
            words = pytest_words(project, Selection())
            return (*project.program, _sources(project, view), *words), _PYTEST
        case "unittest":
            rest = (unittests.source(), project.target or ".", "")
            return (*project.program, _sources(project, view), *rest), _UNITTEST
        case "vitest":
            words = (
                *project.program,
                "run",
                "--coverage.enabled",
                "--coverage.reporter=json",
                "--coverage.reportOnFailure",
                *target,
            )
            return words, f"directory=--coverage.reportsDirectory\n{_NODE}"
        case "jest":
            words = (*project.program, "--coverage", "--coverageReporters=json", *target)
            return words, f"directory=--coverageDirectory\n{_NODE}"
        case "go":
            return (*project.program, go_packages(project)), f'exec "$1" test "-coverprofile={REPORTS}/{_REPORT}" "$2"'
        case "cargo":
            words = (*project.program, "llvm-cov", "--no-fail-fast", "--lcov", *cargo_words(project, Selection()))
            return words, f'exec "$@" "--output-path={REPORTS}/{_REPORT}"'
    known = "pytest, unittest, vitest, jest, go and cargo"
    raise ToolFailed(f"Coverage can be measured for {known}, not for {project.framework}.")


def _sources(project: Project, view: FileView) -> str:
    """Return the folders to measure, so that files that no test imports count; '' if the project configures them."""
    for name, section in _CONFIGURED:
        text = view.text(os.path.join(project.folder, name))
        if text is not None and section in text:
            return ""
    return ".,src" if view.exists(os.path.join(project.folder, "src")) else "."


def _of_tests(path: str) -> bool:
    return is_test_file(path) or path.endswith("conftest.py") or path.startswith("tests/")


def _require_tool(project: Project, finished: Finished) -> None:
    """Raise ToolFailed with how to install it if a coverage tool was missing."""
    missing = ""
    if project.framework in ("pytest", "unittest") and finished.exit_code == _NO_TOOL:
        package = "pytest-cov" if project.framework == "pytest" else "coverage"
        missing = f"`{project.program[0]} -m pip install {package}`"
    elif project.framework == "cargo" and "no such command: `llvm-cov`" in finished.output:
        missing = "`cargo install cargo-llvm-cov`"
    elif project.framework == "vitest" and (name := _PROVIDER.search(finished.output)):
        missing = f"`npm install --save-dev {name[1]}`"
    if missing:
        raise ToolFailed(f"What measures coverage is not installed here. The user can install it: {missing}.")


def _problem(finished: Finished, what: str) -> str:
    return f"The test run {ended(finished)} and {what}. The end of its output:\n{tail(finished.output)}"
