"""One run in a folder: which end is its own, and what is told where it has none."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.batch import perform
from codeagent_lsp.batch.perform import AgentRun
from codeagent_lsp.batch.task_file import BatchOptions
from codeagent_lsp.lsp_client.connection import ConnectionLost

ATTEMPT = {"type": "run_completed", "status": "completed", "session_id": "of the attempt"}
WHOLE = {"type": "run_completed", "status": "completed", "session_id": "of the run"}


async def ran(
    monkeypatch: pytest.MonkeyPatch, folder: Path, end: Mapping[str, Any] | Exception, seconds: float = 60.0
) -> AgentRun:
    """A run of which one attempt has ended, then the whole; its server needs 0.1 s to go."""

    class Fake:
        def __init__(self, options: Any, interrupted: Any, environ: Any) -> None:
            self.written = ()

        async def run(self, face: Any) -> Mapping[str, Any]:
            face.event(ATTEMPT)
            if isinstance(end, Exception):
                raise end
            face.event(end)
            await asyncio.sleep(0.1)
            return end

    monkeypatch.setattr(perform, "Client", Fake)
    return await perform.agent_run("task", folder, BatchOptions(attempts=2), seconds)


async def test_the_end_of_an_attempt_is_not_that_of_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = await ran(monkeypatch, tmp_path, ConnectionLost("killed"))
    assert (run.completed, run.error) == ({}, "killed")


async def test_a_run_that_ended_in_time_is_not_late(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = await ran(monkeypatch, tmp_path, WHOLE, seconds=0.01)
    assert (run.completed, run.session, run.late) == (WHOLE, "of the run", False)


async def test_one_that_was_ended_is_late(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = await ran(monkeypatch, tmp_path, {**WHOLE, "status": "cancelled"}, seconds=0.01)
    assert run.late
