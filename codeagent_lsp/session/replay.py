"""Restores the state of a session from its stored events. Pure apart from filling the session it is given.

Staged changes are restored from `file_change` events alone; invalid records are skipped. After a rewind, and up to a
run for a fork, the conversation is made anew. Not here: what of the events counts then (`rewind/rewinds.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from codeagent_lsp import events
from codeagent_lsp.agent.context.history import History
from codeagent_lsp.messages import Image, Message, ToolCall
from codeagent_lsp.session.proving.proof import proof_from
from codeagent_lsp.session.rewind.rewinds import AppliedPart, Undone, silenced_in, staged_from
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.spending import usage_from, usage_of
from codeagent_lsp.session.state import Compacted, RunRecord, StepMark
from codeagent_lsp.tools.plan.plan import Plan, PlanDocument, PlanSteps
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange

if TYPE_CHECKING:
    from codeagent_lsp.messages import Message


def replay(session: Session, records: Sequence[Mapping[str, Any]], silenced: frozenset[str] | None = None) -> None:
    """Fill a new `session` from stored events in their order; invalid ones are skipped. Nothing is emitted. Runs
    without an end count as interrupted. The talk of the runs `silenced` is left out (None: that of the runs that were
    rewound).
    """
    quiet = silenced_in(records) if silenced is None else silenced
    for record in records:
        session.context.rewinds.silenced = quiet  # from the beginning, so that nothing is built on what was taken back
        try:
            event = events.from_dict(record)
            session.next_seq = max(session.next_seq, event.seq + 1)
            _absorb(session, event)
        # A record of another version, or a damaged one: the rest of the session is worth more than its completeness.
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
    # What the events say by now may differ from what is to be left out, as for a fork of an earlier state.
    taken_back, session.context.rewinds.silenced = session.context.rewinds.silenced, quiet
    for run in session.context.runs.values():
        if run.status == "running":
            run.torn = True
            _interrupt(session, run)
    session.context.rewinds.silenced = taken_back


def message_to_dict(message: Message) -> dict[str, Any]:
    """Return a message as plain data, the form in which session files have it: `role`, `content`, and those of
    `tool_calls`, `tool_call_id`, `name`, `carried` and `images` that it has.
    """
    data: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        data["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": dict(call.arguments)} for call in message.tool_calls
        ]
    if message.tool_call_id:
        data["tool_call_id"] = message.tool_call_id
    if message.name:
        data["name"] = message.name
    if message.carried:
        data["carried"] = message.carried
    if message.images:
        data["images"] = [image.to_dict() for image in message.images]
    return data


def message_from_dict(data: Mapping[str, Any]) -> Message:
    """Return the message from the result of `message_to_dict`. KeyError if it is malformed."""
    calls = tuple(ToolCall(call["name"], call["arguments"], call["id"]) for call in data.get("tool_calls", ()))
    return Message(
        data["role"],
        data["content"],
        calls,
        data.get("tool_call_id", ""),
        data.get("name", ""),
        data.get("carried", ""),
        tuple(map(Image.from_dict, data.get("images", ()))),
    )


def _absorb(session: Session, event: events.Event) -> None:
    session.context.waiting.absorb(event)
    if isinstance(event, events.RunStarted):
        session.context.begin(RunRecord(event.run_id, event.kind, event.title))
        return
    if isinstance(event, events.StateChanged):
        if event.run_id not in session.context.rewinds.silenced:
            session.context.restore(event)
        return
    if isinstance(event, events.SessionForked):
        session.context.conversation.extend(map(message_from_dict, event.messages))
        session.context.origin = event.title
        return
    if isinstance(event, events.SessionRewound):
        session.context.rewinds.take(event, session.context.runs)
        for run_id in event.staged:  # dropped right after it, if the process lived so long
            if run_id in session.context.runs:  # else it is of an attempt, which tells it in its own session
                session.context.runs[run_id].staged = Changeset()
    if isinstance(event, events.SessionRestored):
        session.context.rewinds.give_back(event.run_id, session.context.runs)
    run = session.context.runs.get(event.run_id)
    if run is None:
        return
    if isinstance(event, events.AttemptsBegun):
        run.attempts = event.sessions
    _take(session, run, event)


def _take(session: Session, run: RunRecord, event: events.Event) -> None:
    """Update a run by one of its events."""
    if run.plan is not None:
        _progress(run, run.plan, event)
    match event:
        case events.ResponseStart():
            # Also for a resumed run, which had its end before this.
            run.status, run.attempt_of, run.attempt = "running", event.attempt_of or "", event.attempt or 0
        case events.PlanCreated():
            run.plan = Plan(event.goal, PlanSteps.from_data(event.steps), event.estimated_complexity)
        case events.PlanModified(document=str(written)):
            run.document = PlanDocument.parse(written)
        case events.PlanApproved() if run.document is not None:
            run.document = replace(run.document, approved=True)
        case events.MessageAdded():
            run.messages.append(message_from_dict(event.message))
            # A note after the end, as by a rollback, belongs to the conversation at once; else the end joins all.
            if run.status != "running":
                session.context.join(run)
        case events.ConversationCompacted():
            messages = tuple(map(message_from_dict, event.messages))
            run.compacted = Compacted(messages, len(run.messages), event.base, event.generation)
        case events.ApprovalRequested() | events.QuestionAsked():
            run.unanswered[event.request_id] = event
        case events.ApprovalResolved() | events.QuestionAnswered():
            run.unanswered.pop(event.request_id, None)
        case events.FileChanged():
            run.staged = _stage(run.staged, event)
        case events.ChangesProposed():
            run.propose(run.staged)
            if event.proof is not None:
                run.proof = proof_from(event.proof)
        case events.ChangesIntended():
            intended = staged_from(event.changes)
            part = None if event.undo else AppliedPart(intended, event.step_id or "", event.ts)
            run.intend(intended, part)
        case events.ChangesApplied():
            # An editor that refuses mostly says why; without a reason, or an answer, it may have done it later.
            silent = event.outcome == "none" and not event.reason and not event.conflicts
            run.settle(run.intended if silent or event.outcome == "unknown" else Changeset(), event.ts)
            run.mode_waits |= frozenset(event.mode_waits or ())
            _apply(run, event)
        case events.ChangesExpected():
            run.late, run.denied = (staged_from(each) for each in (event.late, event.denied))
            run.late_since = event.ts
        case events.ChangesTakenOver():
            run.took_over += event.runs
        case events.ModesSet():
            run.mode_waits -= frozenset(event.files_changed)
        case events.UsageReported():
            run.usage += usage_of(event)
        case events.RunCompleted():
            run.status = event.status
            run.usage = usage_from(event.usage) or run.usage  # with that of its attempts, which are other sessions
            # Well-formed: a call whose result was not stored would have every later request refused by the servers.
            run.messages = list(History(run.messages).messages)
            session.context.join(run)
        case events.RunInterrupted():
            _interrupt(session, run)


def _interrupt(session: Session, run: RunRecord) -> None:
    """Close the turn and the plan of a run whose process died, as if it had been cancelled."""
    run.status = "interrupted"
    run.plan = run.plan.cancelled() if run.plan else None
    history = History(run.messages)
    history.close_turn()
    run.messages = list(history.messages)
    session.context.join(run)


def _progress(run: RunRecord, plan: Plan, event: events.Event) -> None:
    """Update the steps of a run's plan by an event."""
    match event:
        case events.StepStarted():
            started = plan.started(event.step_id)
            run.marks.setdefault(event.step_id, StepMark(plan, run.staged))
            run.plan, run.step_id = started, event.step_id
        case events.StepCompleted():
            run.plan = plan.completed(event.step_id)
        case events.StepError():
            run.plan = plan.failed(event.step_id, event.error)
        case events.ReplanWarning():
            run.plan = replace(plan, replans=event.count)
        case events.PlanModified(rolled_back_to=str(step_id)):
            run.plan = run.marks[step_id].plan
            run.roll_marks_back(step_id)
        case events.PlanModified() if event.steps:
            run.plan = replace(plan, steps=PlanSteps.from_data(event.steps))


