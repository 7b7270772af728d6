"""The choice of the isolation level of commands, and the opening of a session's layer at that level.

The capabilities of the machine are tried once. A weaker level than the setting asks for is an error, never a silent
change. Not here: the levels themselves.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.errors import SettingError, ToolFailed
from codeagent_lsp.shadow.copying import (
    ALLOWS_ALL,
    PROGRAM,
    CopyLayer,
    DirectLayer,
    Seatbelt,
    copy_isolation,
    direct_isolation,
)
from codeagent_lsp.shadow.environment import scrub_environment, with_own_programs_last
from codeagent_lsp.shadow.folder import LayerFolder, private_folder, sweep
from codeagent_lsp.shadow.hiding import Hidden, hide
from codeagent_lsp.shadow.mounts import (
    OPTIONS,
    TRYING_SECONDS,
    Programs,
    fails,
    is_privileged,
    nested_mounts,
    with_patience,
)
from codeagent_lsp.shadow.overlay import OVERLAY, OverlayLayer
from codeagent_lsp.shadow.sandbox import Sandbox, write_options
from codeagent_lsp.shadow.shell import Command, Isolation, Layer
from codeagent_lsp.system import is_superuser, user_id
from codeagent_lsp.workspace.files.paths import within

SWITCH = "CODEAGENT_NO_NAMESPACES"

_SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/run/wrappers/bin:/run/current-system/sw/bin"
_ELSEWHERE = "Overlays and bubblewrap exist only on Linux."
ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "darwin": f"{_ELSEWHERE} Here commands run in a copy under a profile of sandbox-exec, and each asks, which is "
        "not tested on macOS yet.",
        "win32": f"{_ELSEWHERE} Here commands run in a copy, in a job object that ends all their processes, and each "
        "asks: they could write elsewhere.",
    }
)
"""The reason why commands are not isolated on other systems, and what is in its place, by `sys.platform`."""
_INSTALL = "Install it (Debian and Ubuntu: apt-get install {package})."
_SYSCTLS = (
    ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
    ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=15000"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "an AppArmor profile with `userns,` for bwrap and unshare, or sysctl "
        "kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)


class Isolator:
    """Finds out which isolation this machine supports, and opens the layers of sessions. One per process; thread-safe,
    and all methods block, the first for several seconds as it tries commands.

    `state` is the absolute path of the folder of all our state, which no command may see; `environ` is the user's
    environment.
    """

    def __init__(self, state: str, *, environ: Mapping[str, str] | None = None) -> None:
        self._state = os.path.realpath(state)
        self._environ = dict(os.environ if environ is None else environ)
        self._home = os.path.realpath(Path.home())
        # Reentrant: `open` asks for the `isolation` while it holds it.
        self._lock = threading.RLock()
        self._programs: Programs | str | None = None
        self._tried: dict[str, str | None] = {}  # place -> why an overlay does not work there
        self._sandboxed: bool | None = None
        self._belted: bool | None = None

    def isolation(self, settings: ShellSettings, folders: Sequence[str] = ()) -> Isolation:
        """Return the guarantees of the level for these workspace folders, absolute real paths, by trying what the
        settings ask for. SettingError if their level does not work here.
        """
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
        """Return a new layer of a session over these folders (absolute real paths), which the caller closes.
        SettingError if the level of the settings does not work here, OSError if its folder cannot be made.
        """
        with self._lock:
            level = self.isolation(settings, folders)
            place = self._overlay_place(folders)[0] if level.level == "overlay" else self._any_place(folders)
        if level.level == "overlay" and place is not None:
            layer = self._overlay(place, settings, folders)
            # What worked over an empty folder can still fail over these, as on a network file system.
            if (problem := with_patience(layer.check)) is None:
                return layer
            layer.close()
            if settings.isolation == "overlay":
                raise SettingError("shadow.unavailable", level="overlay", reason=explain_failure([problem]))
            level = copy_isolation(sandboxed=self._can_sandbox(), reason=explain_failure([problem]))
        folder = LayerFolder(place or self._any_place(folders))
        if level.level == "direct":
            return DirectLayer(folder)
        sandbox = self._sandbox(folder, settings, folders) if level.confined else None
        environment = scrub_environment(self._environ)
        if sandbox is None:  # what is allowed by its name must be the system's program of that name
            environment = with_own_programs_last(environment, folders)
        seatbelt = self._seatbelt(folder, settings, folders) if sandbox is None else None
        return CopyLayer(
            folders, folder, sandbox, environment=environment, reason=level.reason, home=self._home, seatbelt=seatbelt
        )

    def open_copy(self, settings: ShellSettings, folders: Sequence[str]) -> CopyLayer:
        """Return a private copy of the folders in the sandbox, whatever the level of commands; the caller closes it.
        ToolFailed if the sandbox does not work here or the level is `direct`; OSError if the copy cannot be made.
        """
        with self._lock:
            if settings.isolation == "direct" or not self._can_sandbox():
                raise ToolFailed("Nothing can run apart from the user's files here.")
            folder = LayerFolder(self._any_place(folders))
        sandbox = self._sandbox(folder, settings, folders)
        return CopyLayer(folders, folder, sandbox, environment=scrub_environment(self._environ), home=self._home)

    def sweep(self) -> int:
        """Remove the layers of servers that have ended, in all folders in which one can be, and return how many were
        removed.
        """
        return sum(map(sweep, places(self._state, self._environ)))

    def _overlay(self, place: str, settings: ShellSettings, folders: Sequence[str]) -> OverlayLayer:
        assert isinstance(self._programs, Programs)
        folder = LayerFolder(place)
        sandbox = self._sandbox(folder, settings, folders)
        assert sandbox is not None
        return OverlayLayer(folders, folder, sandbox, self._programs, environment=scrub_environment(self._environ))

    def _sandbox(self, folder: LayerFolder, settings: ShellSettings, folders: Sequence[str]) -> Sandbox | None:
        if not isinstance(self._programs, Programs):
            return None
        hidden = self._hidden(folder, settings, folders)
        return Sandbox(self._programs.bwrap, folder.path, self._home, hidden, locked=self._programs.locks)

    def _seatbelt(self, folder: LayerFolder, settings: ShellSettings, folders: Sequence[str]) -> Seatbelt | None:
        """Return the wall of macOS, if it works here."""
        if self._belted is None:
            self._belted = sys.platform == "darwin" and fails((PROGRAM, "-p", ALLOWS_ALL, "/usr/bin/true")) is None
        if not self._belted:
            return None
        return Seatbelt(os.path.realpath(folder.path), tuple(folders), self._hidden(folder, settings, folders))

    def _hidden(self, folder: LayerFolder, settings: ShellSettings, folders: Sequence[str]) -> Hidden:
        private = (self._state, str(Path(folder.path).parent))
        return hide(self._home, environ=self._environ, folders=folders, readable=settings.readable, private=private)

    def _overlay_place(self, folders: Sequence[str]) -> tuple[str | None, str]:
        """Return the place for the overlays of these folders; None and the reason if there is none."""
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
                self._tried[place] = with_patience(partial(overlay_fails, place, programs, self._home))
            if (problem := self._tried[place]) is None:
                return place, ""
            problems.append(problem)
        return None, explain_failure(problems)

    def _can_sandbox(self) -> bool:
        """Return whether bubblewrap works without an overlay."""
        if self._sandboxed is None:
            programs = self._find()
            place = self._any_place(())
            self._sandboxed = (
                isinstance(programs, Programs)
                and with_patience(partial(sandbox_fails, place, programs, self._home)) is None
            )
        return self._sandboxed

    def _find(self) -> Programs | str:
        # Looked for once: a program installed meanwhile counts from the next start on, and all sessions have one level.
        if self._programs is None:
            self._programs = switched_off(self._environ) or find_programs()
        return self._programs

    def _any_place(self, folders: Sequence[str]) -> str:
        return self._places(folders)[0]

    def _places(self, folders: Sequence[str]) -> list[str]:
        """Return the places for a layer that are neither inside the folders nor contain one."""
        found = map(os.path.realpath, places(self._state, self._environ))
        # An overlay inside the folder that it is over would contain itself.
        return [place for place in found if not within(place, folders) and not any(within(f, [place]) for f in folders)]


# The isolation that this machine supports, determined by trying it, with the reasons for what fails.


def find_programs(path: str = _SYSTEM_PATH) -> Programs | str:
    """Return the system's programs for isolation; if one is missing or too old, a sentence in English with the remedy.
    `path` is in the form of PATH.
    """
    found = {name: shutil.which(name, path=path) for name in ("bwrap", "unshare", "sh", "mount")}
    packages = {"bwrap": "bubblewrap"}
    for name, where in found.items():
        if where is None:
            return f"The program {name} is missing. " + _INSTALL.format(package=packages.get(name, "util-linux mount"))
    # Without this option (bubblewrap 0.8) root regains its capabilities in a user namespace of its own.
    locks = _locks(str(found["bwrap"]))
    if not locks and is_superuser():
        return "The program bwrap is too old to hold root. Install bubblewrap 0.8 or newer, or do not run as root."
    return Programs(str(found["bwrap"]), str(found["unshare"]), str(found["sh"]), locks)


def switched_off(environ: Mapping[str, str]) -> str | None:
    """Return, in English, why isolation is not even tried: the system is not Linux, or `CODEAGENT_NO_NAMESPACES` is
    set; None if it is to be tried.
    """
    reason = None
    if sys.platform != "linux":
        reason = ELSEWHERE.get(sys.platform, _ELSEWHERE)
    elif environ.get(SWITCH):
        reason = f"{SWITCH} is set."
    return reason


def places(state: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the absolute paths of folders in which a layer can be, best first: below the state folder, then on file
    systems that rarely refuse overlays. None of them is created.
    """
    name = f"codeagent-lsp-{user_id()}"
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    others = (runtime, "/dev/shm", tempfile.gettempdir(), "/var/tmp")  # noqa: S108 - a folder of our own is made there
    return (f"{state}/layers", *(f"{other}/{name}" for other in others if other.startswith("/")))


