"""Confinement of paths to the workspace: from a path written by a model or a user to a file, or a refusal; and names of
files relative to folders.

`Roots.resolve` checks names; `ConfinedFile` opens what they lead to, and follows no link that is swapped in after the
check (TOCTOU). Not here: the meaning of names (`sensitive.py`), staged and unsaved text (`file_view.py`), writing
(`lsp_client/disk.py`), approval to leave the workspace (`tools/permissions/`).
"""

# ruff: noqa: PTH100, PTH114, PTH117, PTH118, PTH120 - a path is judged as it was written; Path would tidy it first

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from codeagent_lsp.errors import FileRefused, PathRefused
from codeagent_lsp.system import Folder
from codeagent_lsp.workspace.files import sensitive, uris

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# A second decoding somewhere else would read `%252e%252e` as `..`.
_ESCAPED_AGAIN = re.compile(r"%(?:25|2e|2f|5c|00)", re.IGNORECASE)
# Characters: what Linux takes, and Windows nearly. Following links and checking parts takes the square of the length.
_LONGEST_PATH = 4096
_SHOWN_OF_LONG = 60
_KERNEL = frozenset({"proc", "sys", "dev"})


class Roots:
    """The workspace folders of a session, in the client's order and without duplicates. There may be none: then only
    buffers without a file can be named. Immutable; safe to use from any thread.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        written = [os.path.abspath(folder) for folder in folders]
        self._real = tuple(dict.fromkeys(os.path.realpath(folder) for folder in written))
        self._names = FolderNames(self._real)
        # The user may have opened a folder by a link to it, and names files by that.
        self._aliases = [(Path(folder).parts, os.path.realpath(folder)) for folder in (*self._real, *written)]
        self._parts_of_roots = tuple((root, Path(root).parts) for root in self._real)

    @property
    def folders(self) -> tuple[str, ...]:
        """The absolute real paths of the workspace folders."""
        return self._real

    def resolve(self, path: str) -> str:
        """Return the absolute real path for `path`, which need not exist.

        Raises PathRefused if it is not in the workspace.

        Relative paths belong to the first folder that has them, else to the first folder. A link is followed
        only as long as it stays in its folder. A buffer without a file (`untitled:`) keeps its URI. A name that differs
        from a file's only in how its letters are composed (NFC, NFD), which nobody sees, is that file's.
        """
        if is_untitled(path):
            return path
        named = _as_there(self._names.absolute(_plain(path)))
        real = _real(path, named)
        root = self.root_of(real)
        if root is None or self._holder(named) not in (root, None):
            raise PathRefused(self._outside(path, real))
        _refuse_traps(path, real, root)
        return real

    def root_of(self, path: str) -> str | None:
        """Return the innermost workspace folder that contains an absolute real path, compared part by part; None
        outside of the workspace.
        """
        parts = Path(path).parts
        holders = [root for root, begins in self._parts_of_roots if _starts(parts, begins)]
        return max(holders, key=len, default=None)

    def upwards(self, folder: str) -> list[str]:
        """Return `folder` (an absolute path) and its parents up to its workspace folder, innermost first; [] outside of
        the workspace.
        """
        root = self.root_of(folder)
        folders = [] if root is None else [folder]
        while folders and folders[-1] != root:
            folders.append(os.path.dirname(folders[-1]))
        return folders

    def relative(self, path: str) -> str:
        """Return `path` for display: relative to its folder, with the folder's name in front if there are several. A
        path outside of the workspace and the URI of a buffer without a file are returned as they are.
        """
        root = self.root_of(path)
        if root is None or is_untitled(path):
            return path
        return self._names.relative(path, root)

    def is_protected(self, path: str) -> bool:
        """Return whether writing to `path` needs its own approval.

        That is so if a program later runs the file or takes settings or instructions from it, its name deceives, it is
        a root or outside the workspace, or it has another hard link.
        """
        if is_untitled(path):
            return False
        if self.root_of(path) is None:
            return True
        return sensitive.runs_later(self._parts(path)) or _has_twins(self.stat(path))

    def is_secret(self, path: str) -> bool:
        """Return whether reading an absolute path needs its own approval, as files of such names usually contain keys
        or passwords; judged by the name alone.
        """
        return not is_untitled(path) and sensitive.holds_secrets(self._parts(path))

    def read_bytes(self, path: str, limit: int) -> bytes:
        """Return the content of a regular file at a resolved `path`. Never waits for a pipe or device. FileRefused if
        it is missing, not a regular file, unreadable or longer than `limit` bytes, PathRefused if outside.
        """
        return self._at(path).read_bytes(limit)

    def scan(self, path: str) -> tuple[Child, ...]:
        """Return the names in a folder at a resolved `path`, with their kinds, unsorted. FileRefused if it is not a
        readable folder, PathRefused if it is outside of the workspace.
        """
        return self._at(path).scan()

    def stat(self, path: str) -> os.stat_result | None:
        """Return the status of a resolved `path` without following links; None if nothing is there or it is outside of
        the workspace.
        """
        try:
            return self._at(path).stat()
        except PathRefused:
            return None

    def kind(self, path: str) -> FileKind | None:
        """Return the kind of file at a resolved `path`, without following links; None if nothing is there or it is
        outside of the workspace.
        """
        info = self.stat(path)
        return None if info is None else kind_of(info.st_mode)

    def _holder(self, named: str) -> str | None:
        """Return the workspace folder that contains `named` before any link is followed, or None."""
        parts = Path(os.path.normpath(named)).parts
        claims = [(begins, real) for begins, real in self._aliases if _starts(parts, begins)]
        return max(claims, key=lambda claim: len(claim[0]))[1] if claims else None

    def _outside(self, path: str, real: str) -> str:
        shown = ", ".join(self._real) or "none"
        if self.root_of(real) is not None:
            return f"{path!r} leads by a link into another workspace folder. Use {self.relative(real)!r} itself."
        return f"{path!r} is outside the workspace ({shown}). Use a path inside it."

    def _parts(self, path: str) -> tuple[str, ...]:
        root = self.root_of(path)
        return Path(path).parts[len(Path(root).parts) :] if root else Path(path).parts[1:]

    def _at(self, path: str) -> ConfinedFile:
        root = self.root_of(path)
        if root is None:
            raise PathRefused(f"{path!r} is outside the workspace. Use a path inside it.")
        return ConfinedFile(path, root, self._parts(path), self.relative)


def is_untitled(path: str) -> bool:
    """Return whether `path` is the URI of a buffer that has no file yet (`untitled:`)."""
    return path.startswith("untitled:")


def _real(path: str, named: str) -> str:
    try:
        return os.path.realpath(named)
    except OSError:  # a link was replaced meanwhile
        raise PathRefused(f"{path!r} is being changed right now. Try again.") from None


def _as_there(named: str) -> str:
    """Return an absolute path with each part as it is spelt in its folder, where only the composition differs."""
    if named.isascii():
        return named
    found = "/"
    for part in Path(named).parts[1:]:
        here = os.path.join(found, part)
        if not part.isascii() and not os.path.lexists(here):
            wanted = unicodedata.normalize("NFC", part)
            alike = (name for name in _names_in(found) if unicodedata.normalize("NFC", name) == wanted)
            here = os.path.join(found, next(alike, part))
        found = here
    return found


def _names_in(folder: str) -> list[str]:
    try:
        return [child.name for child in Path(folder).iterdir()]
    except OSError:
        return []


def _plain(path: str) -> str:
    """Return `path` with a `file:` URI decoded once. Raises PathRefused for other schemes and ambiguous forms."""
    text = path
    if path[:5].lower() == "file:":
        decoded = uris.to_path(path)
        if decoded is None or decoded.startswith("//") or _ESCAPED_AGAIN.search(decoded):
            raise PathRefused(f"{path!r} is not a file of this machine. Use a plain path inside the workspace.")
        text = decoded
    elif _SCHEME.match(path) and not (os.name == "nt" and uris.has_drive(path)):
        raise PathRefused(f"{path!r} is not a plain path. Use a path inside the workspace.")
    _refuse_forms(path, text)
    return text


def _refuse_forms(path: str, text: str) -> None:
    if len(text) > _LONGEST_PATH:
        raise PathRefused(f"{text[:_SHOWN_OF_LONG]!r}… is longer than a path can be. Use a path inside the workspace.")
    if not text or "\0" in text or not _encodable(text):
        raise PathRefused(f"{path!r} is not a path. Use a path inside the workspace.")
    if "\\" in text and os.name == "posix":
        raise PathRefused(f"{path!r} has backslashes. Separate the parts of a path by '/'.")
    if os.name == "nt" and (problem := uris.windows_problem(text)) is not None:
        raise PathRefused(f"{path!r} {problem}. Use a plain path inside the workspace.")
    if text.split("/", 1)[0] == "~":
        raise PathRefused(f"{path!r} is in the home folder. Use a path inside the workspace.")


def _encodable(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


_WRAPPED = re.compile(r"([\"'`*]).+\1|<.+>|\[[^\]]*\]\(.+\)|\s.*|.*\s", re.DOTALL)


def _refuse_traps(path: str, real: str, root: str) -> None:
    """Raise PathRefused for kernel files, link loops and names that get cut, although inside the workspace."""
    parts = Path(real).parts
    # Only where the workspace is the whole file system.
    if len(parts) > 1 and parts[1] in _KERNEL and root == parts[0]:
        raise PathRefused(f"{path!r} is not a file but a door into the system. Use a path inside the workspace.")
    inner = parts[len(Path(root).parts) :]
    # As it stands in a sentence or a call: a second file beside the one that is meant.
    if _WRAPPED.fullmatch("/".join(inner)) and not os.path.lexists(real):
        raise PathRefused(f"{path!r} has signs or blanks around the name. Give the name alone.")
    # `realpath` leaves a link in its result only where links go round.
    if any(os.path.islink(os.path.join(root, *inner[: end + 1])) for end in range(len(inner))):
        raise PathRefused(f"{path!r} goes round in a loop of links. Use the path of a real file.")
    # Some file systems cut such an end, and then this is the name of another file.
    if inner and inner[-1] != inner[-1].rstrip(". ") and not os.path.lexists(real):
        raise PathRefused(f"{path!r} ends in a dot or a blank. Give the name without it.")


def is_build_file(roots: Roots, path: str) -> bool:
    """Return whether an absolute path is protected only because builds and tests of the project run it; False outside
    of the workspace and for a file with another hard link.
    """
    root = None if is_untitled(path) else roots.root_of(path)
    if root is None or _has_twins(roots.stat(path)):
        return False
    return sensitive.only_builds_run(Path(path).relative_to(root).parts)


def within(path: str, folders: Iterable[str]) -> bool:
    """Return whether `path` is one of `folders` or below one, compared by path components."""
    return any(path == folder or path.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)


def relative_name(path: str, folder: str) -> str:
    """Return the path of a file relative to a folder, with `/` between its parts on every system, as models and users
    write it, and as globs, git and the index compare it; `.` for the folder itself.
    """
    return os.path.relpath(path, folder).replace(os.sep, "/")


def path_of(folder: str, name: str) -> str:
    """Return the path of a file in a folder by its name there, with `/` between its parts, as `relative_name` returns
    it.
    """
    return folder.rstrip(os.sep) + os.sep + name.replace("/", os.sep)


def entries_of(folder: str) -> list[os.DirEntry[str]]:
    """Return the entries of a folder; [] if it is gone or cannot be read. Blocks."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def is_unicode(name: str) -> bool:
    """Return whether a name is valid Unicode, without surrogate escapes, as it must be in the index and in events."""
    return name.isascii() or not any("\udc80" <= char <= "\udcff" for char in name)


