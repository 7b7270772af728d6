"""The web terminal: a shell that knows the run's text and changes nothing on disk, for who has the token."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.environments.environment import PORTS, ScreenRequest, Stopped
from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.shadow.watchdog import resident_bytes
from tests.children import command_lines
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
    socket_url,
    until,
    wrote,
    yes,
)

pytestmark = [pytest.mark.slow, *needs_terminal]  # real shells in a real sandbox


@pytest.fixture
async def made(tmp_path: Path) -> AsyncGenerator[Rig]:
    async with rig(tmp_path) as opened:
        yield opened
    assert opened.left() == []


async def test_it_is_used_and_nothing_reaches_the_disk(made: Rig) -> None:
    (made.folder.root / "a.txt").write_text("on disk\n")
    made.folder.staging.write({str(made.folder.root / "b.txt"): "staged\n"})
    status = await made.run.start("terminal", ScreenRequest())
    assert status.running and status.port >= PORTS["terminal"] and status.isolation in ("overlay", "copy")
    assert status.pid in command_lines()  # its command line is empty for a moment while the kernel starts it
    async with shell_at(status.url) as shell:
        await shell.type("cat a.txt b.txt; echo $((6*7)) > made.txt; echo more >> a.txt; stty size; echo do''ne\r")
        said = await shell.sees("done\r\n")
        await shell.type("sleep 1000\r")
        await asyncio.sleep(0.5)
        await shell.type("\x03")  # only with job control
        await shell.type("echo inter''rupted; (exec 3<>/dev/tcp/1.1.1.1/53) 2>&1; echo off''line\r")
        await shell.sees("interrupted\r\n")
        said = await shell.sees("offline\r\n")
    assert "on disk" in said and "staged" in said and "24 90" in said and "no job control" not in said
    assert "Network is unreachable" in said
    stopped = await made.run.stop("terminal")
    assert stopped.was_running and sorted(Path(path).name for path in stopped.staged) == ["a.txt", "made.txt"]
    assert made.folder.texts() == {"a.txt": "on disk\n"}
    assert made.folder.staged() == {"a.txt": "on disk\nmore\n", "b.txt": "staged\n", "made.txt": "42\n"}
    assert not made.run.status("terminal").running
    assert made.left() == []


async def test_only_who_knows_the_token_gets_anything(made: Rig) -> None:
    status = await made.run.start("terminal", ScreenRequest())
    token = status.url.split("/")[3]
    async with httpx.AsyncClient(trust_env=False) as client:

        async def got(path: str, **headers: str) -> int:
            return (await client.get(f"{status.address}{path}", headers=headers)).status_code

        assert await got(f"{token}/") == 200
        page = await client.get(status.url)
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        assert page.headers["Referrer-Policy"] == "no-referrer" and "Set-Cookie" not in page.headers
        for name in ("xterm.js", "xterm.css", "fit.js", "page.js", "page.css"):
            assert await got(f"{token}/{name}") == 200
        for path in ("", "xterm.js", "socket", f"{token}x/", f"{token[:-1]}/", "x/page.js", f"?token={token}"):
            assert await got(path) == 403, path
        for path in ("nothing", "../etc/passwd", "%2e%2e/index.html", "/etc/passwd", "index.html"):
            assert await got(f"{token}/{path}") in (403, 404), path
        assert await got(f"{token}/", Host=f"evil.example:{status.port}") == 421
        assert await got(f"{token}/", Origin="http://evil.example") == 403
        assert await got(f"{token}/", Origin=f"http://127.0.0.1:{status.port + 1}") == 403
        assert await got(f"{token}/", Origin=f"http://127.0.0.1:{status.port}") == 200
    assert not _reachable(status.port, _own_address())


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:1", "null"])
async def test_no_other_page_reaches_the_socket(made: Rig, origin: str) -> None:
    status = await made.run.start("terminal", ScreenRequest())
    with pytest.raises(InvalidStatus, match="403"):
        async with connect(socket_url(status.url), origin=Origin(origin)):
            pass
    with pytest.raises(InvalidStatus, match="403"):
        async with connect(f"ws://127.0.0.1:{status.port}/wrong/socket"):
            pass
    async with connect(socket_url(status.url), origin=Origin(f"http://127.0.0.1:{status.port}")) as connection:
        assert "setup" in str(await connection.recv())


async def test_it_ends_with_its_shell_and_what_was_written_waits(made: Rig) -> None:
    status = await made.run.start("terminal", ScreenRequest())
    async with shell_at(status.url) as shell:
        await shell.type("echo kept > kept.txt; exit\r")
        await until(lambda: not made.run.status("terminal").running)
    assert made.run.status("terminal").why == "It has ended."
    assert made.folder.staged() == {}
    other = Folder(made.folder.root)
    stopped = await made.as_run(other).stop("terminal")
    assert (stopped.was_running, other.staged(), made.folder.staged()) == (False, {"kept.txt": "kept\n"}, {})


async def test_ports(made: Rig) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ToolFailed, match=f"No port is free: {port}"):
            await made.run.start("terminal", ScreenRequest(port))
    assert made.left() == []
    first = await made.run.start("terminal", ScreenRequest(port))
    assert first.port == port
    again = await made.run.start("terminal", ScreenRequest())
    assert (again.url, again.pid) == (first.url, first.pid), "one that runs is left as it is"
    other = made.screens.of("another session", made.run.ports)
    usual = await other.start("terminal", ScreenRequest())
    third = await made.screens.of("a third", made.run.ports).start("terminal", ScreenRequest())
    # Tests beside this one may take and leave the usual ones.
    assert third.port != usual.port and min(third.port, usual.port) >= PORTS["terminal"]


def serving_programs() -> set[int]:
    """The ids of the programs that this process has started, itself or by others, and that serve a page."""
    found, parents = set[int](), [os.getpid()]
    while parents:
        for pid, line in command_lines(parent=parents.pop()).items():
            parents.append(pid)
            if "serving_program" in line and "sys.path" in line:
                found.add(pid)
    return found


async def test_a_browser_that_does_not_read_stops_the_flood(made: Rig) -> None:
    before = serving_programs()
    status = await made.run.start("terminal", ScreenRequest())
    (serving,) = serving_programs() - before
    async with connect(socket_url(status.url), max_queue=1) as deaf:
        await deaf.send('["stdin", "yes 0123456789012345678901234567890123456789\\r"]')
        async with asyncio.timeout(20):
            while "0123456789" * 8 not in str(await deaf.recv()).replace("\\r\\n", ""):
                pass  # it begins, and from now on nobody reads
        await asyncio.sleep(5)
        resident = resident_bytes(serving)
        assert resident < 120 << 20, f"{resident >> 20} MiB"


async def test_cancelled_while_it_starts(made: Rig) -> None:
    for pause in (0.0, 0.2, 0.6):
        await cancelled_after(pause, made)
        await until(lambda: not made.left())  # a thread may still be finding out what this machine can do


async def test_a_stop_that_is_cancelled_while_it_asks_leaves_all_to_the_next(made: Rig) -> None:
    status = await made.run.start("terminal", ScreenRequest())
    async with shell_at(status.url) as shell:
        await shell.type("echo a > a.txt; mkdir .vscode; echo '{}' > .vscode/tasks.json; echo do''ne\r")
        await shell.sees("done\r\n")
    asked, never = asyncio.Event(), asyncio.Event()

    async def ask(paths: tuple[str, ...]) -> bool:
        asked.set()
        return await never.wait()

    stopping = asyncio.ensure_future(made.as_run(made.folder, ask).stop("terminal"))
    await asked.wait()
    stopping.cancel()
    await asyncio.wait([stopping])
    never.set()  # an answer that comes too late
    await asyncio.sleep(0.2)
    assert stopping.cancelled() and made.folder.staged() == {}
    assert not made.run.status("terminal").running
    other = Folder(made.folder.root)
    stopped = await made.as_run(other, yes).stop("terminal")
    assert other.staged() == {"a.txt": "a\n", ".vscode/tasks.json": "{}\n"} and len(stopped.staged) == 2
    assert made.folder.staged() == {}
    assert await made.run.stop("terminal") == Stopped(was_running=False)


async def test_it_needs_a_view_from_which_nothing_gets_out(tmp_path: Path) -> None:
    async with rig(tmp_path, ShellSettings(isolation="direct")) as opened:
        with pytest.raises(ToolFailed, match="isolation level direct"):
            await opened.run.start("terminal", ScreenRequest())
        assert opened.left() == []


async def test_on_a_copy_of_the_workspace(tmp_path: Path) -> None:
    async with rig(tmp_path, ShellSettings(isolation="copy")) as opened:
        (opened.folder.root / "a.txt").write_text("on disk\n")
        status = await opened.run.start("terminal", ScreenRequest())
        assert status.isolation == "copy"
        async with shell_at(status.url) as shell:
            await shell.type("cat a.txt; echo new > made.txt; echo do''ne\r")
            assert "on disk" in await shell.sees("done\r\n")
        await opened.run.stop("terminal")
        assert opened.folder.staged() == {"made.txt": "new\n"} and opened.folder.texts() == {"a.txt": "on disk\n"}
    assert opened.left() == []


async def test_nothing_outlives_a_server_that_is_killed(tmp_path: Path) -> None:
    assert await killed("terminal", tmp_path) == set()


@pytest.mark.journey
@needs_browser
async def test_in_a_real_browser(made: Rig) -> None:
    status = await made.run.start("terminal", ScreenRequest())

    def work(page: Any) -> None:
        page.locator("body[data-connected]").wait_for()
        page.keyboard.type("echo $((6*7)) > answer.txt; stty size; ls\n")
        wrote(page, made, "answer.txt")
        page.screenshot(path=os.environ.get("CODEAGENT_PICTURES", str(made.state)) + "/terminal.png")

    await asyncio.to_thread(browse, status.url, work)
    stopped = await made.run.stop("terminal")
    assert [Path(path).name for path in stopped.staged] == ["answer.txt"]
    assert made.folder.staged() == {"answer.txt": "42\n"} and made.folder.texts() == {}
    assert made.left() == []


def _own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.2"


def _reachable(port: int, host: str) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex((host, port)) == 0
