"""What the tests of the shadow workspace share: layers over folders of a test, and whether this machine can do them."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from codeagent_lsp.shadow.folder import LayerFolder, remove_tree
from codeagent_lsp.shadow.hiding import hide
from codeagent_lsp.shadow.mounts import Programs
from codeagent_lsp.shadow.overlay import OverlayLayer
from codeagent_lsp.shadow.probe import find_programs, overlay_fails, switched_off
from codeagent_lsp.shadow.sandbox import Sandbox
from codeagent_lsp.shadow.shell import Command, Writings

ROOT = Path(__file__).parents[2]
SECONDS = 60


@cache
def overlay_problem() -> str | None:
    """Why overlays do not work here, or None."""
    programs = switched_off(os.environ) or find_programs()
    if isinstance(programs, str):
        return programs
    parent = tempfile.mkdtemp()
    try:
        return overlay_fails(parent, programs, str(Path.home()))
    finally:
        remove_tree(parent)


needs_overlay = pytest.mark.skipif(
    overlay_problem() is not None, reason=f"no overlay in a user namespace here: {overlay_problem()}"
)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@dataclass(frozen=True)
class Ran:
    """A command that has run: exit code and output, both streams after each other."""

    code: int
    out: str


@dataclass
class Rig:
    """An overlay layer with a way to run commands in it to their end."""

    layer: OverlayLayer
    cwd: str

    def run(self, script: str, *, cwd: str | None = None, environment: Mapping[str, str] | None = None) -> Ran:
        """Run in the view as it was prepared last."""
        launch = self.layer.launch(Command(script, cwd or self.cwd, environment=environment or {}))
        done = subprocess.run(
            launch.argv,
            cwd=launch.cwd,
            env=dict(launch.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
        )
        return Ran(done.returncode, (done.stdout + done.stderr).decode("utf-8", "surrogateescape"))

    def after(self, script: str, wanted: Mapping[str, bytes | None] | None = None) -> dict[str, tuple[str, bytes]]:
        """Prepare, run, and what it wrote by path below the folder: kind and bytes."""
        self.layer.prepare(wanted or {})
        ran = self.run(script)
        assert ran.code == 0, ran.out
        return told(self.layer.writings(), self.cwd)


def told(writings: Writings, folder: str) -> dict[str, tuple[str, bytes]]:
    """Writings by path below `folder`."""
    return {os.path.relpath(item.path, folder): (item.kind, item.data) for item in writings.files}


def rig(
    folders: Sequence[Path],
    state: Path,
    *,
    home: Path | None = None,
    readable: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Rig:
    """A layer over `folders`, its private folder in `state`. Close it with `layer.close()`."""
    programs = find_programs()
    assert isinstance(programs, Programs)
    paths = [os.path.realpath(folder) for folder in folders]
    folder = LayerFolder(os.path.realpath(state))
    real_home = os.path.realpath(home or Path.home())
    known = environ or {"PATH": "/usr/bin:/bin"}
    hidden = hide(real_home, environ=known, folders=paths, readable=readable, private=[os.path.realpath(state)])
    sandbox = Sandbox(programs.bwrap, folder.path, real_home, hidden, locked=programs.locks)
    return Rig(OverlayLayer(paths, folder, sandbox, programs, environment=dict(known)), paths[0])


def snapshot(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything below: mode, time and bytes (or link target) by path. Equal means untouched."""
    found = {}
    for path in folder.rglob("*"):
        info = path.lstat()
        data = os.fsencode(path.readlink()) if path.is_symlink() else b""
        if stat.S_ISREG(info.st_mode):
            data = path.read_bytes()
        found[str(path)] = (info.st_mode, info.st_mtime_ns, data)
    return found


def ordinary_user() -> tuple[int, int]:
    """User and group of somebody who is not root; the name need not exist."""
    users = (entry for entry in pwd.getpwall() if 1000 <= entry.pw_uid < 60000)
    found = next(users, None)
    return (found.pw_uid, found.pw_gid) if found else (65534, 65534)


def python_of_everybody() -> tuple[str, dict[str, str]] | None:
    """A Python that an ordinary user can start, and the environment in which it finds our packages; or None."""
    uid, gid = ordinary_user()
    packages = next((path for path in sys.path if path.endswith("site-packages")), "")
    environment = {
        "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
        "PYTHONPATH": f"{ROOT}:{packages}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LANG": "C.UTF-8",
    }
    words = ("-c", "import sys, pytest, codeagent_lsp.shadow.overlay; sys.exit(sys.version_info < (3, 11))")
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            done = subprocess.run(
                (python, *words), user=uid, group=gid, extra_groups=[], env=environment, cwd="/", capture_output=True
            )
        except OSError:
            continue
        if done.returncode == 0:
            return python, environment
    return None
