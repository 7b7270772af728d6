"""The runs that try a proposal, started by the user's own command: `prove` and `minimize`.

Tests run in the shadow on the user's texts with the proposed changes, or a part of them; what they write is dropped.
Not here: the search for the part that matters (`minimizing.py`), what is kept of it (`proofs.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError, UsageError
from codeagent_lsp.session.own_commands import Ended, confirmed
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.proving.hunks import HunkPart, chosen, hunk_parts
from codeagent_lsp.session.proving.minimizing import Minimal, Tried, minimal
from codeagent_lsp.session.proving.proof import MinimalProof
from codeagent_lsp.session.proving.trial_tests import WORD, TriedTests, tests_with
from codeagent_lsp.session.run_parts import RunParts
from codeagent_lsp.workspace.changes.changeset import Changeset
from codeagent_lsp.workspace.files.file_view import FileText


async def prove(parts: RunParts, target: Proposal) -> Ended:
    """Run the tests on the user's own texts and on the changes of another run, and propose these again with the
    results. UsageError or SessionError if that is not possible.
    """
    trial = await _opened(parts, target)
    if trial is None:
        return "completed", parts.output.text("file_run.declined")
    await trial.before()
    await trial.changed()
    await target.propose()
    return "completed", trial.told()


async def minimize(parts: RunParts, target: Proposal) -> Ended:
    """Find the smallest part of the changes of another run with which the same tests pass, and propose the changes
    again with what was found. UsageError or SessionError if that is not possible.
    """
    trial = await _opened(parts, target)
    if trial is None:
        return "completed", parts.output.text("file_run.declined")
    found = await trial.minimal()
    await target.propose()
    return "completed", parts.output.text(
        "minimize.done" if found.whole else "minimize.unfinished",
        needed=len(found.needed),
        count=len(found.needed) + len(found.unneeded),
        runs=found.runs,
    )


async def _opened(parts: RunParts, target: Proposal) -> _Trial | None:
    """Return the trial of a proposal; None if the user does not want tests to run that nothing isolates."""
    if not target.changeset:
        raise SessionError("changes.none")
    if target.record.status == "running" and not target.deciding:
        raise SessionError("prove.at_work")
    await parts.toolbox.open()
    shell = parts.toolbox.shell
    if shell is None:
        raise UsageError("prove.impossible", reason=parts.toolbox.no_shell)
    if shell.isolation.level == "direct":
        raise UsageError("prove.direct")
    if not shell.isolation.complete and not await confirmed(parts, "run_tests", shell.isolation.level):
        return None
    return _Trial(parts, target)


class _Trial:
    """Test runs on one proposal, as it is now."""

    def __init__(self, parts: RunParts, target: Proposal) -> None:
        self._parts = parts
        self._target = target
        self._changeset = target.changeset
        self._state = target.proofs.state(self._changeset)
        self._runs = 0

    async def before(self) -> TriedTests:
        """Run the tests on the user's own texts."""
        found = await self._tested(Changeset())
        self._target.proofs.tested(found.tally, Changeset(), self._state)
        return found

    async def changed(self) -> TriedTests:
        """Run the tests on all changes."""
        found = await self._tested(self._changeset)
        self._target.proofs.tested(found.tally, self._changeset, self._state)
        return found

    def told(self) -> str:
        """Return what is known now, for the user."""
        return " ".join(self._target.proofs.words(self._changeset, self._parts.output.text))

    async def minimal(self) -> MinimalProof:
        """Find the parts of the changes without which a test that passes now would not."""
        before, whole = await self.before(), await self.changed()
        wanted = whole.tally.passing
        if not wanted:
            raise UsageError("minimize.nothing")
        hunks = hunk_parts(self._changeset)
        search = await minimal(
            [each.traits for each in hunks],
            lambda numbers: self._tried(hunks, numbers, wanted),
            _outcome(before, wanted),
        )
        proof = self._proof(hunks, search)
        self._target.proofs.minimized(proof)
        return proof

    async def _tried(self, hunks: Sequence[HunkPart], numbers: frozenset[int], wanted: frozenset[str]) -> Tried:
        self._note(len(numbers), len(hunks))
        part = chosen(self._changeset, [hunks[number] for number in numbers])
        return _outcome(await self._tested(part), wanted)

    def _proof(self, hunks: Sequence[HunkPart], search: Minimal) -> MinimalProof:
        needed = tuple((each.path, each.hunk) for number, each in enumerate(hunks) if number in search.needed)
        rest = tuple((each.path, each.hunk) for number, each in enumerate(hunks) if number not in search.needed)
        return MinimalProof(self._state, needed, rest, self._runs, search.whole)

    async def _tested(self, changeset: Changeset) -> TriedTests:
        self._runs += 1
        return await tests_with(self._parts, self._own_text, changeset)

    def _own_text(self, path: str) -> FileText | None:
        return self._target.view.base(path)

    def _note(self, count: int, whole: int) -> None:
        line = self._parts.output.text("minimize.trying", number=self._runs + 1, count=count, whole=whole)
        self._parts.output.emit(events.StatusChanged(message=line))


def _outcome(run: TriedTests, wanted: frozenset[str]) -> Tried:
    missing = wanted - run.tally.passing
    return Tried(not missing, run.words | {word for name in missing for word in WORD.findall(name)})
