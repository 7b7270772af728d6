"""Runs that gather what other programs changed on the disk: reviewed, tried and decided about as all changes are.

Their changes are in the files already. To accept one writes nothing, but merges it into unsaved text; to decline one
takes it back, by an edit of the text as it is now. Not here: noticing and judging such changes (`foreign/`), the
question about them (`server/foreign_changes.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import replace

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.foreign.whose import DiskChange
from codeagent_lsp.session.own_runs import OwnWork
from codeagent_lsp.session.proposal import Diagnose, Judge, Proposal, part_of
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.run_output import RunOutput
from codeagent_lsp.session.run_parts import Ended, RunParts
from codeagent_lsp.session.services import Services
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.changes.changeset import (
    Applied,
    ApplyOutcome,
    Changeset,
    Current,
    FileChange,
    HunkConflict,
)
from codeagent_lsp.workspace.changes.reviewed import ChosenHunks, after_applying, after_discarding, on_present
from codeagent_lsp.workspace.edits.merge import Merged, merge, runs
from codeagent_lsp.workspace.files.file_view import own_file
from codeagent_lsp.workspace.text.visible import some_of

MOST_NAMED = 5
MOST_TEXTS = 8
AT_ONCE = 10


# What a run holds, after more changes. Pure.


def join_changes(present: Changeset, changes: Iterable[DiskChange]) -> Changeset:
    """Return the foreign changes with those that were made since; files that were changed back are left out. Changes
    that are not foreign only move a foreign change of their file. Pure.
    """
    for each in changes:
        known = present.get(each.path)
        if known is None:
            if each.is_foreign:
                present = present.with_change(FileChange(each.path, each.was, each.now))
            continue
        after = _further(known, each) if each.is_foreign else _around(known, each)
        present = present.without((each.path,)) if after.empty else present.with_change(after)
    return present


def _further(known: FileChange, change: DiskChange) -> FileChange:
    """Return a foreign change after one more; what was taken back of it, but is not saved yet, stays taken back."""
    if None in (known.text, change.was, change.now) or known.text == change.was:
        return replace(known, text=change.now)
    return replace(known, text=merge(change.was or "", known.text or "", change.now or "", beside=True).text)


def _around(known: FileChange, change: DiskChange) -> FileChange:
    """Return what is left of a foreign change in a text that the user or git has changed since."""
    if change.now == known.base or change.now is None:
        return replace(known, text=known.base)
    if known.base is None:
        return replace(known, text=change.now)
    if known.text is None:  # it is there again, by the user
        return replace(known, text=known.base)
    # Their part is what can still be taken back of the present text.
    return replace(known, base=merge(known.text, known.base, change.now, beside=True).text, text=change.now)


def on_taken_back(changes: Iterable[DiskChange], runs: Iterable[ForeignProposal]) -> tuple[DiskChange, ...]:
    """Return the changes of the disk as changes of the user's text, which lacks foreign changes that were taken back
    but are not saved yet. Updates `taken_back` of the runs, which forget files that were saved.
    """
    proposals, found = tuple(runs), list[DiskChange]()
    for each in changes:
        holder = next((one for one in reversed(proposals) if each.path in one.taken_back), None)
        if holder is None:
            found.append(each)
            continue
        had = holder.taken_back[each.path]
        if not each.is_foreign or None in (had, each.was, each.now):
            del holder.taken_back[each.path]
            found.append(each)
            continue
        text = merge(each.was or "", had or "", each.now or "", beside=True).text
        holder.taken_back[each.path] = text
        found.append(replace(each, was=had, now=text))
    return tuple(found)


def nearest(texts: Iterable[str], now: str) -> str:
    """Return the text, of at least one, from which `now` differs in the fewest lines, the first of equal ones; it is
    taken as what a buffer had read from the disk before the user typed in it.
    """

    def distance(text: str) -> int:
        return sum(run.old_end - run.old_start + run.new_end - run.new_start for run in runs(text, now))

    return min(texts, key=distance)


def without_part(change: FileChange, left: str, now: str, read: str) -> Merged:
    """Return the user's text `now` without a part of a foreign change; `left` is the text without that part, `read`
    what the editor had read from the disk before the user typed. Conflicts are places that the user has changed since.
    """
    if change.base is None or change.text is None or (read == change.base and read != change.text):
        return Merged(now, ())  # it has nothing of the change
    # First as the disk has it: of a change that came in several steps, a buffer may have read the first ones only.
    whole = merge(read, change.text, now, beside=True)
    taken = merge(change.text, left, whole.text, beside=True)
    return Merged(taken.text, (*whole.conflicts, *taken.conflicts))


# The changes of one such run, and the decisions about them.


class ForeignProposal(Proposal):
    """The changes of a foreign run. `contested` are edits which would take back changes on lines that the user has
    changed since. `taken_back` are, by absolute path, the texts that the disk should have without the changes taken
    back, until the user saves them.
    """

    contested = Changeset()
    _verdict = "reverted"

    def __init__(
        self, record: RunRecord, services: Services, output: RunOutput, judge: Judge, diagnose: Diagnose
    ) -> None:
        super().__init__(record, services, output, judge, diagnose)
        self.taken_back: dict[str, str | None] = {}
        self._texts: dict[str, tuple[str, ...]] = {}  # what the disk had, by path: a buffer may have read any of them
        self._refused = Changeset()  # kept changes that a buffer with unsaved text did not take

    def ending(self, status: events.RunStatus) -> events.Outcome | None:
        """Return what became of the last decision; None before any, as all changes are in the files from the
        beginning.
        """
        return self.outcome

    async def joins(self, changes: Iterable[DiskChange]) -> bool:
        """Add changes of the disk that were made since (as `join_changes` does), and store each; return whether
        anything is different now.
        """
        waiting, differs = list(changes), False
        async with self._applying:
            while waiting:
                some, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
                for each in some:
                    self._may_be_read(each.path, each.was, each.now)
                before = self.changeset
                after = join_changes(before, some)
                if after != before:
                    differs = True
                    self.staging.reset(after)
                # Each file is stored before it is shown, which takes a while for hundreds.
                await asyncio.sleep(0)
        return differs

    def tried_on(self, part: Changeset) -> Changeset:
        """Return the changes that make the user's files as they would be with only this part of the foreign changes.
        Blocks for reading the files.
        """
        found = Changeset()
        for change in self.changeset:
            kept, file = part.get(change.path), own_file(self.view, change.path)
            text = change.base if kept is None else kept.text
            now = None if file is None else file.text
            if None not in (change.base, change.text, text, now):
                # What the user has not saved stays, and what a buffer has not read yet is there.
                whole = self._reading(change, now or "")
                present = merge(whole.base or "", change.text or "", now or "", beside=True).text
                text = merge(change.text or "", text or "", present, beside=True).text
            found = found.with_change(FileChange(change.path, now, text))
        return found

    def title(self) -> str:
        """Return one line for the user with the number of files and lines changed, and what was tried on them."""
        added, removed = self.changeset.counts()
        count = len(self.changeset.paths)
        line = self._output.text("foreign.changed", count=count, added=added, removed=removed)
        return " ".join((line, *self.proved()))

    async def undo(
        self, steps: Collection[str] | None = None, *, files: Collection[str] | None = None, over: bool = False
    ) -> Applied:
        """Bring back what was taken back, by an edit; parameters, result and errors as of `Proposal.undo`."""
        self.taken_back.clear()
        return await super().undo(steps, files=files, over=over)

    async def decide(self, status: events.RunStatus, step: str = "") -> events.RunStatus:
        """Show the changes to the user without a question, as the files have them already; return `status`
        unchanged.
        """
        if self.changeset:
            await self.propose()
        return status

    async def propose(self) -> None:
        """Emit the changes for the client, with the proof of them; ask nothing and run nothing."""
        self._tell_proposed(self.title())

    async def _apply(
        self,
        files: frozenset[str] | None = None,
        hunks: ChosenHunks | None = None,
        may_lose: frozenset[str] | None = None,
        seen: Changeset | None = None,
    ) -> Applied | None:
        """Keep the changes: nothing is written, but a file with unsaved text gets them merged into that."""
        async with self._applying:
            chosen = part_of(self.changeset, files, self._numbers(files, hunks, seen))
            if not chosen:
                return None
            editor = self._services.workspace.editor
            unsaved = tuple(
                self._reading(each, file.text)
                for each in chosen
                if each.kind == "edit"
                and editor.has_unsaved_text(each.path)
                and (file := own_file(self._present, each.path)) is not None
            )
            applied = Applied("full", chosen)
            if unsaved:
                self.outcome = "unknown"
                merged = await editor.apply(Changeset(unsaved), self.record.title)
                # What the buffer did not take stays, to be decided about once more.
                applied = replace(merged, done=chosen.without(merged.left.paths))
                self._refused = merged.left
            self.outcome = applied.outcome
            self._tell_kept(applied)
            self.staging.reset(after_applying(self.changeset, chosen, applied))
        self.questions.settle()
        return applied

    async def revert(
        self,
        files: frozenset[str] | None = None,
        hunks: ChosenHunks | None = None,
        seen: Changeset | None = None,
    ) -> Applied:
        """Take the changes back in the texts as they are now, by an edit through the editor, or a part of them, chosen
        as for `Proposal.apply`, and return what the editor did; places that the user has changed since stay, as
        conflicts of the result. SessionError if there are none.
        """
        async with self._applying:
            numbers = self._numbers(files, hunks, seen)
            before, chosen = self.changeset, part_of(self.changeset, files, numbers)
            if not chosen:
                raise SessionError("changes.none")
            rest = after_discarding(before, files, numbers)
            back = _between(before.of(chosen.paths), rest)
            await self._services.workspace.editor.open_unclear(back.paths)
            applied = await self._take_back(back, *self._on_present(before, back))
            contested = {conflict.path for conflict in applied.conflicts}
            self.contested = back.of(contested)
            for path in applied.done.paths:
                if path not in contested:
                    self._stage_rest(path, before, rest)
        self.questions.settle()
        return applied

    async def revert_contested(self) -> Applied:
        """Take back, by an edit, also the changes whose lines the user has changed since, and return what the editor
        did. SessionError if there are none.
        """
        async with self._applying:
            contested, laid = self.contested, Changeset()
            for change in contested:
                now = own_file(self._present, change.path)
                if now is not None and change.text is not None:
                    laid = laid.with_change(replace(on_present(change, now.text)[0], version=now.version))
                elif now is not None:
                    laid = laid.with_change(FileChange(change.path, now.text, None, now.version))
            if not laid:
                raise SessionError("changes.none")
            applied = await self._take_back(laid, laid, (), may_lose=frozenset(laid.paths))
            self._leave_contested(frozenset(applied.left.paths))
        return applied

    def keep_contested(self) -> None:
        """Keep the lines that the user has changed since, and the foreign changes below them; they are no longer
        contested.
        """
        self._leave_contested(frozenset())

    def conflicts(self) -> tuple[HunkConflict, ...]:
        """Return the changes that touch the same lines as unsaved text of the user."""
        present = {path: Current(file.text) for path in self._refused.paths if (file := own_file(self._present, path))}
        return self._refused.of(self.changeset.paths).rebase(present).conflicts

    def onto_present(self, files: Collection[str]) -> ChosenHunks:
        """Stage the changes of these files as `Proposal.onto_present`, on what each buffer had read from the disk."""
        self.staging.reset(Changeset(tuple(self._refused.get(each.path) or each for each in self.changeset)))
        return super().onto_present(files)

    def _reading(self, change: FileChange, now: str) -> FileChange:
        """Return a change for a buffer with the text `now`: of one that has read a part of all changes from the disk
        before the user typed, what is missing.
        """
        whole = self.changeset.get(change.path) or change
        read = nearest(self._read(whole), now)
        return change if read == whole.base else replace(change, base=read, text=whole.text)

    def _may_be_read(self, path: str, *texts: str | None) -> None:
        """Note texts that a buffer of a file may have had, before the user typed in it."""
        known = dict.fromkeys((*self._texts.get(path, ()), *(text for text in texts if text is not None)))
        self._texts[path] = tuple(known)[-MOST_TEXTS:]

    def _read(self, whole: FileChange) -> tuple[str, ...]:
        """Return the texts that a buffer may have read, the oldest first."""
        texts = (whole.base, *self._texts.get(whole.path, ()), whole.text)
        return tuple(dict.fromkeys(text for text in texts if text is not None))

    def _on_present(self, before: Changeset, back: Changeset) -> tuple[Changeset, tuple[HunkConflict, ...]]:
        """Return the edits of the present texts that take changes back, and where the user has changed the lines."""
        laid, conflicts = Changeset(), list[HunkConflict]()
        for change in back:
            whole, file = before.get(change.path), own_file(self._present, change.path)
            if whole is None or file is None or None in (whole.base, whole.text, change.text):
                laid = laid.with_change(change)
                continue
            # Of several alike the newest: the lines are looked at then, and the user is asked.
            read = nearest(reversed(self._read(whole)), file.text)
            merged = without_part(whole, change.text or "", file.text, read)
            laid = laid.with_change(FileChange(change.path, file.text, merged.text, file.version))
            conflicts += [HunkConflict(change.path, each.line + 1, each.ours, each.theirs) for each in merged.conflicts]
        return laid, tuple(conflicts)

    async def _take_back(
        self,
        back: Changeset,
        laid: Changeset,
        conflicts: tuple[HunkConflict, ...],
        may_lose: frozenset[str] = frozenset(),
    ) -> Applied:
        """Have the editor make the edits `laid`, which take `back` changes in the present texts."""
        label = self._output.text("foreign.revert_label", title=self.record.title)
        self._intend(back, undo=False)
        applied = Applied("full") if not laid else await self._services.workspace.editor.apply(laid, label, may_lose)
        if conflicts:
            refused = back.of({each.path for each in conflicts})
            left = Changeset((*applied.left.without(refused.paths), *refused))
            outcome: ApplyOutcome = "partial" if applied.done else "none"
            applied = replace(applied, outcome=outcome, left=left, conflicts=(*applied.conflicts, *conflicts))
        # A buffer that has not read the change has nothing to take back; an undo brings the change there all the same.
        missing = back.without((*laid.paths, *applied.left.paths))
        applied = replace(applied, done=Changeset((*applied.done, *missing)))
        self._note_applied(applied)
        return applied

    def _leave_contested(self, still: frozenset[str]) -> None:
        before = self.changeset
        rest = before
        for change in self.contested.without_files(still):
            known = before.get(change.path)
            left = change.text if known is None else known.base
            rest = rest.without((change.path,)).with_change(FileChange(change.path, left, change.text))
        self.contested = self.contested.of(still)
        self.staging.reset(rest)

    def _stage_rest(self, path: str, before: Changeset, rest: Changeset) -> None:
        """Stage what is left of a file after a part was taken back, with what was changed outside meanwhile."""
        was, left, now = before.get(path), rest.get(path), self.changeset.get(path)
        if now is None or was is None:
            return
        reverted = was.base if left is None else left.text
        self._may_be_read(path, reverted)
        self.taken_back[path] = reverted
        if now != was and None not in (was.text, reverted, now.text):
            reverted = merge(was.text or "", reverted or "", now.text or "", beside=True).text
        after = replace(now, text=reverted)
        kept = self.changeset.without((path,)) if after.empty else self.changeset.with_change(after)
        self.staging.reset(kept)

    def _tell_kept(self, applied: Applied) -> None:
        name = self.view.roots.relative
        self._output.emit(
            events.ChangesApplied(
                outcome=applied.outcome,
                files_changed=applied.done.paths,
                conflicts=tuple(f"{name(each.path)}:{each.line}" for each in applied.conflicts),
                reason=applied.reason or None,
                verdict="kept",
                unconfirmed=applied.unconfirmed or None,
            )
        )


def gathering(changes: Iterable[DiskChange], unknown: tuple[str, ...]) -> OwnWork:
    """Return the work of a run that holds these changes; the files in `unknown`, by name, could not be read, and are
    only named in its summary.
    """

    async def gather(parts: RunParts, request: RunRequest) -> Ended:
        proposal = parts.proposal
        assert isinstance(proposal, ForeignProposal)
        await proposal.joins(changes)
        return "completed", unknown_words(unknown, parts.output.language)

    return gather


def unknown_words(names: tuple[str, ...], language: str) -> str:
    """Return a sentence in the language `en` or `zh-cn` about files that have changed and cannot be reviewed, of which
    it names 5; '' for none.
    """
    if not names:
        return ""
    return text("foreign.unknown", language, names=some_of(names, MOST_NAMED, counted=False))


def _between(before: Changeset, after: Changeset) -> Changeset:
    """Return the edits from the texts of one state of changes to those of a later one, where they differ."""
    back = Changeset()
    for change in before:
        left = after.get(change.path)
        back = back.with_change(FileChange(change.path, change.text, change.base if left is None else left.text))
    return back
