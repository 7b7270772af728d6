"""Asks what becomes of accepted changes that were left out because the user has changed the same lines: both versions
are shown, and there are three ways out. Without an answer the changes stay staged. Where an undo meets such lines, it
is asked whether it goes over them.

Not here: what a conflict is (`workspace/edits/merge.py`), what was left out (`session/proposal.py`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from codeagent_lsp import events
from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import SessionError
from codeagent_lsp.server.announcer import Announcer
from codeagent_lsp.server.front import Front
from codeagent_lsp.session.manager import SessionManager
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.changes.changeset import HunkConflict

MOST_NAMED = 5

AGAIN = (
    "I have changed lines of {files} that your proposed changes change, too, so those were left out:\n\n{both}\n\n"
    "Make what you wanted there anew, on the text as it is now, and keep what I have written."
)


class ConflictQuestions:
    """The listener that asks. `manager` returns the sessions' manager, which is made later."""

    def __init__(self, front: Front, announcer: Announcer, manager: Callable[[], SessionManager]) -> None:
        self._front = front
        self._announcer = announcer
        self._manager = manager
        self._tasks = BackgroundTasks()

    def observe(self, event: events.Event) -> None:
        """Ask about the conflicts of changes that the user has accepted one by one, and of all undoing."""
        if not isinstance(event, events.ChangesApplied) or not event.conflicts:
            return
        if event.undo:
            self._tasks.start(self._ask_to_undo(event.run_id, event.conflicts))
        elif self._front.settings().edits.apply == "review":
            self._tasks.start(self._ask(event.run_id))

    def close(self) -> None:
        """Ask no more."""
        self._tasks.cancel()

    async def _ask_to_undo(self, run_id: str, conflicts: Sequence[str]) -> None:
        """Ask whether an undo goes over what the user has changed since."""
        proposal, language = self._manager().runs.get(run_id).proposal, self._front.language()
        mine, earlier = text("choice.mine", language), text("choice.earlier", language)
        title = text("conflict.undo", language, places=", ".join(conflicts[:MOST_NAMED]))
        if await proposal.questions.ask(title, (mine, earlier), "") == (earlier,):
            with contextlib.suppress(SessionError):  # undone otherwise meanwhile
                self._announcer.tell_outcome(await proposal.undo(over=True), undo=True)

    async def _ask(self, run_id: str) -> None:
        run = self._manager().runs.get(run_id)
        proposal, roots, language = run.proposal, run.proposal.view.roots, self._front.language()
        conflicts = proposal.conflicts()
        if not conflicts:
            return
        mine, agents, again = (text(f"choice.{name}", language) for name in ("mine", "agents", "again"))
        places = ", ".join(f"{roots.relative(each.path)}:{each.line}" for each in conflicts[:MOST_NAMED])
        both = "\n\n".join(_both(roots.relative(each.path), each, language) for each in conflicts)
        title = text("conflict.title", language, places=places)
        answer = await proposal.questions.ask(title, (mine, agents, again), both)
        if not answer:
            return
        hunks = {path: each for path, each in proposal.onto_present({each.path for each in conflicts}).items() if each}
        if not hunks:  # decided about meanwhile, or the file itself is in question
            return
        if answer == (agents,):
            self._announcer.tell_outcome(await proposal.apply(hunks=hunks))
            return
        proposal.discard(hunks=hunks)
        if answer == (again,):
            files = ", ".join(map(roots.relative, hunks))
            request = RunRequest("run", AGAIN.format(files=files, both=both), title)
            self._manager().start(request, run.session.session_id)


def _both(name: str, conflict: HunkConflict, language: str) -> str:
    yours, agents = text("conflict.yours", language), text("conflict.agents", language)
    parts: Sequence[str] = (
        f"{name}:{conflict.line}",
        f"<<<<<<< {yours}",
        conflict.theirs.rstrip("\n"),
        "=======",
        conflict.ours.rstrip("\n"),
        f">>>>>>> {agents}",
    )
    return "\n".join(part for part in parts if part)
