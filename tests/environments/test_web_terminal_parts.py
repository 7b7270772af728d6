"""The tools `terminal` and `desktop` over a fake of what they start, and the parts that need nothing to run."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from codeagent_lsp.config import Settings
from codeagent_lsp.environments import serving_screen
from codeagent_lsp.environments.environment import (
    EnvironmentKind,
    PrivateView,
    ScreenKind,
    ScreenRequest,
    Screens,
    ScreenStatus,
    Stopped,
)
from codeagent_lsp.environments.serving_program import listening
from codeagent_lsp.errors import SettingError, ToolFailed
from codeagent_lsp.messages import ToolCall, ToolResult
from codeagent_lsp.session.screens import ScreenPorts, SessionScreens
from codeagent_lsp.shadow.shell import REPORT_VARIABLE
from codeagent_lsp.texts import text
from codeagent_lsp.tools.executor import ToolExecutor
from tests.environments.folders import Folder
from tests.tools.fakes import Bench, FakeAsker
from tests.tools.shells import OVERLAY, FakeShell

TOKEN = "t0ken"
RUNNING = ScreenStatus("terminal", True, f"http://127.0.0.1:7681/{TOKEN}/", 7681, 4321, 3.0, "overlay")


class FakeScreens:
    """The port `Screens`: remembers what it was asked."""

    def __init__(self, *, shows: bool = True, opens: bool = True, stopped: Stopped | None = None) -> None:
        self.shows = shows
        self.calls: list[tuple[str, ScreenKind]] = []
        self.wanted: list[ScreenRequest] = []
        self.shown: list[str] = []
        self._opens = opens
        self._stopped = stopped or Stopped(was_running=True)
        self._status = ScreenStatus("terminal")

    def status(self, kind: ScreenKind) -> ScreenStatus:
        return replace(self._status, kind=kind)

    async def start(self, kind: ScreenKind, wanted: ScreenRequest) -> ScreenStatus:
        self.calls.append(("start", kind))
        self.wanted.append(wanted)
        self._status = replace(RUNNING, kind=kind, resolution=wanted.resolution, display=wanted.display)
        return self._status

    async def stop(self, kind: ScreenKind) -> Stopped:
        self.calls.append(("stop", kind))
        self._status = ScreenStatus(kind)
        return self._stopped

    async def show(self, url: str) -> bool:
        self.shown.append(url)
        return self._opens


async def called(
    folder: Path, screens: FakeScreens | None, name: str, answers: Iterable[str] = (), **arguments: Any
) -> tuple[ToolResult, FakeAsker]:
    """The result of a call where commands run in full isolation, and what the user was asked."""
    bench, asker = Bench(folder), FakeAsker(list(answers))
    context = replace(bench.context, asker=asker, shell=FakeShell(isolation=OVERLAY)).having((Screens, screens))
    executor = ToolExecutor(bench.registry, context, lambda: "ask", bench.approvals)
    return await executor.execute(ToolCall(name, arguments)), asker


async def test_a_start_asks_and_opens(tmp_path: Path) -> None:
    screens = FakeScreens()
    result, asker = await called(tmp_path, screens, "terminal", ["Open"], action="start", port=9000)
    assert (result.status, screens.calls, screens.wanted) == ("ok", [("start", "terminal")], [ScreenRequest(9000)])
    question = asker.asked[-1]
    assert question.choices == ("Not now", "Open") and "Start a web terminal" in question.title
    assert screens.shown == [RUNNING.url]
    assert "opened in the user's browser" in result.text


@pytest.mark.parametrize("answer", ["Not now", "", "something else"])
@pytest.mark.parametrize("action", ["start", "restart"])
async def test_nothing_starts_or_ends_without_a_yes(tmp_path: Path, answer: str, action: str) -> None:
    screens, said = FakeScreens(), [answer] if answer else []
    result, asker = await called(tmp_path, screens, "desktop", said, action=action, resolution="800x600")
    assert (screens.shown, screens.calls, len(asker.asked)) == ([], [], 1)
    assert "nothing was started" in result.text


async def test_the_token_is_for_the_user_alone(tmp_path: Path) -> None:
    screens = FakeScreens(opens=False)
    result, asker = await called(tmp_path, screens, "terminal", ["Open"])
    assert "was told its address" in result.text
    assert TOKEN not in f"{result.text} {result.data} {asker.asked}"
    where = {"url": "http://127.0.0.1:7681/", "port": 7681, "pid": 4321}
    assert result.data == {"running": True, **where, "seconds": 3.0, "isolation": "overlay"}


async def test_where_there_is_no_user_whoever_asks_gets_it(tmp_path: Path) -> None:
    result, asker = await called(tmp_path, FakeScreens(shows=False), "desktop", display=":7")
    assert RUNNING.url in result.text and result.data["url"] == RUNNING.url and result.data["display"] == 7
    assert asker.asked == []


async def test_stop_status_restart(tmp_path: Path) -> None:
    written = Stopped(True, (str(tmp_path / "made.txt"),), ((str(tmp_path / "big"), "Too large."),))
    screens = FakeScreens(stopped=written)
    result, _ = await called(tmp_path, screens, "terminal", action="status")
    assert (result.text, result.data, screens.calls) == (
        "Web terminal: not running.",
        {"running": False, "port": 7681},
        [],
    )
    result, _ = await called(tmp_path, screens, "terminal", action="stop")
    assert result.text == (
        "The web terminal was stopped. Staged from what was written in it: made.txt. Not staged: big: Too large."
    )
    result, _ = await called(tmp_path, screens, "desktop", ["Open"], action="restart")
    assert screens.calls[-2:] == [("stop", "desktop"), ("start", "desktop")]
    result, _ = await called(tmp_path, FakeScreens(stopped=Stopped(False)), "desktop", action="stop")
    assert result.text == "The desktop did not run."


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("terminal", {"action": "explode"}),
        ("terminal", {"port": 80}),
        ("terminal", {"resolution": "800x600"}),
        ("desktop", {"port": 70000}),
        ("desktop", {"resolution": "800x600; reboot"}),
        ("desktop", {"resolution": "800x600\n"}),
        ("desktop", {"display": 100}),
        ("desktop", {"display": ":1; reboot"}),
    ],
)
async def test_wrong_arguments(tmp_path: Path, name: str, wrong: dict[str, Any]) -> None:
    screens = FakeScreens()
    result, _ = await called(tmp_path, screens, name, **wrong)
    assert (result.status, screens.calls) == ("retry", [])


async def test_where_there_are_none(tmp_path: Path) -> None:
    result, _ = await called(tmp_path, None, "terminal")
    assert (result.status, result.text) == ("failed", "There is no web terminal here.")


def test_the_next_free_port() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with listening([port, port, 0]) as opened:
            assert opened.getsockname()[0] == "127.0.0.1" and opened.getsockname()[1] != port
        with pytest.raises(OSError, match=f"No port is free: {port} to {port}"):
            listening([port, port])


def test_where_the_emulator_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = serving_screen.emulator([])
    assert set(found) == {"xterm.js", "xterm.css", "fit.js"} and "webssh" in found["xterm.js"]
    for name in ("xterm/lib/xterm.js", "xterm/css/xterm.css", "addon-fit/lib/addon-fit.js"):
        assert serving_screen.emulator([str(tmp_path)]) == found
        (tmp_path / "@xterm" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "@xterm" / name).write_text("")
    assert serving_screen.emulator([str(tmp_path)])["fit.js"].startswith(str(tmp_path))
    monkeypatch.setattr(serving_screen, "find_spec", lambda name: None)
    with pytest.raises(ToolFailed, match=re.escape("xterm.js is not installed here. The user can add it: pip install")):
        serving_screen.emulator([])
    with pytest.raises(ToolFailed, match=r"terminado is not installed here.*codeagent-lsp\[terminal\]"):
        serving_screen.terminal_recipe(str(tmp_path))


def test_what_a_desktop_lacks(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed) as problem:
        serving_screen.find_programs(str(tmp_path), [str(tmp_path)])
    said = "Xvnc, openbox, a terminal, noVNC is not installed here. The user can add it: apt-get install "
    assert said in str(problem.value) and "tigervnc-standalone-server openbox stterm novnc" in str(problem.value)
    for name in ("Xvnc", "openbox", "stterm", "core/rfb.js"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    assert serving_screen.find_programs(str(tmp_path), [str(tmp_path)]) == serving_screen.Programs(tmp_path, "stterm")
    (tmp_path / "openbox").unlink()
    with pytest.raises(
        ToolFailed, match=r"^openbox is not installed.*apt-get install --no-install-recommends openbox$"
    ):
        serving_screen.find_programs(str(tmp_path), [str(tmp_path)])


def test_what_runs_in_a_desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = serving_screen.Programs(tmp_path, "xterm")
    monkeypatch.setattr(serving_screen, "find_programs", lambda: made)
    script = serving_screen.desktop_recipe("/w", ScreenRequest(resolution="640x480", display=3)).command.script
    assert isinstance(script, str)
    assert "Xvnc :3 -geometry 640x480" in script and "exec xterm" in script
    assert f"${REPORT_VARIABLE}/vnc" in script and "-rfbport -1" in script and "-nolisten tcp" in script
    checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("kind", ["terminal", "desktop"])
def test_our_pages_load_nothing_from_elsewhere(kind: str) -> None:
    files = serving_screen.page_files(kind)
    assert {"", "page.js", "page.css"} == set(files)
    for path in files.values():
        assert not re.search(r"https?:|//[a-z]|import\(", Path(path).read_text().replace("// ", ""))


async def test_a_session_without_a_folder(tmp_path: Path) -> None:
    class NoViews:
        async def private_view(self, folders: object, execute: object) -> None:
            raise AssertionError

    folder = Folder(tmp_path)
    screens = SessionScreens(NoViews())  # type: ignore[arg-type]
    run = screens.of("s", ScreenPorts(folder.view, folder.staging, _no))
    assert run.status("desktop") == ScreenStatus("desktop")
    assert await run.stop("desktop") == Stopped(was_running=False)
    assert not run.shows and not await run.show("http://127.0.0.1/")
    await screens.close()


class Views:
    """Says where commands run, and remembers where a view was wanted."""

    def __init__(self, kind: EnvironmentKind) -> None:
        self.kind = kind
        self.wanted: list[EnvironmentKind] = []

    async def private_view(self, kind: EnvironmentKind, folders: object, execute: object) -> PrivateView:
        self.wanted.append(kind)
        raise ToolFailed("enough")


@pytest.mark.parametrize("place", ["local", "container"])
async def test_a_terminal_is_where_commands_are(
    tmp_path: Path, place: EnvironmentKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_screen, "need_library", lambda: None)
    monkeypatch.setattr(serving_screen, "emulator", dict)
    folder, views = Folder(tmp_path), Views(place)
    run = SessionScreens(views).of("s", ScreenPorts(folder.view, folder.staging, _no))
    with pytest.raises(ToolFailed, match="enough"):
        await run.start("terminal", ScreenRequest())
    assert views.wanted == [place]
    script = serving_screen.terminal_recipe(str(tmp_path), place).command.script
    assert ("setsid" in script) == (place == "local")


async def test_no_desktop_beside_a_container(tmp_path: Path) -> None:
    folder, views = Folder(tmp_path), Views("container")
    run = SessionScreens(views).of("s", ScreenPorts(folder.view, folder.staging, _no))
    with pytest.raises(SettingError) as problem:
        await run.start("desktop", ScreenRequest())
    assert problem.value.key == "screen.no_desktop" and views.wanted == []


async def test_a_setting_that_does_not_work_is_told_to_the_model_and_to_the_user(tmp_path: Path) -> None:
    class Refusing(FakeScreens):
        async def start(self, kind: ScreenKind, wanted: ScreenRequest) -> ScreenStatus:
            raise SettingError("container.no_image", image="localhost/x:1")

    notes: list[str] = []
    bench = Bench(tmp_path)
    context = replace(
        bench.context,
        asker=FakeAsker([text("screen.open", "zh-cn")]),
        shell=FakeShell(isolation=OVERLAY),
        note=notes.append,
        words=lambda key, /, **values: text(key, "zh-cn", **values),
    ).having((Screens, Refusing()))
    executor = ToolExecutor(bench.registry, context, lambda: "ask", bench.approvals)
    result = await executor.execute(ToolCall("terminal", {"action": "start"}))
    assert result.error is not None and "has no image localhost/x:1" in result.text
    assert "容器引擎中没有镜像 localhost/x:1" in notes[-1]


@pytest.mark.parametrize("confirm", ["always", "unisolated", "never"])
@pytest.mark.parametrize(("action", "asked"), [("start", 1), ("restart", 1), ("stop", 0), ("status", 0)])
@pytest.mark.parametrize("kind", ["terminal", "desktop"])
async def test_a_start_is_asked_about_once_and_nothing_else_is(
    tmp_path: Path, kind: ScreenKind, action: str, asked: int, confirm: Literal["always", "unisolated", "never"]
) -> None:
    base = Settings()
    bench = Bench(tmp_path, settings=replace(base, shell=replace(base.shell, confirm=confirm)))
    asker = FakeAsker([text("screen.later", "en")])
    context = replace(bench.context, asker=asker, shell=FakeShell(isolation=OVERLAY)).having((Screens, FakeScreens()))
    executor = ToolExecutor(bench.registry, context, lambda: "ask", bench.approvals)
    result = await executor.execute(ToolCall(kind, {"action": action}))
    assert result.error is None and len(asker.asked) == asked
    assert ("does not want" in result.text) is bool(asked)


@pytest.mark.slow
def test_the_libraries_are_not_loaded_before_one_is_started() -> None:
    code = (
        "import sys, codeagent_lsp.session.screens, codeagent_lsp.tools.catalogue, codeagent_lsp.server.backend\n"
        "print(*sorted({'tornado', 'terminado', 'ptyprocess', 'webssh', 'codeagent_lsp.environments.serving_screen'} "
        "& set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


async def _no(paths: tuple[str, ...]) -> bool:
    return False
