"""The files in front of the model: each one that it has seen in full, as it is now, up to a total size.

A value: every operation gives a new one. What does not fit pushes out the file that was not used for longest;
files that are being edited go last. Not here: reading files, and where the text stands in the prompt
(`compaction.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

DEFAULT_LIMIT = 100_000


@dataclass(frozen=True, slots=True)
class FocusedFile:
    """A file by its name in the workspace; `text` is what the model read of it, in full."""

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
        """Characters of all files."""
        return sum(len(file.text) for file in self.files)

    @property
    def paths(self) -> tuple[str, ...]:
        """Names of the files, the most recently used last."""
        return tuple(file.path for file in self.files)

    def get(self, path: str) -> FocusedFile | None:
        """The file of that name, if it is in focus."""
        return next((file for file in self.files if file.path == path), None)

    def seen(self, path: str, text: str) -> FocusedFiles:
        """With a file that the model has just seen in full; one larger than the limit is not held."""
        known = self.get(path)
        return self._with(FocusedFile(path, text, known is not None and known.editing))

    def used(self, path: str) -> FocusedFiles:
        """With that file as the most recently used one; unknown names change nothing."""
        known = self.get(path)
        return self if known is None else self._with(known)

    def editing(self, paths: Iterable[str]) -> FocusedFiles:
        """With exactly those marked as being edited."""
        chosen = frozenset(paths)
        return replace(self, files=tuple(replace(file, editing=file.path in chosen) for file in self.files))

    def without(self, path: str) -> FocusedFiles:
        """Without that file."""
        return replace(self, files=tuple(file for file in self.files if file.path != path))

    def refreshed(self, current: Mapping[str, str | None]) -> FocusedFiles:
        """With the texts of now; a file without one is gone. Files that are not in `current` stay as they are."""
        fresh = [replace(file, text=current.get(file.path, file.text) or "") for file in self.files]
        left = tuple(file for file in fresh if current.get(file.path, file.text) is not None)
        return replace(self, files=left)._evicted()

    def newest(self, room: int) -> tuple[FocusedFile, ...]:
        """The files to show in `room` characters: those being edited first, then the most recently used."""
        latest_first = self.files[::-1]
        chosen = []
        for file in sorted(latest_first, key=lambda file: not file.editing):
            if (cost := len(rendered(file.path, file.text))) <= room:
                chosen.append(file)
                room -= cost
        return tuple(chosen)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"limit": self.limit, "files": [asdict(file) for file in self.files]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FocusedFiles:
        """What `to_dict` wrote. KeyError or TypeError when it is something else."""
        return cls(tuple(FocusedFile(**file) for file in data["files"]), data["limit"])

    def _with(self, file: FocusedFile) -> FocusedFiles:
        others = self.without(file.path).files
        return replace(self, files=(*others, file))._evicted()

    def _evicted(self) -> FocusedFiles:
        """Within the limit; the most recently used file stays, for it fits by itself."""
        files = [file for file in self.files if len(file.text) <= self.limit]
        size = sum(len(file.text) for file in files)
        for victim in sorted(files[:-1], key=lambda file: file.editing):
            if size <= self.limit:
                break
            files.remove(victim)
            size -= len(victim.text)
        return replace(self, files=tuple(files))


def rendered(path: str, text: str) -> str:
    """How a focused file stands in the prompt."""
    return f"{path}:\n{text}\n"
