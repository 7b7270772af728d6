"""Attempts after their run: known as such after a restart, gone back to before with their run, gone on with alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from codeagent_lsp.server.commands.rewind_commands import RewindCommands
from codeagent_lsp.session.run import Run
from tests.session.attempts.test_attempts import Make, make, tried
from tests.session.fakes import World, say, world, write
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
