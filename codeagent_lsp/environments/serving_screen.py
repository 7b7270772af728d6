"""The web terminal and the desktop that a user can open: what each consists of, and its life cycle with its command in
a private view and the program that serves it.

Both show a private view of the workspace in a browser on this machine, and nothing is loaded from the web. The terminal
is a shell there, or in a container; its page's emulator is xterm.js: npm's if that is installed globally, else the copy
in PyPI's package webssh, of which only these files are used. The desktop is an X server, a window manager and a
terminal, without network, shown by noVNC; the X server is reached by a socket in a folder shared with the view. All
processes are below one watchdog, so that none outlives the server, even if it is killed. Not here: which session has it
(`session/screens.py`), the serving program (`serving_program.py`).
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import sys
import time
from asyncio import StreamReader
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from codeagent_lsp.environments.environment import PORTS, EnvironmentKind, Recipe, ScreenRequest, ScreenStatus
from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.shadow.process import Guarded, run_to_end
from codeagent_lsp.shadow.shell import (
    REPORT_VARIABLE,
    Command,
    CommandResult,
    Finished,
    Launch,
    OnOutput,
    ProcessLimits,
    Shell,
)
from codeagent_lsp.system import is_superuser
from codeagent_lsp.workspace.process_group import read_head

LONGEST_SECONDS = 8 * 3600.0
"""The seconds after which a screen ends, even one that is in use."""
STARTING_SECONDS = 90.0
PORTS_TRIED = 100

_PACKAGE = Path(__file__).resolve().parents[2]
_PROGRAM = "import sys; sys.path.append(sys.argv[1]); import codeagent_lsp.environments.serving_program as p; p.main()"
# What our own Python needs to start; nothing else of the user's variables reaches the serving program.
_KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "TZ")
_MAX_ANSWER = 4096

_OVER = "It has ended."
_ENDED = {
    "memory": "It was stopped: too much memory.",
    "processes": "It was stopped: too many processes.",
    "disk": "It was stopped: it filled the disk.",
}
SOCKET = "vnc"
NOVNC = ("/usr/share/novnc", "/usr/local/share/novnc", "/usr/share/webapps/novnc")
SYSTEM_PATH = "/usr/bin:/bin:/usr/local/bin:/usr/sbin:/run/current-system/sw/bin"

TERMINALS = ("stterm", "xterm")

_PACKAGES = {"Xvnc": "tigervnc-standalone-server", "openbox": "openbox", "a terminal": "stterm", "noVNC": "novnc"}
_OPTIONS = {
    "stterm": "-f Monospace:pixelsize=15 -g 100x30+40+60",
    "xterm": "-fa Monospace -fs 11 -geometry 100x30+40+60",
}
# The window manager starts the terminal, so that it has the focus; it goes home itself.
_SCRIPT = r"""
Xvnc :{display} -geometry {resolution} -depth 24 -rfbport -1 -rfbunixpath "${variable}/{socket}" -rfbunixmode 0600 \
  -SecurityTypes None -AlwaysShared -nolisten tcp -desktop codeagent &
server=$!
for try in $(seq 100); do
  [ -S /tmp/.X11-unix/X{display} ] && break
  kill -0 $server 2>/dev/null || exit 1
  sleep 0.1
