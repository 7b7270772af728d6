"""Repairs without a model: of many small changes, the only one with which the tests pass.

Each is tried apart from what the run has staged, in a private copy; nothing of it is seen or kept. Where several let
the tests pass, the tests decide nothing, and the model is asked. Not here: which changes there are
(`direct/variants.py`).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence

from codeagent_lsp.direct.checks import CheckPlan, LookingShell, Verdict, verdict_of_tests
from codeagent_lsp.direct.material import ShownFile
from codeagent_lsp.direct.variants import Variant
from codeagent_lsp.errors import EditRefused, ToolFailed
from codeagent_lsp.messages import ToolResult
from codeagent_lsp.session.proving.trial_tests import TrialPlace, trial_place
from codeagent_lsp.session.run_parts import RunParts
from codeagent_lsp.tools.context import tool_context
from codeagent_lsp.tools.testing.testing_tools import RunTests, RunTestsParameters

MOST_CHANGES = 160
SECONDS = 40.0
"""For all changes together."""
SLOW_SECONDS = 2.0
"""Tests that take longer are not run again and again."""
ENOUGH, LEAST = 80, 24
"""So many are tried before one with which the tests pass is taken for the only one, `LEAST` where the time is over;
fewer where there are no more."""

# What is missing is not brought by a small change.
_MISSING = re.compile(r"ImportError|ModuleNotFound|NameError|AttributeError|unexpected keyword|SyntaxError|undefined")


def may_be_small(before: Verdict, plan: CheckPlan) -> bool:
    """Return whether tests that failed may be repaired by a small change, and can be run again and again."""
    return before.known and bool(before.failed) and not plan.command and not _MISSING.search(before.report)


async def only_repair(
    parts: RunParts, file: ShownFile, changes: Sequence[Variant], plan: CheckPlan
) -> tuple[Variant, int] | None:
    """Return the only change with which the tests of the plan pass, and how many were tried; None where none does, or
    several do, or the tests are slow, or cannot be kept from the user's files.
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
    found: Variant | None = None
    for tried, change in enumerate(changes):
        # An unlikely change beside a likely one says nothing against it.
        if found is not None and (tried >= ENOUGH or (found.likely and not change.likely)):
            return found, tried
        if time.monotonic() > began + SECONDS:
            return (found, tried) if found is not None and tried >= LEAST else None
        if await trials.passes(change, patience):
            if found is not None:
                return None
            found = change
    return (found, len(changes)) if found is not None else None


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
