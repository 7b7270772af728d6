"""Runs tests on the user's texts with a changeset over them; what they write is dropped.

Not here: which changeset is tried, and what follows from it (`../own_runs.py`, `../attempting.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from codeagent_lsp.session.run_parts import RunParts
from codeagent_lsp.shadow.shell import Shell, approve_none
from codeagent_lsp.tools.context import OnTested, Tally, tool_context
from codeagent_lsp.tools.testing.testing_tools import RunTests, RunTestsParameters
from codeagent_lsp.workspace.changes.changeset import Changeset
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileText, FileView

WORD = re.compile(r"[^\W\d]\w{2,}")
_NO_TESTS = Tally(0, 0, whole=False)


@dataclass(frozen=True, slots=True)
class TriedTests:
    """One test run: the counts, and the words of what failed."""

    tally: Tally
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class TrialPlace:
    """A place to run commands in, apart from what the run has staged. What they write is dropped."""

    view: FileView
    staging: Staging
    shell: Shell


async def trial_place(parts: RunParts, own_text: Callable[[str], FileText | None], changeset: Changeset) -> TrialPlace:
    """Return a place with the texts of the run's workspace, `own_text` below, and the changes. ToolFailed if there can
    be none.
    """
    services = parts.services
    staging = Staging(own_text, changeset=changeset)
    view = services.workspace.view(staging)
    shell = await services.shells.environments.shell(parts.session.session_id, view, staging, approve_none)
    return TrialPlace(view, staging, parts.toolbox.audited(shell))


async def tests_with(parts: RunParts, own_text: Callable[[str], FileText | None], changeset: Changeset) -> TriedTests:
    """Run the tests on the texts of the run's workspace, `own_text` below, with the changes. ToolFailed if none can
    run.
    """
    place = await trial_place(parts, own_text, changeset)
    tallies: list[Tally] = []
    context = tool_context(
        place.view,
        place.staging,
        parts.services.user.settings(),
        (OnTested, lambda: tallies.append),
        words=parts.output.text,
        output=parts.output.printed,
        shell=place.shell,
    )
    done = await RunTests().run(RunTestsParameters(path=None, pattern=None), context)
    return TriedTests(tallies[-1] if tallies else _NO_TESTS, _words_of_failures(done.data))


def _words_of_failures(data: Any) -> frozenset[str]:
    """Return the words of what failed, by the reports of `run_tests`, and of the files that it names."""
    found: set[str] = set()
    for report in data["reports"]:
        found |= set(WORD.findall(report["problem"]))
        for case in report["cases"]:
            if case["outcome"] not in ("passed", "skipped"):
                found |= {*WORD.findall(case["message"]), PurePath(case["file"] or "").stem}
    return frozenset(found)
