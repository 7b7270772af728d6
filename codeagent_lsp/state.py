"""The location of user state, one folder per workspace under the platform's state folder, and its files: read, replaced
and locked. What a file or a server gives as JSON may be anything.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from codeagent_lsp.errors import SettingError
from codeagent_lsp.system import belongs_to_us, lock

STATE_VARIABLE = "CODEAGENT_STATE_DIR"


def state_root() -> Path:
    """Return the absolute path of the folder of all our state; `CODEAGENT_STATE_DIR` overrides the platform's choice.
    It is created for this user alone, and closed to the group if it was open. SettingError if it belongs to another
    user or anybody could have written to it.
    """
    root = _chosen_root()
    _secure(root)
    return root


def _chosen_root() -> Path:
    override = os.environ.get(STATE_VARIABLE)
    if override:
        return Path(override)
    from platformdirs import user_state_path  # late: not needed before the first run, and start-up must be fast

    return user_state_path("codeagent-lsp")


def _secure(root: Path) -> None:
    """Create the folder with mode 0700, or check the owner and the mode of the one that is there."""
    if os.name != "posix":
        return
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        root.mkdir(mode=0o700, exist_ok=True)
        found = root.stat()
    except OSError:  # not writable: what needs it says so
        return
    if not stat.S_ISDIR(found.st_mode):
        return
    if not belongs_to_us(found):
        raise SettingError("state.owner", path=root, variable=STATE_VARIABLE)
    if found.st_mode & 0o002:
        raise SettingError("state.open", path=root, variable=STATE_VARIABLE)
    if found.st_mode & 0o077:
        with contextlib.suppress(OSError):
            root.chmod(0o700)


def make_private(folder: Path) -> None:
    """Create a folder of our state and all missing folders above it, each for this user alone. Existing ones stay as
    they are. OSError if that is impossible.
    """
    missing = [place for place in folder.parents if not place.exists()]
    for place in (*reversed(missing), folder):
        place.mkdir(mode=0o700, exist_ok=True)


def json_object(data: str | bytes) -> dict[str, Any] | None:
    """Return the JSON object in `data` (bytes in UTF-8, UTF-16 or UTF-32); None if it is anything else.
    Never raises.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def read_json(path: Path, most: int = -1) -> dict[str, Any]:
    """Return the JSON object in a file; {} if it is missing, unreadable, damaged, or longer than `most` bytes (-1: no
    limit).
    """
    try:
        with path.open("rb") as file:
            # A longer file is cut and then no JSON.
            return json_object(file.read(most)) or {}
    except OSError:
        return {}


def replace_json(path: Path, values: Mapping[str, Any]) -> None:
    """Replace a file in one step by these values as indented JSON, readable by this user alone; missing folders are
    created. OSError, with the old file unchanged, if that fails.
    """
    replace_text(path, json.dumps(dict(values), ensure_ascii=False, indent=2) + "\n")


def replace_text(path: Path, text: str) -> None:
    """Replace a file in one step, so that other processes see the old or the new text, readable by this user alone;
    missing folders are created. OSError if that fails: the file that was there stays.
    """
    import tempfile  # late: most starts write nothing

    make_private(path.parent)
    # In the same folder: a rename is atomic only within one file system. The new file has the mode 0600 from the first.
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:  # also a text that has no UTF-8
        Path(name).unlink(missing_ok=True)
        raise


def workspace_state(folders: Sequence[str]) -> Path:
    """Return the absolute path of the state folder of the workspace with these folders; it need not exist. Its name has
    the first folder's name and a hash of all of them. SettingError as `state_root`.
    """
    key = "\n".join(folders) or "no-workspace"
    digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    name = "".join(char if char.isalnum() else "-" for char in Path(folders[0]).name)[:40] if folders else "none"
    return state_root() / "workspaces" / f"{name or 'root'}-{digest}"


def index_file(folders: Sequence[str]) -> Path:
    """Return the absolute path of the code index of a workspace with these folders, which the server and the command
    line share; it need not exist. SettingError as `state_root`.
    """
    return workspace_state(folders) / "index.sqlite"


# An advisory file lock (flock), released when its process ends in any way.


@contextlib.contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on the file `path` while this context is entered; blocks without limit until other
    processes and threads release it. The empty file is created and kept.
    """
    make_private(path.parent)
    with path.open("ab") as handle:
        lock(handle.fileno(), wait=True)
        yield


@contextlib.contextmanager
def changing(file: Path) -> Iterator[None]:
    """Hold a lock beside `file` (`NAME.lock`) while this context is entered, so that no other process that does the
    same changes it between reading and replacing. Blocks until it is free.
    """
    with lock_file(file.with_name(f"{file.name}.lock")):
        yield
