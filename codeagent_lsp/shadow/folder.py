"""The private folder of a session's layer: created, locked while its server lives, and removed.

Not here: what is in it (`overlay.py`, `copying.py`) and which place is good enough for it (`probe.py`).
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from codeagent_lsp.system import belongs_to_us, lock, open_appending, open_reading

_PREFIX = "layer-"
_LOCK = "lock"
_YOUNG_SECONDS = 60
_REMOVE_SECONDS = 120


class LayerFolder:
    """A new folder, `path`, below the given one, that only the user can access, locked while this process lives.
    `close` removes it; one that was not closed is removed by a later `sweep`.
    """

    def __init__(self, parent: str) -> None:
        """Create a folder in `parent`, which is created too. OSError if that is impossible or not safe."""
        private_folder(parent)
        self.path = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
        self._lock = open_appending(Path(self.path, _LOCK))
        lock(self._lock)

    def make(self, *names: str) -> str:
        """Create a folder with these names below it, with those between, if missing, and return its absolute path.
        OSError if that fails.
        """
        path = Path(self.path, *names)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return str(path)

    def close(self) -> None:
        """Remove the folder with its contents; twice does no harm. Blocks, for large folders up to minutes."""
        if self._lock >= 0:
            if os.name == "nt":  # no folder is removed there with an open file in it
                os.close(self._lock)
                remove_tree(self.path)
            else:  # locked until it is gone, or the sweep of another server would remove it at the same time
                remove_tree(self.path)
                os.close(self._lock)
            self._lock = -1


def private_folder(path: str) -> None:
    """Create `path`, with missing folders above it, as a folder that only the user can access, or restrict an existing
    one. OSError if that is impossible, such as if it belongs to another user or is a link.
    """
    Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
    info = os.lstat(path)
    # In a shared folder such as /tmp, another user may have made it first, or put a link there.
    if not stat.S_ISDIR(info.st_mode) or not belongs_to_us(info):
        raise PermissionError(f"{path} belongs to somebody else")
    if info.st_mode & 0o077:
        Path(path).chmod(0o700)


def sweep(parent: str) -> int:
    """Remove the layers in the folder `parent` whose servers have ended, and return how many were removed; 0 if there
    is no such folder. Blocks.
    """
    try:
        found = [entry.path for entry in os.scandir(parent) if entry.name.startswith(_PREFIX)]
    except OSError:
        return 0
    return sum(1 for path in found if is_abandoned(path) and remove_tree(path))


def remove_tree(path: str) -> bool:
    """Remove a private folder with its contents, even those without access rights; blocks up to minutes. Return whether
    it is gone.
    """
    if os.name == "nt":
        shutil.rmtree(path, onerror=_once_more)
        return not os.path.lexists(path)
    if _is_small(path):
        shutil.rmtree(path, ignore_errors=True)
    # `rm` copes with trees that are too deep for `shutil.rmtree`; commands also leave folders without any rights.
    for command in (("rm", "-rf"), ("chmod", "-R", "u+rwx"), ("rm", "-rf")):
        if not os.path.lexists(path):
            return True
        try:
            done = (*command, "--", path)
            subprocess.run(done, stdin=subprocess.DEVNULL, capture_output=True, timeout=_REMOVE_SECONDS)
        except (OSError, subprocess.TimeoutExpired):  # such programs are not on the user's PATH; or a slow disk
            shutil.rmtree(path, ignore_errors=True)
            break
    return not os.path.lexists(path)


def open_way(place: str, name: str) -> None:
    """Give the user back the rights on the folder `place` of a layer, and on the folders of the path `name` below it,
    that an earlier command may have taken; without them no command starts there. Links are not followed; never raises.
    """
    path = place
    for part in ("", *(part for part in name.split("/") if part)):
        path = f"{path}/{part}" if part else path
        try:
            mode = os.lstat(path).st_mode
            if not stat.S_ISDIR(mode):
                return
            if mode & 0o700 != 0o700:
                Path(path).chmod(stat.S_IMODE(mode) | 0o700)
        except OSError:
            return  # not there, or not ours: the command says so itself


def _once_more(remove: Callable[[str], object], path: str, _: object) -> None:
    """Remove what could not be removed, once it is no longer read-only, which is what stops it on Windows."""
    with suppress(OSError):
        Path(path).chmod(0o700)
        remove(path)


def is_abandoned(path: str) -> bool:
    """Return whether the server that owns a layer's folder has ended, by its lock; False for one created within the
    last minute, and if that cannot be found out.
    """
    try:
        if time.time() - os.lstat(path).st_mtime < _YOUNG_SECONDS:
            return False  # perhaps made just now, and not locked yet
        held = open_reading(Path(path, _LOCK))
    except OSError:
        # Without a lock it was never finished, and it is not young any more.
        return not Path(path, _LOCK).exists() and Path(path).is_dir()
    try:
        lock(held, shared=True)
        return True
    except OSError:
        return False
    finally:
        os.close(held)


def _is_small(path: str) -> bool:
    """Return whether a folder has no subfolders, so that no external program is needed to remove it."""
    try:
        with os.scandir(path) as entries:
            return all(not entry.is_dir(follow_symlinks=False) for entry in entries)
    except OSError:
        return False
