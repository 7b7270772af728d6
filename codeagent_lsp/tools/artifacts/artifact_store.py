"""The artifacts of a session: exported files, in a folder of the user's state, bounded in size and number.

A name is one plain file name; a later export under the same name replaces it. Not here: what is exported and imported
(`artifact_tools.py`).
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from codeagent_lsp.errors import ErrorCode, FileRefused, ToolFailed, ToolRetry
from codeagent_lsp.state import make_private
from codeagent_lsp.system import open_new, open_reading

FILE_BYTES = 16 << 20
TOTAL_BYTES = 256 << 20
MAX_FILES = 200
MAX_NAME = 120

_NAME = re.compile(r"\w[\w .+,=()@-]*")
# Names that Windows takes for devices, whatever ending they have.
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
_PART = ".part-"


@dataclass(frozen=True, slots=True)
class Artifact:
    """One artifact: its name, size in bytes, export time (seconds since 1970) and absolute path."""

    name: str
    size: int
    exported: float
    path: str


class ArtifactStore:
    """The artifacts in `folder`, which the first export creates: at most 200 files, 16 MiB each and 256 MiB in all by
    default. All methods block; they are thread-safe.
    """

    def __init__(
        self,
        folder: Path,
        *,
        file_bytes: int = FILE_BYTES,
        total_bytes: int = TOTAL_BYTES,
        max_files: int = MAX_FILES,
    ) -> None:
        self.file_bytes = file_bytes
        self._folder = folder
        self._total_bytes = total_bytes
        self._max_files = max_files
        self._lock = Lock()

    def put(self, name: str, data: bytes) -> Artifact:
        """Store `data` under a name, in place of an artifact of that name, and return the artifact. ToolRetry for an
        invalid name, ToolFailed if there is no room, OSError if it cannot be written.
        """
        named = checked_name(name)
        with self._lock:
            self._make_sure_of_room(named, len(data))
            make_private(self._folder)
            beside = self._folder / f"{_PART}{os.urandom(6).hex()}"
            try:
                with os.fdopen(open_new(beside), "wb") as file:
                    file.write(data)
                path = beside.replace(self._folder / named)
                info = path.stat()
            finally:
                beside.unlink(missing_ok=True)
            return Artifact(named, info.st_size, info.st_mtime, str(path))

    def list(self) -> tuple[Artifact, ...]:
        """Return all artifacts, sorted by name; () if the folder does not exist yet. OSError if it cannot be read."""
        found = []
        try:
            entries = list(os.scandir(self._folder))
        except FileNotFoundError:
            return ()
        for entry in entries:
            if entry.name.startswith(_PART):
                continue
            try:
                info = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # removed meanwhile
                continue
            if stat.S_ISREG(info.st_mode):
                found.append(Artifact(entry.name, info.st_size, info.st_mtime, entry.path))
        return tuple(sorted(found, key=lambda item: item.name))

    def read(self, name: str) -> bytes:
        """Return the bytes of an artifact, one more than `file_bytes` at most, which shows that it is too large.
        ToolRetry for an invalid name, FileRefused if there is none of this name.
        """
        path = self._folder / checked_name(name)
        try:
            descriptor = open_reading(path)
        except OSError:
            known = ", ".join(item.name for item in self.list()[:20]) or "none"
            raise FileRefused(f"There is no artifact {name!r}. There are: {known}.") from None
        with os.fdopen(descriptor, "rb") as file:
            return file.read(self.file_bytes + 1)

    def named(self, path: str) -> str:
        """Return the name of the artifact at an absolute path; '' if there is none."""
        folder, name = os.path.split(os.path.realpath(path))
        return name if folder == os.path.realpath(self._folder) else ""

    def remove(self) -> None:
        """Delete all artifacts with their folder; what cannot be deleted stays, without an error."""
        with self._lock:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _make_sure_of_room(self, name: str, size: int) -> None:
        others = [item for item in self.list() if item.name != name]
        if size > self.file_bytes:
            message = f"{name} has {size:,} bytes, and an artifact has at most {self.file_bytes:,}."
            raise ToolFailed(message, ErrorCode.INVALID_PARAM)
        if len(others) >= self._max_files:
            message = f"This session has {self._max_files} artifacts, and cannot have more."
            raise ToolFailed(message, ErrorCode.INVALID_PARAM)
        if sum(item.size for item in others) + size > self._total_bytes:
            message = f"The artifacts of a session have at most {self._total_bytes:,} bytes together."
            raise ToolFailed(message, ErrorCode.INVALID_PARAM)


def checked_name(name: str) -> str:
    """Return the name in Unicode's normal form C. ToolRetry if it is no portable file name of at most 120 bytes."""
    known = unicodedata.normalize("NFC", name)
    if len(os.fsencode(known)) > MAX_NAME or known.endswith((" ", ".")) or not _NAME.fullmatch(known):
        raise ToolRetry(
            f"{name[:60]!r} is no name for an artifact: letters, digits, blanks and . _ - + , = ( ) @, first a "
            f"letter, digit or _, at most {MAX_NAME} bytes."
        )
    if _DEVICES.fullmatch(known):
        raise ToolRetry(f"{name!r} is the name of a device on some systems. Choose another name.")
    return known
