"""Web terminal and desktop as values: what is asked for, how it is, and the port by which tools start and stop them.

Not here: running one (`serving_screen.py`), what is in it (`web_terminal.py`, `desktop.py`), which session has which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from codeagent_lsp.shadow.shell import Command

ScreenKind = Literal["terminal", "desktop"]

PORTS: Mapping[ScreenKind, int] = {"terminal": 7681, "desktop": 6080}
"""Where each is found unless that port is taken."""
RESOLUTION = "1280x800"
DISPLAY = 1


@dataclass(frozen=True, slots=True)
class ScreenRequest:
    """What is asked for. `port` None is the usual one or the next that is free; one that is named is taken or refused.

    Of a desktop, `resolution` is its size in pixels and `display` the number of its X display.
    """

    port: int | None = None
    resolution: str = RESOLUTION
    display: int = DISPLAY


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make one: what runs in the private view, and what the serving program gives out.

    `files` are the files of the page by their names in it; `socket` is the name, in the folder of reports, of the
    socket that is shown, '' for a terminal.
    """

    kind: ScreenKind
    command: Command
    files: Mapping[str, str]
    socket: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """How one is. `url` holds the token and so opens it; `pid` is the program that serves it; `seconds` since it
    started; `why` says in English why it does not run any more.
    """

    kind: ScreenKind
    running: bool = False
    url: str = ""
    port: int = 0
    pid: int = 0
    seconds: float = 0.0
    isolation: str = ""
    resolution: str = RESOLUTION
    display: int = DISPLAY
    why: str = ""

    @property
    def address(self) -> str:
        """The address without the token, which opens nothing."""
        return f"http://127.0.0.1:{self.port}/" if self.running else ""


@dataclass(frozen=True, slots=True)
class Stopped:
    """What became of what was written in the one that was stopped: paths that are staged, and why others are not."""

    was_running: bool
    staged: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


class Screens(Protocol):
    """The web terminal and the desktop of a session, at most one of each, as one run sees them."""

    @property
    def shows(self) -> bool:
        """Whether there is a user whose browser can be asked to open an address."""

    def status(self, kind: ScreenKind) -> Status:
        """How it is now."""

    async def start(self, kind: ScreenKind, wanted: ScreenRequest) -> Status:
        """Start it; one that runs is left as it is. ToolFailed or SettingError says what to do where it cannot be."""

    async def stop(self, kind: ScreenKind) -> Stopped:
        """End it with all its processes; nothing happens where none runs."""

    async def show(self, url: str) -> bool:
        """Open it in the user's browser, or tell the user its address; whether it was opened."""
