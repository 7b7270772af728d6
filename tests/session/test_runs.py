"""The runs of a server: found by their ids, cancelled, removed; what is at work is known."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest

from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.rewind.rewinds import Rewinds
from codeagent_lsp.session.run import Run
from codeagent_lsp.session.runs import Runs
from codeagent_lsp.workspace.changes.changeset import Changeset


@dataclass
class FakeRun:
    run_id: str
    applied: float = 0.0
    abandoned: int = 0
    applying: bool = False
    undoing: bool = False
    record: SimpleNamespace = field(init=False)
    session: SimpleNamespace = field(init=False)
    proposal: SimpleNamespace = field(init=False)

    def __post_init__(self) -> None:
        self.record = SimpleNamespace(
            run_id=self.run_id, applied=[SimpleNamespace(ts=self.applied)] if self.applied else []
        )
        self.proposal = SimpleNamespace(applying=self.applying, undoing=self.undoing, note_late=Changeset)
        self.session = SimpleNamespace(context=SimpleNamespace(rewinds=Rewinds()))

    def abandon(self) -> None:
        self.abandoned += 1


def runs_of(*fakes: FakeRun) -> Runs:
    runs = Runs()
    for fake in fakes:
        runs.add(cast("Run", fake))
    return runs


async def sleep() -> None:
    await asyncio.sleep(60)


def test_a_run_is_found_by_its_id() -> None:
    one, two = FakeRun("1"), FakeRun("2")
    runs = runs_of(one, two)
    assert cast("object", runs.get("2")) is two
    assert [run.record.run_id for run in runs.all()] == ["1", "2"]
    with pytest.raises(SessionError):
        runs.get("3")


def test_the_latest_with_changes_to_undo() -> None:
    runs = runs_of(FakeRun("1", applied=5.0), FakeRun("2", applied=7.0), FakeRun("3", applied=6.0), FakeRun("4"))
    assert runs.last_applied().record.run_id == "2", "not the one that began last"
    with pytest.raises(SessionError):
        runs_of(FakeRun("1")).last_applied()


def test_what_is_being_applied_can_be_undone_in_the_same_go() -> None:
    runs = runs_of(FakeRun("1", applied=5.0), FakeRun("2", applying=True))
    assert runs.last_applied().record.run_id == "2"


def test_what_is_being_undone_is_not_undone_again() -> None:
    runs = runs_of(FakeRun("1", applied=5.0), FakeRun("2", applied=7.0, applying=True, undoing=True))
    assert runs.last_applied().record.run_id == "1"


async def test_only_what_is_at_work_is_cancelled() -> None:
    fakes = [FakeRun(name) for name in "123"]
    runs = runs_of(*fakes)
    for run in runs.all()[:2]:
        runs.start(run, sleep())
    assert runs.active() == ("1", "2")
    assert runs.cancel("3") == ()
    assert runs.cancel("1") == ("1",)
    with pytest.raises(SessionError):
        runs.cancel("4")
    await asyncio.sleep(0.01)
    assert (runs.active(), [fake.abandoned for fake in fakes]) == (("2",), [1, 0, 0])
    await runs.close()
    await asyncio.sleep(0)
    assert (runs.active(), len(runs.all())) == ((), 3)


async def test_what_is_removed_is_unknown_at_once_and_its_task_ends() -> None:
    runs = runs_of(FakeRun("1"), FakeRun("2"))
    runs.start(runs.get("1"), sleep())
    (task,) = runs.remove(["1", "2", "never there"])
    assert runs.all() == ()
    await asyncio.wait([task])
    assert task.cancelled()
