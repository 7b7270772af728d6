"""Chooses the level at which commands are isolated, and opens the layer of a session at that level.

What the machine can do is tried once (`trying.py`). Weaker than asked for is an error, never a silent change.
Not here: the levels themselves.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.errors import SettingError
from codeagent_lsp.shadow.copying import CopyLayer, copy_isolation
from codeagent_lsp.shadow.direct import DirectLayer, direct_isolation
from codeagent_lsp.shadow.environment import scrubbed, with_own_programs_last
from codeagent_lsp.shadow.folder import LayerFolder, sweep
from codeagent_lsp.shadow.hiding import hide, within
from codeagent_lsp.shadow.mounts import Programs, is_privileged, nested_mounts
from codeagent_lsp.shadow.overlay import OVERLAY, OverlayLayer
from codeagent_lsp.shadow.sandbox import Sandbox
from codeagent_lsp.shadow.shell import Isolation, Layer
from codeagent_lsp.shadow.trying import explained, find_programs, overlay_fails, places, sandbox_fails, switched_off


class Isolator:
    """Knows this machine. One for the process; safe to use from any thread, and everything blocks.

    `state` is the folder of all our state, which no command may see; `environ` is the user's environment.
    """

    def __init__(self, state: str, *, environ: Mapping[str, str] | None = None, home: str | None = None) -> None:
        self._state = os.path.realpath(state)
        self._environ = dict(os.environ if environ is None else environ)
        self._home = os.path.realpath(home or Path.home())
        self._lock = threading.RLock()
        self._programs: Programs | str | None = None
        self._tried: dict[str, str | None] = {}  # place -> why an overlay does not work there
        self._sandboxed: bool | None = None

    def isolation(self, settings: ShellSettings, folders: Sequence[str] = ()) -> Isolation:
        """The level for these workspace folders. SettingError when the one asked for does not work here."""
        with self._lock:
            if settings.isolation == "direct":
                return direct_isolation()
            if settings.isolation == "copy":
                return copy_isolation(sandboxed=self._can_sandbox())
            place, reason = self._overlay_place(folders)
            if place is not None:
                return OVERLAY
            if settings.isolation == "overlay":
                raise SettingError("shadow.unavailable", level="overlay", reason=reason)
            return copy_isolation(sandboxed=self._can_sandbox(), reason=reason)

    def open(self, settings: ShellSettings, folders: Sequence[str]) -> Layer:
        """The layer of a session over these folders, absolute real paths. SettingError as above, and OSError."""
        with self._lock:
            level = self.isolation(settings, folders)
            place = self._overlay_place(folders)[0] if level.level == "overlay" else self._any_place(folders)
        if level.level == "overlay" and place is not None:
            layer = self._overlay(place, settings, folders)
            if (problem := layer.check()) is None:
                return layer
            layer.close()
            if settings.isolation == "overlay":
                raise SettingError("shadow.unavailable", level="overlay", reason=explained([problem]))
            level = copy_isolation(sandboxed=self._can_sandbox(), reason=explained([problem]))
        folder = LayerFolder(place or self._any_place(folders))
        if level.level == "direct":
            return DirectLayer(folder)
        sandbox = self._sandbox(folder, settings, folders) if level.confined else None
        environment = scrubbed(self._environ)
        if sandbox is None:  # what is allowed by its name must be the system's program of that name
            environment = with_own_programs_last(environment, folders)
        return CopyLayer(folders, folder, sandbox, environment=environment, reason=level.reason)

    def sweep(self) -> int:
        """Remove what servers that died have left; how many layers."""
        return sum(map(sweep, places(self._state, self._environ)))

    def _overlay(self, place: str, settings: ShellSettings, folders: Sequence[str]) -> OverlayLayer:
        assert isinstance(self._programs, Programs)
        folder = LayerFolder(place)
        sandbox = self._sandbox(folder, settings, folders)
        assert sandbox is not None
        return OverlayLayer(folders, folder, sandbox, self._programs, environment=scrubbed(self._environ))

    def _sandbox(self, folder: LayerFolder, settings: ShellSettings, folders: Sequence[str]) -> Sandbox | None:
        if not isinstance(self._programs, Programs):
            return None
        private = (self._state, str(Path(folder.path).parent))
        hidden = hide(self._home, environ=self._environ, folders=folders, readable=settings.readable, private=private)
        return Sandbox(self._programs.bwrap, folder.path, self._home, hidden, locked=self._programs.locks)

    def _overlay_place(self, folders: Sequence[str]) -> tuple[str | None, str]:
        """Where the overlays of these folders can lie, or why nowhere."""
        programs = self._find()
        if isinstance(programs, str):
            return None, programs
        if "/" in folders:
            return None, "The workspace is the whole file system."
        if (nested := nested_mounts(folders)) and not is_privileged():
            return None, f"Something is mounted inside the workspace, at {nested[0]}, and only root can overlay that."
        problems = []
        for place in self._places(folders):
            if place not in self._tried:
                self._tried[place] = overlay_fails(place, programs, self._home)
            if (problem := self._tried[place]) is None:
                return place, ""
            problems.append(problem)
        return None, explained(problems)

    def _can_sandbox(self) -> bool:
        """Whether bubblewrap works without an overlay."""
        if self._sandboxed is None:
            programs = self._find()
            place = self._any_place(())
            self._sandboxed = isinstance(programs, Programs) and sandbox_fails(place, programs, self._home) is None
        return self._sandboxed

    def _find(self) -> Programs | str:
        if self._programs is None:
            self._programs = switched_off(self._environ) or find_programs()
        return self._programs

    def _any_place(self, folders: Sequence[str]) -> str:
        return self._places(folders)[0]

    def _places(self, folders: Sequence[str]) -> list[str]:
        """Places for a layer that are not inside what it is laid over, and do not hold it."""
        found = map(os.path.realpath, places(self._state, self._environ))
        return [place for place in found if not within(place, folders) and not any(within(f, [place]) for f in folders)]
