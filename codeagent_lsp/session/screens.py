"""The web terminals and desktops of a server: at most one of each for a session, gone with the session.

They are where commands are: in a container, where one is set, never beside it. What runs them is loaded with the first
of them. Not here: that (`environments/serving_screen.py`), and who may start one (`tools/permissions/policy.py`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from codeagent_lsp.environments.environment import EnvironmentKind, PrivateView
from codeagent_lsp.environments.serving import Recipe, ScreenKind, ScreenRequest, Status, Stopped
from codeagent_lsp.errors import SettingError, ToolFailed
from codeagent_lsp.shadow.shell import Approve, Shell
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView

if TYPE_CHECKING:
    from codeagent_lsp.environments.serving_screen import Screen
    from codeagent_lsp.shadow.workspace import BoundShell, Execute

Show = Callable[[str], Awaitable[bool]]
"""Opens an address in the user's browser, or tells it to the user; whether it was opened."""

_OPEN = (
    "A {kind} needs a view of the workspace from which nothing gets out, and this machine cannot promise that "
    "(isolation level {level}). {reason}"
)


class Views(Protocol):
    """Makes private views of workspace folders."""

    @property
    def kind(self) -> EnvironmentKind:
        """Where they are, by the settings of now."""

    async def private_view(self, kind: EnvironmentKind, folders: Sequence[str], execute: Execute) -> PrivateView:
        """A view of its own, which whoever asks has to close. SettingError or ToolFailed."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What one run brings along; `audited` writes down what its shell runs."""

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
        """No process and no file is left, also when this is cancelled."""
        from codeagent_lsp.shadow.process import settled  # late: only who started one needs it

        await settled(self._close())

    async def _close(self) -> None:
        await self.screen.close()
        await self.workspace.close()


_Key = tuple[str, ScreenKind]


class SessionScreens:
    """`show` is None where there is no user."""

    def __init__(self, views: Views, show: Show | None = None) -> None:
        self.show = show
        self._views = views
        self._open: dict[_Key, _Open] = {}
        self._turns: defaultdict[_Key, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._closed = False

    def of(self, session_id: str, desk: Desk) -> RunScreens:
        """Those of a session, as one run sees them."""
        return RunScreens(self, session_id, desk)

    def status(self, key: _Key) -> Status:
        """How it is now."""
        known = self._open.get(key)
        return Status(key[1]) if known is None else known.screen.status

    async def start(self, key: _Key, wanted: ScreenRequest, desk: Desk) -> Status:
        """Start it, unless it runs where it should. SettingError or ToolFailed."""
        async with self._turns[key]:
            known = self._open.get(key)
            if known is not None and known.screen.status.running and known.place == self._views.kind:
                return known.screen.status
            await self._stopped(key, desk)
            made = await self._made(key[1], wanted, desk)
            if self._closed:
                await made.close()
                raise ToolFailed("The server is ending.")
            self._open[key] = made
            return made.screen.status

    async def stop(self, key: _Key, desk: Desk) -> Stopped:
        """End it; what was written in it becomes staged changes of the run that stops it."""
        async with self._turns[key]:
            return await self._stopped(key, desk)

    async def close(self, session_id: str | None = None) -> None:
        """End those of a session, or all."""
        self._closed = self._closed or session_id is None
        keys = [key for key in self._open if session_id in (None, key[0])]
        await asyncio.gather(*(self._open.pop(key).close() for key in keys))
        for key in keys:
            self._turns.pop(key, None)

    async def _stopped(self, key: _Key, desk: Desk) -> Stopped:
        known = self._open.pop(key, None)
        if known is None:
            return Stopped(was_running=False)
        running = known.screen.status.running
        known.shell.hand_over(desk.view, desk.staging, desk.approve)
        try:
            result = await known.screen.stop()
        except asyncio.CancelledError:
            if self._closed or known.screen.over:
                await known.close()
            else:  # what was written in it waits for the next stop, and is not the cancelled run's any more
                known.shell.let_go()
                self._open[key] = known
            raise
        except BaseException:
            await known.close()
            raise
        await known.close()
        return Stopped(running) if result is None else Stopped(running, result.staged, result.left_out)

    async def _made(self, kind: ScreenKind, wanted: ScreenRequest, desk: Desk) -> _Open:
        folders = desk.view.roots.folders
        if not folders:
            raise ToolFailed(f"No folder is open, so there is nothing to show in a {kind}.")
        place = self._views.kind
        if (kind, place) == ("desktop", "container"):
            raise SettingError("screen.no_desktop")
        running: Any = await asyncio.to_thread(import_module, "codeagent_lsp.environments.serving_screen")
        recipe = await asyncio.to_thread(_recipe, kind, folders[0], wanted, place)
        screen: Screen = running.Screen(recipe, wanted)
        workspace = await self._views.private_view(place, folders, screen.execute)
        isolation = workspace.isolation
        if not isolation.complete:
            await workspace.close()
            raise ToolFailed(_OPEN.format(kind=kind, level=isolation.level, reason=isolation.reason))
        made = _Open(place, screen, workspace, workspace.bind(desk.view, desk.staging, desk.approve))
        try:
            await screen.start(desk.audited(made.shell))
        except BaseException:
            await made.close()
            raise
        return made


@dataclass(frozen=True, slots=True)
class RunScreens:
    """The port `environments.serving.Screens` for one run."""

    screens: SessionScreens
    session_id: str
    desk: Desk

    @property
    def shows(self) -> bool:
        """See `Screens`."""
        return self.screens.show is not None

    def status(self, kind: ScreenKind) -> Status:
        """See `Screens`."""
        return self.screens.status((self.session_id, kind))

    async def start(self, kind: ScreenKind, wanted: ScreenRequest) -> Status:
        """See `Screens`."""
        return await self.screens.start((self.session_id, kind), wanted, self.desk)

    async def stop(self, kind: ScreenKind) -> Stopped:
        """See `Screens`."""
        return await self.screens.stop((self.session_id, kind), self.desk)

    async def show(self, url: str) -> bool:
        """See `Screens`."""
        return self.screens.show is not None and await self.screens.show(url)


def _recipe(kind: ScreenKind, folder: str, wanted: ScreenRequest, place: EnvironmentKind) -> Recipe:
    from codeagent_lsp.environments.desktop import desktop_recipe  # late: only who starts one needs it
    from codeagent_lsp.environments.web_terminal import terminal_recipe  # late: likewise

    return terminal_recipe(folder, place) if kind == "terminal" else desktop_recipe(folder, wanted)
