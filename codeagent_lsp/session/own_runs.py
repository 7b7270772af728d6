"""Chooses how a run goes that needs no model: a file, a skill, a question of trust, texts made before, or work that its
starter gave it.

Not here: how each of them goes (`own_commands.py`, `rewind/rewinding.py`), runs with a model (`run.py`).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError, UsageError
from codeagent_lsp.events.base import What
from codeagent_lsp.index.enclosing import enclosing_symbol
from codeagent_lsp.session.own_commands import (
    Ended,
    confirm_command,
    install_own_skill,
    run_own_file,
    stage_texts,
    trust_contents,
)
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.proving.minimizing import Minimal, PartTraits, Tried, minimal
from codeagent_lsp.session.proving.proof import MinimalProof
from codeagent_lsp.session.proving.trial_tests import WORD, TriedTests, tests_with
from codeagent_lsp.session.request import RunKind, RunRequest
from codeagent_lsp.session.rewind.rewinding import Runs, rewind
from codeagent_lsp.session.run_parts import RunParts
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.edits.merge import Run
from codeagent_lsp.workspace.files.file_view import FileText
from codeagent_lsp.workspace.text.position import split_lines

OwnWork = Callable[[RunParts, RunRequest], Awaitable[Ended]]
"""The work of a run that is about other runs."""
WHOLE = -1
"""The number of a part that is a whole file."""

# How likely a part is to matter to a test: comments and prose hardly ever, though a doctest may read them.
_UNLIKELY, _USUAL = 0.02, 0.3
# The beginning of a comment in the usual languages (`# x`, `// x`, `* x`, `-- x`, `<!-- x`, `; x`), or an empty line.
_COMMENT = re.compile(r"\s*(?:#|//|/\*|\*|--|<!--|;|$)")
_PROSE = frozenset({".md", ".rst", ".txt", ".adoc"})


async def own_run(parts: RunParts, request: RunRequest, work: OwnWork | None) -> Ended | None:
    """Do the work of a run without a model, which its kind names, or else `work`, and return (status, summary); None
    for a run that needs a model.
    """
    if request.kind == "runFile" and request.target is not None:
        return await run_own_file(parts, request.target, request.args)
    if request.kind == "skills.install":
        return await install_own_skill(parts, request)
    if request.kind == "trust":
        return await trust_contents(parts, request)
    if request.rewritten:
        return await stage_texts(parts, request)
    return None if work is None else await work(parts, request)


def trial(kind: RunKind, about: Proposal) -> OwnWork:
    """Return the work of a run that tries the changes of another run: its tests for the kind `prove`, else the smallest
    part of them.
    """
    tries = prove if kind == "prove" else minimize
    return lambda parts, request: tries(parts, about)


def going_back(gone: tuple[str, ...], what: What, runs: Runs) -> OwnWork:
    """Return the work that takes back what the runs `gone`, by their ids, did: their changes, their part of the talk,
    or both. Nothing is done before the work is called.
    """
    return lambda parts, request: rewind(parts, gone, what, runs)


# The runs that try a proposal, started by the user's own command: `prove` and `minimize`.


async def prove(parts: RunParts, target: Proposal) -> Ended:
    """Run the tests on the user's own texts and on the changes of another run, and propose these again with the
    results; return (status, summary). Waits for the tests. UsageError or SessionError if that is not possible.
    """
    trial = await _open_trial(parts, target)
    if trial is None:
        return "completed", parts.output.text("file_run.declined")
    # First: what failed without the changes tells what they have mended.
    await trial.before()
    await trial.changed()
    await target.propose()
    return "completed", trial.told()


async def minimize(parts: RunParts, target: Proposal) -> Ended:
    """Find the smallest part of the changes of another run with which the same tests pass, and propose the changes
    again with the result; return (status, summary). Takes up to 30 test runs. UsageError or SessionError if that is not
    possible.
    """
    trial = await _open_trial(parts, target)
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


async def _open_trial(parts: RunParts, target: Proposal) -> _Trial | None:
    """Return the trial of a proposal; None if the user does not want tests to run that nothing isolates."""
    if not target.changeset:
        raise SessionError("changes.none")
    # While its user is being asked, the changes of a run at work stand still.
    if target.record.status == "running" and not target.deciding:
        raise SessionError("prove.at_work")
    await parts.toolbox.open()
    shell = parts.toolbox.shell
    if shell is None:
        raise UsageError("prove.impossible", reason=parts.toolbox.no_shell)
    # There commands run on the saved files of the user, which have none of the changes.
    if shell.isolation.level == "direct":
        raise UsageError("prove.direct")
    if not shell.isolation.complete and not await confirm_command(parts, "run_tests", shell.isolation.level):
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
        found = await self._test(Changeset())
        self._target.proofs.tested(found.tally, Changeset(), self._state)
        return found

    async def changed(self) -> TriedTests:
        """Run the tests on all changes."""
        found = await self._test(self._changeset)
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
            lambda numbers: self._try_parts(hunks, numbers, wanted),
            _outcome(before, wanted),
        )
        proof = self._proof(hunks, search)
        self._target.proofs.minimized(proof)
        return proof

    async def _try_parts(self, hunks: Sequence[HunkPart], numbers: frozenset[int], wanted: frozenset[str]) -> Tried:
        self._note(len(numbers), len(hunks))
        part = chosen(self._changeset, [hunks[number] for number in numbers])
        return _outcome(await self._test(part), wanted)

    def _proof(self, hunks: Sequence[HunkPart], search: Minimal) -> MinimalProof:
        needed = tuple((each.path, each.hunk) for number, each in enumerate(hunks) if number in search.needed)
        rest = tuple((each.path, each.hunk) for number, each in enumerate(hunks) if number not in search.needed)
        return MinimalProof(self._state, needed, rest, self._runs, search.whole)

    async def _test(self, changeset: Changeset) -> TriedTests:
        self._runs += 1
        return await tests_with(self._parts, self._own_text, self._target.tried_on(changeset))

    def _own_text(self, path: str) -> FileText | None:
        return self._target.view.base(path)

    def _note(self, count: int, whole: int) -> None:
        line = self._parts.output.text("minimize.trying", number=self._runs + 1, count=count, whole=whole)
        self._parts.output.emit(events.StatusChanged(message=line))


def _outcome(run: TriedTests, wanted: frozenset[str]) -> Tried:
    missing = wanted - run.tally.passing
    return Tried(not missing, run.words | {word for name in missing for word in WORD.findall(name)})


# The parts of a changeset that can be left out alone: its hunks, and files that come, go or move as a whole.


@dataclass(frozen=True, slots=True)
class HunkPart:
    """A part of a changeset that can be left out: absolute path, 0-based number of a hunk (-1: the whole file), and how
    likely it matters.
    """

    path: str
    hunk: int
    traits: PartTraits


def hunk_parts(changeset: Changeset) -> list[HunkPart]:
    """Return the parts of a changeset that can be left out, in order: the hunks of each edit, else the whole file."""
    return [each for change in changeset for each in _parts(change)]


def chosen(changeset: Changeset, parts: Iterable[HunkPart]) -> Changeset:
    """Return a changeset of only these parts of another; none that it lacks."""
    files: set[str] = set()
    hunks: dict[str, set[int]] = {}
    for each in parts:
        if each.hunk == WHOLE:
            files.add(each.path)
        else:
            hunks.setdefault(each.path, set()).add(each.hunk)
    return changeset.split(files, {path: frozenset(numbers) for path, numbers in hunks.items()})[0]


def _parts(change: FileChange) -> Iterator[HunkPart]:
    if change.kind != "edit":
        yield HunkPart(change.path, WHOLE, _traits(change, change.text or change.base or ""))
        return
    old, new = split_lines(change.base or ""), split_lines(change.text or "")
    for number, hunk in enumerate(change.hunks()):
        around = _enclosing(change, hunk.new_start, new)
        yield HunkPart(change.path, number, _traits(change, _changed_text(hunk, old, new), around))


def _changed_text(hunk: Run, old: list[str], new: list[str]) -> str:
    return "".join((*old[hunk.old_start : hunk.old_end], *new[hunk.new_start : hunk.new_end]))


def _enclosing(change: FileChange, line: int, lines: list[str]) -> frozenset[str]:
    """Return the words of the first line of the function or class around a line (0-based)."""
    text = change.text or ""
    span = enclosing_symbol(change.path, text, sum(map(len, lines[:line])))
    return frozenset(WORD.findall(text[span[0] : span[1]].partition("\n")[0])) if span is not None else frozenset()


def _traits(change: FileChange, text: str, around: frozenset[str] = frozenset()) -> PartTraits:
    path = PurePath(change.path)
    means_nothing = path.suffix.lower() in _PROSE or all(_COMMENT.match(line) for line in text.splitlines())
    words = frozenset({*WORD.findall(text), path.stem}) | around
    return PartTraits(words, _UNLIKELY if means_nothing else _USUAL)
