"""Confinement of paths to the workspace: from a path written by a model or a user to a file, or a refusal.

`Roots.resolve` checks names; `read_bytes`, `scan` and `stat` then walk from the folder's file descriptor without
following links, so a link that is swapped in after the check (TOCTOU) is not followed. Not here: the meaning of names
(`sensitive.py`), staged and unsaved text (`file_view.py`), approval to leave the workspace
(`tools/permissions/`).
"""

# ruff: noqa: PTH100, PTH114, PTH117, PTH118 - a path is judged as it was written; Path would tidy it first

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from codeagent_lsp.errors import FileRefused, PathRefused
from codeagent_lsp.workspace.files import sensitive, uris

FileKind = Literal["file", "folder", "link", "other"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ESCAPED_AGAIN = re.compile(r"%(?:25|2e|2f|5c|00)", re.IGNORECASE)
_KERNEL = frozenset({"proc", "sys", "dev"})
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
_ENTER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Child(NamedTuple):
    """One name in a folder and its kind."""

    name: str
    kind: FileKind


class Roots:
    """The workspace folders of a session, in the client's order. Immutable; safe to use from any thread."""

    def __init__(self, folders: Iterable[str]) -> None:
        written = [os.path.abspath(folder) for folder in folders]
        self._real = tuple(dict.fromkeys(os.path.realpath(folder) for folder in written))
        self._aliases = [(folder, os.path.realpath(folder)) for folder in (*self._real, *written)]

    @property
    def folders(self) -> tuple[str, ...]:
        """The absolute real paths of the folders."""
        return self._real

    def resolve(self, path: str) -> str:
        """Return the absolute real path for `path`, which need not exist.

        Raises PathRefused if it is not in the workspace.

        Relative paths belong to the first folder that has them, else to the first folder. A link is followed
        only as long as it stays in its folder. A buffer without a file (`untitled:`) keeps its URI.
        """
        if is_untitled(path):
            return path
        named = self._absolute(_plain(path))
        real = _real(path, named)
        root = self.root_of(real)
        if root is None or self._holder(named) not in (root, None):
            raise PathRefused(self._outside(path, real))
        _refuse_traps(path, real, root)
        return real

    def root_of(self, path: str) -> str | None:
        """Return the innermost workspace folder that contains an absolute real path, compared part by part, or None."""
        parts = Path(path).parts
        holders = [root for root in self._real if _starts(parts, Path(root).parts)]
        return max(holders, key=len, default=None)

    def relative(self, path: str) -> str:
        """Return `path` for display: relative to its folder, with the folder's name in front if there are several."""
        root = self.root_of(path)
        if root is None or is_untitled(path):
            return path
        inner = os.path.relpath(path, root)
        if len(self._real) == 1:
            return inner
        label = self._label(root)
        return label if inner == "." else f"{label}/{inner}"

    def is_protected(self, path: str) -> bool:
        """Return whether writing to `path` needs its own approval.

        That is so if a program runs the file later, its name deceives, it is a root or outside the workspace, or it has
        another hard link.
        """
        if is_untitled(path):
            return False
        if self.root_of(path) is None:
            return True
        return sensitive.runs_later(self._parts(path)) or _has_twins(self.stat(path))

    def is_secret(self, path: str) -> bool:
        """Return whether reading `path` needs its own approval, as such files usually contain keys or passwords."""
        return not is_untitled(path) and sensitive.holds_secrets(self._parts(path))

    def read_bytes(self, path: str, limit: int) -> bytes:
        """Return the content of a regular file at a resolved `path`, at most `limit` bytes. Never blocks.

        Raises FileRefused if it is missing, not a regular file, unreadable or longer than `limit`, PathRefused if
        outside.
        """
        with self._opened(path, _READ) as fd:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise FileRefused(f"{self.relative(path)} is {_what(info.st_mode)}, not a file of text.")
            if info.st_size > limit:
                raise FileRefused(_too_large(self.relative(path), info.st_size, limit))
            data = _read(fd, limit + 1)
        if len(data) > limit:
            raise FileRefused(_too_large(self.relative(path), len(data), limit))
        return data

    def scan(self, path: str) -> tuple[Child, ...]:
        """Return the names in a folder at a resolved `path`, unsorted.

        Raises FileRefused if it is not a readable folder.
        """
        with self._opened(path, _ENTER) as fd, os.scandir(fd) as entries:
            return tuple(Child(entry.name, _entry_kind(entry)) for entry in entries)

    def stat(self, path: str) -> os.stat_result | None:
        """Return the status of a resolved `path` without following links; None if nothing is there."""
        try:
            with self._parent(path) as (folder, name):
                return os.stat(name, dir_fd=folder, follow_symlinks=False)
        except (FileRefused, PathRefused, OSError):
            return None

    def kind(self, path: str) -> FileKind | None:
        """Return the kind of file at a resolved `path`; None if nothing is there."""
        info = self.stat(path)
        return None if info is None else _mode_kind(info.st_mode)

    def _absolute(self, path: str) -> str:
        if os.path.isabs(path):
            return path
        if not self._real:
            raise PathRefused("No workspace folder is open, so there are no files to name.")
        candidates = self._labelled(path) + [os.path.join(root, path) for root in self._real]
        return next((found for found in candidates if os.path.lexists(found)), candidates[0])

    def _labelled(self, path: str) -> list[str]:
        """Return the paths that `path` may mean if it begins with a folder's label, as written by `relative`."""
        if len(self._real) == 1:
            return []
        label, _, rest = path.partition("/")
        return [os.path.join(root, rest) for root in self._real if self._label(root) == label]

    def _label(self, root: str) -> str:
        names = [Path(other).name for other in self._real]
        return root if names.count(Path(root).name) > 1 else Path(root).name

    def _holder(self, named: str) -> str | None:
        """Return the workspace folder that contains `named` before any link is followed, or None."""
        parts = Path(os.path.normpath(named)).parts
        claims = [(folder, real) for folder, real in self._aliases if _starts(parts, Path(folder).parts)]
        return max(claims, key=lambda claim: len(claim[0]))[1] if claims else None

    def _outside(self, path: str, real: str) -> str:
        shown = ", ".join(self._real) or "none"
        if self.root_of(real) is not None:
            return f"{path!r} leads by a link into another workspace folder. Use {self.relative(real)!r} itself."
        return f"{path!r} is outside the workspace ({shown}). Use a path inside it."

    def _parts(self, path: str) -> tuple[str, ...]:
        root = self.root_of(path)
        return Path(path).parts[len(Path(root).parts) :] if root else Path(path).parts[1:]

    @contextmanager
    def _opened(self, path: str, flags: int) -> Iterator[int]:
        with self._parent(path) as (folder, name):
            fd = self._open_at(folder, name, flags, path)
        try:
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        """Yield the descriptor of `path`'s folder and its last name, opened part by part from the root's descriptor."""
        root = self.root_of(path)
        if root is None:
            raise PathRefused(f"{path!r} is outside the workspace. Use a path inside it.")
        *folders, name = self._parts(path) or (".",)
        fd = self._open_at(None, root, _ENTER, path)
        try:
            for folder in folders:
                inner = self._open_at(fd, folder, _ENTER, path)
                os.close(fd)
                fd = inner
            yield fd, name
        finally:
            os.close(fd)

    def _open_at(self, folder: int | None, name: str, flags: int, path: str) -> int:
        try:
            # Opening a device may have effects, so its type is checked first; O_NOFOLLOW guards against a swap.
            if flags == _READ:
                _refuse_special(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode, self.relative(path))
            return os.open(name, flags, dir_fd=folder)
        except FileNotFoundError:
            raise FileRefused(f"{self.relative(path)} does not exist.") from None
        except OSError as error:
            raise FileRefused(f"{self.relative(path)} cannot be opened: {error.strerror}.") from None


def is_untitled(path: str) -> bool:
    """Return whether `path` is the URI of a buffer that has no file yet."""
    return path.startswith("untitled:")


def _real(path: str, named: str) -> str:
    try:
        return os.path.realpath(named)
    except OSError:  # a link was replaced meanwhile
        raise PathRefused(f"{path!r} is being changed right now. Try again.") from None


def _plain(path: str) -> str:
    """Return `path` with a `file:` URI decoded once. Raises PathRefused for other schemes and ambiguous forms."""
    text = path
    if path[:5].lower() == "file:":
        decoded = uris.to_path(path)
        if decoded is None or decoded.startswith("//") or _ESCAPED_AGAIN.search(decoded):
            raise PathRefused(f"{path!r} is not a file of this machine. Use a plain path inside the workspace.")
        text = decoded
    elif _SCHEME.match(path):
        raise PathRefused(f"{path!r} is not a plain path. Use a path inside the workspace.")
    _refuse_forms(path, text)
    return text


def _refuse_forms(path: str, text: str) -> None:
    if not text or "\0" in text or not _encodable(text):
        raise PathRefused(f"{path!r} is not a path. Use a path inside the workspace.")
    if "\\" in text and os.name == "posix":
        raise PathRefused(f"{path!r} has backslashes. Separate the parts of a path by '/'.")
    if text.split("/", 1)[0] == "~":
        raise PathRefused(f"{path!r} is in the home folder. Use a path inside the workspace.")


def _encodable(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def _refuse_traps(path: str, real: str, root: str) -> None:
    """Raise PathRefused for kernel files, link loops and names that get cut, although inside the workspace."""
    parts = Path(real).parts
    if len(parts) > 1 and parts[1] in _KERNEL and root == parts[0]:
        raise PathRefused(f"{path!r} is not a file but a door into the system. Use a path inside the workspace.")
    inner = parts[len(Path(root).parts) :]
    if any(os.path.islink(os.path.join(root, *inner[: end + 1])) for end in range(len(inner))):
        raise PathRefused(f"{path!r} goes round in a loop of links. Use the path of a real file.")
    if inner and inner[-1] != inner[-1].rstrip(". ") and not os.path.lexists(real):
        raise PathRefused(f"{path!r} ends in a dot or a blank. Give the name without it.")


def _refuse_special(mode: int, shown: str) -> None:
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        raise FileRefused(f"{shown} is {_what(mode)}, not a file of text.")


def is_build_file(roots: Roots, path: str) -> bool:
    """Return whether `path` is protected only because builds and tests of the project run it."""
    root = None if is_untitled(path) else roots.root_of(path)
    if root is None or _has_twins(roots.stat(path)):
        return False
    return sensitive.only_builds_run(Path(path).relative_to(root).parts)


def _has_twins(info: os.stat_result | None) -> bool:
    return info is not None and stat.S_ISREG(info.st_mode) and info.st_nlink > 1


def _too_large(shown: str, size: int, limit: int) -> str:
    advice = "Look for the part you need with a command."
    return f"{shown} has {size:,} bytes, more than the limit of {limit:,}. {advice}"


def _starts(parts: tuple[str, ...], root: tuple[str, ...]) -> bool:
    return parts[: len(root)] == root


def _read(fd: int, limit: int) -> bytes:
    """Read at most `limit` bytes in small pieces, as sizes reported by a file system can be wrong."""
    pieces: list[bytes] = []
    while limit > 0 and (piece := os.read(fd, min(limit, 1 << 20))):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)


def _what(mode: int) -> str:
    names = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFLNK: "a link",
    }
    return names.get(stat.S_IFMT(mode), "a device")


def _mode_kind(mode: int) -> FileKind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"


def _entry_kind(entry: os.DirEntry[str]) -> FileKind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"