done
export DISPLAY=:{display}
folder="$PWD" openbox --startup "sh -c 'cd \"\$folder\"; exec {terminal}'" &
wait $server
"""

EXTRA = "pip install 'codeagent-lsp[terminal]'"
PAGES = Path(__file__).with_name("pages")
IN_CONTAINER = ("sh", "-c", "if command -v bash > /dev/null; then exec bash -i; else exec sh -i; fi")
ENVIRONMENT = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "", "PAGER": "", "SHELL": "/bin/bash"}

_NPM = {"xterm.js": "xterm/lib/xterm.js", "xterm.css": "xterm/css/xterm.css", "fit.js": "addon-fit/lib/addon-fit.js"}
_PYPI = {"xterm.js": "js/xterm.min.js", "xterm.css": "css/xterm.min.css", "fit.js": "js/xterm-addon-fit.min.js"}
_MODULES = ("/usr/local/lib/node_modules", "/usr/lib/node_modules", "/opt/homebrew/lib/node_modules")


class Screen:
    """One web terminal or desktop, from `start` until it ended or was stopped: a program that serves a page on
    loopback, run as the command of a private view. Its `execute` has to be that view's way of running commands.
    """

    def __init__(self, recipe: Recipe, wanted: ScreenRequest) -> None:
        self._recipe = recipe
        self._wanted = wanted
        self._isolation = ""
        self._token = secrets.token_urlsafe(24)
        self._said: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._guarded: Guarded | None = None
        self._running: asyncio.Task[CommandResult] | None = None
        self._started = 0.0
        self._ended = ""
        # Set by `stop`. Until then a shell that has ended keeps its private copy, so that what it wrote is asked for
        # once, and by someone who shows it.
        self._collected = asyncio.Event()

    @property
    def status(self) -> ScreenStatus:
        """Its current state: not running before it has answered, and afterwards with the reason why it ended."""
        kind, task = self._recipe.kind, self._running
        if task is None or not self._said.done() or self._said.cancelled():
            return ScreenStatus(kind)
        if self._ended or task.done():
            return ScreenStatus(kind, why=self._ended or _why(task))
        answer = self._said.result()
        return ScreenStatus(
            kind,
            True,
            f"http://127.0.0.1:{answer['port']}/{self._token}/",
            answer["port"],
            answer["pid"],
            time.monotonic() - self._started,
            self._isolation,
            self._wanted.resolution,
            self._wanted.display,
        )

    @property
    def over(self) -> bool:
        """Whether it has ended completely, including the collection of the files it wrote."""
        return self._running is not None and self._running.done()

    async def start(self, shell: Shell) -> None:
        """Start the program in `shell` and wait until it answers, at most 90 s. If it does not, or this is cancelled,
        nothing is left running. ToolFailed with the reason if it did not start.
        """
        self._started, self._isolation = time.monotonic(), shell.isolation.level
        self._running = asyncio.create_task(shell.run(self._recipe.command))
        try:
            waiting: list[asyncio.Future[Any]] = [self._said, self._running]
            # Whichever comes first: its answer, or the end of a program that could not start.
            await asyncio.wait(waiting, timeout=STARTING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if self._said.done():
                _check(self._said.result())
                return
            if self._running.done():
                self._running.result()  # raises what went wrong
            raise ToolFailed(f"The {self._recipe.kind} did not start.", ErrorCode.TIMEOUT)
        except BaseException:
            await run_to_end(self.close())
            raise

    async def stop(self) -> CommandResult | None:
        """End all its processes, wait until the files it wrote are collected, and return the result; None if it never
        ran or that failed.
        """
        self._collected.set()
        if self._guarded is not None:
            self._guarded.stop()
        if self._running is None:
            return None
        await asyncio.wait([self._running])  # cancelled while it waits, it goes on to its end
        if self._running.cancelled() or self._running.exception() is not None:
            return None
        return self._running.result()

    async def close(self) -> None:
        """Cancel it in any state and wait for its end; no process is left, and what it wrote is not collected."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
            if not self._running.cancelled():
                self._running.exception()  # it was reported, or no caller waits for it

    async def execute(self, launch: Launch, command: Command, on_output: OnOutput) -> Finished:
        """Serve the program of `launch` until it ends (8 hours at most), then wait for `stop`, so that its files are
        collected only then.
        """
        finished = await self._serve(launch)
        self._ended = _ENDED.get(finished.ending, _OVER)
        await self._collected.wait()
        return finished

    async def _serve(self, launch: Launch) -> Finished:
        self._guarded = guarded = Guarded()
        limits = ProcessLimits(seconds=LONGEST_SECONDS, disk_folder=launch.reports)
        serving = _serving(launch)
        try:
            await run_to_end(guarded.start(serving, limits, apart=True, talk=True))
            streams = dict(guarded.streams)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._hear(streams["stdout"]))
                # Read all the while, though only its beginning is kept: a full pipe would stop it.
                complaint = group.create_task(read_head(streams["stderr"], _MAX_ANSWER))
                await self._tell(guarded, launch)
                await guarded.ended()
            answer = guarded.answer(serving)
            if not self._said.done():
                raise ToolFailed(f"The {self._recipe.kind} did not start: {_last_line(complaint.result())}")
            return Finished(0, "", ending=answer["ending"] if answer["ending"] in _ENDED else "exited")
        finally:
            self._guarded = None
            await run_to_end(guarded.close())

    async def _tell(self, guarded: Guarded, launch: Launch) -> None:
        recipe = self._recipe
        # A port that was asked for is that one or none.
        port = self._wanted.port
        ports = [port] if port else list(range(PORTS[recipe.kind], PORTS[recipe.kind] + PORTS_TRIED))
        spec = {
            "kind": recipe.kind,
            "token": self._token,
            "ports": ports,
            "files": dict(recipe.files),
            "socket": recipe.socket,
            "folder": launch.reports,
            "argv": launch.argv,
            "cwd": launch.cwd,
            "environment": dict(launch.environment),
        }
        assert guarded.stdin is not None
        try:
            guarded.stdin.write(json.dumps(spec).encode() + b"\n")
            await guarded.stdin.drain()
        except OSError:  # it ended early; its output says why
            pass

    async def _hear(self, stdout: StreamReader) -> None:
        """Read the first line, which has the port; later output is dropped."""
        line = await stdout.readline()
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if isinstance(answer, dict) and not self._said.done():
            self._said.set_result(answer)
        # As for the complaint: dropped, but read.
        await read_head(stdout, 0)


