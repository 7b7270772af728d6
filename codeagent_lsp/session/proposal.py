"""Holds what a run wants to change, and carries out the decision about it: propose, apply, discard, undo.

The user decides; undecided changes stay staged. Not here: how the changes come about (`run.py`), how they reach the
buffers (the editor), the words of the questions (`change_questions.py`).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.change_questions import ChangeQuestions
from codeagent_lsp.session.proving.proofs import Proofs
from codeagent_lsp.session.rewind.earlier_texts import (
    TakingBack,
    along_with,
    edited_texts,
    follow_moves,
    made_texts,
    names_of,
    renamed_since,
    taking_back,
)
from codeagent_lsp.session.rewind.rewinds import AppliedPart, Undone, staged_data
from codeagent_lsp.session.run_output import RunOutput
from codeagent_lsp.session.services import Services
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.tools.context import Tally
from codeagent_lsp.tools.diagnostics.difference import Difference
from codeagent_lsp.workspace.changes.changeset import Applied, Changeset, Current, FileChange, HunkConflict, HunkNumbers
from codeagent_lsp.workspace.changes.reviewed import (
    ChosenHunks,
    after_applying,
    after_discarding,
    arrived_hunks,
    numbers_now,
    on_present,
    shows_all,
)
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import own_file, own_text, readable_texts
from codeagent_lsp.workspace.text.visible import some_of

T = TypeVar("T")

# Together with ACCOUNT_SECONDS less than the second in which a closing server waits for its runs.
APPLY_GRACE_SECONDS = 0.8
ACCOUNT_SECONDS = 0.1
LATE_SECONDS = 60.0  # so much later an editor may still make changes that were discarded meanwhile
MOST_NAMED = 30

REFUSED = "Your changes cannot be proposed to the user as they are. A hook of the project says: {reason}"

Judge = Callable[[], Awaitable[str]]
"""Returns why what is staged is not to be proposed; '' for no objection."""

Diagnose = Callable[[Changeset], Awaitable[Difference | None]]
"""Returns the diagnostics that changes make and fix, within a few seconds; None if nothing can check them."""


class Proposal:
    """The changes of one run, kept as long as the run's session. `outcome` is the result of the last decision, None
    before any; `deciding` tells whether the user is being asked, `refused` is why they are not; `proofs` is what was
    tried on the changes.
    """

    _verdict: events.Verdict | None = None  # what it means that the editor has made the changes

    def __init__(
        self, record: RunRecord, services: Services, output: RunOutput, judge: Judge, diagnose: Diagnose
    ) -> None:
        self.record = record
        self.outcome: events.Outcome | None = None
        self.deciding = False
        self._services = services
        self._output = output
        self.staging = Staging(lambda path: own_file(self.view, path), self._on_change, record.staged)
        self.view = services.workspace.view(self.staging)
        # An attempt sees frozen buffers; what is decided about it goes into the files as they are now.
        self._present = (services.workspace.present or services.workspace.view)(self.staging)
        self.proofs = Proofs(record, self.view)
        self.refused = ""
        self.judge = judge
        self._diagnose = diagnose
        self.questions = ChangeQuestions(record.run_id, services, output, self.view.roots, self.proofs)
        # Held while the editor is asked: an apply, an undo and a live edit would each merge with texts that the other
        # changes.
        self._applying = asyncio.Lock()
        self.undoing = False
        """Whether the editor is being asked to undo all that the run has applied."""
        self._discarded = False  # whether the user has discarded anything
        self._dropped: set[str] = set()  # while a question about unsaved text is open
        self._undecided = Changeset()  # what was asked about and not decided; the same is not asked about again
        self._since = time.time()  # files that were renamed before that are not looked for
        self._renamed: dict[str, str] = {}  # new names by the old ones, for the next event
        self._left_out = Applied("none")  # the last answer of the editor, to explain what is missing
        self._unconfirmed = frozenset[str]()  # paths that the editor was asked to change, with what result is not known
        self._met: Undone | None = None  # the last undo, if it has met lines of the user's

    @property
    def can_go_over(self) -> bool:
        """Whether the last undo has met lines of the user's that one more undo can go over."""
        return self._met is not None

    @property
    def applying(self) -> bool:
        """Whether the editor is being asked for changes, or to undo some."""
        return self._applying.locked()

    def ending(self, status: events.RunStatus) -> events.Outcome | None:
        """Return what became of all changes of a run that ends so: by what is in the files and what waits, not by the
        last decision alone. None if there were none, or nothing of them is left.
        """
        if self.outcome is None or self.record.unsettled:
            return self.outcome
        if status == "rejected":
            return "none"
        if self.record.applied:
            return "partial" if self.changeset else "full"
        if self.unconfirmed:
            return "unknown"
        return "none" if self.changeset else None

    @property
    def changeset(self) -> Changeset:
        """The changes that are staged and undecided."""
        return self.staging.changeset

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """The accepted files (absolute paths) of which it is not known whether their changes are there; they are staged
        still.
        """
        return tuple(path for path in self.changeset.paths if path in self._unconfirmed)

    async def decide(self, status: events.RunStatus, step: str = "") -> events.RunStatus:
        """Ask the user once about all staged changes, wait, and carry out the answer; return `rejected` if they were
        discarded, `stopped` if a hook refuses them, else `status`. Without an answer they stay staged, and the same
        changes are not asked about again.

        `step` names the step of a plan for the user: its changes are one decision.
        """
        if not self.changeset or self.changeset == self._undecided or self.record.attempt_of:
            return "rejected" if status == "completed" and self._nothing_left() else status
        self.deciding = True
        try:
            self.refused = await self.judge()
            if self.refused:
                return "stopped"
            return await self._decide(status, step)
        finally:
            self.deciding = False
            # After the answer, not before: what was left of a partial decision is not asked about again.
            self._undecided = self.changeset

    async def _decide(self, status: events.RunStatus, step: str) -> events.RunStatus:
        await self.propose()
        if self.applies_unasked():
            self.refused = await _apply_judged(self)
            return "stopped" if self.refused or self._not_done() else status
        review, apply, discard = (self._output.text(f"choice.{name}") for name in ("review", "apply", "discard"))
        choices: tuple[str, ...] = (review, apply, discard)
        beside = False
        # Until it is decided: a review, or a command that stages more meanwhile, brings the question again.
        while self.changeset:
            self.refused = await self.judge()  # a command in the background may have staged more
            if self.refused:
                return "stopped"
            # The user answers about these, whatever is staged while the question is open.
            shown = self.changeset
            plain = self.questions.title(shown)
            title = self._output.text("plan.step", step=step, question=plain) if step else plain
            detail = self.changeset.diff(self.view.roots.relative)
            answer = await self.questions.ask(title, choices, detail, beside=beside)
            if answer == (review,):
                # Reviewing was asked for once; the question then stands beside the open review, not over it.
                beside = await self._services.user.show_review(self.record.run_id)
                choices = (apply, discard)
            elif answer == (apply,) and not shows_all(shown, self.changeset):
                await self.propose()  # a command in the background has staged more meanwhile
            elif answer == (apply,):
                applied = await apply_uninterrupted(self._apply())
                if applied is not None:  # else all was decided about elsewhere meanwhile
                    return "stopped" if self._not_done() else status
            elif answer == (discard,):
                self.discard()
                return "rejected"
            else:
                break
        if self.outcome is None:
            self.outcome = "none"
        return "rejected" if self._nothing_left() else status

    def _nothing_left(self) -> bool:
        """Return whether the user has discarded all, as by commands or step by step."""
        return self._discarded and not self.changeset and not self.record.applied

    async def apply_live(self) -> str:
        """Apply what is staged if the setting `edits.apply` is `live`; return a note for the model on what is not in
        the buffers then, or on a hook's refusal; '' for none.
        """
        if self._services.user.settings().edits.apply != "live" or not self.changeset or self.record.attempt_of:
            return ""
        self.record.propose(self.changeset)
        reason = await _apply_judged(self)
        return REFUSED.format(reason=reason) if reason else self.note()

    def why_not(self) -> str:
        """Return a sentence for the user on why the editor did not make the changes that it was last asked for."""
        if unconfirmed := self.unconfirmed_words():
            return unconfirmed
        applied, output = self._left_out, self._output
        if applied.reason:
            return output.text("outcome.none", reason=applied.reason)
        if not applied.conflicts:
            return output.text("outcome.silent")
        places = ", ".join(f"{self.view.roots.relative(each.path)}:{each.line}" for each in applied.conflicts)
        return output.text("outcome.conflict", places=places)

    def unconfirmed_words(self) -> str:
        """Return a sentence for the user on the files of which it is not known what became of them; '' for none."""
        return self._naming("outcome.unconfirmed", self.unconfirmed)

    def modes_words(self) -> str:
        """Return a sentence for the user on the files that become executable only when they are saved; '' for none."""
        return self._naming("changes.mode_waits", tuple(path for path, runs in self.record.modes_due.items() if runs))

    def _naming(self, key: str, paths: Sequence[str]) -> str:
        names = some_of(map(self.view.roots.relative, paths), MOST_NAMED)
        return self._output.text(key, names=names) if paths else ""

    def note(self) -> str:
        """Return a note for the model after a decision, if the buffers do not hold all that it staged; '' if
        they do.
        """
        left = ", ".join(map(self.view.roots.relative, self.changeset.paths)) or "nothing"
        match self.outcome:
            case "partial":
                return f"Only a part of your changes is in the user's files; not (wholly) in them: {left}."
            case "unknown":
                return "It is not known whether your changes are in the user's files. Read them before you go on."
            case "none":
                return f"Your changes are not in the user's files. Still staged: {left}."
        return ""

    async def apply(
        self,
        files: frozenset[str] | None = None,
        hunks: ChosenHunks | None = None,
        may_lose: frozenset[str] | None = None,
        seen: Changeset | None = None,
    ) -> Applied:
        """Apply the staged changes, or a part of them, to the buffers; the user has agreed. Return what the editor did,
        which may be less. SessionError if nothing is staged, or a chosen hunk does not exist.

        `files` are absolute paths, `hunks` ids of hunks by such a path, or their 0-based numbers in what was `seen`
        (None: in what is staged now), here and in `discard`; `may_lose` are deleted files whose unsaved text is our own
        (None: the user is asked about unsaved text).
        """
        applied = await self._apply(files, hunks, may_lose, seen)
        if applied is None:
            raise SessionError("changes.none")
        return applied

    async def _apply(
        self,
        files: frozenset[str] | None = None,
        hunks: ChosenHunks | None = None,
        may_lose: frozenset[str] | None = None,
        seen: Changeset | None = None,
    ) -> Applied | None:
        """Do what `apply` says; None if there is nothing, as after another decision that this has waited for."""
        async with self._applying:
            moved = await self._follow()
            self.note_late()
            if moved:
                files = files and frozenset(moved.get(path, path) for path in files)
                hunks = hunks and {moved.get(path, path): each for path, each in hunks.items()}
                seen = seen and seen.renamed(moved)
            chosen = part_of(self.changeset, files, self._numbers(files, hunks, seen))
            if may_lose is None:
                self._dropped.clear()
                may_lose = await self.questions.ask_about_unsaved(chosen)
                chosen = self._with_present(chosen.without(self._dropped), may_lose)
            if not chosen:
                return None
            # These stay if this is interrupted or fails.
            self.outcome, self._unconfirmed = "unknown", self._unconfirmed.union(chosen.paths)
            # Before the request: a process that dies in it must know after its restart what may be in the files.
            self._intend(chosen, undo=False)
            applied = await self._services.workspace.editor.apply(chosen, self.record.title, may_lose)
            self._note_applied(applied)
            # From the present changes, not those at the start: a command may have staged more while the editor
            # worked.
            self.staging.reset(after_applying(self.changeset, chosen, applied))
        self.questions.settle()
        return applied

    def _with_present(self, changes: Changeset, paths: Collection[str]) -> Changeset:
        """Return the changes with the deletions of these files made on their present texts, which the user gave up."""
        for change in changes.of(paths):
            if change.kind == "delete" and (now := own_file(self._present, change.path)) is not None:
                changes = changes.with_change(replace(change, base=now.text, version=now.version))
        return changes

    def note_late(self) -> Changeset:
        """Record the changes that the editor made only after it had not confirmed them, and return them: they count as
        applied, can be undone, and no longer wait for a decision. Empty if there are none. Blocks for reading the
        files.
        """
        if self.record.unsettled:  # while the editor is being asked, it is not known what will be late
            return Changeset()
        staged, asked = self.changeset.paths, self.record.late
        if time.time() - self.record.late_since > LATE_SECONDS:  # what was discarded may have been typed by the user
            asked = asked.of(staged)
        # What was refused is expected only as long as it waits: afterwards the undo of another run may bring its text.
        asked = Changeset((*asked, *self.record.denied.of(staged).without(asked.paths)))
        texts = readable_texts(self._present, (each for change in asked for each in (change.path, change.moved_from)))
        late, expected = arrived_hunks(asked, texts)
        if late:
            editor = self._services.workspace.editor
            waits = (each for each in late if each.runs is not None and not editor.set_mode(each.path, runs=each.runs))
            applied = Applied("full", done=late, mode_waits=tuple(each.path for each in waits))
            self._note_applied(applied)
            # Their other hunks may still come.
            self._expect(*(_with_rest(each, expected, late) for each in (self.record.late, self.record.denied)))
            # Not `late` itself: it was made on what the user had typed by then, which the staged text does not have.
            there, _ = arrived_hunks(self.changeset.of(late.paths), texts)
            self.staging.reset(after_applying(self.changeset, there, applied))
            if self.changeset:  # what came late is all there, but not all that was asked for
                self.outcome = "partial"
        return late

    def files_written(self, paths: Collection[str]) -> None:
        """Make those of these files (real paths), which the editor has just written, executable or no longer, for which
        that waited: some editors write a new file only when it is saved.
        """
        if not self.record.mode_waits:
            return
        due = {path: runs for path, runs in self.record.modes_due.items() if os.path.realpath(path) in paths}
        editor = self._services.workspace.editor
        if done := tuple(path for path, runs in due.items() if editor.set_mode(path, runs=runs)):
            self.record.mode_waits -= frozenset(done)
            self._output.emit(events.ModesSet(files_changed=done))

    async def _follow(self) -> dict[str, str]:
        """Stage the changes of files that the user has renamed under their new names; return these by the old ones."""
        # A new file that the editor may have made without a word may have been renamed since, too.
        texts = {**made_texts(self.record.late), **edited_texts(self.changeset)}
        moved = await asyncio.to_thread(renamed_since, texts, self._present, self._since)
        if moved:
            self._renamed.update(moved)
            moved |= await asyncio.to_thread(along_with, moved, self.changeset)
            self.staging.reset(self.changeset.renamed(moved))
            self._expect(self.record.late.renamed(moved), self.record.denied.renamed(moved))
        return moved

    def discard(
        self,
        files: frozenset[str] | None = None,
        hunks: ChosenHunks | None = None,
        seen: Changeset | None = None,
    ) -> Changeset:
        """Discard the staged changes, or a part of them, chosen as for `apply`, and return these; the buffers stay.
        SessionError if there are none, or if the editor has made them after all.
        """
        if late := self.note_late():
            raise SessionError("changes.late", files=", ".join(map(self.view.roots.relative, late.paths)))
        numbers = self._numbers(files, hunks, seen)
        chosen = part_of(self.changeset, files, numbers)
        if not chosen:
            raise SessionError("changes.none")
        self._discarded = True
        self._dropped.update(chosen.paths)
        self.staging.reset(after_discarding(self.changeset, files, numbers))
        partly = tuple(path for path in chosen.paths if path in self.changeset.paths)
        self._output.emit(events.ChangesDiscarded(files_changed=chosen.paths, partly=partly or None))
        self.questions.settle()
        return chosen

    def chosen(
        self, files: frozenset[str] | None, hunks: ChosenHunks | None, seen: Changeset | None = None
    ) -> Changeset:
        """Return a part of the staged changes, chosen as for `apply`. SessionError if there is none, or a chosen hunk
        does not exist. Nothing changes.
        """
        part = part_of(self.changeset, files, self._numbers(files, hunks, seen))
        if not part:
            raise SessionError("changes.none")
        return part

    def conflicts(self) -> tuple[HunkConflict, ...]:
        """Return the staged hunks that touch lines which the user has changed since; () for none. Blocks for reading
        the files.
        """
        files = {each.moved_from or each.path for each in self.changeset}
        now = {path: Current(own_text(self._present, path)) for path in files}
        return self.changeset.rebase(now).conflicts

    def onto_present(self, files: Collection[str]) -> ChosenHunks:
        """Stage the changes of these files (absolute paths) on the user's present text; on lines that both have
        changed, the agent's win. Return the hunks with such lines, their ids or 0-based numbers by path. Blocks for
        reading the files.
        """
        changes = Changeset()
        found: dict[str, frozenset[int | str]] = {}
        for change in self.changeset:
            if change.path in files:
                now = own_file(self._present, change.moved_from or change.path)
                change, found[change.path] = on_present(change, None if now is None else now.text)
            changes = changes.with_change(change)
        self.staging.reset(changes)
        return found

    async def undo(
        self, steps: Collection[str] | None = None, *, files: Collection[str] | None = None, over: bool = False
    ) -> Applied:
        """Undo what this run, or some steps of its plan, have applied, perhaps in some `files` (absolute paths) alone;
        return what the editor did. Later edits of the user are kept: lines that they changed since stay, as conflicts
        of the result, and can be undone as well by one more undo, which goes `over` them. Where nothing else is left to
        undo, these conflicts are returned once more, also after a restart. SessionError if there is nothing to undo.
        """
        async with self._applying:
            self.undoing = steps is None and files is None
            try:
                return await self._undo(steps, files, over=over)
            finally:
                self.undoing = False

    async def _undo(self, steps: Collection[str] | None, files: Collection[str] | None, *, over: bool) -> Applied:
        self.note_late()
        # Only right after an undo that met the user's lines does one more go over them, in the same steps and files.
        if over:
            if self._met is None:
                raise SessionError("undo.nothing")
            steps, files = self._met.steps or None, self._met.only
        parts = [] if over else _concerned(self.record.applied_in(steps), files)
        asks = not over and not parts and steps is None
        if over or asks:
            parts = _concerned(self.record.stayed, files)
        if not parts:
            raise SessionError("undo.nothing")
        only = None if files is None else names_of(files, (part.changeset for part in parts))
        changes, moved = await asyncio.to_thread(follow_moves, parts, self._present)
        if only is not None:
            changes = [each.of({moved.get(path, path) for path in only}) for each in changes]
        self._renamed.update(moved)
        # A closed file in an encoding that we cannot tell is read by the editor, which has to open it for that.
        await self._services.workspace.editor.open_unclear(path for each in changes for path in each.paths)
        back = await asyncio.to_thread(
            taking_back,
            changes,
            self._present,
            over=over or asks,
            still_shown=self._services.workspace.editor.still_shows,
        )
        if asks:
            return self._ask_again(back, only)
        label = self._output.text("undo.label", title=self.record.title)
        self._intend(back.changeset, undo=True)
        applied = await self._services.workspace.editor.apply(back.changeset, label, back.deleted)
        applied, now = back.result(applied), time.time()
        stayed = tuple(filter(None, (back.stayed, applied.left.inverse()))) if applied.conflicts and not over else ()
        undone = Undone(tuple(steps or ()), only, over=over, stayed=stayed)
        self._met = undone if stayed else None
        self.record.take_back(undone, applied.outcome, applied.refused, now)
        self._note_applied(applied, undone)
        return applied

    def _ask_again(self, back: TakingBack, only: frozenset[str] | None) -> Applied:
        """Note as conflicts what going over the user's lines would take back, of what an earlier undo has left."""
        applied = Applied("none", conflicts=back.places())
        undone = Undone(only=only, stayed=tuple(part.changeset for part in self.record.stayed))
        self._met = undone if back.changeset else None
        self.record.take_back(undone, applied.outcome, (), time.time())
        self._note_applied(applied, undone)
        return applied

    async def propose(self) -> None:
        """Emit what is staged for the client, with diagnostics and the proof of it, which may take seconds; ask
        nothing.
        """
        self._output.emit(events.StatusChanged(message=self._output.text("progress.checking")))  # may take seconds
        await self._follow()
        if (found := await self._diagnose(self.changeset)) is not None:
            self.proofs.diagnosed(found, self.changeset)
        self._tell_proposed(self.questions.title(self.changeset))

    def _tell_proposed(self, summary: str) -> None:
        added, removed = self.changeset.counts()
        self.record.propose(self.changeset)
        self._output.emit(
            events.ChangesProposed(
                summary=summary,
                files_changed=self.changeset.paths,
                added=added,
                removed=removed,
                proof=self.proofs.data(self.changeset, self._output.text),
            )
        )

    def tried_on(self, part: Changeset) -> Changeset:
        """Return the changes to the user's present files that make this part of what is staged, for trying it: here the
        part itself.
        """
        return part

    def proved(self) -> tuple[str, ...]:
        """Return sentences for the user on what was tried on the changes; () if nothing was."""
        return self.proofs.words(self.changeset, self._output.text)

    def tested(self) -> Callable[[Tally], None]:
        """Return a function that records the counts of a test run, which begins now, as results for what is staged now,
        even if that changes meanwhile.
        """
        # Taken before the tests run: what is staged meanwhile has not been tried.
        changeset, digest = self.changeset, self.proofs.state(self.changeset)
        return lambda tally: self.proofs.tested(tally, changeset, digest)

    def applies_unasked(self) -> bool:
        """Return whether the user's settings or mode let changes be applied without a question: ours, not those of
        another agent.
        """
        user, lent = self._services.user, self.record.lent
        return not lent and (
            user.settings().edits.apply in ("auto", "live") or user.mode() in ("acceptEdits", "bypass")
        )

    def _not_done(self) -> bool:
        """Return whether the editor has taken nothing of what was accepted, or did not confirm a part of it."""
        self.note_late()  # a slow editor may have made it by now
        return bool(self.unconfirmed) or (self.outcome == "none" and bool(self.changeset))

    def _intend(self, changes: Changeset, *, undo: bool) -> None:
        """Record what the editor is about to be asked for, so that it is known and can be undone, whatever happens."""
        step = self.record.step_id
        self.record.intend(changes, None if undo else AppliedPart(changes, step, time.time()))
        self._output.emit(
            events.ChangesIntended(
                files_changed=changes.paths,
                undo=undo,
                changes=tuple(change.to_dict() for change in changes),
                step_id=None if undo else step or None,
            )
        )

    def _note_applied(self, applied: Applied, undone: Undone | None = None) -> None:
        # First: from now on it is known what the editor was asked for, and a restart need not find out.
        expected = self.record.late, self.record.denied
        self.record.settle(applied.late, time.time(), applied.denied)
        if undone is None:
            self._unconfirmed = self._unconfirmed.difference(applied.done.paths, applied.left.paths)
            self._unconfirmed = self._unconfirmed.union(applied.unconfirmed)
        self.record.mode_waits |= frozenset(applied.mode_waits)
        if applied.done and undone is None:
            self.record.accept(applied.done)
            self.record.applied.append(AppliedPart(applied.done, self.record.step_id, time.time()))
        self.outcome, self._left_out = applied.outcome, applied
        name = self.view.roots.relative
        conflicts = tuple(f"{name(conflict.path)}:{conflict.line}" for conflict in applied.conflicts)
        self._output.emit(
            events.ChangesApplied(
                outcome=applied.outcome,
                files_changed=applied.done.paths,
                conflicts=conflicts,
                reason=applied.reason or None,
                undo=undone is not None,
                applied=tuple(change.to_dict() for change in applied.done),
                step_id=(self.record.step_id or None) if undone is None else None,
                refused=None if undone is None else applied.refused or None,
                renamed={name(old): name(new) for old, new in self._renamed.items()} or None,
                verdict=self._verdict if undone is None else None,
                unconfirmed=applied.unconfirmed or None,
                mode_waits=applied.mode_waits or None,
                **_undone_data(undone),
            )
        )
        self._renamed.clear()
        if expected != (self.record.late, self.record.denied):
            self._expect(self.record.late, self.record.denied)

    def _expect(self, late: Changeset, denied: Changeset) -> None:
        self.record.late, self.record.denied = late, denied
        late_data, denied_data = (tuple(change.to_dict() for change in each) for each in (late, denied))
        self._output.emit(events.ChangesExpected(late=late_data, denied=denied_data))

    def _numbers(
        self, files: frozenset[str] | None, hunks: ChosenHunks | None, seen: Changeset | None
    ) -> HunkNumbers | None:
        """Return the present numbers of hunks. SessionError if what was chosen is not staged any more as seen."""
        try:
            return numbers_now(seen, self.changeset, files, hunks)
        except LookupError as error:
            if not error.args:
                raise SessionError("changes.others") from error
            name, (path, gone) = self.view.roots.relative, error.args
            there = [f"{name(each.path)}#{known}" for each in self.changeset for known in each.hunk_ids()]
            there += [name(each.path) for each in self.changeset if each.kind != "edit"]
            staged = some_of(there, MOST_NAMED, counted=False) or "-"
            raise SessionError("changes.gone", hunk=f"{name(path)}#{gone}", staged=staged) from error

    def _on_change(self, path: str, change: FileChange | None) -> None:
        self.record.staged = self.staging.changeset
        self._output.emit(events.FileChanged(path=path, change=None if change is None else change.to_dict()))


