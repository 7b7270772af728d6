"""What the rewinds of a session took back, so that they can be undone: a value that is changed by events alone.

Not here: doing it (`rewinding.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from codeagent_lsp import events
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange


@dataclass(frozen=True, slots=True)
class AppliedPart:
    """Changes applied to the user's buffers, the id of the plan's step that made them ('' without a plan), and when
    (seconds since the epoch).
    """

    changeset: Changeset
    step_id: str = ""
    # Not compared: a part that is read from the file again has another rounding or the time of its event.
    ts: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class Undone:
    """An undo: of the changes of some `steps` of a plan (ids; none: of all), perhaps of `only` some files (absolute
    paths). `stayed` is what it has left where the user has changed the same lines, as changes made one after the other
    on the texts that it leads to; one that goes `over` these lines takes that back.
    """

    steps: tuple[str, ...] = ()
    only: frozenset[str] | None = None
    over: bool = False
    stayed: tuple[Changeset, ...] = ()


def after_undo(
    applied: Iterable[AppliedPart],
    is_undone: Callable[[AppliedPart], bool],
    refused: Iterable[str],
    only: Collection[str] | None = None,
) -> list[AppliedPart]:
    """Return the parts that can still be undone after an undo of those that `is_undone` says, limited to the files
    `only` unless None, in which the editor `refused` some files.
    """
    files = frozenset(refused)
    left = []
    for part in applied:
        kept = part.changeset
        if is_undone(part):
            # What the editor refused is still in the user's file, so it can still be undone.
            stays = kept.of(files)
            kept = stays if only is None else Changeset((*kept.without_files(only), *stays.of(only)))
        left.extend([replace(part, changeset=kept)] if kept else [])
    return left


def taken_from(applied: Iterable[AppliedPart], refused: Iterable[str]) -> tuple[AppliedPart, ...]:
    """Return what is undone of some parts when the editor refused some files: all that `after_undo` does not leave.
    `refused` are absolute paths; parts of which nothing is undone are left out.
    """
    files = frozenset(refused)
    taken = []
    for part in applied:
        gone = part.changeset.without_files(files)
        taken.extend([replace(part, changeset=gone)] if gone else [])
    return tuple(taken)


class Changed(Protocol):
    """Port: a run, with the changes that it has applied and that can be undone, in order."""

    applied: list[AppliedPart]


def take_from(run: Changed, refused: Iterable[str]) -> tuple[AppliedPart, ...]:
    """Take from a run what was undone of its changes, all but the files that the editor refused, and return it."""
    taken = taken_from(run.applied, refused)
    run.applied[:] = after_undo(run.applied, lambda part: True, refused)
    return taken


@dataclass(frozen=True, slots=True)
class Rewind:
    """One rewind that stands: its event, and the applied changes that it took from each run, by the run's id."""

    event: events.SessionRewound
    taken: Mapping[str, tuple[AppliedPart, ...]]


@dataclass(slots=True)
class Rewinds:
    """The rewinds of a session that stand, by the id of the run that each was. `silenced` are the ids of the runs whose
    part of the conversation is taken back.
    """

    standing: dict[str, Rewind] = field(default_factory=dict)
    silenced: frozenset[str] = frozenset()

    def take(self, event: events.SessionRewound, runs: Mapping[str, Changed]) -> None:
        """Take from the runs (by id) of a rewind what it has taken back: their changes, unless it was about the
        conversation alone, and their part of that, unless it was about changes alone. Unknown runs are passed over.
        """
        taken: dict[str, tuple[AppliedPart, ...]] = {}
        for run_id in event.gone if event.what != "talk" else ():
            if run := runs.get(run_id):
                taken[run_id] = take_from(run, event.refused)
        self.standing[event.run_id] = Rewind(event, taken)
        self._silence()

    def give_back(self, rewind_id: str, runs: Mapping[str, Changed]) -> None:
        """Give the runs back what a rewind took from them; what was staged comes back by events of its own. The rewind
        itself then has no changes left to undo.
        """
        rewind = self.standing.pop(rewind_id, None)
        if run := runs.get(rewind_id):
            run.applied.clear()
        for run_id, parts in rewind.taken.items() if rewind is not None else ():
            if run := runs.get(run_id):
                run.applied.extend(parts)
                # Undo goes from the end: parts that come back belong among those applied since.
                run.applied.sort(key=lambda part: part.ts)
        self._silence()

    def leaves(self, run_id: str) -> bool:
        """Return whether a run still counts: no rewind took it back, and it is not a rewind itself that has not been
        undone.
        """
        return run_id not in self.standing and not any(run_id in each.event.gone for each in self.standing.values())

    def _silence(self) -> None:
        self.silenced = _silenced(rewind.event for rewind in self.standing.values())


def silenced_in(records: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the ids of the runs whose part of the conversation is taken back after all of these stored events of a
    session, in their order.
    """
    standing: dict[str, events.SessionRewound] = {}
    for record in records:
        if record.get("type") not in (events.SessionRewound.type, events.SessionRestored.type):
            continue
        event = events.from_dict(record)
        if isinstance(event, events.SessionRewound):
            standing[event.run_id] = event
        else:
            standing.pop(event.run_id, None)
    return _silenced(standing.values())


def staged_data(changeset: Changeset) -> list[dict[str, Any]]:
    """Return staged changes as plain data (`FileChange.to_dict`), for an event, texts included."""
    return [change.to_dict() for change in changeset]


def staged_from(data: Iterable[Mapping[str, Any]]) -> Changeset:
    """Return the changes from the result of `staged_data`. KeyError if it is malformed."""
    return Changeset(tuple(map(FileChange.from_dict, data)))


def _silenced(rewinds: Iterable[events.SessionRewound]) -> frozenset[str]:
    return frozenset(run_id for event in rewinds if event.what != "changes" for run_id in event.gone)
