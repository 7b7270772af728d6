"""Goes back to before a run: what it and all later runs of the session changed, said, or both.

It is a run itself, so that it is shown, recorded, and undone as any other. What the user typed since stays. What the
user took from the attempts at a run is taken back, and comes back, with the run: attempts have sessions of their own,
and each tells there what it has applied. Not here: the texts (`earlier_texts.py`), the bookkeeping (`rewinds.py`), the
conversation of a rewound session (`../replay.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from codeagent_lsp import events
from codeagent_lsp.agent.context.history import note
from codeagent_lsp.errors import SessionError
from codeagent_lsp.events.base import What
from codeagent_lsp.session.proposal import apply_uninterrupted
from codeagent_lsp.session.replay import retell
from codeagent_lsp.session.rewind.earlier_texts import (
    EarlierTexts,
    FirstRead,
    deleted_by,
    earlier_texts,
    follow_moves,
    rebased_on_present,
)
from codeagent_lsp.session.rewind.rewinds import AppliedPart, staged_data, staged_from, take_from, taken_from
from codeagent_lsp.session.run_parts import RunParts, remember
from codeagent_lsp.workspace.changes.changeset import Changeset

if TYPE_CHECKING:
    from codeagent_lsp.session.proposal import Proposal
    from codeagent_lsp.session.run_parts import Ended
    from codeagent_lsp.session.session import Session
    from codeagent_lsp.session.state import RunRecord
    from codeagent_lsp.workspace.changes.changeset import Applied


TAKEN_BACK = "The user took back what was changed for: {titles}. Read files again before you go on."


class OneRun(Protocol):
    """Port: a run of a session, as far as rewinding needs it: its session, its record, and what it has staged
    (`proposal`).
    """

    @property
    def session(self) -> Session: ...

    @property
    def record(self) -> RunRecord: ...

    @property
    def proposal(self) -> Proposal: ...


class Runs(Protocol):
    """Port: the runs of a server by their ids. `active` returns the ids of those that have not ended."""

    def get(self, run_id: str) -> OneRun: ...

    def all(self) -> tuple[OneRun, ...]: ...

    def active(self) -> tuple[str, ...]: ...


def runs_since(session: Session, run_id: str) -> tuple[str, ...]:
    """Return the ids of a run and all later ones of its session. Also runs that a rewind took back before are among
    them. ValueError for an unknown run.
    """
    names = list(session.context.runs)
    return tuple(names[names.index(run_id) :])


def check(session: Session, run_id: str, runs: Runs) -> tuple[str, ...]:
    """Return the ids of the runs to take back. SessionError for an unknown run, while a run of the session has not
    ended, and for a run inside of a rewind.
    """
    if at_work(session, runs):
        raise SessionError("rewind.busy")
    if run_id not in session.context.runs:
        raise SessionError("run.unknown", run=run_id)
    gone = runs_since(session, run_id)
    for rewind_id, rewind in session.context.rewinds.standing.items():
        # A rewind is undone as a whole: going back to a place inside of one would leave a half of it.
        if run_id in rewind.event.gone or (rewind_id in gone and not _is_within(rewind.event.gone, session, run_id)):
            raise SessionError("rewind.inside", title=session.context.runs[rewind_id].title)
    return gone


def plan_rewind(session: Session, gone: tuple[str, ...], runs: Runs, read: FirstRead) -> EarlierTexts:
    """Return the texts that a rewind of these runs (ids) leads to: those before them, and before what was taken from
    attempts at them. Rewinds among them, and what these took back, are ignored. Nothing is changed; blocks.
    """
    return earlier_texts(follow_moves(_applied_parts(session, gone, runs), read.view)[0], read.text)


def _applied_parts(session: Session, gone: tuple[str, ...], runs: Runs) -> list[AppliedPart]:
    """Return what these runs, and attempts at them, have applied, in order."""
    standing = session.context.rewinds.standing
    records = [session.context.runs[run_id] for run_id in gone if run_id not in standing]
    records.extend(attempt.record for attempt in attempts_at(gone, runs.all()))
    return sorted((part for record in records for part in record.applied), key=lambda part: part.ts)


async def rewind(parts: RunParts, gone: tuple[str, ...], what: What, runs: Runs) -> Ended:
    """Take back what these runs changed, said, or both (`what`), as the work of a run of the kind `session.rewind`;
    return (status, summary). Places that the user changed since stay. SessionError if the editor refuses all of it.
    """
    session, output, titles = parts.session, parts.output, _titles(parts.session, gone)
    conflicts: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    undecided: dict[str, Proposal] = {}
    attempts: list[OneRun] = []
    if what != "talk":
        # The editor first: if it refuses, nothing else has happened, and the session is as it was.
        conflicts, refused = await _take_back_changes(parts, gone, runs)
        attempts = attempts_at(gone, runs.all())
        all_gone = (*map(runs.get, gone), *attempts)
        undecided = {each.record.run_id: each.proposal for each in all_gone if each.proposal.changeset}
        attempts = [attempt for attempt in attempts if attempt.record.applied]
    event = events.SessionRewound(
        run_id=parts.record.run_id,
        what=what,
        gone=gone,
        conflicts=conflicts,
        refused=refused,
        staged={run_id: staged_data(each.changeset) for run_id, each in undecided.items()},
        attempts={attempt.record.run_id: applied_data(attempt, refused) for attempt in attempts},
    )
    output.emit(event)  # what was staged is kept in it before it goes
    session.context.rewinds.take(replace(event, ts=time.time()), session.context.runs)
    for attempt in attempts:
        take(attempt, refused)
    for each in undecided.values():
        each.staging.reset(Changeset())
    if what == "changes":
        remember(parts, note(TAKEN_BACK.format(titles=titles)))
    else:
        await retell(session, lambda: at_work(session, runs))
    files = len({path for part in parts.record.applied for path in part.changeset.paths})
    told = output.text(f"rewind.{what}", count=len(gone), files=files, title=titles)
    stay = output.text("rewind.stay", places=", ".join(conflicts)) if conflicts else ""
    names = ", ".join(map(parts.proposal.view.roots.relative, refused))
    left = output.text("rewind.left", files=names) if refused else ""
    older = _taken_over(session, gone) if what != "talk" else ()
    too = output.text("rewind.too", title=_titles(session, older)) if older else ""
    return "completed", " ".join(filter(None, (told, too, stay, left)))


async def undo_rewind(run: OneRun, runs: Runs) -> Applied | None:
    """Undo a rewind: what it took from its runs is theirs again, and in the editor. Return None; if the editor refused
    some files, return what it did: the rewind then still counts, and these can be undone later. SessionError if a run
    of the session has not ended.
    """
    session, rewind_id = run.session, run.record.run_id
    event = _standing(session, rewind_id)
    if at_work(session, runs):
        raise SessionError("rewind.busy")
    if run.record.applied:
        applied = await run.proposal.undo()
        if applied.refused:  # by the editor; conflicts alone stop nothing
            return applied
    there = {each.record.run_id: each for each in runs.all()}  # the session of an attempt may be deleted
    for run_id, data in event.staged.items():  # before the end of the rewind, which keeps them, is stored
        if run_id in there:
            there[run_id].proposal.staging.reset(staged_from(data))
    for run_id, data in event.attempts.items():
        if run_id in there:
            give_back(there[run_id], data)
    session.emit(rewind_id, events.SessionRestored())
    session.context.rewinds.give_back(rewind_id, session.context.runs)
    if event.what != "changes":
        await retell(session, lambda: at_work(session, runs))
    return None


def _standing(session: Session, rewind_id: str) -> events.SessionRewound:
    """Return the event of a rewind that can be undone: it stands, and no later one took it back. Else SessionError."""
    standing = session.context.rewinds.standing
    if rewind_id not in standing:
        raise SessionError("undo.nothing")
    for other, later in standing.items():
        if rewind_id in later.event.gone:
            raise SessionError("rewind.inside", title=session.context.runs[other].title)
    return standing[rewind_id].event


def at_work(session: Session, runs: Runs) -> frozenset[str]:
    """Return the ids of the runs of a session that have not ended; empty for none."""
    return frozenset(name for name in runs.active() if runs.get(name).session is session)


async def _take_back_changes(
    parts: RunParts, gone: tuple[str, ...], runs: Runs
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Bring the earlier texts into the buffers; return the places that conflict with what was typed since, and the
    files that the editor did not change. SessionError, and nothing of it waits, if it makes none of the changes.
    """
    proposal, relative = parts.proposal, parts.proposal.view.roots.relative
    for each in gone:
        runs.get(each).proposal.note_late()
    made = [part.changeset for part in _applied_parts(parts.session, gone, runs)]
    changed = (path for each in made for path in each.paths)
    # Before the texts are read: what the editor opens is read from its buffer.
    await parts.services.workspace.editor.open_unclear(changed)
    read = FirstRead(proposal.view, deleted_by(made, parts.services.workspace.editor.still_shows))
    back = rebased_on_present(await asyncio.to_thread(plan_rewind, parts.session, gone, runs, read), read)
    conflicts, refused = back.conflicts, tuple[str, ...]()
    if back.changeset:
        proposal.staging.reset(back.changeset)
        # The files that go were made by the agent and not typed in since, so nobody has to be asked about them.
        applied = await apply_uninterrupted(proposal.apply(may_lose=back.deleted))
        if not applied.done and (applied.left or applied.outcome == "unknown"):
            proposal.staging.reset(Changeset())
            raise SessionError("rewind.refused", reason=applied.reason or "-")
        conflicts, refused = (*conflicts, *applied.conflicts), tuple(applied.refused)
        proposal.staging.reset(Changeset())  # what was refused is taken back by an undo of its run
    return tuple(f"{relative(each.path)}:{each.line}" for each in conflicts), refused


