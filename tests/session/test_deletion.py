"""What a deleted session leaves behind goes in the background, and so does what a killed server left."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.environments.environments import Environments
from codeagent_lsp.environments.local import LOST_SECONDS
from codeagent_lsp.llm.providers.scripted import ScriptedReply
from codeagent_lsp.session import manager
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.tools.artifacts.artifact_store import ArtifactStore
from codeagent_lsp.tools.outputs import OutputStore
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.paths import Roots
from tests.session.fakes import World, say, until, world
from tests.tools.shells import FakeEnvironments
from tests.workspace.file_fakes import FakeBuffers, FakeStaged


def kept(made: World, session_id: str) -> Path:
    """A long result of the session; its folder."""
    folder = made.root.parent / "outputs" / session_id
    OutputStore(folder).keep("long")
    return folder


async def test_the_shadow_and_the_outputs_of_a_deleted_session_go(tmp_path: Path) -> None:
    environments = FakeEnvironments()
    made = world(tmp_path / "w", say(), say(), environments=environments)
    await made.run()
    session_id = made.manager.current().session_id
    other = kept(made, made.manager.new().session_id)
    folder = kept(made, session_id)
    made.manager.delete(session_id)
    await until(lambda: not folder.exists())
    assert environments.closed == [session_id]
    assert other.is_dir()
    await until(lambda: len(asyncio.all_tasks()) == 1)


async def test_its_runs_have_ended_before_its_shadow_is_closed(tmp_path: Path) -> None:
    order: list[str] = []

    class Watching(FakeEnvironments):
        async def close(self, session_id: str | None = None) -> None:
            order.append(f"closed, {len(made.manager.runs.active())} at work")

    made = world(tmp_path / "w", ScriptedReply("slow", delay=30), environments=Watching())
    made.manager.start(RunRequest("run", "t", "t"))
    await until(lambda: made.events)
    made.manager.delete(made.manager.current().session_id)
    await until(lambda: order)
    assert order == ["closed, 0 at work"]


async def test_a_session_of_the_disk_alone_is_cleared_too(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say())
    await made.run()
    session_id = made.manager.current().session_id
    made.store.close()
    folder, exported = kept(made, session_id), tmp_path / "artifacts" / session_id
    ArtifactStore(exported).put("a.txt", b"a")
    other = world(tmp_path / "w")
    other.manager.delete(session_id)
    await until(lambda: not folder.exists() and not exported.exists())


async def test_a_shadow_that_does_not_close_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Stuck(FakeEnvironments):
        async def close(self, session_id: str | None = None) -> None:
            await asyncio.sleep(60)

    monkeypatch.setattr(manager, "CLEAR_SECONDS", 0.05)
    made = world(tmp_path / "w", say(), environments=Stuck())
    await made.run()
    made.manager.delete(made.manager.current().session_id)
    await until(lambda: len(asyncio.all_tasks()) == 1)
    assert "is left" in caplog.text


async def test_leaving_does_not_wait_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stuck(FakeEnvironments):
        async def close(self, session_id: str | None = None) -> None:
            if session_id is not None:
                await asyncio.sleep(60)

    monkeypatch.setattr(manager, "LEAVE_SECONDS", 0.05)
    made = world(tmp_path / "w", say(), environments=Stuck())
    await made.run()
    made.manager.delete(made.manager.current().session_id)
    began = time.monotonic()
    await made.manager.close()
    assert time.monotonic() - began < 5
    await until(lambda: len(asyncio.all_tasks()) == 1)


async def test_raw_outputs_of_a_killed_server_are_removed_in_time(tmp_path: Path) -> None:
    spool = tmp_path / "outputs"
    kept_here = OutputStore(spool / "s").keep("masked")
    for name, age in (
        ("command-1.txt", LOST_SECONDS + 60),
        ("command-2.txt.masked", LOST_SECONDS + 60),
        ("command-3.txt", 5),
    ):
        (spool / name).write_text("raw")
        os.utime(spool / name, (time.time() - age,) * 2)
    environments = Environments(lambda: replace(ShellSettings(), isolation="direct"), tmp_path / "state", spool)
    view = FileView(Roots([str(tmp_path)]), FakeBuffers(), FakeStaged())

    async def approve(paths: tuple[str, ...]) -> bool:
        return True

    await environments.shell("s", view, Staging(view.base), approve)
    await environments.close()
    assert sorted(path.name for path in spool.iterdir()) == ["command-3.txt", "s"]
    assert kept_here == "@output/1.txt"
