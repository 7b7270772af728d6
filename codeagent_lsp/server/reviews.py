"""Reviews the staged changes of runs outside of a prompt: shows them, applies them, undoes them, rolls back a plan.
Accepted changes that the editor did not confirm, as when it was busy, are told once its documents have them.

Not here: how changes reach the buffers (`editor.py`), what is asked at the end of a run (`session/proposal.py`).
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from codeagent_lsp.errors import SessionError
from codeagent_lsp.server.actions import Waiting, pending_part, task_of
from codeagent_lsp.server.announcer import Announcer
from codeagent_lsp.server.virtual_documents import VirtualDocuments
from codeagent_lsp.session.manager import SessionManager
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.changes.changeset import Applied, Changeset, FileChange
from codeagent_lsp.workspace.changes.reviewed import (
    ChosenHunks,
    HunkPlace,
    may_have_arrived,
    places_in_code,
    places_in_diff,
    review_digest,
)
from codeagent_lsp.workspace.files import uris

if TYPE_CHECKING:
    from codeagent_lsp.server.documents import Documents
    from codeagent_lsp.session.run import Run
    from codeagent_lsp.workspace.text.document import Document

MOST_SEEN = 32
LATE_SECONDS = 0.3  # an editor tells of several edits one after the other, and typing is not held up


class Reviews:
    """Shows and carries out reviews of the runs of one server. `manager` is called when it is needed, as the manager is
    built later; `open_documents` are those that the client has open, which are watched until `close`.
    """

    def __init__(
        self,
        documents: VirtualDocuments,
        announcer: Announcer,
        manager: Callable[[], SessionManager],
        open_documents: Documents,
    ) -> None:
        self._documents = documents
        self._open_documents = open_documents
        self._shown: dict[str, str] = {}
        self._placed: dict[tuple[str, str], tuple[FileChange, str, tuple[HunkPlace, ...]]] = {}
        self._announcer = announcer
        self._manager = manager
        # By digest, what was shown; by run, what numbers of hunks count in. They differ: a decision changes the run's
        # changes, but hunk 3 of a list that the user looks at stays hunk 3.
        self._seen: OrderedDict[str, Changeset] = OrderedDict()
        self._counted: OrderedDict[str, Changeset] = OrderedDict()
        self._looking: asyncio.Task[None] | None = None
        self._unsubscribe = open_documents.subscribe(self._on_change)

    def seen(self, run: Run, digest: str | None, hunks: ChosenHunks | None) -> Changeset | None:
        """Return the changeset that a review with this digest showed. Without one: if hunks are chosen by number, the
        changeset in which these count (the last review of the run, or what was staged at the first such decision); else
        None. SessionError for an unknown digest.
        """
        if digest is None:
            numbers = any(isinstance(each, int) for chosen in (hunks or {}).values() for each in chosen)
            return self._count_in(run.record.run_id, run.proposal.changeset) if numbers else None
        if digest not in self._seen:
            raise SessionError("changes.others")
        return self._seen[digest]

    def diff(self, run_id: str) -> str:
        """Return a run's staged changes as a unified diff with paths relative to the workspace; '' for none.
        SessionError for an unknown run.
        """
        proposal = self._manager().runs.get(run_id).proposal
        return proposal.changeset.diff(proposal.view.roots.relative)

    def data(self, run_id: str) -> dict[str, Any]:
        """Return the answer of `codeagent.review`: `runId`, `diff`, `digest`, by which decisions about it can name it,
        `proof`, sentences on what was tried on the changes, and `unneeded`, the hunks that the tests do not need.
        SessionError for an unknown run.
        """
        proposal = self._manager().runs.get(run_id).proposal
        unneeded = list(proposal.proofs.unneeded(proposal.changeset))
        return {
            "runId": run_id,
            "diff": self.diff(run_id),
            "digest": self._see(run_id, proposal.changeset),
            "proof": list(proposal.proved()),
            "unneeded": unneeded,
        }

    async def show(self, run_id: str) -> bool:
        """Open the diff of a run, with what was tried on it before it. Waits for the client; return whether it opened
        it.
        """
        self._write(run_id)
        return await self._documents.show(review_name(run_id))

    def run_of(self, uri: str) -> str | None:
        """Return the id of the run whose diff a document is; None for other documents."""
        return self._shown.get(uris.key(uri))

    def parts(self, uri: str) -> tuple[Waiting, ...]:
        """Return the offers for each hunk and file in a document, a diff or a file with staged changes; () for
        others.
        """
        run_id = self.run_of(uri)
        document = self._open_documents.get(uri)
        if document is None:
            return ()
        if run_id is not None:
            return self._parts_of_diff(run_id, uri, document.text)
        path, found = uris.real_path(uri) or uri, list[Waiting]()
        for run in self._manager().runs.all():
            change = None if run.record.attempt_of else run.proposal.changeset.get(path)
            if change is not None:
                found.extend(self._parts_of_code(run, change, uri, document.text))
        return tuple(found)

    def _parts_of_diff(self, run_id: str, uri: str, shown: str) -> tuple[Waiting, ...]:
        """Return the offers in a diff as the user has it, perhaps an older one: what is decided about is left out, and
        so is what has changed since. Hunks are named by their text.
        """
        proposal, language = self._manager().runs.get(run_id).proposal, self._announcer.language
        roots, found = proposal.view.roots, list[Waiting]()
        staged = {f"{roots.relative(each.path)}#{known}" for each in proposal.changeset for known in each.hunk_ids()}
        lines, written = shown.splitlines(), self._documents.text(review_name(run_id))
        digest, foreign = review_digest(proposal.changeset), self._is_foreign(run_id)
        self._remember(digest, proposal.changeset)
        for file in places_in_diff(lines):
            left = [hunk for hunk in file.hunks if hunk.hunk in staged]
            for hunk in left:
                part: dict[str, Any] = {"hunks": [hunk.hunk]}
                found.append(pending_part(run_id, part, uri, (hunk.first, hunk.last), language, foreign=foreign))
            whole = "\n".join(lines[file.first : file.last + 1])
            if left:  # exactly those that the user sees
                part = {"hunks": [hunk.hunk for hunk in left]}
            # A file that can only be decided about as a whole has no ids; that its lines are unchanged shows that it is
            # the same.
            elif not any(hunk.hunk for hunk in file.hunks) and whole in written:
                part = {"files": [file.name], "digest": digest}
            else:
                continue
            name = PurePath(file.name).name
            found.append(pending_part(run_id, part, uri, (file.first, file.last), language, name=name, foreign=foreign))
        return tuple(found)

    def _parts_of_code(self, run: Run, change: FileChange, uri: str, now: str) -> tuple[Waiting, ...]:
        if change.kind != "edit":
            return ()
        run_id, language, name = run.record.run_id, self._announcer.language, PurePath(change.path).name
        known = self._placed.get((run_id, change.path))
        if known is None or known[0] != change or known[1] != now:
            known = self._placed[run_id, change.path] = (change, now, places_in_code(change, now))
            while len(self._placed) > MOST_SEEN:
                del self._placed[next(iter(self._placed))]
        relative, foreign = run.proposal.view.roots.relative(change.path), self._is_foreign(run_id)
        offer = partial(
            pending_part,
            run_id,
            uri=uri,
            language=language,
            foreign=foreign,
            task=task_of(run, self._manager().runs.all()),
        )
        ids = [f"{relative}#{each.hunk}" for each in known[2]]
        hunks = [
            offer({"hunks": [known_id]}, lines=(each.first, each.last))
            for known_id, each in zip(ids, known[2], strict=True)
        ]
        file = offer({"hunks": ids}, lines=(0, now.count("\n") + 1), name=name)
        return (*hunks, replace(file, lens=False))  # the first line has lenses for all changes of the run

    def _is_foreign(self, run_id: str) -> bool:
        return self._manager().runs.get(run_id).record.foreign

    def renew(self, run_id: str) -> None:
        """Write the diff of a run again if it has been shown, as after a decision it has fewer hunks."""
        if self._documents.content(review_name(run_id)):
            self._write(run_id)

    def _see(self, run_id: str, changeset: Changeset) -> str:
        digest = review_digest(changeset)
        # A new review is on the user's screen: numbers count in it from now on.
        self._counted.pop(run_id, None)
        self._count_in(run_id, changeset)
        self._remember(digest, changeset)
        return digest

    def _remember(self, digest: str, changeset: Changeset) -> None:
        self._seen[digest] = changeset
        self._seen.move_to_end(digest)
        if len(self._seen) > MOST_SEEN:
            self._seen.popitem(last=False)

    def _count_in(self, run_id: str, changeset: Changeset) -> Changeset:
        """Have numbers of hunks count in these changes, unless they count in others already; return those."""
        counted = self._counted.setdefault(run_id, changeset)
        if len(self._counted) > MOST_SEEN:
            self._counted.popitem(last=False)
        return counted

    def _write(self, run_id: str) -> None:
        self._shown[uris.key(self._documents.uri(review_name(run_id)))] = run_id
        self._documents.put(review_name(run_id), "\n".join((*self._head(run_id), self.diff(run_id))))

    def _head(self, run_id: str) -> tuple[str, ...]:
        """Return the lines before a diff, which tools that read diffs skip."""
        proposal = self._manager().runs.get(run_id).proposal
        unneeded = ", ".join(proposal.proofs.unneeded(proposal.changeset))
        how = () if self._documents.client_has_windows else (text("review.how", self._announcer.language),)
        lines = (*how, *proposal.proved(), *filter(None, (unneeded,)))
        return (*(f"# {line}" for line in lines), "") if lines else ()

    async def apply(
        self, run: Run, files: frozenset[str] | None, hunks: ChosenHunks | None, seen: Changeset | None
    ) -> None:
        """Apply the chosen files and hunks of a run (as for `Proposal.apply`; None: all), as the user has `seen` them,
        and show the outcome. SessionError if nothing is staged, or a chosen hunk does not exist.
        """
        applied = await run.proposal.apply(files, hunks, seen=seen)
        self.renew(run.record.run_id)
        self._announcer.tell_outcome(applied, "foreign.kept" if run.record.foreign else "outcome.full")

    async def revert(
        self, run: Run, files: frozenset[str] | None, hunks: ChosenHunks | None, seen: Changeset | None
    ) -> None:
        """Take back the chosen files and hunks (as for `apply`) of what another program changed, and show the outcome.
        SessionError if there are none.
        """
        from codeagent_lsp.session.foreign_runs import ForeignProposal  # late: with the parts of a run

        assert isinstance(run.proposal, ForeignProposal)
        applied = await run.proposal.revert(files, hunks, seen)
        self.renew(run.record.run_id)
        self._announcer.tell_outcome(applied, "foreign.reverted")

    async def undo(self, run: Run, steps: tuple[str, ...] | None = None, files: frozenset[str] | None = None) -> None:
        """Undo a run, some steps of its plan or some files, and show the outcome; of a rewind, all that it took back.
        `files` are absolute paths, None for all. SessionError for some files of a rewind, or if there is nothing to
        undo.
        """
        if run.record.run_id in run.session.context.rewinds.standing:
            if files is not None:
                raise SessionError("undo.rewind")
            from codeagent_lsp.session.rewind.rewinding import load_attempts, undo_rewind  # late: in a run

            gone = run.session.context.rewinds.standing[run.record.run_id].event.gone
            load_attempts(run.session, gone, self._manager().resume)
            refused = await undo_rewind(run, self._manager().runs)
            if refused is None:
                self._announcer.tell_restored(run.record.title)
            else:
                self._announcer.tell_outcome(refused, "outcome.undone")
            return
        self._announcer.tell_outcome(await run.proposal.undo(steps, files=files), "outcome.undone")

    def close(self) -> None:
        """Watch the documents no more."""
        self._unsubscribe()
        if self._looking is not None:
            self._looking.cancel()

    def changed(self, paths: Collection[str]) -> None:
        """Look soon whether what happened to files, by their real paths, are changes of runs that the editor has made
        late.
        """
        if self._looking is not None and not self._looking.done():
            return
        expected = (each for run in self._expecting() for each in (*run.record.late, *run.record.denied))
        if any(each.path in paths or each.moved_from in paths for each in expected):
            self._looking = asyncio.get_running_loop().create_task(self._look_for_late())

    def _on_change(self, uri: str, _: Document | None) -> None:
        if self._expecting() and (path := uris.real_path(uri)) is not None:
            self.changed((path,))

    def _expecting(self) -> list[Run]:
        return [run for run in self._manager().runs.all() if run.record.late or run.record.denied]

    async def _look_for_late(self) -> None:
        await asyncio.sleep(LATE_SECONDS)
        # Only afterwards it is known what is late.
        while any(run.record.unsettled for run in self._expecting()):  # noqa: ASYNC110
            await asyncio.sleep(LATE_SECONDS)
        for run in self._expecting():
            # First quickly: to compare a long text hunk by hunk takes seconds, and the user types meanwhile.
            if not any(map(self._may_have_come, (*run.record.late, *run.record.denied))):
                continue
            if late := run.proposal.note_late():
                if not run.proposal.changeset:
                    run.proposal.questions.settle()
                self.renew(run.record.run_id)
                self._announcer.tell_outcome(Applied("full", done=late))

    def _may_have_come(self, change: FileChange) -> bool:
        document = self._open_documents.by_path(change.path)
        if change.kind == "edit":
            return document is not None and may_have_arrived(change, document.text)
        gone = change.path if change.kind == "delete" else change.moved_from
        come = None if change.kind == "delete" else change.path
        return not (gone and self._is_there(gone)) and (come is None or self._is_there(come))

    def _is_there(self, path: str) -> bool:
        return self._open_documents.by_path(path) is not None or os.path.lexists(path)

    async def roll_back(self, run: Run, step_id: str) -> None:
        """Roll a plan back to before a step, and show the outcome. SessionError for an unknown step, one that has not
        begun, or if the run does not end or the editor refuses.
        """
        applied = await self._manager().runs.roll_back(run.record.run_id, step_id)
        if applied is not None:
            self._announcer.tell_outcome(applied, "outcome.undone")
        self._announcer.refresh_lenses()


def review_name(run_id: str) -> str:
    """Return the name of a run's diff among the virtual documents: `review/ID.diff`."""
    return f"review/{run_id}.diff"