def _is_within(inner: tuple[str, ...], session: Session, run_id: str) -> bool:
    names = list(session.context.runs)
    return all(names.index(name) >= names.index(run_id) for name in inner if name in names)


def _taken_over(session: Session, gone: tuple[str, ...]) -> tuple[str, ...]:
    """Return the ids of the cancelled runs before those in `gone` whose changes these had taken over."""
    taken = (older for run_id in gone for older in session.context.runs[run_id].took_over)
    return tuple(dict.fromkeys(older for older in taken if older not in gone))


def _titles(session: Session, gone: tuple[str, ...]) -> str:
    titles = [session.context.runs[run_id].title for run_id in gone]
    return "; ".join(titles[:3]) + (" …" if len(titles) > 3 else "")


class Known(Protocol):
    """Port: a run of any session, also one that has ended, with its session and its record."""

    @property
    def session(self) -> Session: ...

    @property
    def record(self) -> RunRecord: ...


Each = TypeVar("Each", bound=Known)


def load_attempts(session: Session, run_ids: Iterable[str], resume: Callable[..., Session]) -> None:
    """Load the sessions of the attempts at some runs of a session by the manager's `resume`, but for deleted ones.
    SessionError if another process works with one.
    """
    records = [record for run_id in run_ids if (record := session.context.runs.get(run_id)) is not None]
    for name in [name for record in records for name in record.attempts]:
        try:
            resume(name, enter=False)
        except SessionError as error:
            # What a deleted session had applied is not known any more; the rest can still be taken back.
            if error.key != "session.unknown":
                raise