def _with_rest(expected: Changeset, rest: Changeset, came: Changeset) -> Changeset:
    """Return the changes that are still expected once those of `came` are there: of their files only the `rest`."""
    left = (each for each in rest.of(came.paths) if expected.get(each.path) is not None)
    return Changeset((*expected.without(came.paths), *left))


def part_of(changeset: Changeset, files: frozenset[str] | None, hunks: HunkNumbers | None) -> Changeset:
    """Return the chosen part of the changes: `files` whole, and of others the `hunks` (0-based numbers by absolute
    path); None for both means all. SessionError if a chosen hunk does not exist: the changes may be others than the
    user has seen.
    """
    for path, numbers in (hunks or {}).items():
        change = changeset.get(path)
        if change is None or not numbers <= frozenset(range(max(1, len(change.hunks())))):
            raise SessionError("changes.none")
    return changeset.split(files, hunks)[0]


def _concerned(parts: list[AppliedPart], files: Collection[str] | None) -> list[AppliedPart]:
    """Return the parts if any of them is about one of the files, by any name that it has had; None for all files."""
    if files is None:
        return parts
    changes = [part.changeset for part in parts]
    names = names_of(files, changes)
    return parts if any(each.of(names) for each in changes) else []


def _undone_data(undone: Undone | None) -> dict[str, Any]:
    """Return an undo as fields of `changes_applied`; {} for None."""
    if undone is None:
        return {}
    return {
        "steps": undone.steps,
        "only": None if undone.only is None else tuple(sorted(undone.only)),
        "over": undone.over or None,
        "stayed": tuple(map(staged_data, undone.stayed)) or None,
    }


async def _apply_judged(proposal: Proposal) -> str:
    """Apply what is staged if nothing speaks against it; return what does. What is staged meanwhile is judged, too."""
    while not (reason := await proposal.judge()):
        try:
            await apply_uninterrupted(proposal._apply(seen=proposal.changeset))
        except SessionError:  # it is not as it was judged
            continue
        break
    return reason


async def apply_uninterrupted(applying: Coroutine[Any, Any, T]) -> T:
    """Await `applying` and return its result; a cancellation meanwhile waits up to 0.8 seconds for it, so that the
    outcome is known, then cancels it, and is raised.
    """
    work = asyncio.ensure_future(applying)
    try:
        # Without it a cancellation would leave an edit of which nobody knows whether the editor took it.
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        try:
            await asyncio.wait([work], timeout=APPLY_GRACE_SECONDS)
        finally:
            work.cancel()
            work.add_done_callback(looked_at)
            await asyncio.wait([work], timeout=ACCOUNT_SECONDS)  # it notes what has been applied, and ends
        raise


def looked_at(work: asyncio.Task[Any]) -> None:
    """Retrieve the exception of a task that nobody waits for, so that asyncio does not log it."""
    if not work.cancelled():
        work.exception()
