"""The commands that run a project's tests, and the reading of their reports.

Texts of the model (a path, a pattern) are only used as whole arguments of a program, never inside a script, and never
look like an option. Not here: finding projects (`projects.py`), running commands (the shell of the run).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from codeagent_lsp.errors import ToolRetry
from codeagent_lsp.shadow.shell import REPORT_VARIABLE, Command, Finished
from codeagent_lsp.tools.testing import golang, jest, junit, libtest, unittests
from codeagent_lsp.tools.testing.projects import Project
from codeagent_lsp.tools.testing.reports import Framework, Parsed, ReportBroken, TestReport, judged

REPORTS = f"${REPORT_VARIABLE}"
_FOLDER = "folder"  # where the tests really ran: another folder than the workspace's where that is a copy
_EARLY = re.compile(r"^!+ (stopping after .*|Interrupted.*|.*KeyboardInterrupt|.*Exit.*) !+$", re.MULTILINE)
_ENVIRONMENT = {
    "CARGO_TERM_COLOR": "never",
    "NO_COLOR": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "RUST_BACKTRACE": "0",
}


@dataclass(frozen=True, slots=True)
class Selection:
    """The tests to run: a pattern of names, and after a pytest file the rest of a test's id (`::Class::test`)."""

    pattern: str = ""
    node: str = ""


def command(project: Project, selection: Selection, *, offline: bool) -> Command:
    """Return the command that runs the tests of a project."""
    words, script = _COMMANDS[project.framework](project, selection)
    return scripted(script, words, project.folder, offline=offline)


def scripted(script: str, words: tuple[str, ...], folder: str, *, offline: bool) -> Command:
    """Return a command that runs `script` in bash, with `words` as its arguments."""
    noted = f'pwd -P > "{REPORTS}/{_FOLDER}"; {script}'
    environment = {**_ENVIRONMENT, **({"CARGO_NET_OFFLINE": "true", "GOPROXY": "off"} if offline else {})}
    return Command(("bash", "-c", noted, "tests", *words), folder, environment=environment)


def read(project: Project, finished: Finished) -> TestReport:
    """Return the test report of a finished command."""
    early = _EARLY.search(finished.output) if project.framework == "pytest" else None
    note = f"pytest stopped early ({early[1]}): not all tests ran." if early else ""
    report = judged(project.framework, finished, _parsed(project, finished), note=note)
    prefix = f"{ran_in(project, finished)}/"  # meaningless where the tests ran in a copy
    cases = tuple(replace(case, message=case.message.replace(prefix, "")) for case in report.cases)
    return replace(report, cases=cases, problem=report.problem.replace(prefix, ""))


def ran_in(project: Project, finished: Finished) -> str:
    """Return the folder in which the command ran, as it reported itself."""
    return finished.reports.get(_FOLDER, b"").decode("utf-8", "replace").strip() or project.folder


def lacks_pytest(finished: Finished) -> bool:
    """Return whether a run of pytest failed because the Python does not have it."""
    return finished.exit_code == 1 and finished.output.rstrip().endswith("No module named pytest")


def _parsed(project: Project, finished: Finished) -> Parsed:
    name = _REPORT[project.framework]
    data = finished.reports.get(name)
    if not name:
        return Parsed((), "has no results of single tests, since the framework is not known")
    if data is None:
        return Parsed((), "is missing")
    folder = ran_in(project, finished)
    readers: Mapping[Framework, Callable[[bytes], Parsed]] = {
        "pytest": lambda data: junit.parse(data, folder),
        "node": lambda data: junit.parse(data, folder),
        "unittest": lambda data: unittests.parse(data, folder),
        "vitest": lambda data: jest.parse(data, folder),
        "jest": lambda data: jest.parse(data, folder),
        "go": lambda data: golang.parse(data, golang.GoTestRun(project.module, folder, finished.output)),
        "cargo": libtest.parse,
    }
    try:
        return readers[project.framework](data)
    except ReportBroken as error:
        return Parsed((), str(error))


CommandWords = tuple[str, ...]


def _pytest(project: Project, selection: Selection) -> tuple[CommandWords, str]:
    return (*project.program, "-m", "pytest", *pytest_words(project, selection)), f'exec "$@" {PYTEST_REPORT}'


PYTEST_REPORT = f'"--junitxml={REPORTS}/report.xml"'


