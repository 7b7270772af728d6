"""Asks whose lines count where the user has changed the same ones: the user's, the other's, or both merged by a run.

For accepted changes of an agent that were left out, and for what another program has written to the disk; they differ
in their words alone. Both versions are shown, and without an answer the changes stay staged. Where an undo meets such
lines, it is asked whether it goes over them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codeagent_lsp import events
from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.text.visible import some_of

if TYPE_CHECKING:
    from codeagent_lsp.server.announcer import Announcer
    from codeagent_lsp.server.front import Front
    from codeagent_lsp.session.manager import SessionManager
    from codeagent_lsp.session.proposal import Proposal
    from codeagent_lsp.workspace.changes.changeset import HunkConflict


MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class ConflictWords:
    """The words of one kind of conflict. Keys of texts are `title`, `theirs` for that choice, `side` for the owner of
    the other lines, and `outcome`. The title names at most `named` places; `task` is the instruction, in English, of
    the run that merges both, with `{files}` and `{both}` to be filled in.
    """

    title: str
    theirs: str
    side: str
    outcome: str
    named: int
    task: str


OF_AGENT = ConflictWords(
    "conflict.title",
    "choice.agents",
    "conflict.agents",
    "outcome.full",
    MOST_NAMED,
    "I have changed lines of {files} that your proposed changes change, too, so those were left out:\n\n{both}\n\n"
    "Make what you wanted there anew, on the text as it is now, and keep what I have written.",
)
OF_PROGRAM = ConflictWords(
    "foreign.conflict_keep",
    "choice.theirs",
    "foreign.theirs",
    "foreign.kept",
    3,
    "Another program has changed lines of {files} on the disk that I was changing, too:\n\n{both}\n\n"
    "My lines are in the file. Work what the other program wanted there into them, and keep what I have written.",
)


class ConflictQuestions:
    """Listens to events, and asks the user about conflicts in the background. `manager` returns the sessions' manager,
    which is made later.
    """

    def __init__(self, front: Front, announcer: Announcer, manager: Callable[[], SessionManager]) -> None:
        self._front = front
        self._announcer = announcer
        self._manager = manager
        self._tasks = BackgroundTasks()

    def observe(self, event: events.Event) -> None:
        """Ask about the conflicts of changes that the user has accepted one by one (`edits.apply` is `review`), and of
        all undoing, in the background; other events are ignored. Returns at once.
        """
        if not isinstance(event, events.ChangesApplied) or not event.conflicts:
            return
        # Those of another program's changes have ways out of their own.
        if not event.undo and self._manager().runs.get(event.run_id).record.foreign:
            return
        if event.undo:
            if self._manager().runs.get(event.run_id).proposal.can_go_over:
                self._tasks.start(self._ask_to_undo(event.run_id, event.conflicts))
        elif self._front.settings().edits.apply == "review":
            self._tasks.start(self._ask(event.run_id))

    def close(self) -> None:
        """Cancel all open questions about conflicts; returns at once."""
        self._tasks.cancel()

    async def _ask_to_undo(self, run_id: str, conflicts: Sequence[str]) -> None:
        """Ask whether an undo goes over what the user has changed since."""
        proposal, language = self._manager().runs.get(run_id).proposal, self._front.language()
        mine, earlier = text("choice.mine", language), text("choice.earlier", language)
        title = text("conflict.undo", language, places=some_of(conflicts, MOST_NAMED))
        if await proposal.questions.ask(title, (mine, earlier), "") == (earlier,):
            with contextlib.suppress(SessionError):  # undone otherwise meanwhile
                self._announcer.tell_outcome(await proposal.undo(over=True), "outcome.undone")

    async def _ask(self, run_id: str) -> None:
        run = self._manager().runs.get(run_id)
        request = await settle(run.proposal, self._announcer, OF_AGENT)
        if request is not None:
            self._manager().start(request, run.session.session_id)


async def settle(proposal: Proposal, announcer: Announcer, words: ConflictWords) -> RunRequest | None:
    """Ask about the conflicts of a proposal, if it has any, wait, and apply or discard the changes as the user says;
    without an answer they stay staged. Return the request of the run that is to merge both, if the user wants that,
    else None.
    """
    language, relative, conflicts = announcer.language, proposal.view.roots.relative, proposal.conflicts()
    if not conflicts:
        return None
    mine, theirs, again = (text(key, language) for key in ("choice.mine", words.theirs, "choice.again"))
    places = some_of((f"{relative(each.path)}:{each.line}" for each in conflicts), words.named)
    sides = text("conflict.yours", language), text(words.side, language)
    both = "\n\n".join(_both(relative(each.path), each, *sides) for each in conflicts)
    title = text(words.title, language, places=places)
    answer = await proposal.questions.ask(title, (mine, theirs, again), both)
    if not answer:
        return None
    # Looked at anew, as the question may have been open for long.
    hunks = {path: each for path, each in proposal.onto_present({each.path for each in conflicts}).items() if each}
    if not hunks:  # decided about meanwhile, or the file itself is in question
        return None
    if answer == (theirs,):
        announcer.tell_outcome(await proposal.apply(hunks=hunks), words.outcome)
        return None
    proposal.discard(hunks=hunks)
    task = words.task.format(files=", ".join(map(relative, hunks)), both=both)
    return RunRequest("run", task, title) if answer == (again,) else None


def _both(name: str, conflict: HunkConflict, yours: str, others: str) -> str:
    """Return the place and both texts of a conflict, as git marks them."""
    parts = (
        f"{name}:{conflict.line}",
        f"<<<<<<< {yours}",
        conflict.theirs.rstrip("\n"),
        "=======",
        conflict.ours.rstrip("\n"),
        f">>>>>>> {others}",
    )
    return "\n".join(part for part in parts if part)
