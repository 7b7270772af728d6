"""The isolation that this machine supports, determined by trying it, with the reasons for what fails.

Callers remember the results. Not here: which level is chosen (`probe.py`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.shadow.folder import LayerFolder, private_folder
from codeagent_lsp.shadow.mounts import OPTIONS, Programs, fails, is_privileged
from codeagent_lsp.shadow.overlay import OverlayLayer
from codeagent_lsp.shadow.sandbox import Sandbox, write_options
from codeagent_lsp.shadow.shell import Command

SWITCH = "CODEAGENT_NO_NAMESPACES"

_SECONDS = 5.0
_SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/run/wrappers/bin:/run/current-system/sw/bin"
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


def find_programs(path: str = _SYSTEM_PATH) -> Programs | str:
    """Return the system's programs for isolation, or which one is missing and how to install it."""
    found = {name: shutil.which(name, path=path) for name in ("bwrap", "unshare", "sh", "mount")}
    packages = {"bwrap": "bubblewrap"}
    for name, where in found.items():
        if where is None:
            return f"The program {name} is missing. " + _INSTALL.format(package=packages.get(name, "util-linux mount"))
    locks = _says(str(found["bwrap"]), "--help", "--disable-userns")
    if not locks and os.geteuid() == 0:
        return "The program bwrap is too old to hold root. Install bubblewrap 0.8 or newer, or do not run as root."
    return Programs(str(found["bwrap"]), str(found["unshare"]), str(found["sh"]), locks)


def switched_off(environ: Mapping[str, str]) -> str | None:
    """Return why isolation is not even tried: another system, or the switch
    `CODEAGENT_NO_NAMESPACES`; None if it is.
    """
    if sys.platform != "linux":
        return "Overlays and bubblewrap exist only on Linux."
    return f"{SWITCH} is set." if environ.get(SWITCH) else None


def places(state: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the places for a layer, best first: the state folder, then file systems that rarely refuse overlays."""
    name = f"codeagent-lsp-{os.geteuid()}"
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    others = (runtime, "/dev/shm", tempfile.gettempdir(), "/var/tmp")  # noqa: S108 - a folder of our own is made there
    return (f"{state}/layers", *(f"{other}/{name}" for other in others if other.startswith("/")))


def overlay_fails(place: str, programs: Programs, home: str) -> str | None:
    """Try a command over an overlay in `place`; return None if the file it writes is in the
    overlay, else the reason.
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
        problem = fails(layer.launch(Command(": > tried", workspace)).argv, _SECONDS)
        if problem is None and (Path(workspace, "tried").exists() or not layer.writings().files):
            problem = "a file that was written did not land in the private folder"
        return problem
    except (OSError, ToolFailed) as error:
        return str(error)
    finally:
        folder.close()


def sandbox_fails(place: str, programs: Programs, home: str) -> str | None:
    """Try a command in bubblewrap alone; return None if it succeeds, else the reason."""
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
        return fails(sandbox.argv(options, Command(("true",), "/")), _SECONDS)
    except OSError as error:
        return str(error)
    finally:
        folder.close()


def explained(problems: Sequence[str], proc: str = "/proc/sys") -> str:
    """Return why isolation does not work, with the system setting that forbids it if there is one."""
    said = "; ".join(dict.fromkeys(problems))
    for name, forbids, remedy in _SYSCTLS:
        if not is_privileged() and _value(f"{proc}/{name}") == forbids:
            return f"The system forbids user namespaces to ordinary users ({said}). Allow them: {remedy}."
    return (
        f"Overlays in a user namespace do not work here: {said}. In a container, allow user namespaces and mounts "
        "(for instance a seccomp profile that does); on a network file system, set XDG_STATE_HOME to a local disk."
    )


def _says(program: str, argument: str, word: str) -> bool:
    try:
        done = subprocess.run((program, argument), stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return word.encode() in done.stdout + done.stderr


def _value(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