def _stage(staged: Changeset, event: events.FileChanged) -> Changeset:
    if event.change is None:
        return staged.without([event.path])
    return staged.with_change(FileChange.from_dict(event.change))


def _apply(run: RunRecord, event: events.ChangesApplied) -> None:
    done = staged_from(event.applied)
    if event.undo:
        only = None if event.only is None else frozenset(event.only)
        stayed = tuple(map(staged_from, event.stayed or ()))
        undone = Undone(tuple(event.steps), only, over=bool(event.over), stayed=stayed)
        run.take_back(undone, event.outcome, event.refused or (), event.ts)
    elif done:
        run.accept(done)
        run.applied.append(AppliedPart(done, event.step_id or "", event.since or event.ts))


async def retell(session: Session, at_work: Callable[[], frozenset[str]]) -> None:
    """Make the conversation of a session from its file, as if the runs whose talk was taken back had never been; also
    its todos and focused files. Runs `at_work`, which returns ids, add their messages when they end. Reads the file in
    a thread.
    """
    context = session.context
    while True:
        # The file is read in a thread, while runs may begin or end on the loop; then it is read once more.
        working, known = at_work(), len(context.runs)
        silenced = context.rewinds.silenced | working
        told = (await asyncio.to_thread(_load_silenced, session, silenced)).context
        if (working, known) == (at_work(), len(context.runs)):  # else one has begun or ended while it was read
            break
    context.conversation, context.generation = told.conversation, told.generation
    context.background, context.overviews = told.background, told.overviews
    context.todos.restore(told.todos.to_data())
    context.focused = told.focused


def conversation_before(session: Session, run_id: str | None) -> tuple[Message, ...]:
    """Return the messages of the conversation as it was before a run; the whole one for None. ValueError for an unknown
    run. Reads the session's file, so it blocks.
    """
    if run_id is None:
        return tuple(session.context.conversation)
    names = list(session.context.runs)
    later = frozenset(names[names.index(run_id) :])
    records = _records(session)
    # Only rewinds that stood then: one that came later took nothing from the conversation of that time.
    before = silenced_in(takewhile(lambda record: not _begins(record, run_id), records or ()))
    return tuple(_replay_without(session, records, before | later).context.conversation)


def _load_silenced(session: Session, silenced: frozenset[str]) -> Session:
    return _replay_without(session, _records(session), silenced)


def _replay_without(session: Session, records: list[dict[str, Any]] | None, silenced: frozenset[str]) -> Session:
    """Return a session with the talk of all runs but those `silenced`, from its records, or from memory for None."""
    told = Session(session.session_id, session.store)
    if records is not None:
        replay(told, records, silenced)
    else:
        counted = (run for run in session.context.runs.values() if run.run_id not in silenced)
        told.context.conversation.extend(message for run in counted for message in run.messages)
        told.context.todos.restore(session.context.todos.to_data())
        told.context.focused = session.context.focused
    return told


def _records(session: Session) -> list[dict[str, Any]] | None:
    """Return the stored events of a session; None where something of it could not be stored."""
    return session.store.load(session.session_id) if session.store.keeps(session.session_id) else None


def _begins(record: Mapping[str, Any], run_id: str) -> bool:
    return record.get("type") == events.RunStarted.type and record.get("run_id") == run_id
