"""A real browser for pages that scripts write: it works, reaches nothing that is not public, and is gone afterwards."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.tools.web.http import Fetcher, PageLimits
from codeagent_lsp.tools.web.scraping import Web, browse_page, browser_of, scrape_page
from codeagent_lsp.tools.web.urls import parse_url
from tests.children import children, command_lines
from tests.tools.web.net import OTHER, PUBLIC, Net, answer, pages, server

HOST = "app.example.org"
BROWSER = browser_of(os.environ.get("PATH", ""))

slow = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium here")]


@pytest.fixture
def net() -> Net:
    pytest.importorskip("playwright", reason="the extra `web` is not installed")
    return Net({HOST: [[PUBLIC]], "other.example": [[OTHER]], "turning.example": [[PUBLIC], ["127.0.0.1"]]})


def program(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_the_browser_of_the_system_and_never_one_of_the_workspace(tmp_path: Path) -> None:
    own, systems = program(tmp_path / "ws" / "bin" / "chromium"), program(tmp_path / "usr" / "google-chrome")
    path = os.pathsep.join(["bin", "", str(Path(own).parent), str(Path(systems).parent)])
    assert browser_of(path, [str(tmp_path / "ws")]) == systems
    assert browser_of(path) == own
    assert browser_of("bin::", []) is None and browser_of("") is None


async def test_without_a_browser_it_is_told() -> None:
    with pytest.raises(ToolFailed, match="no Chromium"):
        await browse_page(None, parse_url(f"http://{HOST}/"), None, Net().dialer)


@asynccontextmanager
async def canary() -> AsyncGenerator[tuple[int, list[object]]]:
    """A port on loopback that notes whoever connects."""
    seen: list[object] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.read(200))
        writer.close()

    listening = await asyncio.start_server(note, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1], seen
    finally:
        listening.close()


class Traces:
    """What a browser of this test leaves: its folder, which its command lines name, and our child that watches it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before = children()

    def found(self) -> set[str]:
        lines = {line for line in command_lines().values() if f"{self._folder}/" in line}
        return lines | (children() - self._before) | {str(path) for path in self._folder.iterdir()}


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traces]:
    """Temporary folders of this test alone: others may run browsers meanwhile. Short, for the browser's sockets."""
    with tempfile.TemporaryDirectory(prefix="web-") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Traces(Path(folder))


class TestReal:
    """With the browser of this machine."""

    pytestmark = slow

    async def test_a_page_that_scripts_write(self, net: Net, traces: Traces) -> None:
        found = {
            "/": answer("<div id=root></div><script src=/app.js></script>"),
            "/app.js": answer(
                "fetch('/data').then(r => r.text()).then(t => document.getElementById('root').innerHTML = t)",
                media="text/javascript",
            ),
            "/data": answer("<h1>Written late</h1><p class=x>by a script</p>"),
        }
        web = Web(Fetcher(net.dialer, PageLimits(seconds=10)))
        opened: list[bool] = []
        async with server(pages(found), net, (PUBLIC, 80)):
            page = await scrape_page(web, parse_url(f"http://{HOST}/"), ".x", opening=lambda: opened.append(True))
        assert page.words.text == "by a script" and opened == [True]
        assert "its scripts have run" in " ".join(page.notes)
        assert set(net.tried) == {(PUBLIC, 80)}
        assert traces.found() == set()

    async def test_nothing_inside_is_reached_from_a_page(self, net: Net) -> None:
        async with canary() as (port, seen):
            tricks = f"""
            <div id=out></div>
            <img src="http://127.0.0.1:{port}/img"><iframe src="http://localhost:{port}/frame"></iframe>
            <link rel=preconnect href="http://127.0.0.1:{port}"><link rel=dns-prefetch href="//127.0.0.1:{port}">
            <script>
            const urls = ["http://127.0.0.1:{port}/a", "http://localhost:{port}/b", "http://[::1]:{port}/c",
                "http://0.0.0.0:{port}/d", "http://2130706433:{port}/e", "http://turning.example:{port}/f",
                "http://169.254.169.254/latest", "http://turning.example/again"];
            const all = urls.map(u => fetch(u, {{mode: "no-cors"}}).then(() => "reached " + u, () => "refused"));
            try {{ new WebSocket("ws://127.0.0.1:{port}/ws") }} catch (e) {{}}
            try {{ new EventSource("http://127.0.0.1:{port}/es") }} catch (e) {{}}
            navigator.sendBeacon("http://127.0.0.1:{port}/beacon", "x");
            const rtc = new RTCPeerConnection({{iceServers: [{{urls: "turn:127.0.0.1:{port}?transport=tcp",
                username: "u", credential: "c"}}]}});
            rtc.createDataChannel("x"); rtc.createOffer().then(o => rtc.setLocalDescription(o));
            Promise.all(all).then(t => {{ document.getElementById("out").className = "done";
                document.getElementById("out").textContent = t.length + " tried" }});
            </script>"""
            net.servers[("127.0.0.1", port)] = port  # were it dialled, it would be reached
            async with server(pages({"/": answer(tricks)}), net, (PUBLIC, 80)):
                html = await browse_page(BROWSER, parse_url(f"http://{HOST}/"), "#out.done", net.dialer)
            assert "8 tried" in html
            assert seen == []
        assert {place for place in net.tried if place[0] != PUBLIC} == set()

    async def test_a_page_does_not_lead_to_another_site(self, net: Net) -> None:
        found = {"/": answer("<p>here</p><script>location = 'http://other.example/?d=1'</script>")}
        async with (
            server(pages(found), net, (PUBLIC, 80)),
            server(pages({"/?d=1": answer("there")}), net, (OTHER, 80)) as other,
        ):
            html = await browse_page(BROWSER, parse_url(f"http://{HOST}/"), None, net.dialer)
        assert "<p>here</p>" in html and "there" not in html and other == []

    async def test_a_page_that_never_rests_ends(self, net: Net) -> None:
        found = {"/": answer("<p>busy</p><script>setInterval(() => fetch('/' + Math.random()), 50)</script>")}
        started = time.monotonic()
        async with server(pages(found), net, (PUBLIC, 80)):
            assert "busy" in await browse_page(BROWSER, parse_url(f"http://{HOST}/"), None, net.dialer)
        assert time.monotonic() - started < 40

    async def test_cancelling_leaves_no_browser(self, net: Net, traces: Traces) -> None:
        async with server(
            pages({"/": answer("<script>setInterval(() => fetch('/x'), 50)</script>")}), net, (PUBLIC, 80)
        ) as asked:
            task = asyncio.ensure_future(browse_page(BROWSER, parse_url(f"http://{HOST}/"), "#never", net.dialer))
            async with asyncio.timeout(30):
                while len(asked) < 3:  # noqa: ASYNC110 - the server tells by its list
                    await asyncio.sleep(0.05)
            assert len(traces.found()) > 3  # folder, watcher and browser: it can be seen
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert traces.found() == set()