def terminal_recipe(cwd: str, where: EnvironmentKind = "local") -> Recipe:
    """Return the recipe of a shell (bash) in `cwd`, an absolute path in the workspace, on this machine or in a
    container. ToolFailed if something is not installed.
    """
    need_library()
    # bubblewrap starts a new session, so the shell has to take the terminal for its own; an engine sees to that itself
    words = ("setsid", "--ctty", "--wait", "bash", "-i") if where == "local" else IN_CONTAINER
    command = Command(words, cwd, environment=ENVIRONMENT)
    return Recipe("terminal", command, {**page_files("terminal"), **emulator()})


def page_files(kind: str) -> dict[str, str]:
    """Return the files of one of our pages, `terminal` or `desktop`: absolute paths by name, the first page with the
    name ''.
    """
    found = {path.name: str(path) for path in sorted((PAGES / kind).iterdir())}
    return {"" if name == "index.html" else name: path for name, path in found.items()}


def emulator(modules: Iterable[str] = _MODULES) -> dict[str, str]:
    """Return the files of xterm.js, from npm's folders or a Python package: absolute paths by name. ToolFailed if there
    are none on this machine.
    """
    places = [(f"{folder}/@xterm", _NPM) for folder in modules]
    if (package := find_spec("webssh")) is not None and package.origin is not None:
        places.append((str(Path(package.origin).with_name("static")), _PYPI))
    for folder, names in places:
        files = {name: f"{folder}/{path}" for name, path in names.items()}
        if all(Path(path).is_file() for path in files.values()):
            return files
    raise missing("xterm.js", EXTRA)


def need_library() -> None:
    """Raise ToolFailed if the library that serves pages, terminado, is not installed; it is not imported for that."""
    if find_spec("terminado") is None:
        raise missing("terminado", EXTRA)


def missing(what: str, remedy: str) -> ToolFailed:
    """Return, without raising it, the error about something that the user has to install by `remedy`."""
    return ToolFailed(f"{what} is not installed here. The user can add it: {remedy}", ErrorCode.NOT_FOUND)


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of a desktop: the folder of noVNC, and the name of a terminal program as it is found in PATH."""

    novnc: Path
    terminal: str


def desktop_recipe(cwd: str, wanted: ScreenRequest) -> Recipe:
    """Return the recipe of a desktop whose terminal is in `cwd`, an absolute path in the workspace. ToolFailed if
    something has to be installed.
    """
    need_library()
    programs = find_programs()
    script = _SCRIPT.format(
        display=wanted.display,
        resolution=wanted.resolution,
        variable=REPORT_VARIABLE,
        socket=SOCKET,
        terminal=f"{programs.terminal} {_OPTIONS[programs.terminal]}",
    )
    files = {**page_files("desktop"), **_library_files(programs.novnc)}
    return Recipe("desktop", Command(script, cwd, environment=ENVIRONMENT), files, SOCKET)


def find_programs(path: str = SYSTEM_PATH, places: Iterable[str] = NOVNC) -> Programs:
    """Return the installed programs of a desktop. ToolFailed with the names of all that are missing, and how to install
    them.
    """
    lacking = [name for name in ("Xvnc", "openbox") if shutil.which(name, path=path) is None]
    # xterm of the superuser needs rights that it lacks there.
    terminals = TERMINALS[:1] if is_superuser() else TERMINALS
    terminal = next((name for name in terminals if shutil.which(name, path=path)), None)
    novnc = next((Path(place) for place in places if Path(place, "core/rfb.js").is_file()), None)
    lacking += ["a terminal"] * (terminal is None) + ["noVNC"] * (novnc is None)
    if novnc is None or terminal is None or lacking:
        packages = " ".join(_PACKAGES[name] for name in lacking)
        raise missing(", ".join(lacking), f"apt-get install --no-install-recommends {packages}")
    return Programs(novnc, terminal)


def _serving(launch: Launch) -> Launch:
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment |= {"PATH": os.defpath, "LC_CTYPE": "C.UTF-8"}
    argv = (sys.executable, "-I", "-X", "utf8", "-c", _PROGRAM, str(_PACKAGE))
    return Launch(argv, "/", environment, launch.reports)


def _check(answer: dict[str, Any]) -> None:
    if "missing" in answer:
        raise missing(str(answer["missing"]), EXTRA)
    if "problem" in answer:
        raise ToolFailed(str(answer["problem"])[:500])


def _why(task: asyncio.Task[CommandResult]) -> str:
    if task.cancelled():
        return "It was stopped."
    error = task.exception()
    return _OVER if error is None else str(error)


def _last_line(said: bytes) -> str:
    lines = said.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def _library_files(folder: Path) -> dict[str, str]:
    """Return the scripts of noVNC by the relative paths by which they import each other."""
    found = (path for part in ("core", "vendor") for path in sorted((folder / part).rglob("*.js")))
    return {str(path.relative_to(folder)): str(path) for path in found}
