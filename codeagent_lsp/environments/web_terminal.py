"""The web terminal: a shell in the private view of the workspace, or in a container, for a browser on this machine.

The page's emulator is xterm.js: npm's if that is installed globally, else the copy in PyPI's package webssh, of which
only these files are used. Nothing is loaded from the web. Not here: serving it (`serving_program.py`), its life
(`serving_screen.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from codeagent_lsp.environments.environment import EnvironmentKind
from codeagent_lsp.environments.serving import Recipe
from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.shadow.shell import Command

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
