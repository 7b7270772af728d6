"""Reviews the staged changes of runs outside of a prompt: shows them, applies them, undoes them, rolls back a plan.

Not here: how changes reach the buffers (`editor.py`), what is asked at the end of a run (`session/proposal.py`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from codeagent_lsp.errors import SessionError
from codeagent_lsp.server.announcer import Announcer
from codeagent_lsp.server.virtual_documents import VirtualDocuments
from codeagent_lsp.session.manager import SessionManager
from codeagent_lsp.session.plan.orders import roll_back
from codeagent_lsp.workspace.changes.changeset import Changeset
from codeagent_lsp.workspace.changes.reviewed import ChosenHunks, review_digest

if TYPE_CHECKING:
    from codeagent_lsp.session.run import Run

MOST_SEEN = 32


class Reviews:
    """Reviews the runs of one server. `manager` is called when it is needed: the manager is built later."""

    def __init__(
        self, documents: VirtualDocuments, announcer: Announcer, manager: Callable[[], SessionManager]
    ) -> None:
        self._documents = documents
        self._announcer = announcer
        self._manager = manager
        self._seen: OrderedDict[str, Changeset] = OrderedDict()
        self._counted: OrderedDict[str, Changeset] = OrderedDict()

    def seen(self, run: Run, digest: str | None, hunks: ChosenHunks | None) -> Changeset | None:
        """Return what a review with this digest showed. Without one, what numbers of hunks count in: the last review of
        the run, or what it had staged at the first decision by number; else None. SessionError for an unknown digest.
        """
        if digest is None:
            numbers = any(isinstance(each, int) for chosen in (hunks or {}).values() for each in chosen)
            return self._count_in(run.record.run_id, run.proposal.changeset) if numbers else None
        if digest not in self._seen:
            raise SessionError("changes.others")
        return self._seen[digest]

    def diff(self, run_id: str) -> str:
        """Return a run's changeset as a unified diff."""
        proposal = self._manager().runs.get(run_id).proposal
        return proposal.changeset.diff(proposal.view.roots.relative)

    def data(self, run_id: str) -> dict[str, Any]:
        """Return the answer of `codeagent.review`: the diff, its digest, by which decisions about it can name it,
        sentences on what was tried on the changes, and the hunks that the tests do not need.
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

    async def show(self, run_id: str) -> None:
        """Open the diff of a run, with what was tried on it before it."""
        self._write(run_id)
        await self._documents.show(review_name(run_id))

    def renew(self, run_id: str) -> None:
        """Write the diff of a run anew where it has been shown: after a decision it has fewer hunks."""
        if self._documents.content(review_name(run_id)):
            self._write(run_id)

    def _see(self, run_id: str, changeset: Changeset) -> str:
        digest = review_digest(changeset)
        self._counted.pop(run_id, None)
        self._count_in(run_id, changeset)
        self._seen[digest] = changeset
        self._seen.move_to_end(digest)
        if len(self._seen) > MOST_SEEN:
            self._seen.popitem(last=False)
        return digest

    def _count_in(self, run_id: str, changeset: Changeset) -> Changeset:
        """Have numbers of hunks count in these changes, unless they count in others already; return those."""
        counted = self._counted.setdefault(run_id, changeset)
        if len(self._counted) > MOST_SEEN:
            self._counted.popitem(last=False)
        return counted

    def _write(self, run_id: str) -> None:
        self._documents.put(review_name(run_id), "\n".join((*self._head(run_id), self.diff(run_id))))

    def _head(self, run_id: str) -> tuple[str, ...]:
        """Return the lines before a diff, which tools that read diffs skip."""
        proposal = self._manager().runs.get(run_id).proposal
        unneeded = ", ".join(proposal.proofs.unneeded(proposal.changeset))
        lines = (*proposal.proved(), *filter(None, (unneeded,)))
        return (*(f"# {line}" for line in lines), "") if lines else ()

    async def apply(
        self, run: Run, files: frozenset[str] | None, hunks: ChosenHunks | None, seen: Changeset | None
    ) -> None:
        """Apply the chosen files and hunks of a run, and show the outcome."""
        applied = await run.proposal.apply(files, hunks, seen=seen)
        self.renew(run.record.run_id)
        self._announcer.tell_outcome(applied)

    async def undo(self, run: Run, steps: tuple[str, ...] | None = None) -> None:
        """Undo a run, or some steps of its plan, and show the outcome; of a rewind, all that it took back."""
        if run.record.run_id in run.session.context.rewinds.standing:
            from codeagent_lsp.session.rewind.other_attempts import load_attempts  # late: with the parts of a run
            from codeagent_lsp.session.rewind.rewinding import undo_rewind  # late, as above

            gone = run.session.context.rewinds.standing[run.record.run_id].event.gone
            load_attempts(run.session, gone, self._manager().resume)
            refused = await undo_rewind(run, self._manager().runs)
            if refused is None:
                self._announcer.tell_restored(run.record.title)
            else:
                self._announcer.tell_outcome(refused, undo=True)
            return
        self._announcer.tell_outcome(await run.proposal.undo(steps), undo=True)

    async def roll_back(self, run: Run, step_id: str) -> None:
        """Roll a plan back to before a step, and show the outcome."""
        applied = await roll_back(self._manager(), run.record.run_id, step_id)
        if applied is not None:
            self._announcer.tell_outcome(applied, undo=True)
        self._announcer.refresh_lenses()


def review_name(run_id: str) -> str:
    """Return the name of a run's diff among the virtual documents."""
    return f"review/{run_id}.diff"
