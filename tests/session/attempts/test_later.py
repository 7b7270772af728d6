"""Attempts after their run: known as such after a restart, gone back to before with their run, gone on with alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codeagent_lsp.server.commands.rewind_commands import RewindCommands
from codeagent_lsp.session.rewind.rewinding import undo_rewind
from codeagent_lsp.session.run import Run
from tests.session.attempts.test_attempts import Make, make, others, tried
from tests.session.fakes import World, say, world, write
from tests.session.rewind.test_rewinding import rewound
from tests.shadow.rig import needs_overlay

__all__ = ["make"]

pytestmark = needs_overlay


async def two(make: Make) -> tuple[World, Run]:
    """A run with two attempts, and one of them."""
    made = make((write("a.py", "a = 1\n"), say("Done.")), (write("b.py", "b = 1\n"), say("Done.")))
    await tried(made, 2, "write a file")
    return made, next(run for run in made.manager.runs.all() if run.record.attempt_of)


async def test_after_a_restart(make: Make, tmp_path: Path) -> None:
    """It is none of the runs whose changes wait; its session can be gone on with."""
    made, attempt = await two(make)
    session_id = attempt.session.session_id
    await made.manager.close()
    other = world(tmp_path / "w", say("Hello."), state=tmp_path / "sessions")
    (record,) = other.manager.resume(session_id).context.runs.values()
    assert (record.attempt_of, record.attempt) == (attempt.record.attempt_of, 1)
    assert (await other.run("go on")).session_id == session_id


async def test_going_back_to_before_one_is_to_before_its_run(make: Make) -> None:
    made, attempt = await two(make)

    async def ready() -> None:
        """Wait for nothing."""

    backend: Any = SimpleNamespace(ready=ready, manager=made.manager, front=SimpleNamespace(language=lambda: "en"))
    answer = await RewindCommands(backend).table()["codeagent.session.rewind"]({"runId": attempt.record.run_id})
    assert answer["runs"][0] == attempt.record.attempt_of
    assert (await made.finished(answer["runId"])).status == "completed"


@pytest.mark.parametrize("restarts", [False, True])
async def test_what_was_taken_from_another_goes_and_comes_back_with_its_run(
    make: Make, tmp_path: Path, restarts: bool
) -> None:
    middle = "".join(f"{number}\n" for number in range(1, 20))
    before, best = f"a\n{middle}b\n", f"A\n{middle}b\n"
    other = before.replace("3\n4", "3\n!\n4").replace("b\n", "B\n")
    made = make([write("a.py", best), say("Done.")], [write("a.py", other), say("Done.")])
    made.open("a.py", before)
    run_id = (await tried(made, 2, "write a file")).run_id
    second = others(made, run_id)[1].record.run_id
    await made.manager.runs.get(second).proposal.apply(hunks={made.path("a.py"): frozenset({1})})
    taken = best.replace("b\n", "B\n")
    assert made.text("a.py") == taken
    if restarts:
        made = await restarted(made, tmp_path)
    rewind_id = await rewound(made, run_id, "changes")
    assert made.text("a.py") == before
    attempt = made.manager.runs.get(second)
    assert (attempt.record.applied, attempt.proposal.changeset.paths) == ([], ())
    if restarts:
        made = await restarted(made, tmp_path)
    await undo_rewind(made.manager.runs.get(rewind_id), made.manager.runs)
    assert made.text("a.py") == taken
    attempt = made.manager.runs.get(second)
    assert attempt.proposal.changeset.paths == (made.path("a.py"),), "what is left of it is staged again"
    await attempt.proposal.undo()
    assert made.text("a.py") == best


async def restarted(made: World, folder: Path) -> World:
    """The same session in a new process, over the same buffers."""
    session = made.manager.current()
    await made.manager.close()
    other = world(folder / "w", state=folder / "sessions")
    other.buffers.documents.update(made.buffers.documents)
    other.manager.resume_attempts(other.manager.resume(session.session_id))
    return other
