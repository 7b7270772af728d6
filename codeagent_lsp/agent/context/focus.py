"""The files that the model has seen in full, with their current text, up to a total size.

An immutable value: every operation returns a new one. When there is not enough room, the least recently used file is
removed; files that are being edited go last. Not here: reading files, and where the text is put in the prompt
(`compaction.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

DEFAULT_LIMIT = 100_000


@dataclass(frozen=True, slots=True)
class FocusedFile:
    """One file: its path relative to the workspace, and the full text that the model read."""

    path: str
    text: str
    editing: bool = False


@dataclass(frozen=True, slots=True)
class FocusedFiles:
    """Files from the least to the most recently used; `limit` is in characters over all of them."""

    files: tuple[FocusedFile, ...] = ()
    limit: int = DEFAULT_LIMIT

    @property
    def size(self) -> int:
        """Return the characters of all files."""
        return sum(len(file.text) for file in self.files)

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the paths of the files, the most recently used last."""
        return tuple(file.path for file in self.files)

    def get(self, path: str) -> FocusedFile | None:
        """Return the file with that path; None when it is not in focus."""
        return next((file for file in self.files if file.path == path), None)

    def seen(self, path: str, text: str) -> FocusedFiles:
        """Return the files with one that the model has just seen in full; one larger than the limit is not kept."""
        known = self.get(path)
        return self._with(FocusedFile(path, text, known is not None and known.editing))

    def used(self, path: str) -> FocusedFiles:
        """Return the files with `path` as the most recently used one; unknown paths change nothing."""
        known = self.get(path)
        return self if known is None else self._with(known)

    def editing(self, paths: Iterable[str]) -> FocusedFiles:
        """Return the files with exactly `paths` marked as being edited."""
        chosen = frozenset(paths)
        return replace(self, files=tuple(replace(file, editing=file.path in chosen) for file in self.files))

    def without(self, path: str) -> FocusedFiles:
        """Return the files without that one."""
        return replace(self, files=tuple(file for file in self.files if file.path != path))

    def refreshed(self, current: Mapping[str, str | None]) -> FocusedFiles:
        """Return the files with their current texts; a file whose text is None is removed. Files that are not in
        `current` stay unchanged.
        """
        fresh = [replace(file, text=current.get(file.path, file.text) or "") for file in self.files]
        left = tuple(file for file in fresh if current.get(file.path, file.text) is not None)
        # Texts may have grown since.
        return replace(self, files=left)._evicted()

    def newest(self, room: int) -> tuple[FocusedFile, ...]:
        """Return the files that fit into `room` characters: those being edited first, then the most recently used."""
        latest_first = self.files[::-1]
        chosen = []
        for file in sorted(latest_first, key=lambda file: not file.editing):
            if (cost := len(rendered(file.path, file.text))) <= room:
                chosen.append(file)
                room -= cost
        return tuple(chosen)

    def to_dict(self) -> dict[str, Any]:
        """Return the files as plain data for JSON."""
        return {"limit": self.limit, "files": [asdict(file) for file in self.files]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FocusedFiles:
        """Return the files from the data of `to_dict`. KeyError or TypeError when it is something else."""
        return cls(tuple(FocusedFile(**file) for file in data["files"]), data["limit"])

    def _with(self, file: FocusedFile) -> FocusedFiles:
        # The order is that of use, so a file that is used again moves to the end.
        others = self.without(file.path).files
        return replace(self, files=(*others, file))._evicted()

    def _evicted(self) -> FocusedFiles:
        """Return the files within the limit; the most recently used one stays if it fits by itself."""
        files = [file for file in self.files if len(file.text) <= self.limit]
        size = sum(len(file.text) for file in files)
        # A stable sort: among files that are not edited, the least recently used goes first.
        for victim in sorted(files[:-1], key=lambda file: file.editing):
            if size <= self.limit:
                break
            files.remove(victim)
            size -= len(victim.text)
        return replace(self, files=tuple(files))


def rendered(path: str, text: str) -> str:
    """Format a focused file for the prompt."""
    return f"{path}:\n{text}\n"
