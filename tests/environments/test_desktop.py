"""The desktop: an X server with a window manager and a terminal, in the browser, for who has the token."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from codeagent_lsp.environments.environment import PORTS, ScreenRequest
from codeagent_lsp.environments.serving_page import connect_to_socket
from tests.environments.screens import Rig, browse, killed, needs_browser, needs_desktop, rig, socket_url, until, wrote

PROMPT = """() => {
    const canvas = document.querySelector("#screen canvas");
    const pixels = canvas.getContext("2d").getImageData(45, 80, 200, 20).data;
    return new Uint32Array(pixels.buffer).some((pixel) => (pixel & 0xff) > 200);
}"""
"""Whether something bright is drawn where the terminal's first line is."""

pytestmark = [pytest.mark.slow, *needs_desktop]  # a real X server


@pytest.fixture
async def made(tmp_path: Path) -> AsyncGenerator[Rig]:
    async with rig(tmp_path) as opened:
        yield opened
    assert opened.left() == []


async def test_it_speaks_vnc_at_the_size_that_was_asked_for(made: Rig) -> None:
    status = await made.run.start("desktop", ScreenRequest(resolution="800x600", display=7))
    assert status.port >= PORTS["desktop"] and (status.resolution, status.display) == ("800x600", 7)
    async with connect(socket_url(status.url)) as connection:
        assert await connection.recv() == b"RFB 003.008\n"
        await connection.send(b"RFB 003.008\n")
        assert await connection.recv() == b"\x01\x01"  # no password: the token was asked for
        await connection.send(b"\x01")
        assert await connection.recv() == bytes(4)
        await connection.send(b"\x01")
        screen = await connection.recv()
        assert isinstance(screen, bytes)
        assert (int.from_bytes(screen[:2], "big"), int.from_bytes(screen[2:4], "big")) == (800, 600)
    assert (await made.run.stop("desktop")).was_running
    assert made.left() == []


async def test_only_who_knows_the_token_gets_anything(made: Rig) -> None:
    status = await made.run.start("desktop", ScreenRequest())
    async with httpx.AsyncClient(trust_env=False) as client:
        for name in ("", "page.js", "core/rfb.js", "vendor/pako/lib/zlib/inflate.js"):
            assert (await client.get(status.url + name)).status_code == 200, name
            assert (await client.get(f"{status.address}{name}")).status_code == 403, name
            assert (await client.get(status.url + name, headers={"Host": "evil.example"})).status_code == 421
        assert (await client.get(status.url + "vnc.html")).status_code == 404, "only what the page needs"
    for url, origin in (
        (socket_url(status.url), "http://evil.example"),
        (f"ws://127.0.0.1:{status.port}/wrong/socket", None),
    ):
        with pytest.raises(InvalidStatus, match="403"):
            async with connect(url, origin=Origin(origin) if origin else None):
                pass


async def test_the_socket_is_no_link_to_another_one(tmp_path: Path) -> None:
    listening = await asyncio.start_unix_server(lambda reader, writer: writer.close(), str(tmp_path / "real"))
    (tmp_path / "link").symlink_to(str(tmp_path / "real"))
    (tmp_path / "file").write_text("")
    try:
        _, writer = await connect_to_socket(str(tmp_path / "real"))
        writer.close()
        for name in ("link", "file", "nothing"):
            with pytest.raises(OSError, match=r".*"):
                await connect_to_socket(str(tmp_path / name))
    finally:
        listening.close()


async def test_it_ends_with_its_x_server(made: Rig) -> None:
    status = await made.run.start("desktop", ScreenRequest())
    os.kill(status.pid, 9)
    await until(lambda: not made.run.status("desktop").running)
    again = await made.run.start("desktop", ScreenRequest())
    assert again.running and again.pid != status.pid


async def test_nothing_outlives_a_server_that_is_killed(tmp_path: Path) -> None:
    assert await killed("desktop", tmp_path) == set()


@needs_browser
@pytest.mark.volume
async def test_in_a_real_browser(made: Rig) -> None:
    (made.folder.root / "hello.txt").write_text("hello from the workspace\n")
    status = await made.run.start("desktop", ScreenRequest(resolution="1000x640"))
    pictures = os.environ.get("CODEAGENT_PICTURES", str(made.state))

    def work(page: Any) -> None:
        page.locator("body[data-connected]").wait_for()
        page.wait_for_function(PROMPT)
        page.mouse.click(300, 250)
        page.keyboard.type("cat hello.txt; echo $((6*7)) > answer.txt; ls\n", delay=30)
        wrote(page, made, "answer.txt")
        page.screenshot(path=f"{pictures}/desktop.png")

    await asyncio.to_thread(browse, status.url, work)
    stopped = await made.run.stop("desktop")
    assert [Path(path).name for path in stopped.staged] == ["answer.txt"]
    assert made.folder.staged() == {"answer.txt": "42\n"}
    assert made.folder.texts() == {"hello.txt": "hello from the workspace\n"}
    assert made.left() == []
