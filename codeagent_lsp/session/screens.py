"""Runs the web terminals and desktops of a server: at most one of each for a session, closed with the session.

They run where commands do: in the container, if one is set. Their code is imported late, with the first of them. Not
here: that code (`environments/serving_screen.py`), who may start one (`tools/permissions/policy.py`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from codeagent_lsp.environments.environment import (
    EnvironmentKind,
    PrivateView,
    Recipe,
    ScreenKind,
    ScreenRequest,
    ScreenStatus,
    Stopped,
)
from codeagent_lsp.errors import SettingError, ToolFailed
from codeagent_lsp.shadow.shell import Approve, Shell
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView

if TYPE_CHECKING:
    from codeagent_lsp.environments.serving_screen import Screen
    from codeagent_lsp.shadow.workspace import BoundShell, Execute

Show = Callable[[str], Awaitable[bool]]
"""Opens an address in the user's browser, or shows it to the user; returns whether it was opened."""

_OPEN = (
    "A {kind} needs a view of the workspace from which nothing gets out, and this machine cannot promise that "
    "(isolation level {level}). {reason}"
)


class Views(Protocol):
    """Port: makes private views of workspace folders."""

    @property
    def kind(self) -> EnvironmentKind:
        """The kind of environment in which views are made, by the present settings."""

    async def private_view(self, kind: EnvironmentKind, folders: Sequence[str], execute: Execute) -> PrivateView:
        """Return a new view, which the caller has to close. SettingError or ToolFailed if there can be none."""


@dataclass(frozen=True, slots=True)
class ScreenPorts:
    """The parts of one run that its screens use: what is written in a screen is staged in `staging`; `audited` wraps a
    shell so that its commands are recorded.
    """

    view: FileView
    staging: Staging
    approve: Approve
    audited: Callable[[Shell], Shell] = lambda shell: shell


@dataclass(frozen=True, slots=True)
class _Open:
    place: EnvironmentKind
    screen: Screen
    workspace: PrivateView
    shell: BoundShell

    async def close(self) -> None:
        """Stop its processes and remove its files, also if this is cancelled."""
        from codeagent_lsp.shadow.process import run_to_end  # late: only needed once a screen was started

        await run_to_end(self._close())

    async def _close(self) -> None:
        await self.screen.close()
        await self.workspace.close()


_Key = tuple[str, ScreenKind]


