"""The desktop: an X server, a window manager and a terminal in the private view of the workspace, shown by noVNC.

All of it runs without network; the X server is reached by a socket in a folder shared with the view. Not here: serving
it (`serving_program.py`), its life (`serving_screen.py`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from codeagent_lsp.environments.serving import Recipe, ScreenRequest
from codeagent_lsp.environments.web_terminal import ENVIRONMENT, missing, need_library, page_files
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
