"""A process that dies at any step of an apply, an undo or a rewind: the next one knows which files may have been
changed, and takes back exactly what was.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.session.own_runs import going_back
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.rewind.rewinding import check
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.changes.changeset import Applied, Changeset
from tests.session.fakes import FakeEditor, World, say, world
from tests.workspace.file_fakes import FakeBuffers

LINES = "".join(f"line {number}\n" for number in range(40))
BEFORE = {"a": LINES, "b": LINES, "gone": "gone\n", "old": LINES}
TYPED = {"a": ("line 20\n", "line 20\ntyped\n"), "b": ("line 5\n", "line 5!\n")}
AFTER = {
    "a": LINES.replace("line 2\n", "two\n").replace("line 35\n", "35\nmore\n"),
    "b": LINES.replace("line 30\n", ""),
    "made": "made\n",
    "new": LINES.replace("line 9\n", "nine\n"),
}
STEPS = 3 * 5  # before, within and after each file


class Died(Exception):
    """The process is gone."""


class DyingEditor(FakeEditor):
    """Dies at a step, and keeps what is on disk then in `kept`."""

    def __init__(self, buffers: FakeBuffers, state: Path, at: int) -> None:
        super().__init__(buffers)
        self._state, self._left = state, at
        self.kept = state.with_name("kept")

    async def apply(self, changeset: Changeset, label: str, may_lose: frozenset[str] = frozenset()) -> Applied:
        for change in changeset:
            self._step()
            hunks = change.hunks()
            part = Changeset((change,))
            if change.kind == "edit" and len(hunks) > 1:
                first, part = part.split(None, {change.path: frozenset({0})})
                await super().apply(first, label, may_lose)
            self._step()
            await super().apply(part, label, may_lose)
            self._step()
        return Applied("full", changeset)

    def _step(self) -> None:
        self._left -= 1
        if self._left == 0:
            shutil.copytree(self._state, self.kept)
            raise Died


def points() -> Iterator[Any]:
    """Every step, with and without typing meanwhile; the first of each kind are quick enough for every day."""
    for at in range(1, STEPS + 1):
        for typed in (False, True):
            slow = (at, typed) not in ((1, True), (5, False), (STEPS, True))
            yield pytest.param(at, typed, marks=[pytest.mark.slow] if slow else [])


async def staged(folder: Path) -> tuple[World, Proposal]:
    made = world(folder / "w", say(), says=(text("choice.discard"),))  # what a run offers that died alone
    for name, before in BEFORE.items():
        made.open(name, before)
    proposal = made.manager.runs.get((await made.run()).run_id).proposal
    texts = {made.path(name): AFTER.get(name) for name in ("a", "b", "gone", "made")}
    proposal.staging.write(texts)
    proposal.staging.move(made.path("new"), made.read(made.path("old")))
    proposal.staging.write({made.path("new"): AFTER["new"]})
    return made, proposal


def dying(made: World, folder: Path, at: int) -> DyingEditor:
    editor = DyingEditor(made.buffers, folder / "sessions", at)
    services = made.manager.runs.all()[0].proposal._services
    object.__setattr__(services.workspace, "editor", editor)
    return editor


def restarted(made: World, editor: DyingEditor, folder: Path, *, typed: bool) -> tuple[World, Proposal]:
    """The next process, over the same buffers, in which the user has typed since."""
    session_id = made.manager.current().session_id
    made.store.close()
    other = world(folder / "w", state=editor.kept)
    other.buffers.documents.update(made.buffers.documents)
    for name, (old, new) in TYPED.items() if typed else ():
        seen = other.text(name)
        assert seen is not None and old in seen
        other.open(name, seen.replace(old, new))
    session = other.manager.resume(session_id)
    session.claim()
    return other, other.manager.runs.all()[0].proposal


def texts(made: World, *, typed: bool = False) -> dict[str, str]:
    """The files as they are, but for what was typed."""
    found = {path.removeprefix(f"{made.root}/"): document.text for path, document in made.buffers.documents.items()}
    for name, (old, new) in TYPED.items() if typed else ():
        assert new in found[name], "what was typed is lost"
        found[name] = found[name].replace(new, old)
    return found


@pytest.mark.parametrize(("at", "typed"), [*points()])
async def test_an_apply_is_taken_back_or_done(tmp_path: Path, at: int, typed: bool) -> None:
    for again in (False, True):
        folder = tmp_path / str(again)
        made, proposal = await staged(folder)
        editor = dying(made, folder, at)
        with pytest.raises(Died):
            await proposal.apply()
        other, proposal = restarted(made, editor, folder, typed=typed)
        assert proposal.record.unsettled == tuple(map(other.path, ("a", "b", "gone", "made", "new")))
        if again:
            await proposal.apply()
            assert proposal.record.unsettled == ()
            assert texts(other, typed=typed) == AFTER
        undone = await proposal.undo()
        assert not undone.conflicts
        assert texts(other, typed=typed) == BEFORE
        assert proposal.record.applied == []


@pytest.mark.parametrize(("at", "typed"), [*points()])
async def test_an_undo_is_done(tmp_path: Path, at: int, typed: bool) -> None:
    made, proposal = await staged(tmp_path)
    await proposal.apply()
    assert texts(made) == AFTER
    editor = dying(made, tmp_path, at)
    with pytest.raises(Died):
        await proposal.undo()
    other, proposal = restarted(made, editor, tmp_path, typed=typed)
    assert len(proposal.record.unsettled) == 5
    assert not (await proposal.undo()).conflicts
    assert texts(other, typed=typed) == BEFORE


@pytest.mark.slow
@pytest.mark.parametrize(("at", "typed"), [*points()])
async def test_a_rewind_is_done_or_taken_back(tmp_path: Path, at: int, typed: bool) -> None:
    for again in (False, True):
        folder = tmp_path / str(again)
        made, proposal = await staged(folder)
        run_id = proposal.record.run_id
        await proposal.apply()
        editor = dying(made, folder, at)
        await made.finished(rewind(made, run_id))
        assert editor.kept.exists()
        other, _ = restarted(made, editor, folder, typed=typed)
        last = other.manager.runs.all()[-1]
        assert len(last.record.unsettled) == 5
        if again:
            assert (await other.finished(rewind(other, run_id))).status == "completed"
            assert texts(other, typed=typed) == BEFORE
        else:
            await last.proposal.undo()
            assert texts(other, typed=typed) == AFTER


def rewind(made: World, run_id: str) -> str:
    session = made.manager.runs.get(run_id).session
    work = going_back(check(session, run_id, made.manager.runs), "changes", made.manager.runs)
    return made.manager.start(RunRequest("session.rewind", "back", "back"), session.session_id, work)