class FolderNames:
    """The names of files in `folders` (absolute real paths): relative to the folder, and with its label in front if
    there are several. The label is the folder's own name, or its path if two have the same name.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = folders

    def relative(self, path: str, root: str) -> str:
        """Return `path` for display, with `/` between its parts, relative to `root`, the folder that contains it; with
        the label in front if there are several folders, and the label alone (`.` for one folder) for `root` itself.
        """
        inner = relative_name(path, root)
        if len(self._folders) == 1:
            return inner
        label = self._label(root)
        return label if inner == "." else f"{label}/{inner}"

    def absolute(self, path: str) -> str:
        """Return the absolute path for `path`, which may begin with a folder's label: in the first folder that has it,
        else in the first folder; an absolute one as it is. Raises PathRefused if there is no folder.
        """
        if os.path.isabs(path):
            return path
        if not self._folders:
            raise PathRefused("No workspace folder is open, so there are no files to name.")
        candidates = self._paths_by_label(path) + [os.path.join(root, path) for root in self._folders]
        return next((found for found in candidates if os.path.lexists(found)), candidates[0])

    def _paths_by_label(self, path: str) -> list[str]:
        """Return the paths that `path` may mean if it begins with a folder's label, as written by `relative`."""
        if len(self._folders) == 1:
            return []
        label, _, rest = path.partition("/")
        return [os.path.join(root, rest) for root in self._folders if self._label(root) == label]

    def _label(self, root: str) -> str:
        names = [Path(other).name for other in self._folders]
        # Folders of one name are told apart by their whole paths only.
        return root if names.count(Path(root).name) > 1 else Path(root).name


