"""The local environments of sessions: made once, made anew when settings change; what dead servers left is removed."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.environments.environments import Environments
from codeagent_lsp.environments.local import LOST_SECONDS, LocalAdapter
from codeagent_lsp.errors import SettingError
from codeagent_lsp.shadow.shell import Command
from tests.tools.fakes import Bench

DIRECT = replace(ShellSettings(), isolation="direct")


async def no(paths: tuple[str, ...]) -> bool:
    return False


async def test_a_command_runs_where_it_was_made_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "ws")
    adapter = LocalAdapter(lambda: DIRECT, tmp_path / "state", tmp_path / "spool")
    environment = await adapter.create(DIRECT, bench.view.roots.folders)
    try:
        shell = environment.bind(bench.view, bench.staging, no)
        assert shell.isolation.level == "direct"
        assert (await shell.run(Command("pwd", str(bench.root)))).finished.output == f"{bench.root}\n"
    finally:
        await environment.close()


async def test_what_was_lost_is_removed_once(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    for name, age in (("command-old", LOST_SECONDS + 60), ("command-new", 0)):
        (spool / name).write_text("x")
        os.utime(spool / name, (time.time() - age,) * 2)
    adapter = LocalAdapter(lambda: DIRECT, tmp_path / "state", spool)
    for _ in range(2):
        await (await adapter.create(DIRECT, [str(tmp_path)])).close()
    assert [path.name for path in spool.iterdir()] == ["command-new"]


async def test_a_session_keeps_its_environment_until_what_is_set_changes(tmp_path: Path) -> None:
    bench, chosen = Bench(tmp_path / "ws"), [DIRECT]
    environments = Environments(lambda: chosen[0], tmp_path / "state", tmp_path / "spool")
    for _ in range(2):
        await environments.shell("s1", bench.view, bench.staging, no)
    await environments.shell("s2", bench.view, bench.staging, no)
    assert [(info.name, info.kind) for info in environments.list()] == [("s1", "local"), ("s2", "local")]
    chosen[0] = replace(DIRECT, isolation="copy")
    shell = await environments.shell("s1", bench.view, bench.staging, no)
    assert shell.isolation.level == "copy"
    await environments.close("s2")
    assert [info.name for info in environments.list()] == ["s1"]
    await environments.close()
    assert environments.list() == ()


@pytest.mark.slow
async def test_calls_side_by_side_share_one_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, made = Bench(tmp_path / "ws"), []
    create = LocalAdapter.create

    async def slowly(self: LocalAdapter, *given: Any) -> Any:
        made.append(given)
        await asyncio.sleep(0.05)
        return await create(self, *given)

    monkeypatch.setattr(LocalAdapter, "create", slowly)
    environments = Environments(lambda: DIRECT, tmp_path / "state", tmp_path / "spool")
    shells = await asyncio.gather(*(environments.shell("s1", bench.view, bench.staging, no) for _ in range(3)))
    assert len(made) == 1
    for shell in shells:
        assert (await shell.run(Command("echo here", str(bench.root)))).finished.output == "here\n"
    await environments.close()


async def test_a_container_that_cannot_be_is_never_something_weaker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://somewhere")
    bench = Bench(tmp_path / "ws")
    environments = Environments(lambda: replace(DIRECT, container_image="x"), tmp_path / "state", tmp_path / "spool")
    with pytest.raises(SettingError, match="no container engine"):
        await environments.shell("s1", bench.view, bench.staging, no)
    assert environments.list() == ()