def attempts_at(gone: Collection[str], runs: Iterable[Each]) -> list[Each]:
    """Return those of `runs` that are attempts at the runs whose ids are in `gone`, in their order; [] for none."""
    return [run for run in runs if run.record.attempt_of in gone]


def applied_data(attempt: Known, refused: Iterable[str]) -> list[dict[str, Any]]:
    """Return as plain data, `{ts, step, changes}` each, what is taken back of an attempt's applied changes; not the
    files that the editor `refused`.
    """
    taken = taken_from(attempt.record.applied, refused)
    return [{"ts": part.ts, "step": part.step_id, "changes": staged_data(part.changeset)} for part in taken]


def take(attempt: Known, refused: tuple[str, ...]) -> None:
    """Record in an attempt, and emit in its session, that its applied changes were taken back, except in the files that
    the editor `refused`.
    """
    record = attempt.record
    paths = tuple(path for part in take_from(record, refused) for path in part.changeset.paths)
    outcome: events.Outcome = "partial" if record.applied else "full"
    told = events.ChangesApplied(
        outcome=outcome, undo=True, files_changed=tuple(dict.fromkeys(paths)), refused=refused or None
    )
    attempt.session.emit(record.run_id, told)


def give_back(attempt: Known, data: Iterable[Mapping[str, Any]]) -> None:
    """Record in an attempt, and emit in its session, that the changes in `data` (of `applied_data`) are in the user's
    files again.
    """
    for kept in data:
        part = AppliedPart(staged_from(kept["changes"]), kept["step"], kept["ts"])
        if part in attempt.record.applied:  # the process died before it was told
            continue
        attempt.record.applied.append(part)
        attempt.record.applied.sort(key=lambda each: each.ts)
        told = events.ChangesApplied(
            outcome="full",
            files_changed=part.changeset.paths,
            applied=tuple(kept["changes"]),
            step_id=part.step_id or None,
            since=part.ts,
        )
        attempt.session.emit(attempt.record.run_id, told)
