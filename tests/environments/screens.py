"""Real web terminals and desktops over a folder of a test, a socket client for them, and a real browser."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.environments.environment import ScreenRequest
from codeagent_lsp.environments.environments import Environments
from codeagent_lsp.environments.serving_screen import find_programs
from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.session.screens import RunScreens, ScreenPorts, SessionScreens
from codeagent_lsp.shadow.shell import Approve
from codeagent_lsp.shadow.watchdog import descendants
from codeagent_lsp.tools.web.scraping import browser_of
from tests.children import command_lines
from tests.environments.folders import Folder
from tests.shadow.rig import ROOT, needs_overlay

BROWSER = browser_of(os.environ.get("PATH", ""))
SECONDS = 60.0


def _lacking() -> str:
    try:
        find_programs()
    except ToolFailed as problem:
        return str(problem)
    return ""


needs_terminal = [
    needs_overlay,
    pytest.mark.skipif(importlib.util.find_spec("terminado") is None, reason="the extra `terminal` is not installed"),
]
needs_desktop = [*needs_terminal, pytest.mark.skipif(bool(_lacking()), reason=_lacking())]
needs_browser = pytest.mark.skipif(
    BROWSER is None or importlib.util.find_spec("playwright") is None, reason="no Chromium or no playwright here"
)


class Rig:
    """The screens of one session, over a workspace in a temporary folder."""

    def __init__(self, folder: Path, settings: ShellSettings | None = None) -> None:
        self.folder = Folder(folder / "workspace")
        self.state = folder / "state"
        self.settings = settings or ShellSettings()
        self.environments = Environments(lambda: self.settings, self.state, self.state / "outputs")
        self.shown: list[str] = []
        self.screens = SessionScreens(self.environments, self._show)
        self.run = self.as_run(self.folder)

    def as_run(self, folder: Folder, approve: Approve | None = None) -> RunScreens:
        """What a run has whose files these are."""
        return self.screens.of("session", ScreenPorts(folder.view, folder.staging, approve or _never))

    def left(self) -> list[str]:
        """Processes and files that a screen should not leave."""
        lines = [line for line in command_lines(parent=os.getpid()).values() if "watchdog" in line]
        return lines + [str(path) for path in (self.state / "layers").glob("*")]

    async def close(self) -> None:
        await self.screens.close()
        await self.environments.close()

    async def _show(self, url: str) -> bool:
        self.shown.append(url)
        return True


@asynccontextmanager
async def rig(folder: Path, settings: ShellSettings | None = None) -> AsyncGenerator[Rig]:
    made = Rig(folder, settings)
    try:
        yield made
    finally:
        await made.close()


class Shell:
    """A terminal's socket as its page uses it."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.said = ""

    async def type(self, text: str) -> None:
        await self.connection.send(json.dumps(["stdin", text]))

    async def sees(self, words: str) -> str:
        """Read on until it says this; all that it said."""
        async with asyncio.timeout(SECONDS):
            while words not in self.said:
                kind, *data = json.loads(await self.connection.recv())
                self.said += data[0] if kind == "stdout" else ""
        return self.said


@asynccontextmanager
async def shell_at(url: str) -> AsyncGenerator[Shell]:
    async with connect(socket_url(url), origin=None) as connection:
        await connection.send(json.dumps(["set_size", 24, 90]))
        yield Shell(connection)


def socket_url(url: str) -> str:
    return url.replace("http:", "ws:") + "socket"


def browse(url: str, work: Callable[[Any], None]) -> None:
    """Open an address in a real browser and do `work` on the page; blocks, so call it in a thread."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=BROWSER, chromium_sandbox=os.geteuid() != 0, args=["--disable-gpu"], timeout=120_000
        )
        try:
            page = browser.new_page(viewport={"width": 1000, "height": 640})
            page.set_default_timeout(SECONDS * 1000)
            foreign: list[str] = []
            page.on("request", lambda request: None if request.url.startswith(url) else foreign.append(request.url))
            page.goto(url)
            work(page)
            assert [address for address in foreign if not address.startswith(("data:", "blob:"))] == []
        finally:
            browser.close()


async def until(holds: Callable[[], object], seconds: float = SECONDS) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came"
        await asyncio.sleep(0.05)


def wrote(page: Any, made: Rig, name: str, seconds: float = 20.0) -> None:
    """Let the page work until a file of this name is in the private view, as far as one can see that from here."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not list((made.state / "layers").rglob(name)):
        page.wait_for_timeout(200)
    page.wait_for_timeout(1000)


async def cancelled_after(seconds: float, made: Rig) -> None:
    """Begin to start a terminal, and think better of it."""
    starting = asyncio.ensure_future(made.run.start("terminal", ScreenRequest()))
    await asyncio.sleep(seconds)
    starting.cancel()
    await asyncio.wait([starting])
    await made.run.stop("terminal")


async def killed(kind: str, folder: Path, image: str = "") -> set[int]:
    """Start one in a process of its own, with `image` in a container; kill that, wait; what was below it and stays."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.environments.started", kind, str(folder), image),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(SECONDS * 2):
            url = (await process.stdout.readline()).decode().strip()
        assert url.startswith("http://127.0.0.1:")
        least = 3 if image else 5  # watchdog, serving program, and what joins a container; else sandbox twice, shell
        await until(lambda: len(descendants(process.pid)) >= least)
        below = set(descendants(process.pid))
    finally:
        process.kill()
        await process.wait()
    with suppress(AssertionError):
        await until(lambda: not below & set(command_lines()))
    return below & set(command_lines())


async def yes(paths: tuple[str, ...]) -> bool:
    """A user who allows it."""
    return True


async def _never(paths: tuple[str, ...]) -> bool:
    return False