class SessionScreens:
    """All web terminals and desktops of a server, by session and kind. `show` opens an address for the user, None if
    there is no user. Call `close` in the end.
    """

    def __init__(self, views: Views, show: Show | None = None) -> None:
        self.show = show
        self._views = views
        self._open: dict[_Key, _Open] = {}
        # Starting takes seconds: a second start of the same screen waits for the first, and finds it running.
        self._turns: defaultdict[_Key, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._closed = False

    def of(self, session_id: str, ports: ScreenPorts) -> RunScreens:
        """Return the screens of a session as one run sees them."""
        return RunScreens(self, session_id, ports)

    def status(self, key: _Key) -> ScreenStatus:
        """Return the present state of a screen, by its session's id and its kind; one that does not run, if it was
        never started.
        """
        known = self._open.get(key)
        return ScreenStatus(key[1]) if known is None else known.screen.status

    async def start(self, key: _Key, wanted: ScreenRequest, ports: ScreenPorts) -> ScreenStatus:
        """Start a screen, unless it runs in the right place, and wait until it can be opened; return its state.
        SettingError or ToolFailed if it cannot start.
        """
        async with self._turns[key]:
            known = self._open.get(key)
            if known is not None and known.screen.status.running and known.place == self._views.kind:
                return known.screen.status
            await self._stopped(key, ports)
            made = await self._make(key[1], wanted, ports)
            # The server was closed while this one started, so nobody would close it.
            if self._closed:
                await made.close()
                raise ToolFailed("The server is ending.")
            self._open[key] = made
            return made.screen.status

    async def stop(self, key: _Key, ports: ScreenPorts) -> Stopped:
        """Stop a screen; the text files written in it become staged changes of the run of `ports`. If it does not run,
        `was_running` in the result is False.
        """
        async with self._turns[key]:
            return await self._stopped(key, ports)

    async def close(self, session_id: str | None = None) -> None:
        """Close the screens of a session and drop what was written in them; for None all of them, and no other can
        start.
        """
        self._closed = self._closed or session_id is None
        keys = [key for key in self._open if session_id in (None, key[0])]
        await asyncio.gather(*(self._open.pop(key).close() for key in keys))
        for key in keys:
            self._turns.pop(key, None)

    async def _stopped(self, key: _Key, ports: ScreenPorts) -> Stopped:
        known = self._open.pop(key, None)
        if known is None:
            return Stopped(was_running=False)
        running = known.screen.status.running
        # The run that started it may be over; its files become changes of the run that stops it.
        known.shell.hand_over(ports.view, ports.staging, ports.approve)
        try:
            result = await known.screen.stop()
        except asyncio.CancelledError:
            if self._closed or known.screen.over:
                await known.close()
            else:  # its files wait for the next stop, and no longer belong to the cancelled run
                known.shell.let_go()
                self._open[key] = known
            raise
        except BaseException:
            await known.close()
            raise
        await known.close()
        return Stopped(running) if result is None else Stopped(running, result.staged, result.left_out)

    async def _make(self, kind: ScreenKind, wanted: ScreenRequest, ports: ScreenPorts) -> _Open:
        folders = ports.view.roots.folders
        if not folders:
            raise ToolFailed(f"No folder is open, so there is nothing to show in a {kind}.")
        place = self._views.kind
        if (kind, place) == ("desktop", "container"):
            raise SettingError("screen.no_desktop")
        running: Any = await asyncio.to_thread(import_module, "codeagent_lsp.environments.serving_screen")
        recipe = await asyncio.to_thread(_recipe, kind, folders[0], wanted, place)
        screen: Screen = running.Screen(recipe, wanted)
        workspace = await self._views.private_view(place, folders, screen.execute)
        # A person works in it by hand, so no command of theirs can be asked about.
        isolation = workspace.isolation
        if not isolation.complete:
            await workspace.close()
            raise ToolFailed(_OPEN.format(kind=kind, level=isolation.level, reason=isolation.reason))
        made = _Open(place, screen, workspace, workspace.bind(ports.view, ports.staging, ports.approve))
        try:
            await screen.start(ports.audited(made.shell))
        # Its processes outlive this server otherwise, whatever ended the start, a cancellation included.
        except BaseException:
            await made.close()
            raise
        return made


@dataclass(frozen=True, slots=True)
class RunScreens:
    """The port `environments.serving.Screens` for one run."""

    screens: SessionScreens
    session_id: str
    ports: ScreenPorts

    @property
    def shows(self) -> bool:
        """Whether there is a user to show an address to."""
        return self.screens.show is not None

    def status(self, kind: ScreenKind) -> ScreenStatus:
        """Return the present state of a screen of this session."""
        return self.screens.status((self.session_id, kind))

    async def start(self, kind: ScreenKind, wanted: ScreenRequest) -> ScreenStatus:
        """Start a screen, unless it runs. SettingError or ToolFailed if it cannot start."""
        return await self.screens.start((self.session_id, kind), wanted, self.ports)

    async def stop(self, kind: ScreenKind) -> Stopped:
        """Stop a screen, if it runs; the text files written in it become staged changes of this run."""
        return await self.screens.stop((self.session_id, kind), self.ports)

    async def show(self, url: str) -> bool:
        """Open an address in the user's browser, or show it; return whether it was opened; False if there is no user to
        show it to.
        """
        return self.screens.show is not None and await self.screens.show(url)


def _recipe(kind: ScreenKind, folder: str, wanted: ScreenRequest, place: EnvironmentKind) -> Recipe:
    # late: only needed once a screen is started
    from codeagent_lsp.environments.serving_screen import desktop_recipe, terminal_recipe

    return terminal_recipe(folder, place) if kind == "terminal" else desktop_recipe(folder, wanted)