def overlay_fails(place: str, programs: Programs, home: str) -> str | None:
    """Try a command over an overlay in `place`; blocks for at most 30 s. Return None if the file it writes is
    in the overlay, else the reason in English.
    """
    try:
        folder = LayerFolder(place)
    except OSError as error:
        return f"{place}: {error.strerror or error}"
    try:
        workspace = folder.make("try")
        sandbox = Sandbox(programs.bwrap, folder.path, home, locked=programs.locks)
        layer = OverlayLayer([workspace], folder, sandbox, programs, environment={})
        layer.prepare({})
        problem = fails(layer.launch(Command(": > tried", workspace)).argv)
        # That the command succeeds proves nothing: without the overlay it would have written to the user's own folder.
        if problem is None and (Path(workspace, "tried").exists() or not layer.writings().files):
            problem = "a file that was written did not land in the private folder"
        return problem
    except (OSError, ToolFailed) as error:
        return str(error)
    finally:
        folder.close()


def sandbox_fails(place: str, programs: Programs, home: str) -> str | None:
    """Try a command in bubblewrap alone, with its files below `place`; blocks for at most 30 s. Return None if
    it succeeds, else the reason in English.
    """
    try:
        private_folder(place)
        folder = LayerFolder(place)
    except OSError as error:
        return f"{place}: {error.strerror or error}"
    try:
        sandbox = Sandbox(programs.bwrap, folder.path, home, locked=programs.locks)
        for path in sandbox.folders:
            Path(path).mkdir()
        options = f"{folder.path}/{OPTIONS}"
        write_options(options, sandbox.options((), cwd="/", network=False, environment={}))
        return fails(sandbox.argv(options, Command(("true",), "/")))
    except OSError as error:
        return str(error)
    finally:
        folder.close()


def explain_failure(problems: Sequence[str], proc: str = "/proc/sys") -> str:
    """Return, in English, why isolation does not work, from the `problems` that trying it showed, with the system
    setting that forbids it and the remedy if there is one. `proc` is the folder of these settings.
    """
    said = "; ".join(dict.fromkeys(problems))
    for name, forbids, remedy in _SYSCTLS:
        # Only for a hint: whether it works was found out by trying, as a container can forbid it without any of these
        # settings.
        if not is_privileged() and _value(f"{proc}/{name}") == forbids:
            return f"The system forbids user namespaces to ordinary users ({said}). Allow them: {remedy}."
    return (
        f"Overlays in a user namespace do not work here: {said}. In a container, allow user namespaces and mounts "
        "(for instance a seccomp profile that does); on a network file system, set XDG_STATE_HOME to a local disk."
    )


def _locks(bwrap: str) -> bool:
    """Return whether bubblewrap supports `--disable-userns`."""
    try:
        done = subprocess.run((bwrap, "--help"), stdin=subprocess.DEVNULL, capture_output=True, timeout=TRYING_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return b"--disable-userns" in done.stdout + done.stderr


def _value(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
