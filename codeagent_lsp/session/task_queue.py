"""Words for later: what is said to runs at work, and tasks that begin when their session is free.

The next task begins by itself after a run that went well. After one that was cancelled or failed, and when a session is
used again after the end of its process, the user is asked first. What was said to a run too late for it becomes a task.
Not here: what waits, as a value (`state.py`), how a run hears it (`run_parts.py`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from codeagent_lsp import events
from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import AgentError, SessionError, UsageError
from codeagent_lsp.messages import Image
from codeagent_lsp.session.request import RunRequest, Target, short_title
from codeagent_lsp.texts import text
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.workspace.files.file_view import FileText, NothingStaged
from codeagent_lsp.workspace.text.document import text_digest

if TYPE_CHECKING:
    from codeagent_lsp.session.run import Run
    from codeagent_lsp.session.runs import Runs
    from codeagent_lsp.session.services import Services
    from codeagent_lsp.session.session import Session


QUEUED = ("run",)
"""Kinds of runs that wait for their session; the others answer or rewrite a selection beside what is going on."""
LONG = ("run", "test", "prove", "minimize", "session.rewind")
"""Kinds of runs that they wait for."""
# Rejected changes are the user's own decision, no sign that the next task is pointless.
GOES_ON = ("completed", "rejected")

Begin = Callable[["Session", RunRequest, str], str]
SELECTED_BEFORE = (
    "When the user wrote this, the following was selected in {path}. It has changed since: read the file.\n{selected}"
)
MOST_SELECTED = 4000


class TaskQueue:
    """The words and tasks that wait in all sessions of one server. `begin` starts a run with a given id in a
    session.
    """

    def __init__(self, runs: Runs, services: Services, begin: Begin) -> None:
        self._runs = runs
        self._services = services
        self._begin = begin
        self._held: set[str] = set()
        self._asked: dict[str, tuple[tuple[str, ...], Question]] = {}
        self._questions = BackgroundTasks()
        self._closed = False

    def takes(self, session: Session, request: RunRequest) -> bool:
        """Return whether a request has to wait: its kind may be queued (`run`), and a long run of the session has not
        ended.
        """
        return request.kind in QUEUED and self._is_busy(session)

    def add(self, session: Session, request: RunRequest) -> str:
        """Store a task in the session's file and return the id of the run that it will be; it begins when the session
        is free.
        """
        run_id = uuid.uuid4().hex[:16]
        queued = events.TaskQueued(
            task=request.task,
            title=request.title,
            planning=request.planning,
            attempts=request.attempts,
            until_proven=request.until_proven,
            place=place_of(request.target),
            images=tuple(image.to_dict() for image in request.images),
        )
        # Stored first, even where it can begin at once: whatever ends the process, the task is not lost.
        session.emit(run_id, queued)
        self._next(session)
        return run_id

    def say(self, run: Run, words: str) -> str:
        """Store what the user says to a run that has not ended, and to all its attempts, and return its item id.
        SessionError if the run has ended, UsageError for blank words.
        """
        if not words.strip():
            raise UsageError("steer.empty")
        self.check(run)
        item_id = uuid.uuid4().hex[:16]
        at_work = map(self._runs.get, self._runs.active())
        attempts = [each for each in at_work if each.record.attempt_of == run.record.run_id]
        # With one item id, so that a withdrawal finds all copies and one that was heard anywhere counts as heard.
        for each in (run, *attempts):
            each.session.emit(each.record.run_id, events.Steered(item_id=item_id, text=words))
        run.reconsider()
        return item_id

    def check(self, run: Run) -> None:
        """Raise SessionError if a run has ended, so that nothing can be said to it."""
        if self._runs.task(run.record.run_id) is None:
            raise SessionError("steer.ended", title=run.record.title)

    def withdraw(self, item_id: str, sessions: Sequence[Session]) -> None:
        """Withdraw what was said to a run, or a task. SessionError if it does not wait: it has begun, was given to the
        model, or is unknown.
        """
        found = [each for each in sessions if each.context.waiting.has(item_id)]
        if not found or any(each.context.waiting.was_heard(item_id) for each in sessions):
            raise SessionError("queue.unknown", item=item_id)
        for session in found:  # several for what was said to a run with attempts
            waiting = session.context.waiting
            run_id = waiting.said[item_id].run_id if item_id in waiting.said else item_id
            session.emit(run_id, events.ItemWithdrawn(item_id=item_id))
            self.settle(session)

    def settle(self, session: Session) -> None:
        """Close the question about the waiting tasks of a session if none of them waits any more; if none waits at all,
        the next one may begin without a question.
        """
        shown, question = self._asked.get(session.session_id, ((), None))
        tasks = session.context.waiting.tasks
        if question is not None and not any(run_id in tasks for run_id in shown):
            self._services.user.inbox.settle(shown[0], question)
        if not tasks:
            self._held.discard(session.session_id)

    def ended(self, run: Run) -> None:
        """Begin the next task after the end of a run, or ask the user first if the run did not go well. Words that the
        run did not take up become a task; those to an attempt are dropped.
        """
        session = run.session
        _drop_said(session)
        if self._closed or run.record.attempt_of:
            return
        # Before the next task is chosen, behind those that wait already.
        left_over = self._leave_over(session)
        matters = left_over or (run.record.kind in LONG and session.context.waiting.tasks)
        if run.record.status not in GOES_ON and matters:
            # The task was given on the belief that this run would do its part.
            self._held.add(session.session_id)
        self._next(session)

    def resumed(self, session: Session) -> None:
        """Ask the user in the background whether to go on with the tasks of a session whose process had ended; nothing
        if none wait. What was said to its runs, but not heard, becomes tasks. Returns at once.
        """
        _drop_said(session)
        if session.context.waiting.said or session.context.waiting.tasks:
            self._held.add(session.session_id)
            self._leave_over(session)
            self._next(session)

    def close(self) -> None:
        """Begin no task from now on and withdraw the questions; waiting tasks stay stored."""
        self._closed = True
        self._questions.cancel()

    def _is_busy(self, session: Session) -> bool:
        at_work = map(self._runs.get, self._runs.active())
        return any(run.session is session and run.record.kind in LONG for run in at_work)

    def _leave_over(self, session: Session) -> bool:
        """Make tasks of what was said to runs that have ended without hearing it; return whether there was some."""
        over = [said for said in session.context.waiting.said.values() if self._runs.task(said.run_id) is None]
        for said in over:
            title = short_title(said.text, self._services.hide)
            session.emit(said.item_id, events.TaskQueued(task=said.text, title=title))
        return bool(over)

    def _next(self, session: Session) -> None:
        """Begin the oldest task if the session is free; ask first if it is held."""
        tasks = session.context.waiting.tasks
        if self._closed or not tasks or self._is_busy(session):
            return
        if session.session_id in self._held:
            # One question for a session, however often something ends in it meanwhile.
            if session.session_id not in self._asked:
                self._ask(session)
            return
        run_id, queued = next(iter(tasks.items()))
        self._begin(session, request_of(queued, self._services.workspace.view(NothingStaged()).read), run_id)

    def _ask(self, session: Session) -> None:
        """Ask whether the waiting tasks go on; without an answer they stay."""
        language, tasks = self._services.user.language(), session.context.waiting.tasks
        shown = tuple(tasks)
        later, start, drop = (text(f"choice.{name}", language) for name in ("later", "start", "leave_out"))
        title = text("queue.held", language, count=len(tasks), title=tasks[shown[0]].title)
        detail = "\n".join(f"- {queued.title}" for queued in tasks.values())
        question = Question("question", title, (later, start, drop), detail)
        self._asked[session.session_id] = shown, question
        self._questions.start(self._asked_about(session, shown, question))

    async def _asked_about(self, session: Session, shown: tuple[str, ...], question: Question) -> None:
        """Wait for the answer about the tasks that the user was shown, and do as it says."""
        inbox, tasks = self._services.user.inbox, session.context.waiting.tasks
        _, start, drop = question.choices
        if not tasks:  # taken back before it was asked
            self._asked.pop(session.session_id, None)
            return
        try:
            answer = await inbox.ask(shown[0], question, lambda event: session.emit(shown[0], event))
        finally:
            self._asked.pop(session.session_id, None)
        if answer == (start,):
            self._held.discard(session.session_id)
            self._next(session)
        elif answer == (drop,):
            self._held.discard(session.session_id)
            for run_id in (each for each in shown if each in tasks):  # and none that came later
                session.emit(run_id, events.ItemWithdrawn(item_id=run_id))
            self._next(session)
        elif not any(run_id in tasks for run_id in shown):  # others may wait by now
            self._next(session)


def _drop_said(session: Session) -> None:
    """Drop what was said to an attempt: it is with the run that the attempt is for."""
    attempts = {run_id for run_id, record in session.context.runs.items() if record.attempt_of}
    for said in tuple(session.context.waiting.said.values()):
        if said.run_id in attempts:
            session.emit(said.run_id, events.ItemWithdrawn(item_id=said.item_id))


# A request as a queued task stores it, and made of that again when the task begins. Pure but for reading the file.


def place_of(target: Target | None) -> dict[str, Any] | None:
    """Return a selection as plain data (absolute `path`, 0-based offsets `start` and `end`, `selected` text, and where
    else that stands), from which `request_of` finds it again in a changed text; None for None.
    """
    if target is None:
        return None
    selected = target.file.text[target.start : target.end]
    place = {"path": target.file.path, "start": target.start, "end": target.end, "selected": selected}
    if not selected:
        return place
    found = _places(target.file.text, selected)
    # A digest, no text: what stands before the selection may be long, and only its being the same matters.
    before = text_digest(target.file.text[: target.start])
    return {**place, "of": len(found), "number": found.index(target.start), "before": before}


def request_of(queued: events.TaskQueued, read: Callable[[str], FileText]) -> RunRequest:
    """Return the request of a queued task; `read` returns files by absolute path. A selection that is not there any
    more is given to the model as the text that it was.
    """
    target = _target(queued.place, read) if queued.place else None
    given = (_selected_before(queued.place),) if queued.place and target is None else ()
    planning = queued.planning if queued.planning in ("auto", "always", "never") else None
    return RunRequest(
        "run",
        queued.task,
        queued.title,
        target,
        planning=planning,  # type: ignore[arg-type]
        attempts=queued.attempts,
        until_proven=queued.until_proven,
        given=given,
        images=tuple(map(Image.from_dict, queued.images)),
    )


def _target(place: Mapping[str, Any], read: Callable[[str], FileText]) -> Target | None:
    """Return what was selected, where it is now: at its place, if nothing before it has changed, or of several that are
    alike the one that is in its place among them. None if it is not there any more, or one of them has come or gone.
    """
    try:
        file = read(str(place["path"]))
    except AgentError:
        return None
    start, selected = int(place["start"]), str(place["selected"])
    if selected and not _is_there(file.text, start, selected, place.get("before")):
        found = _places(file.text, selected)
        if len(found) != int(place.get("of", 1)):
            return None
        start = found[int(place.get("number", 0))]
    return Target(file, start, start + len(selected)) if start <= len(file.text) else None


def _is_there(text: str, start: int, selected: str, before: str | None) -> bool:
    """Return whether what was selected is at its place, and nothing before it has changed."""
    return text.startswith(selected, start) and text_digest(text[:start]) == before


def _places(text: str, part: str) -> list[int]:
    """Return the offsets at which a text has this part, which is not empty; such places may overlap."""
    found, at = [], text.find(part)
    while at >= 0:
        found.append(at)
        at = text.find(part, at + 1)
    return found


def _selected_before(place: Mapping[str, Any]) -> str:
    return SELECTED_BEFORE.format(path=place["path"], selected=str(place["selected"])[:MOST_SELECTED])
