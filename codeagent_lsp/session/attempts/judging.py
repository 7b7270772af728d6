"""Which attempt is the best: by whether it has come to an end, the tests, and the problems that it makes and mends.

Everything is tried in the shadow, on the text that the attempts began with; what tests write is dropped. Not here: the
attempts (`attempting.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from codeagent_lsp.errors import AgentError
from codeagent_lsp.session.code_knowledge import PROPOSAL_SECONDS, edit_diagnostics
from codeagent_lsp.session.proving.trial_tests import tests_with
from codeagent_lsp.session.run_parts import RunParts
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.tools.context import Tally
from codeagent_lsp.tools.diagnostics.difference import Difference
from codeagent_lsp.workspace.changes.changeset import Changeset
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileText


@dataclass(frozen=True, slots=True)
class Judged:
    """What is known of one attempt, by its number from 1. `tally` is None without tests, `found` without changes."""

    number: int
    status: str
    changeset: Changeset
    tally: Tally | None = None
    found: Difference | None = None

    @property
    def merit(self) -> tuple[int, ...]:
        """Return what attempts are compared by, the largest is the best: the end, the tests (those of which
        results are missing come last), the problems, fewer lines; of equal ones the first.
        """
        tally, found = self.tally or Tally(0, 0, whole=False), self.found or Difference()
        done = self.status == "completed"
        lines = sum(self.changeset.counts())
        return (
            *(done and bool(self.changeset), done, tally.passes, tally.whole, -tally.failed, tally.passed),
            *(-found.errors, -len(found.new), len(found.fixed), -lines, -self.number),
        )

    @property
    def proven(self) -> bool:
        """Whether it has come to an end with a change on which all tests pass."""
        return self.status == "completed" and bool(self.changeset) and self.tally is not None and self.tally.passes

    def told(self, text: Callable[..., str]) -> str:
        """Return what is known, for the user."""
        if not self.changeset:
            return text("attempts.unchanged")
        added, removed = self.changeset.counts()
        tally = self.tally
        tested = (
            text("attempts.tests", passed=tally.passed, failed=tally.failed) if tally else text("attempts.untested")
        )
        parts = [f"+{added} -{removed}", tested]
        if self.found is not None and self.found.new:
            parts.append(text("attempts.problems", count=len(self.found.new)))
        if self.status != "completed":
            parts.append(text("attempts.unfinished"))
        return ", ".join(parts)


async def judged(parts: RunParts, record: RunRecord, number: int) -> Judged:
    """Return what is known of an attempt, whose run has ended."""
    changeset = record.staged
    if not changeset:
        return Judged(number, record.status, changeset)
    tally, found = await _tested(parts, changeset), await _diagnosed(parts, changeset)
    return Judged(number, record.status, changeset, tally, found)


async def _tested(parts: RunParts, changeset: Changeset) -> Tally | None:
    """Return the counts of the tests on a changeset; None if there are none, or they cannot run without harm."""
    shell = parts.toolbox.shell
    if shell is None or not shell.isolation.complete:
        return None
    try:
        tally = (await tests_with(parts, _own_text(parts), changeset)).tally
    except AgentError:
        return None
    return tally if tally.passed or tally.failed else None


async def _diagnosed(parts: RunParts, changeset: Changeset) -> Difference | None:
    staging = Staging(_own_text(parts), changeset=changeset)
    diagnostics = edit_diagnostics(parts.session.session_id, parts.services, parts.services.workspace.view(staging))
    return None if diagnostics is None else await diagnostics.of(changeset, (), PROPOSAL_SECONDS)


def _own_text(parts: RunParts) -> Callable[[str], FileText | None]:
    view = parts.proposal.view

    def own(path: str) -> FileText | None:
        try:
            return view.base(path)
        except AgentError:
            return None

    return own
