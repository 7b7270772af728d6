"""Links of a workspace that lead out of it, which a command that is not confined must not be able to follow.

Reads names and links only. Not here: what a command's words name (`tools/permissions/command_places.py`), the copy
that has no such links (`mirror.py`, `copying.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from codeagent_lsp.shadow.interpreters import is_interpreter
from codeagent_lsp.workspace.files.folder_names import within

_LIBRARIES = ("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/include", "/usr/local/bin", "/usr/local/lib", "/nix/store")
"""Programs and libraries of the system, which environments of the workspace link to."""


@dataclass(frozen=True, slots=True)
class OutwardLinks:
    """Tells which links lead out of `folders`, absolute real paths, for the user with the home folder `home`."""

    folders: tuple[str, ...]
    home: str

    def leads_out(self, link: str) -> bool:
        """Return whether a link leads out of the folders, unless it is to an interpreter or a library."""
        real = os.path.realpath(link)
        return not within(real, (*self.folders, *_LIBRARIES)) and not is_interpreter(real, self.home)

    def stand_in(self, source: str, target: str) -> None:
        """Create `target` as a link to a folder; where that holds links that lead out, as a folder of links to the
        rest.
        """
        holders = {str(parent) for link in self._below(source) for parent in Path(link).parents}
        waiting = [(source, target)]
        while waiting:
            folder, place = waiting.pop()
            if folder not in holders:
                Path(place).symlink_to(folder)
                continue
            Path(place).mkdir()
            for entry in _entries(folder):
                if not (entry.is_symlink() and self.leads_out(entry.path)):
                    waiting.append((entry.path, f"{place}/{entry.name}"))

    def _below(self, folder: str) -> Iterator[str]:
        """Yield the links below a folder that lead out."""
        waiting = [folder]
        while waiting:
            for entry in _entries(waiting.pop()):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_symlink() and self.leads_out(entry.path):
                    yield entry.path


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:  # gone meanwhile, not ours to read, or a file
        return []