def _has_twins(info: os.stat_result | None) -> bool:
    return info is not None and stat.S_ISREG(info.st_mode) and info.st_nlink > 1


def _starts(parts: tuple[str, ...], root: tuple[str, ...]) -> bool:
    return parts[: len(root)] == root


# Access to a file below a workspace folder by descriptors, part by part from the folder's own. Links are never
# followed, so that a link that is swapped in after the check of a path leads nowhere.

FileKind = Literal["file", "folder", "link", "other"]


class Child(NamedTuple):
    """One name in a folder and its kind: `file`, `folder`, `link` or `other`."""

    name: str
    kind: FileKind


@dataclass(frozen=True, slots=True)
class ConfinedFile:
    """The file or folder `path`, which is `parts` below the workspace folder `root`; it need not exist. It is opened
    part by part, and no link is followed. `name_of` returns the name of a path for the user and the model.
    """

    path: str
    root: str
    parts: tuple[str, ...]
    name_of: Callable[[str], str]

    def read_bytes(self, limit: int) -> bytes:
        """Return the content of a regular file, at most `limit` bytes. Never waits for a pipe or device.

        Raises FileRefused if it is missing, not a regular file, unreadable or longer than `limit`.
        """
        with self._open() as fd:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise FileRefused(f"{self._name} is {_what(info.st_mode)}, not a file of text.")
            if info.st_size > limit:
                raise FileRefused(_too_large(self._name, info.st_size, limit))
            data = _read(fd, limit + 1)
        if len(data) > limit:
            raise FileRefused(_too_large(self._name, len(data), limit))
        return data

    def scan(self) -> tuple[Child, ...]:
        """Return the names in a folder with their kinds, unsorted. FileRefused if it is not a readable folder."""
        with self._refusing():
            folder = Folder(self.root, self.parts)
        with folder:
            return tuple(Child(entry.name, _entry_kind(entry)) for entry in folder.entries())

    def stat(self) -> os.stat_result | None:
        """Return the status, without following links; None if nothing is there or it cannot be reached."""
        try:
            with self._parent() as (folder, name):
                return folder.status(name)
        except (FileRefused, OSError):
            return None

    @property
    def _name(self) -> str:
        return self.name_of(self.path)

    @contextmanager
    def _open(self) -> Iterator[int]:
        with self._parent() as (folder, name), self._refusing():
            # Opening a device may have effects, so its type is checked first; that no link is followed guards against a
            # swap.
            _refuse_special(folder.status(name).st_mode, self._name)
            fd = folder.open_reading(name)
        try:
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def _parent(self) -> Iterator[tuple[Folder, str]]:
        """Yield the file's folder, opened part by part from the root, and its last name."""
        # For the workspace folder itself.
        *folders, name = self.parts or (".",)
        with self._refusing():
            folder = Folder(self.root, folders)
        with folder:
            yield folder, name

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Raise FileRefused for an OSError."""
        try:
            yield
        except FileNotFoundError:
            raise FileRefused(f"{self._name} does not exist.") from None
        except OSError as error:
            raise FileRefused(f"{self._name} cannot be opened: {error.strerror}.") from None


def kind_of(mode: int) -> FileKind:
    """Return the kind of a file by its mode (`st_mode`): `file`, `folder`, `link`, or `other` for pipes, sockets and
    devices.
    """
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"


def _refuse_special(mode: int, shown: str) -> None:
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        raise FileRefused(f"{shown} is {_what(mode)}, not a file of text.")


def _too_large(shown: str, size: int, limit: int) -> str:
    advice = "Look for the part you need with a command."
    return f"{shown} has {size:,} bytes, more than the limit of {limit:,}. {advice}"


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


def _entry_kind(entry: os.DirEntry[str]) -> FileKind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"
