"""The git repository around a path of the workspace, if its data is where it may be.

Not here: where that is (`workspace/files/git_folders.py`), running git (`calls.py`).
"""

# ruff: noqa: PTH118 - paths of the workspace are plain strings and may be any bytes

from __future__ import annotations

import os
from dataclasses import dataclass

from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.workspace.files.folder_names import within
from codeagent_lsp.workspace.files.git_folders import belongs, common_of, data_of, top_of
from codeagent_lsp.workspace.files.paths import Roots

_PARTS = ("HEAD", "config", "index", "objects", "packed-refs", "refs")


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository by the folder that holds its `.git`, an absolute real path."""

    top: str

    def inner(self, path: str) -> str:
        """Return `path` relative to the top, as git names it; '' for the top itself."""
        name = os.path.relpath(path, self.top)
        return "" if name == "." else name


def repository_of(path: str, roots: Roots) -> Repository:
    """Return the innermost repository around `path` (absolute, real). ToolFailed if there is none that may be used."""
    top = top_of(path)
    if top is None:
        raise ToolFailed(f"{roots.relative(path)} is not in a git repository.", ErrorCode.NOT_FOUND)
    if not _is_at_home(top, roots.root_of(path) or top):
        raise ToolFailed(
            f"The repository at {top} keeps its data outside the workspace, in a place that does not belong to it."
            f" It is not read. The user can note that it does: git -C '{top}' config core.worktree '{top}'"
        )
    return Repository(top)


def _is_at_home(top: str, root: str) -> bool:
    """Return whether the data is below the top or the workspace folder, or provably belongs to this top.

    A `.git` file can point to any repository of the user; a real worktree or submodule is known to the repository that
    it belongs to.
    """
    data = data_of(top)
    if data is None:
        return False
    homes = (os.path.realpath(top), os.path.realpath(root))
    if not within(data, homes):
        return belongs(data, top)
    shared = common_of(data)
    if not within(shared, homes):
        return False
    parts = (os.path.realpath(os.path.join(folder, name)) for folder in (data, shared) for name in _PARTS)
    return all(within(part, homes) for part in parts)
