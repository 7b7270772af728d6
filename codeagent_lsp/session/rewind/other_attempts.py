"""What the user took from the attempts at a run: it is taken back, and comes back, with the run. Attempts have sessions
of their own, and each tells there what it has applied.

Not here: the run itself, and what is staged (`rewinding.py`), the attempts (`../attempts/`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.rewind.rewinds import AppliedPart, staged_data, staged_from, take_from, taken_from

if TYPE_CHECKING:
    from codeagent_lsp.session.session import Session
    from codeagent_lsp.session.state import RunRecord


class Known(Protocol):
    """A run of any session."""

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
    """Return the attempts at some runs."""
    return [run for run in runs if run.record.attempt_of in gone]


def applied_data(attempt: Known, refused: Iterable[str]) -> list[dict[str, Any]]:
    """Return what is taken back of what an attempt has applied, as an event stores it. The editor `refused` files."""
    taken = taken_from(attempt.record.applied, refused)
    return [{"ts": part.ts, "step": part.step_id, "changes": staged_data(part.changeset)} for part in taken]


def take(attempt: Known, refused: tuple[str, ...]) -> None:
    """Have an attempt know that what it has applied was taken back, but for the files that the editor `refused`."""
    record = attempt.record
    paths = tuple(path for part in take_from(record, refused) for path in part.changeset.paths)
    outcome: events.Outcome = "partial" if record.applied else "full"
    told = events.ChangesApplied(
        outcome=outcome, undo=True, files_changed=tuple(dict.fromkeys(paths)), refused=refused or None
    )
    attempt.session.emit(record.run_id, told)


def give_back(attempt: Known, data: Iterable[Mapping[str, Any]]) -> None:
    """Have an attempt know that what it had applied is in the user's files again."""
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
