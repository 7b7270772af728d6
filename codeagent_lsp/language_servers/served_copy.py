"""The private copy of the workspace that the language servers of one session see, kept in step with what a run sees.

Servers run as long as they are needed while texts change under them, so a view that is made for one command does not
do: this is a copy of plain files. All methods block; use a worker thread, one call at a time. Not here: the sandbox and
the copying (`shadow/copying.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from codeagent_lsp.shadow.private_copy import FileChangeKind
from codeagent_lsp.shadow.shell import Command, Launch
from codeagent_lsp.shadow.wanted import UnsavedState, wanted
from codeagent_lsp.workspace.files.file_view import FileView

LOOK_SECONDS = 10.0
"""How old the last look at the whole disk may be."""


class CopiedFolders(Protocol):
    """Port: a private copy of the workspace folders, as `CopyLayer`."""

    @property
    def changed(self) -> Mapping[str, FileChangeKind]: ...

    def prepare(self, wanted: Mapping[str, bytes | None]) -> None: ...

    def lay(self, wanted: Mapping[str, bytes | None]) -> None: ...

    def launch(self, command: Command) -> Launch: ...

    def close(self) -> None: ...


OpenCopy = Callable[[Sequence[str]], CopiedFolders]
"""Makes the copy of these folders; blocks. ToolFailed or OSError if that is impossible."""


class ServedCopy:
    """The copy of one session, made by its first use."""

    def __init__(self, open_copy: OpenCopy) -> None:
        self._open = open_copy
        self._copy: CopiedFolders | None = None
        self._folders: tuple[str, ...] = ()
        self._looked = 0.0

    def update(self, view: FileView) -> tuple[UnsavedState, Mapping[str, FileChangeKind]]:
        """Bring the copy to the state of a view; return what differs from the disk, and what changed in the copy by
        path. ToolFailed or OSError if that is impossible.
        """
        seen = wanted(view)
        folders = view.roots.folders
        if self._copy is None or folders != self._folders:
            self.close()
            self._copy, self._folders, self._looked = self._open(folders), folders, 0.0
        now = time.monotonic()
        if not self._looked or now - self._looked > LOOK_SECONDS:
            self._copy.prepare(seen.files)
            self._looked = time.monotonic()
        else:
            self._copy.lay(seen.files)
        return seen, self._copy.changed

    def launch(self, words: Sequence[str], folder: str) -> Launch:
        """Return how a program is started in the copy, in `folder`; `update` was called before."""
        assert self._copy is not None
        return self._copy.launch(Command(tuple(words), folder))

    def close(self) -> None:
        """Remove the copy."""
        copy, self._copy = self._copy, None
        if copy is not None:
            copy.close()
