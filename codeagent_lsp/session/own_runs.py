"""The runs that need no model: run a file, install a skill, trust what the workspace brings, stage texts made before,
try the changes of another run, or do the work that their starter gave them.

Not here: going back (`rewind/rewinding.py`), runs with a model (`run.py`).
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, cast

from codeagent_lsp import events
from codeagent_lsp.errors import PermissionDenied, SessionError, UsageError
from codeagent_lsp.events.base import What
from codeagent_lsp.index.enclosing import enclosing_symbol
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.proving.minimizing import Minimal, PartTraits, Tried, minimal
from codeagent_lsp.session.proving.proof import MinimalProof
from codeagent_lsp.session.proving.trial_tests import WORD, TriedTests, tests_with
from codeagent_lsp.session.request import RunKind, RunRequest, Target
from codeagent_lsp.session.rewind.rewinding import Runs, rewind
from codeagent_lsp.session.run_output import OutputStream
from codeagent_lsp.session.run_parts import Ended, RunParts
from codeagent_lsp.shadow.shell import Command, CommandResult, Shell, Stream
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.skills.skill_tools import SkillInstaller, SkillInstallerParameters
from codeagent_lsp.tools.skills.trust import ask_all, ask_one, named, said_of
from codeagent_lsp.tools.testing.python import ENVIRONMENTS
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.edits.merge import Run
from codeagent_lsp.workspace.files.file_view import FileText, FileView
from codeagent_lsp.workspace.files.paths import is_untitled
from codeagent_lsp.workspace.text.position import split_lines
from codeagent_lsp.workspace.text.visible import escape_notation, one_line, shown_exactly

OwnWork = Callable[[RunParts, RunRequest], Awaitable[Ended]]
"""The work of a run that is about other runs."""
WHOLE = -1
"""The number of a part that is a whole file."""

# How likely a part is to matter to a test: comments and prose hardly ever, though a doctest may read them.
_UNLIKELY, _USUAL = 0.02, 0.3
# The beginning of a comment in the usual languages (`# x`, `// x`, `* x`, `-- x`, `<!-- x`, `; x`), or an empty line.
_COMMENT = re.compile(r"\s*(?:#|//|/\*|\*|--|<!--|;|$)")
_PROSE = frozenset({".md", ".rst", ".txt", ".adoc"})

_PROGRAMS: dict[str, tuple[str, ...]] = {
    ".py": ("python3",),
    ".js": ("node",),
    ".mjs": ("node",),
    ".cjs": ("node",),
    # Without it npx would offer to download the package, and wait for an answer that nobody can give.
    ".ts": ("npx", "--no-install", "tsx"),
    ".sh": ("bash",),
    ".bash": ("bash",),
    ".go": ("go", "run"),
    ".rb": ("ruby",),
    ".php": ("php",),
    ".pl": ("perl",),
    ".lua": ("lua",),
    ".java": ("java",),
    ".r": ("Rscript",),
    ".jl": ("julia",),
}


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


async def run_own_file(parts: RunParts, target: Target, args: tuple[str, ...]) -> Ended:
    """Run a file of the workspace in the shadow, without a model, and wait for its end; return (status, summary) of the
    run: `completed` if it exited, with whatever code, `stopped` if it did not, `failed` without a shell. The user is
    asked only if the shadow does not isolate it. UsageError if it is not known how to run the file. `args` are its
    arguments.
    """
    view, output = parts.proposal.view, parts.output
    words = command_for(target.file, args, view)
    await parts.toolbox.open()
    shell = parts.toolbox.shell
    if shell is None:
        return "failed", parts.toolbox.no_shell
    isolation = shell.isolation
    if not isolation.complete and not await confirm_command(parts, shlex.join(words), isolation.level):
        return "completed", output.text("file_run.declined")
    folder = view.roots.root_of(target.file.path) or view.roots.folders[0]
    name = view.roots.relative(target.file.path)
    finished = (await run_file(shell, words, folder, name, output.emit)).finished
    if finished.ending != "exited":
        return "stopped", output.text("file_run.stopped", name=name, ending=finished.ending)
    return "completed", output.text(
        "file_run.done", name=name, code=finished.exit_code, seconds=f"{finished.seconds:.1f}"
    )


async def install_own_skill(parts: RunParts, request: RunRequest) -> Ended:
    """Install a skill, after the user has seen and confirmed it; return (status, summary) of the run. UsageError if the
    mode is `readOnly`, another AgentError if it fails.
    """
    if parts.services.user.mode() == "readOnly":
        raise UsageError("skills.read_only")
    installed = await install_skill(request, parts.toolbox.context())
    return "completed", parts.output.text("skills.declined") if installed is None else installed


async def trust_contents(parts: RunParts, request: RunRequest) -> Ended:
    """Ask the user about what the workspace brings, or one kind of it, or one thing by its name or path, also about
    what they have declined before; return (status, summary) of the run. The request's `args` are kind and name, each
    possibly missing. UsageError if there is none of that name.
    """
    trust, output = parts.services.knowledge.trust, parts.output
    wanted, name = (*request.args, "", "")[:2]
    brought = await asyncio.to_thread(parts.toolbox.brings)
    of_kind = [item for item in brought if wanted in ("", item.kind)]
    items = named(of_kind, name)
    if name and not items:
        known = ", ".join(item.name for item in of_kind) or output.text("trust.none")
        raise UsageError("trust.unknown", name=one_line(name, 80), names=one_line(known, 400))
    # The user's own command means that an earlier no is open again.
    trust.reconsider(items)
    open_ones = [item for item in items if not trust.covers(item.digest)]
    if len(open_ones) == 1 or (open_ones and await ask_all(trust, open_ones, output, output.text) == "singly"):
        for item in open_ones:
            await ask_one(trust, item, output, output.text, lasting=True)
    return "completed", said_of(trust, items, output.text) or output.text("trust.nothing")


async def stage_texts(parts: RunParts, request: RunRequest) -> Ended:
    """Stage the texts `request.rewritten`, made without a model, and return (status, summary) `completed`, ''; hooks
    and the user decide about them as about all changes.
    """
    parts.proposal.staging.write(
        {file.path: new for file, new in request.rewritten}, [file for file, _ in request.rewritten]
    )
    if await asyncio.to_thread(parts.services.knowledge.hooks.files, parts.proposal.view):
        await parts.toolbox.open()  # from now on the hooks judge what is to be proposed
    return "completed", ""


async def confirm_command(parts: RunParts, command: str, level: str) -> bool:
    """Ask whether a command may run although it is not isolated, and how little is (`level`); and wait; True only for a
    consent, which holds for this time alone.
    """
    output = parts.output
    deny, once = output.text("choice.deny"), output.text("choice.once")
    title = output.text("file_run.ask", command=shown_exactly(command, escape_notation), level=level)
    return await output.ask(Question("approval", title, (deny, once), danger=True)) == (once,)


# Runs one file of the user, as it is in the editor, and emits its output. No model is involved.


def command_for(file: FileText, args: Sequence[str], view: FileView) -> tuple[str, ...]:
    """Return the words of the command that runs `file` with `args`, in the project's virtual environment if there is
    one: by its `#!` line, else by its extension. UsageError if neither is known, or if the file has no path yet.
    """
    if is_untitled(file.path):
        raise UsageError("file_run.untitled")
    name = view.roots.relative(file.path)
    first = file.text.split("\n", 1)[0]
    if first.startswith("#!"):
        program = tuple(shlex.split(first[2:].strip()))
    else:
        program = _PROGRAMS.get(PurePath(file.path).suffix.lower(), ())
    if not program:
        raise UsageError("file_run.unknown", name=name)
    return (*_in_environment(program, file.path, view), file.path, *args)


async def run_file(
    shell: Shell, words: tuple[str, ...], folder: str, file: str, emit: Callable[[events.Event], None]
) -> CommandResult:
    """Run the command for a file in `folder` (absolute) to its end, emit its start, output and exit as events, in which
    `file` is the file's name, and return the result. Cancelling ends the command.
    """
    emit(events.FileRunStarted(command=shlex.join(words), file=file))
    output = OutputStream(lambda stream, text: emit(_output_event(stream, text)))
    try:
        # `apart` keeps stdout and stderr as two streams, which clients show differently.
        result = await shell.run(Command(words, folder, apart=True), output.write)
    finally:
        output.close()
    emit(events.FileRunExit(exit_code=result.finished.exit_code, duration=round(result.finished.seconds, 3)))
    return result


# Installs a skill by the user's own command, with the tool but without a model. Not here: the tool.


async def install_skill(request: RunRequest, context: ToolContext) -> str | None:
    """Install a skill, and return a line on what was installed; None if the user declined. AgentError if it fails.
    Waits for the user. The request's task is the source, its `args` are name, location and branch, each possibly ''.
    """
    name, location, branch = (*request.args, "", "", "")[:3]
    wanted = SkillInstallerParameters(
        skill_source=request.task[:500],
        skill_name=name or None,
        install_location=cast("Literal['project', 'global']", location or "project"),
        branch=branch or None,
    )
    try:
        return (await SkillInstaller().run(wanted, context)).text.partition("\n")[0]
    except PermissionDenied:
        return None


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


def _output_event(stream: Stream, text: str) -> events.Event:
    return events.Stdout(content=text) if stream == "stdout" else events.Stderr(content=text)


def _in_environment(program: tuple[str, ...], path: str, view: FileView) -> tuple[str, ...]:
    """Return the program; for a plain `python3` that of the folder's virtual environment, if there is one."""
    root = view.roots.root_of(path)
    if PurePath(program[0]).name not in ("python", "python3") or root is None:
        return program
    found = (str(PurePath(root, name)) for name in ENVIRONMENTS)
    return (next(filter(view.exists, found), program[0]), *program[1:])
