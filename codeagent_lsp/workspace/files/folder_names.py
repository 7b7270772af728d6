"""Names of files relative to folders, above all those of the workspace, as they are shown and as a model or a user may
write them.

Not here: whether a path is in the workspace (`paths.py`).
"""

# ruff: noqa: PTH117, PTH118 - a path is judged as it was written; Path would tidy it first

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from codeagent_lsp.errors import PathRefused


def within(path: str, folders: Iterable[str]) -> bool:
    """Return whether `path` is one of `folders` or below one, compared by path components."""
    return any(path == folder or path.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)


def relative_name(path: str, folder: str) -> str:
    """Return the name of a file as seen from a folder, with `/` between its parts on every system: as models and users
    write it, and as globs, git and the index compare it.
    """
    return os.path.relpath(path, folder).replace(os.sep, "/")


def path_of(folder: str, name: str) -> str:
    """Return the path of a file by its name in a folder, as `relative_name` makes it: the way back."""
    return folder.rstrip(os.sep) + os.sep + name.replace("/", os.sep)


def entries_of(folder: str) -> list[os.DirEntry[str]]:
    """Return what is in a folder; nothing of one that is gone meanwhile, or that cannot be read. Blocks."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def is_unicode(name: str) -> bool:
    """Return whether a name is valid Unicode, without surrogate escapes, as it must be in the index and in events."""
    return name.isascii() or not any("\udc80" <= char <= "\udcff" for char in name)


class FolderNames:
    """The names of `folders`, absolute real paths: where there are several, a file's name begins with its folder's."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = folders

    def relative(self, path: str, root: str) -> str:
        """Return `path` for display, relative to `root`, the folder that contains it."""
        inner = relative_name(path, root)
        if len(self._folders) == 1:
            return inner
        label = self._label(root)
        return label if inner == "." else f"{label}/{inner}"

    def absolute(self, path: str) -> str:
        """Return the absolute path for `path`: in the first folder that has it, else in the first folder.

        Raises PathRefused if there is no folder.
        """
        if os.path.isabs(path):
            return path
        if not self._folders:
            raise PathRefused("No workspace folder is open, so there are no files to name.")
        candidates = self._labelled(path) + [os.path.join(root, path) for root in self._folders]
        return next((found for found in candidates if os.path.lexists(found)), candidates[0])

    def _labelled(self, path: str) -> list[str]:
        """Return the paths that `path` may mean if it begins with a folder's label, as written by `relative`."""
        if len(self._folders) == 1:
            return []
        label, _, rest = path.partition("/")
        return [os.path.join(root, rest) for root in self._folders if self._label(root) == label]

    def _label(self, root: str) -> str:
        names = [Path(other).name for other in self._folders]
        # Folders of one name are told apart by their whole paths only.
        return root if names.count(Path(root).name) > 1 else Path(root).name
