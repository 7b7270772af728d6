"""Python's test frameworks: pytest and unittest.

Not here: the report of pytest (`junit.py`), the program that runs unittest (`unittest_runner.py`).
"""

# ruff: noqa: PTH118, PTH120 - paths are plain strings, as everywhere below FileView

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from importlib.resources import files
from itertools import islice
from typing import ClassVar

from typing_extensions import override

from codeagent_lsp.errors import AgentError
from codeagent_lsp.shadow.shell import Finished
from codeagent_lsp.tools.testing import junit
from codeagent_lsp.tools.testing.framework import (
    COVERAGE,
    REPORTS,
    Ecosystem,
    Project,
    Script,
    Selection,
    TestFramework,
    TestRun,
    Words,
    is_test_file,
    nearest_program,
)
from codeagent_lsp.tools.testing.reports import (
    Parsed,
    TestCase,
    bounded_cases,
    message,
    relative,
)
from codeagent_lsp.workspace.files.file_view import FileView

_WALKED = 5000
_TEST_FILES_READ = 40
_FILES = ("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "pytest.ini", "Pipfile", "requirements.txt")
_PYTEST_FILES = ("pytest.ini", "conftest.py", "tests/conftest.py")
_PYTEST_SECTIONS = (("pyproject.toml", "[tool.pytest"), ("setup.cfg", "[tool:pytest]"), ("tox.ini", "[pytest]"))
_PYTEST = re.compile(r"^\s*(?:import|from)\s+pytest\b|^(?:async )?def test|^class Test\w*:", re.MULTILINE)
_UNITTEST = re.compile(r"^\s*(?:import|from)\s+unittest\b|\bTestCase\b", re.MULTILINE)
# `!!!! stopping after 1 failures !!!!`.
_EARLY = re.compile(r"^!+ (stopping after .*|Interrupted.*|.*KeyboardInterrupt|.*Exit.*) !+$", re.MULTILINE)

_NO_TOOL = 96  # our scripts' exit code
_MEASURED_SECTIONS = (
    ("pyproject.toml", "[tool.coverage."),
    ("setup.cfg", "[coverage:run]"),
    ("tox.ini", "[coverage:run]"),
    (".coveragerc", ""),
)
_ON_PATH = "python3"
_MADE = "python"
ENVIRONMENTS = (".venv/bin/python", "venv/bin/python")
"""The Python of a project's virtual environment, as seen from its folder."""
# A command may have made an environment: it is in the private copy alone, where no view sees it.
_CHOOSE = f"""
if [ "$1" = {_ON_PATH} ]; then
  for made in {" ".join(ENVIRONMENTS)}; do
    if [ -x "$made" ]; then printf %s "$made" > "{REPORTS}/{_MADE}"; shift; set -- "$made" "$@"; break; fi
  done
fi
"""
# Arguments: the Python, the folders to measure parted by commas (or nothing), then the words of pytest or our runner.
_MEASURE = f"""{_CHOOSE}
python=$1; folders=$2; shift 2
whole=(); part=()
for folder in ${{folders//,/ }}; do whole+=("--cov=$folder"); part=("--source=$folders"); done
export COVERAGE_FILE="{REPORTS}/data"
has() {{ "$python" -c "import $1" 2>/dev/null; }}
"""
_SAVE = f"""
code=$?
"$python" -m coverage combine -q 2>/dev/null
"$python" -m coverage json -q -o "{REPORTS}/{COVERAGE}"
rm -f "{REPORTS}"/data* "{REPORTS}/runner.py"
exit $code
"""
_MEASURE_PYTEST = f"""{_MEASURE}
if ! has pytest; then exit {_NO_TOOL}; fi
if has pytest_cov; then
  "$python" -m pytest "${{whole[@]:---cov}}" "--cov-report=json:{REPORTS}/{COVERAGE}" "$@"
  code=$?; rm -f "{REPORTS}"/data*; exit $code
fi
if ! has coverage; then exit {_NO_TOOL}; fi
"$python" -m coverage run "${{part[@]}}" -m pytest "$@"
{_SAVE}"""
_MEASURE_UNITTEST = f"""{_MEASURE}
if ! has coverage; then exit {_NO_TOOL}; fi
printf %s "$1" > "{REPORTS}/runner.py"; shift
"$python" -m coverage run "${{part[@]}}" "{REPORTS}/runner.py" "$@"
{_SAVE}"""


class _Python(TestFramework):
    """What both have in common: the place of tests, and coverage.py."""

    some: ClassVar[str] = r"(?: -[A-Za-z-]+| [^\s`]+?\.py(?![A-Za-z0-9_]))*"
    suffixes: ClassVar[Words] = (".py",)
    coverage_form: ClassVar[str] = "coverage.py"
    image_program: ClassVar[str] = "python3"
    measures: ClassVar[str]
    """The package that measures coverage with it."""

    @override
    def missing(self, project: Project, finished: Finished) -> str:
        python = _made_python(finished) or project.program[0]
        return f"`{python} -m pip install {self.measures}`" if finished.exit_code == _NO_TOOL else ""

    @override
    def note(self, finished: Finished) -> str:
        made = _made_python(finished)
        return f"Ran with {made}, which a command has made: only the private copy has it." if made else ""

    @override
    def new_test(self, view: FileView, project: Project, source: str, words: str) -> str:
        tests = os.path.join(project.folder, "tests")
        return os.path.join(tests if self.looks_into(view, tests) else os.path.dirname(source), f"test_{words}.py")

    def looks_into(self, view: FileView, folder: str) -> bool:
        """Return whether it finds tests in a folder."""
        try:
            return bool(view.list_dir(folder, 1, limit=1).entries)
        except AgentError:
            return False


class Pytest(_Python):
    """The framework pytest, which also runs unittest's tests; its report is JUnit XML."""

    name: ClassVar[str] = "pytest"
    title: ClassVar[str] = "pytest"
    command: ClassVar[str] = r"(?:python3? -m )?pytest(?: -[vqx]+)*"
    report: ClassVar[str] = "report.xml"
    style: ClassVar[str] = "pytest, with plain functions named test_*"
    measures: ClassVar[str] = "pytest-cov"
    has_ids: ClassVar[bool] = True

    @override
    def script(self, project: Project, selection: Selection) -> Script:
        words = (*project.program, "-m", "pytest", *self._words(project, selection))
        return words, f'{_CHOOSE}exec "$@" "--junitxml={REPORTS}/{self.report}"'

    @override
    def parse(self, run: TestRun) -> Parsed:
        return junit.parse(run.report, run.folder)

    @override
    def note(self, finished: Finished) -> str:
        early = _EARLY.search(finished.output)
        stopped = f"pytest stopped early ({early[1]}): not all tests ran." if early else ""
        return " ".join(filter(None, (super().note(finished), stopped)))

    @override
    def instead(self, project: Project, finished: Finished) -> tuple[Project, str] | None:
        """Return (project, advice), the same project for unittest with advice for the model, if the run failed because
        the Python lacks pytest; else None.
        """
        # By Python's own last words: a test that fails for such an import has more behind it.
        if finished.exit_code != 1 or not finished.output.rstrip().endswith("No module named pytest"):
            return None
        python = _made_python(finished) or project.program[0]
        advice = f"pytest is not installed for {python}. The user can install it: `{python} -m pip install pytest`."
        return replace(project, framework=UNITTEST), advice

    @override
    def measuring(self, project: Project, view: FileView) -> Script:
        words = self._words(project, Selection())
        return (*project.program, _sources(project, view), *words), _MEASURE_PYTEST

    def _words(self, project: Project, selection: Selection) -> Words:
        """Return the arguments after `-m pytest`: options for the report, and the tests to run."""
        chosen = (f"-k={selection.pattern}",) if selection.pattern else ()
        target = tuple(f"{path}{selection.node}" for path in project.targets)
        # xunit1 is the form of the report that has files and lines.
        options = ("--tb=short", "--color=no", "--continue-on-collection-errors", "-o", "junit_family=xunit1")
        return (*options, *chosen, *target)


class Unittest(_Python):
    """unittest of the standard library, run by a program of ours that writes a report."""

    name: ClassVar[str] = "unittest"
    title: ClassVar[str] = "unittest"
    command: ClassVar[str] = r"(?:python3? -m )?unittest(?: discover)?(?: -[vqx]+)*"
    report: ClassVar[str] = "report.jsonl"
    style: ClassVar[str] = "unittest of Python's standard library, with classes of unittest.TestCase"
    measures: ClassVar[str] = "coverage"

    @override
    def script(self, project: Project, selection: Selection) -> Script:
        return (*project.program, "-c", _runner(), project.target or ".", selection.pattern), f'{_CHOOSE}exec "$@"'

    @override
    def parse(self, run: TestRun) -> Parsed:
        return parse_lines(run.report, run.folder)

    @override
    def measuring(self, project: Project, view: FileView) -> Script:
        rest = (_runner(), project.target or ".", "")
        return (*project.program, _sources(project, view), *rest), _MEASURE_UNITTEST

    @override
    def looks_into(self, view: FileView, folder: str) -> bool:
        """Return whether a folder is a package: it looks only into those."""
        return view.exists(os.path.join(folder, "__init__.py"))


PYTEST = Pytest()
UNITTEST = Unittest()


def parse_lines(data: bytes, folder: str) -> Parsed:
    """Return the cases in the report that `unittest_runner.py` writes; `folder` is where the tests ran. Without its end
    mark the result is marked as broken. ReportBroken above 100,000 tests.
    """
    cases: list[TestCase] = []
    whole = False
    for line in data.splitlines():
        try:
            record = json.loads(line)
            if record.get("end"):
                whole = True
            else:
                cases.append(_case(record, folder))
        except (ValueError, KeyError, TypeError, AttributeError):
            return Parsed(bounded_cases(cases), "has a line that cannot be read")
    return Parsed(bounded_cases(cases), "" if whole else "breaks off")


def _made_python(finished: Finished) -> str:
    """Return the Python that a run took from an environment that a command has made; '' if there was none."""
    return finished.reports.get(_MADE, b"").decode("utf-8", "replace")


def _case(record: dict[str, object], folder: str) -> TestCase:
    file, line = record.get("file"), record.get("line")
    outcome = record["outcome"]
    if outcome not in ("passed", "failed", "skipped", "error"):
        raise ValueError(outcome)
    return TestCase(
        str(record["id"]),
        outcome,
        float(str(record["seconds"])),
        message(str(record["message"])),
        relative(str(file), folder) if file else None,
        line if isinstance(line, int) else None,
    )


def _runner() -> str:
    """Return the source text of the program that runs unittest, for `python -c`."""
    # As a text, since the user's Python runs it, where our package is not installed.
    return files(__package__).joinpath("unittest_runner.py").read_text("utf-8")


def _find(view: FileView, folder: str, target: str) -> Project | None:
    marked = any(view.exists(os.path.join(folder, name)) for name in _FILES)
    # A workspace folder may have tests without any of these files.
    if not marked and folder not in view.roots.folders:
        return None
    framework = _framework(view, folder)
    if framework is None:
        return None
    python = nearest_program(view, folder, ENVIRONMENTS)
    return Project(framework, folder, (python or _ON_PATH,), target)


def _framework(view: FileView, folder: str) -> TestFramework | None:
    """Return pytest if anything indicates it, since it also runs unittest's tests; None if there are no tests."""
    if any(view.exists(os.path.join(folder, name)) for name in _PYTEST_FILES):
        return PYTEST
    if any(section in (view.text(os.path.join(folder, name)) or "") for name, section in _PYTEST_SECTIONS):
        return PYTEST
    walked = view.walk(folder, limit=_WALKED)
    tests = islice((path for path in walked if path.endswith(".py") and is_test_file(path)), _TEST_FILES_READ)
    texts = [view.text(path) or "" for path in tests]
    if any((_PYTEST.search(text) and not _UNITTEST.search(text)) or "import pytest" in text for text in texts):
        return PYTEST
    return UNITTEST if any(_UNITTEST.search(text) for text in texts) else None


def _sources(project: Project, view: FileView) -> str:
    """Return the folders to measure, so that files that no test imports count; '' if the project configures them."""
    for name, section in _MEASURED_SECTIONS:
        text = view.text(os.path.join(project.folder, name))
        if text is not None and section in text:
            return ""
    return ".,src" if view.exists(os.path.join(project.folder, "src")) else "."


PYTHON = Ecosystem((PYTEST, UNITTEST), "pyproject.toml", (".py",), _find, unmarked=True)
