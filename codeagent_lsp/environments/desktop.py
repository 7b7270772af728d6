"""The screens that a user can open: a web terminal, and a desktop.

Both show a private view of the workspace in a browser on this machine, and nothing is loaded from the web. The terminal
is a shell there, or in a container; its page's emulator is xterm.js: npm's if that is installed globally, else the copy
in PyPI's package webssh, of which only these files are used. The desktop is an X server, a window manager and a
terminal, without network, shown by noVNC; the X server is reached by a socket in a folder shared with the view. Not
here: serving them (`serving_program.py`), their life (`serving_screen.py`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from codeagent_lsp.environments.environment import EnvironmentKind
from codeagent_lsp.environments.serving import Recipe, ScreenRequest
from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.shadow.shell import REPORT_VARIABLE, Command
from codeagent_lsp.system import is_superuser

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


def terminal_recipe(cwd: str, where: EnvironmentKind = "local") -> Recipe:
    """Return the recipe of a shell in `cwd`, an absolute path in the workspace. ToolFailed if something is not
    installed.
    """
    need_library()
    # bubblewrap starts a new session, so the shell has to take the terminal for its own; an engine sees to that itself
    words = ("setsid", "--ctty", "--wait", "bash", "-i") if where == "local" else IN_CONTAINER
    command = Command(words, cwd, environment=ENVIRONMENT)
    return Recipe("terminal", command, {**page_files("terminal"), **emulator()})


def page_files(kind: str) -> dict[str, str]:
    """Return the files of one of our pages; its first file has the name ''."""
    found = {path.name: str(path) for path in sorted((PAGES / kind).iterdir())}
    return {"" if name == "index.html" else name: path for name, path in found.items()}


def emulator(modules: Iterable[str] = _MODULES) -> dict[str, str]:
    """Return the files of xterm.js. ToolFailed if there are none on this machine."""
    places = [(f"{folder}/@xterm", _NPM) for folder in modules]
    if (package := find_spec("webssh")) is not None and package.origin is not None:
        places.append((str(Path(package.origin).with_name("static")), _PYPI))
    for folder, names in places:
        files = {name: f"{folder}/{path}" for name, path in names.items()}
        if all(Path(path).is_file() for path in files.values()):
            return files
    raise missing("xterm.js", EXTRA)


def need_library() -> None:
    """Check, without importing it, that the library that serves pages is installed (ToolFailed)."""
    if find_spec("terminado") is None:
        raise missing("terminado", EXTRA)


def missing(what: str, remedy: str) -> ToolFailed:
    """Return the error about something that the user has to install."""
    return ToolFailed(f"{what} is not installed here. The user can add it: {remedy}", ErrorCode.NOT_FOUND)


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of a desktop: the folder of noVNC, and the name of a terminal."""

    novnc: Path
    terminal: str


def desktop_recipe(cwd: str, wanted: ScreenRequest) -> Recipe:
    """Return the recipe of a desktop whose terminal is in `cwd`. ToolFailed if something has to be installed."""
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
    """Return the installed programs. ToolFailed with the names of all that are missing."""
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


def _library_files(folder: Path) -> dict[str, str]:
    """Return the scripts of noVNC by the relative paths by which they import each other."""
    found = (path for part in ("core", "vendor") for path in sorted((folder / part).rglob("*.js")))
    return {str(path.relative_to(folder)): str(path) for path in found}
