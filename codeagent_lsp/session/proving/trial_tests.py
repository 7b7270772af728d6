"""Runs tests on the user's texts with a changeset over them, apart from what a run has staged; what they write is
dropped. One use of it is here: of many small changes, those with which the tests pass.

Not here: which changeset is tried, and what follows from it (`../own_runs.py`, `../attempting.py`), which small changes
there are (`direct/variants.py`).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from codeagent_lsp.direct.checks import CheckPlan, LookingShell, Verdict, verdict_of_tests
from codeagent_lsp.direct.material import ShownFile
from codeagent_lsp.direct.variants import Repairs, Variant
from codeagent_lsp.errors import EditRefused, ToolFailed
from codeagent_lsp.messages import ToolResult
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
    """Views and a shell to run commands in, apart from what the run has staged. What they write is dropped. The shell
    belongs to the session and is not to be closed.
    """

    view: FileView
    staging: Staging
    shell: Shell


async def trial_place(parts: RunParts, own_text: Callable[[str], FileText | None], changeset: Changeset) -> TrialPlace:
    """Return a place to run commands with the user's texts (`own_text`, by absolute path) and the changes over them.
    ToolFailed if commands cannot run.
    """
    services = parts.services
    staging = Staging(own_text, changeset=changeset)
    view = services.workspace.view(staging)
    shell = await services.shells.environments.shell(parts.session.session_id, view, staging, approve_none)
    return TrialPlace(view, staging, parts.toolbox.audited(shell))


async def tests_with(parts: RunParts, own_text: Callable[[str], FileText | None], changeset: Changeset) -> TriedTests:
    """Run all tests on the user's texts (`own_text`, by absolute path) with the changes over them, and return the
    result. ToolFailed if none can run. Takes as long as the tests.
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


# A repair without the model: many small changes are tried, and one is taken only where the tests decide for it alone.

MOST_CHANGES = 160
SECONDS = 40.0
"""For all changes together."""
SLOW_SECONDS = 2.0
"""Tests that take longer are not run again and again."""
ENOUGH, LEAST = 80, 24
"""So many are tried before those with which the tests pass are taken for all of them, `LEAST` where the time is over;
fewer where there are no more."""
MOST_PASSING = 4
"""Tests that let more pass do not decide anything."""

# What is missing is not brought by a small change.
_MISSING = re.compile(
    r"ImportError|ModuleNotFound|NameError|AttributeError(?!: 'NoneType')|unexpected keyword|SyntaxError|undefined"
)


def may_be_small(before: Verdict, plan: CheckPlan) -> bool:
    """Return whether tests that failed may be repaired by a small change, and can be run again and again: the results
    are known, no command of the user's own, and nothing is missing or misnamed.
    """
    return before.known and bool(before.failed) and not plan.command and not _MISSING.search(before.report)


async def passing_changes(
    parts: RunParts, file: ShownFile, changes: Sequence[Variant], plan: CheckPlan
) -> Repairs | None:
    """Return those of `changes` to one file, tried in order for at most about 40 s, with which the tests of the plan
    pass; None where none does, or more than 4, or the tests take more than 2 s, or cannot be kept from the user's
    files.
    """
    proposal = parts.proposal
    try:
        place = await trial_place(parts, proposal.view.base, proposal.staging.changeset)
    except ToolFailed:
        return None
    if not place.shell.isolation.complete:
        return None
    trials = _Trials(parts, place, file, plan)
    began = time.monotonic()
    if await trials.passes(None, SLOW_SECONDS) or (took := time.monotonic() - began) > SLOW_SECONDS:
        return None
    patience = 2 + 3 * took
    found: list[Variant] = []
    tried = 0
    for change in changes:
        # An unlikely change beside a likely one says nothing against it.
        if found and (tried >= ENOUGH or (found[0].likely and not change.likely)):
            break
        if time.monotonic() > began + SECONDS:
            if tried < LEAST:
                return None
            break
        tried += 1
        if await trials.passes(change, patience):
            found.append(change)
            if len(found) > MOST_PASSING:
                return None
    return Repairs(file, tuple(found), tried) if found else None


class _Trials:
    """Runs the tests of a plan on small changes of a file, one after the other."""

    def __init__(self, parts: RunParts, place: TrialPlace, file: ShownFile, plan: CheckPlan) -> None:
        self._staging = place.staging
        self._first = place.staging.changeset
        self._file = file.read
        self._paths = plan.tests or (None,)
        settings, words = parts.services.user.settings(), parts.output.text
        self._context = tool_context(place.view, place.staging, settings, words=words, shell=LookingShell(place.shell))

    async def passes(self, change: Variant | None, seconds: float) -> bool:
        """Return whether all tests pass with a change, within so many seconds."""
        self._staging.restore(self._first)
        try:
            if change is not None:
                self._staging.write({self._file.path: change.text}, read=[self._file])
            async with asyncio.timeout(seconds):  # a change may make an endless loop
                return (await self._verdict()).good
        except (EditRefused, ToolFailed, TimeoutError):
            return False

    async def _verdict(self) -> Verdict:
        asked = [RunTestsParameters(path=path, pattern=None) for path in self._paths]
        outputs = [await RunTests().run(each, self._context) for each in asked]
        return verdict_of_tests([ToolResult("ok", output.text, output.data) for output in outputs])
