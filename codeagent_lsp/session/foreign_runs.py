"""Runs that gather what other programs changed on the disk: reviewed, tried and decided about as all changes are.

Their changes are in the files already. To accept one writes nothing, but merges it into unsaved text; to decline one
takes it back, by an edit of the text as it is now. Not here: noticing and judging such changes (`foreign/`), the
question about them (`server/foreign_changes.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.foreign.whose import DiskChange
from codeagent_lsp.session.own_commands import Ended
from codeagent_lsp.session.own_runs import OwnWork
from codeagent_lsp.session.proposal import Proposal, part_of
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.run_parts import RunParts
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.changes.editor import Applied
from codeagent_lsp.workspace.changes.remaining import after_applying, after_discarding, on_present
from codeagent_lsp.workspace.changes.reviewed import ChosenHunks
from codeagent_lsp.workspace.edits.merge import merge
from codeagent_lsp.workspace.files.file_view import own_file

MOST_NAMED = 5


# What a run holds, after more changes. Pure.


def joined(present: Changeset, changes: Iterable[DiskChange]) -> Changeset:
    """Return the foreign changes with those that were made since. What was changed back is in it no longer."""
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


def with_part(change: FileChange, wanted: str | None, now: str | None) -> str | None:
    """Return the user's text `now` with a part of a foreign change, which alone makes the text `wanted`: what they have
    not saved stays, and so does what a buffer has not read yet.
    """
    if change.base is None or change.text is None or wanted is None or now is None:
        return wanted
    whole = merge(change.base, change.text, now, beside=True).text
    return merge(change.text, wanted, whole, beside=True).text


# The changes of one such run, and the decisions about them.


class ForeignProposal(Proposal):
    """The changes of a foreign run. `contested` are the edits that would take changes back where the user has changed
    the same lines since.
    """

    contested = Changeset()

    def joins(self, changes: Iterable[DiskChange]) -> bool:
        """Add changes that were made since; return whether anything is different now."""
        before = self.changeset
        after = joined(before, changes)
        if after != before:
            self.staging.reset(after)
        return after != before

    def tried_on(self, part: Changeset) -> Changeset:
        """Return what makes the files as they would be with this part of the changes alone."""
        found = Changeset()
        for change in self.changeset:
            kept, now = part.get(change.path), own_file(self.view, change.path)
            wanted = change.base if kept is None else kept.text
            text = with_part(change, wanted, None if now is None else now.text)
            found = found.with_change(FileChange(change.path, None if now is None else now.text, text))
        return found

    def title(self) -> str:
        """Return what was changed, and what was tried on it, in one line."""
        added, removed = self.changeset.counts()
        count = len(self.changeset.paths)
        line = self._output.text("foreign.changed", count=count, added=added, removed=removed)
        return " ".join((line, *self.proved()))

    async def decide(self, status: events.RunStatus, step: str = "") -> events.RunStatus:
        """Tell what was changed; nobody is asked, as nothing has to be decided."""
        if self.changeset:
            await self.propose()
        return status

    async def propose(self) -> None:
        """Tell the client what was changed, with the proof of it."""
        added, removed = self.changeset.counts()
        self.record.propose(self.changeset)
        self._output.emit(
            events.ChangesProposed(
                summary=self.title(),
                files_changed=self.changeset.paths,
                added=added,
                removed=removed,
                proof=self.proofs.data(self.changeset, self._output.text),
            )
        )

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
            unsaved = tuple(each for each in chosen if each.kind == "edit" and editor.has_unsaved_text(each.path))
            applied = Applied("full", chosen)
            if unsaved:
                self.outcome = "unknown"
                merged = await editor.apply(Changeset(unsaved), self.record.title)
                # What the buffer did not take stays, to be decided about once more.
                applied = replace(merged, done=chosen.without(merged.left.paths))
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
        """Take the changes back, or a part of them, in the texts as they are now; what the user has changed there since
        stays, as conflicts of the result. SessionError if there are none.
        """
        async with self._applying:
            numbers = self._numbers(files, hunks, seen)
            before, chosen = self.changeset, part_of(self.changeset, files, numbers)
            if not chosen:
                raise SessionError("changes.none")
            rest = after_discarding(before, files, numbers)
            back = _between(before.of(chosen.paths), rest)
            await self._services.workspace.editor.open_unclear(back.paths)
            applied = await self._take_back(back)
            contested = {conflict.path for conflict in applied.conflicts}
            self.contested = back.of(contested)
            for path in applied.done.paths:
                if path not in contested:
                    self._decided(path, before, rest)
        self.questions.settle()
        return applied

    async def revert_contested(self) -> Applied:
        """Take back also what the user has changed since. SessionError if there is nothing of that kind."""
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
            applied = await self._take_back(laid, may_lose=frozenset(laid.paths))
            self._leave_contested(frozenset(applied.left.paths))
        return applied

    def keep_contested(self) -> None:
        """Let what the user has changed since stay, with what it was made on."""
        self._leave_contested(frozenset())

    async def _take_back(self, back: Changeset, may_lose: frozenset[str] = frozenset()) -> Applied:
        label = self._output.text("foreign.revert_label", title=self.record.title)
        self._intend(back, undo=False)
        applied = await self._services.workspace.editor.apply(back, label, may_lose)
        # A buffer that has not read the change has nothing to take back; an undo brings the change there all the same.
        missing = back.without((*applied.done.paths, *applied.left.paths))
        applied = replace(applied, done=Changeset((*applied.done, *missing)))
        self._note_applied(applied, undo=False)
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

    def _decided(self, path: str, before: Changeset, rest: Changeset) -> None:
        """Stage what is left of a file after a part was taken back, with what was changed outside meanwhile."""
        was, left, now = before.get(path), rest.get(path), self.changeset.get(path)
        if now is None or was is None:
            return
        reverted = was.base if left is None else left.text
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
            )
        )


def gathering(changes: Iterable[DiskChange], unknown: tuple[str, ...]) -> OwnWork:
    """Return the work of a run that holds these changes; of the files that are `unknown` only their names are told."""

    async def gather(parts: RunParts, request: RunRequest) -> Ended:
        proposal = parts.proposal
        assert isinstance(proposal, ForeignProposal)
        proposal.joins(changes)
        return "completed", unknown_words(unknown, parts.output.language)

    return gather


def unknown_words(names: tuple[str, ...], language: str) -> str:
    """Return a sentence about files that have changed and cannot be reviewed; '' for none."""
    if not names:
        return ""
    named = ", ".join((*names[:MOST_NAMED], *(["…"] if len(names) > MOST_NAMED else [])))
    return text("foreign.unknown", language, names=named)


def _between(before: Changeset, after: Changeset) -> Changeset:
    """Return the edits from the texts of one state of changes to those of a later one, where they differ."""
    back = Changeset()
    for change in before:
        left = after.get(change.path)
        back = back.with_change(FileChange(change.path, change.text, change.base if left is None else left.text))
    return back