def pytest_words(project: Project, selection: Selection) -> CommandWords:
    """Return the arguments after `-m pytest`: options for the report, and the tests to run."""
    chosen = (f"-k={selection.pattern}",) if selection.pattern else ()
    target = (f"{_word(project.target)}{selection.node}",) if project.target else ()
    options = ("--tb=short", "--color=no", "--continue-on-collection-errors", "-o", "junit_family=xunit1")
    return (*options, *chosen, *target)


def _unittest(project: Project, selection: Selection) -> tuple[CommandWords, str]:
    return (*project.program, "-c", unittests.source(), project.target or ".", selection.pattern), 'exec "$@"'


def _vitest(project: Project, selection: Selection) -> tuple[CommandWords, str]:
    words = (*project.program, "run", "--reporter=default", "--reporter=json", *_named(selection))
    return (*words, *_targets(project)), f'exec "$@" "--outputFile.json={REPORTS}/report.json"'


def _jest(project: Project, selection: Selection) -> tuple[CommandWords, str]:
    words = (*project.program, "--json", "--testLocationInResults", *_named(selection), *_targets(project))
    return words, f'exec "$@" "--outputFile={REPORTS}/report.json"'


def _node(project: Project, selection: Selection) -> tuple[CommandWords, str]:
    pattern = (f"--test-name-pattern={selection.pattern}",) if selection.pattern else ()
    script = (
        'program=$1; shift; exec "$program" --test --test-reporter=spec --test-reporter-destination=stdout '
        f'--test-reporter=junit "--test-reporter-destination={REPORTS}/report.xml" "$@"'
    )
    return (*project.program, *pattern, *_targets(project)), script


def _npm(project: Project, selection: Selection) -> tuple[CommandWords, str]:
    if selection.pattern:
        raise ToolRetry("This project's tests run by `npm test`, which takes no pattern. Call again without one.")
    return (*project.program, "test"), 'exec "$@"'


def _go(project: Project, selection: Selection) -> tuple[CommandWords, str]:
    chosen = (f"-run={selection.pattern}",) if selection.pattern else ()
    return (*project.program, "test", "-json", *chosen, go_packages(project)), f'exec "$@" > "{REPORTS}/report.json"'


def go_packages(project: Project) -> str:
    """Return the package pattern of a project's target, as go expects it."""
    if project.target.endswith(".go"):
        return f"./{os.path.dirname(project.target)}"  # noqa: PTH120 - a plain string
    return f"./{project.target}/..." if project.target else "./..."


def _cargo(project: Project, selection: Selection) -> tuple[CommandWords, str]:
    words = (*project.program, "test", "--no-fail-fast", *cargo_words(project, selection))
    return words, f'set -o pipefail; "$@" 2>&1 | tee "{REPORTS}/report.txt"'


def cargo_words(project: Project, selection: Selection) -> CommandWords:
    """Return the arguments that select tests: an integration test by its file's name, others by their module."""
    folder, _, name = project.target.rpartition("/")
    stem, suffix = os.path.splitext(name)  # noqa: PTH122 - a plain string
    pattern = (selection.pattern,) if selection.pattern else ()
    if suffix == ".rs" and folder == "tests":
        return ("--test", stem, *pattern)
    if suffix == ".rs" and not pattern and stem not in ("lib", "main", "mod"):
        return (f"{stem}::",)
    return pattern


def _named(selection: Selection) -> CommandWords:
    return (f"--testNamePattern={selection.pattern}",) if selection.pattern else ()


def _targets(project: Project) -> CommandWords:
    return (_word(project.target),) if project.target else ()


def _word(target: str) -> str:
    """Return a path that cannot be taken for an option."""
    return f"./{target}" if target.startswith("-") else target


_COMMANDS: Mapping[Framework, Callable[[Project, Selection], tuple[CommandWords, str]]] = {
    "pytest": _pytest,
    "unittest": _unittest,
    "vitest": _vitest,
    "jest": _jest,
    "node": _node,
    "npm": _npm,
    "go": _go,
    "cargo": _cargo,
}
_REPORT: Mapping[Framework, str] = {
    "pytest": "report.xml",
    "unittest": "report.jsonl",
    "vitest": "report.json",
    "jest": "report.json",
    "node": "report.xml",
    "npm": "",
    "go": "report.json",
    "cargo": "report.txt",
}
