"""The web terminal where a container is set: its shell runs in one, and nothing ever runs beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.environments.environment import ScreenRequest
from codeagent_lsp.errors import SettingError
from tests.environments.engine_rig import IMAGE, Podman, needs_engine
from tests.environments.folders import Folder
from tests.environments.screens import (
    Rig,
    browse,
    cancelled_after,
    killed,
    needs_browser,
    needs_terminal,
    rig,
    shell_at,
    until,
)

pytestmark = [pytest.mark.slow, needs_engine, *needs_terminal]  # real shells in real containers

SET = ShellSettings(container_image=IMAGE)


@pytest.fixture
async def made(engine: Podman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Rig]:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{engine.socket}")
    async with rig(tmp_path, SET) as opened:
        yield opened
    assert (opened.left(), engine.listed(), engine.inside()) == ([], [], [])
    assert list((opened.state / "containers").glob("*")) == []


async def test_the_shell_is_in_the_container_and_what_it_writes_is_staged(made: Rig, engine: Podman) -> None:
    (made.folder.root / "a.txt").write_text("on disk\n")
    made.folder.staging.write({str(made.folder.root / "b.txt"): "staged\n"})
    status = await made.run.start("terminal", ScreenRequest())
    assert (status.running, status.isolation, len(engine.listed())) == (True, "container", 1)
    async with shell_at(status.url) as shell:
        await shell.type("cat a.txt b.txt; id -u; ls /sys/class/net; echo do''ne\r")
        await shell.sees("done\r\n")
        await shell.type("python3 -c 'import os; print(*os.get_terminal_size())'\r")
        await shell.sees("\r\n90 24\r\n")
        await shell.type("sleep 1000\r")
        await until(lambda: any("sleep 1000" in words for words in engine.inside()))
        await shell.type("\x03")
        await shell.type("echo $((6*7)) > made.txt; echo more >> a.txt; rm -f gone; echo wri''tten\r")
        await shell.sees("written\r\n")
    assert "on disk\r\nstaged\r\n1001\r\nlo\r\n" in shell.said and "no job control" not in shell.said
    stopped = await made.run.stop("terminal")
    assert stopped.was_running and sorted(Path(path).name for path in stopped.staged) == ["a.txt", "made.txt"]
    assert made.folder.texts() == {"a.txt": "on disk\n"}
    assert made.folder.staged() == {"a.txt": "on disk\nmore\n", "b.txt": "staged\n", "made.txt": "42\n"}
    assert engine.listed() == []


@needs_browser
@pytest.mark.volume
async def test_in_a_real_browser(made: Rig) -> None:
    status = await made.run.start("terminal", ScreenRequest())

    def work(page: Any) -> None:
        page.locator("body[data-connected]").wait_for()
        size = "python3 -c 'import os; print(*os.get_terminal_size(0))'"
        page.keyboard.type(f"id -u > who.txt; {size} > size.txt; exit\n")
        for _ in range(200):
            if made.run.status("terminal").running:
                page.wait_for_timeout(100)

    await asyncio.to_thread(browse, status.url, work)
    await made.run.stop("terminal")
    staged = made.folder.staged()
    assert staged["who.txt"] == "1001\n"
    columns, lines = map(int, str(staged["size.txt"]).split())
    assert columns > 90 and lines > 24, "as large as the page"


async def test_it_ends_with_its_shell_and_what_was_written_waits(made: Rig) -> None:
    status = await made.run.start("terminal", ScreenRequest())
    async with shell_at(status.url) as shell:
        await shell.type("echo kept > kept.txt; exit\r")
        await until(lambda: not made.run.status("terminal").running)
    assert made.folder.staged() == {}
    other = Folder(made.folder.root)
    stopped = await made.as_run(other).stop("terminal")
    assert (stopped.was_running, other.staged(), made.folder.staged()) == (False, {"kept.txt": "kept\n"}, {})


async def test_an_image_that_is_not_there_is_an_error_and_no_shell(engine: Podman, made: Rig) -> None:
    made.settings = replace(SET, container_image="localhost/no-such:1")
    with pytest.raises(SettingError) as problem:
        await made.run.start("terminal", ScreenRequest())
    assert problem.value.key == "container.no_image"
    assert (made.left(), engine.listed(), made.run.status("terminal").running) == ([], [], False)


async def test_a_desktop_is_refused_in_words(made: Rig) -> None:
    with pytest.raises(SettingError, match=r"A desktop cannot run in a container.*shell.containerImage") as problem:
        await made.run.start("desktop", ScreenRequest())
    assert "桌面无法在容器中运行" in problem.value.localized("zh-cn")
    assert made.left() == []


async def test_one_that_runs_outside_ends_when_a_container_is_set(made: Rig, engine: Podman) -> None:
    made.settings = ShellSettings()
    outside = await made.run.start("terminal", ScreenRequest())
    assert outside.isolation in ("overlay", "copy")
    async with shell_at(outside.url) as shell:
        await shell.type("echo outside > a.txt; echo do''ne\r")
        await shell.sees("done\r\n")
    made.settings = SET
    inside = await made.run.start("terminal", ScreenRequest())
    assert inside.isolation == "container" and inside.url != outside.url
    assert made.folder.staged() == {"a.txt": "outside\n"}
    async with shell_at(inside.url) as shell:
        await shell.type("cat a.txt; id -u; echo do''ne\r")
        assert "outside\r\n1001\r\n" in await shell.sees("done\r\n")
    assert len(engine.listed()) == 1


async def test_a_container_that_is_gone_ends_the_terminal(made: Rig, engine: Podman) -> None:
    status = await made.run.start("terminal", ScreenRequest())
    async with shell_at(status.url) as shell:
        await shell.type("echo lost > lost.txt; echo do''ne\r")
        await shell.sees("done\r\n")
        await asyncio.to_thread(engine.kill_all)
        await until(lambda: not made.run.status("terminal").running)
    await made.run.stop("terminal")
    assert made.folder.staged() == {}


async def test_cancelled_while_it_starts(made: Rig, engine: Podman) -> None:
    for pause in (0.0, 0.3, 1.0):
        await cancelled_after(pause, made)
        await until(lambda: not made.left() and not engine.listed())


async def test_nothing_outlives_a_server_that_is_killed(
    engine: Podman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{engine.socket}")
    assert await killed("terminal", tmp_path, IMAGE) == set()
    await until(lambda: not engine.listed() and not engine.inside())
