"""Puts the result of a task into words: for the user, for the run's summary, and for the conversation.

Not here: working on the task (`direct_path.py`), the sentences (`texts.py`).
"""

from __future__ import annotations

from codeagent_lsp import events
from codeagent_lsp.agent.forms.envelope import CUT
from codeagent_lsp.agent.solving.prompt import REPEATED
from codeagent_lsp.agent.solving.solver import Solution
from codeagent_lsp.agent.solving.verdict import Verdict
from codeagent_lsp.session.run_parts import RunParts

NAMED_TESTS = 3
_WHY = {CUT: "rewrite.cut", REPEATED: "rewrite.loop"}


class SolutionWords:
    """Words about the solutions of one run."""

    def __init__(self, parts: RunParts) -> None:
        self._parts = parts

    def outcome(self, solution: Solution) -> tuple[events.RunStatus, str]:
        """Return the run's status and summary; not `completed` while a change is missing or tests fail."""
        text = self._parts.output.text
        if solution.ending == "answered":
            return "completed", solution.text
        if solution.ending == "solved":
            return "completed", "\n".join(filter(None, (solution.text, self.done(solution.verdict))))
        said = text("solve.said", words=solution.text) if solution.text else ""
        if solution.ending == "declined":
            return "stopped", "\n".join(filter(None, (text("solve.declined"), said)))
        failing = self._failing(solution.verdict)
        key = "solve.unchanged" if solution.ending == "unchanged" else "solve.still"
        why = text(_WHY[solution.problem]) if solution.problem in _WHY else ""
        lines = (text(key, attempts=solution.attempts), why, failing, said)
        return "stopped", "\n".join(filter(None, lines))

    def conversation(self, solution: Solution) -> str:
        """Return the message about this task for later turns of the conversation."""
        relative = self._parts.proposal.view.roots.relative
        names = ", ".join(relative(path) for path in self._parts.proposal.changeset.paths)
        changed = (
            f"(Changed: {names}.)" if names and solution.ending in ("solved", "failing") else "(Nothing was changed.)"
        )
        failing = self._failing(solution.verdict)
        return "\n".join(filter(None, (solution.text, "" if solution.ending == "answered" else changed, failing)))

    def done(self, verdict: Verdict | None) -> str:
        """Return a sentence for the user on the changed files and the result of the check."""
        proposal, text = self._parts.proposal, self._parts.output.text
        names = ", ".join(map(proposal.view.roots.relative, proposal.changeset.paths))
        return " ".join(filter(None, (text("solve.changed", names=names), self._checked(verdict))))

    def _checked(self, verdict: Verdict | None) -> str:
        text = self._parts.output.text
        if verdict is None:
            return ""
        if not verdict.known:
            return text("solve.unchecked", reason=verdict.problem.splitlines()[0][:200] if verdict.problem else "-")
        return self._failing(verdict) or text("solve.passed", passed=verdict.passed)

    def _failing(self, verdict: Verdict | None) -> str:
        """Return a sentence for the user with the names of the failed tests; '' for none."""
        if verdict is None or not verdict.failed:
            return ""
        names = ", ".join(each.test_id for each in verdict.failed[:NAMED_TESTS])
        more = f", … ({len(verdict.failed)})" if len(verdict.failed) > NAMED_TESTS else ""
        return self._parts.output.text("solve.fails", names=names + more)
