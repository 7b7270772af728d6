"""The folder that one task is done in: a clone or a copy of where it begins, removed with our state of it.

Nothing of the user's own folder is touched. Not here: commands in it and the agent (`perform.py`).
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from codeagent_lsp.batch.task_file import BatchTask
from codeagent_lsp.shadow.folder import LayerFolder, is_abandoned, remove_tree
from codeagent_lsp.state import workspace_state

CLONE_SECONDS = 900.0
_INSIDE = "work"
_KEY = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^/\s@']+@", re.IGNORECASE)
"""The name and password in an address."""


class NoPlace(Exception):
    """Raised if the folder cannot be made; the message says why."""


@contextmanager
def task_place(task: BatchTask, parent: Path) -> Iterator[Path]:
    """Make the folder of a task below `parent`, as a clone or copy, and remove it with this program's state of it when
    the context ends. NoPlace if that is impossible; a clone may take 900 s.
    """
    sweep(parent)
    with ExitStack() as kept:
        try:
            place = kept.enter_context(closing(LayerFolder(str(parent))))
            folder = Path(place.make(_INSIDE)).resolve() / task.name
        except OSError as error:
            raise NoPlace(str(error)) from error
        kept.callback(_forget, folder)
        _lay(task, folder)
        yield folder


def sweep(parent: Path, *, whole: bool = False) -> None:
    """Remove the folders below `parent` whose processes have ended, with this program's state of them; with `whole`,
    everything there and `parent` itself. Nothing if there is no such folder. Blocks.
    """
    try:
        found = [Path(entry.path) for entry in os.scandir(parent)]
    except OSError:
        return
    for place in found:
        if place.is_dir() and (whole or is_abandoned(str(place))):
            for folder in (place / _INSIDE).glob("*"):
                _forget(folder.resolve())
            remove_tree(str(place))
    if whole:
        remove_tree(str(parent))


def _forget(folder: Path) -> None:
    """Remove our state of a task's folder."""
    remove_tree(str(workspace_state([str(folder)])))


def _lay(task: BatchTask, folder: Path) -> None:
    if task.folder:
        _copy(Path(task.folder), folder)
        return
    deadline = time.monotonic() + CLONE_SECONDS
    depth = () if task.commit else ("--depth=1",)
    # Without hard links, through which commands could write into the objects of the user's repository.
    _git(deadline, "clone", "--quiet", "--no-hardlinks", *depth, "--", _url(task.repo), str(folder))
    if task.commit:
        _git(deadline, "-C", str(folder), "checkout", "--quiet", "--detach", task.commit, "--")
    if (plain := _KEY.sub(r"\1", task.repo)) != task.repo:  # the agent could read it
        _git(deadline, "-C", str(folder), "remote", "set-url", "origin", plain)


def _copy(source: Path, folder: Path) -> None:
    """Copy a folder, without what cannot be copied and without the folder of the batch, should that be in it."""

    def left_out(place: str, names: list[str]) -> set[str]:
        found = {name: Path(place, name) for name in names}
        return {name for name, path in found.items() if folder.is_relative_to(path) or not _is_plain(path)}

    try:
        shutil.copytree(source, folder, symlinks=True, ignore=left_out)
    except (OSError, shutil.Error) as error:
        raise NoPlace(f"copying {source}: {_first(str(error))}") from error


def _is_plain(path: Path) -> bool:
    """Return whether a path is a file, a folder or a link; not a socket, a pipe or a device."""
    mode = path.lstat().st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)


def _url(repo: str) -> str:
    """Return the address to clone from; a path as an URL, so that its history can be cut like that of any other."""
    return Path(repo).as_uri() if repo.startswith("/") else repo


def _git(deadline: float, *words: str) -> None:
    """Run git, which asks nothing. NoPlace says what went wrong."""
    try:
        done = subprocess.run(
            # An address such as `ext::sh -c …` would run a command.
            ("git", "-c", "protocol.ext.allow=never", *words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
            timeout=max(deadline - time.monotonic(), 1),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoPlace(f"git {words[0]}: {_first(str(error))}") from error
    if done.returncode:
        raise NoPlace(f"git: {_first(done.stderr.decode(errors='replace'))}")


def _first(words: str) -> str:
    """Return the first line that says something."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    found = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[0] if lines else "")
    return _KEY.sub(r"\1", found)[:300]
