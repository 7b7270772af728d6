"""Long tool results: shortened for the prompt, and stored in numbered files outside of the workspace so that the model
can read on.

The model names them `@output/3.txt`, in `read_file` and `grep`. Not here: which results are stored (`executor.py` and
tools that run commands).
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.state import make_private
from codeagent_lsp.system import open_new
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, NothingStaged
from codeagent_lsp.workspace.files.paths import Roots
from codeagent_lsp.workspace.text.excerpts import LinesOfInterest

FILE_BYTES = 16 << 20
TOTAL_BYTES = 128 << 20

_FOLDER = "@output"
_NAME = re.compile(r"(?:\./)?(@output/[1-9][0-9]{0,9}\.txt)")
_SLACK = 200  # for the line that says what is left out
LEAST_BETWEEN = 300
"""In a smaller share than this, in bytes, no line from between head and tail is shown."""


class OutputStore:
    """The long results of one session, in `folder`, which nothing else uses: 16 MiB each and 128 MiB in all by default;
    the oldest are deleted to make room. All methods block; they are thread-safe. Numbers are never used twice in a
    session.
    """

    def __init__(self, folder: Path, *, file_bytes: int = FILE_BYTES, total_bytes: int = TOTAL_BYTES) -> None:
        self._folder = folder
        self._file_bytes = file_bytes
        self._total_bytes = total_bytes
        self._lock = Lock()
        self._last = 0
        self._view: FileView | None = None

    @property
    def view(self) -> FileView:
        """A file view of the stored results, for code that reads files; created at its first use."""
        if self._view is None:
            largest = self._file_bytes + _SLACK
            self._view = FileView(Roots([str(self._folder)]), NoBuffers(), NothingStaged(), max_bytes=largest)
        return self._view

    def keep(self, text: str) -> str:
        """Store a text, cut to `file_bytes` in its middle, and return its name for the model, such as `@output/3.txt`.
        OSError if it cannot be written.
        """
        data = truncate(text, self._file_bytes).encode("utf-8", "replace")
        with self._lock:
            path = self._next()
            with os.fdopen(open_new(path), "wb") as file:
                file.write(data)
            self._make_room()
        return f"{_FOLDER}/{path.name}"

    def adopt(self, file: str) -> str:
        """Move a file of UTF-8 text into the store, cut to `file_bytes`, and return its name for the model. OSError if
        it cannot be moved.
        """
        source = Path(file)
        if source.stat().st_size > self._file_bytes:
            name = self.keep(_ends(source, self._file_bytes))
            source.unlink()
            return name
        with self._lock:
            path = self._next()
            shutil.move(source, path)
            path.chmod(0o600)
            self._make_room()
        return f"{_FOLDER}/{path.name}"

    def keep_file(self, data: bytes, suffix: str) -> str:
        """Store binary data, such as a picture, under a new number with this `suffix` (`.png`), and return its absolute
        path for the user. OSError if it is too large or cannot be written.
        """
        if len(data) > self._file_bytes:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        with self._lock:
            path = self._next().with_suffix(suffix)
            with os.fdopen(open_new(path), "wb") as file:
                file.write(data)
            self._make_room()
        return str(path)

    def remove(self) -> None:
        """Delete all results with their folder; what cannot be deleted stays, without an error."""
        with self._lock:
            shutil.rmtree(self._folder, ignore_errors=True)

    def check(self, path: str) -> None:
        """Raise FileRefused if there is no result with this name (`@output/3.txt`), or it was deleted to make room."""
        if not (self._folder / name_of(path)).is_file():
            raise FileRefused(f"{name_of(path)} is not kept any more. Run the command or tool again.")

    def _next(self) -> Path:
        folder = self._folder / _FOLDER
        make_private(folder)
        # The folder may have results of an earlier process of this session.
        self._last = max(self._last, *(_number(path) for path in folder.iterdir()), 0) + 1
        return folder / f"{self._last}.txt"

    def _make_room(self) -> None:
        """Delete the oldest results until the total fits; the newest stays, whatever its size."""
        files = sorted((self._folder / _FOLDER).iterdir(), key=_number)
        sizes = [path.stat().st_size for path in files]
        total = sum(sizes)
        for path, size in zip(files[:-1], sizes, strict=False):
            if total <= self._total_bytes:
                break
            path.unlink()
            total -= size


def name_of(path: object) -> str:
    """Return `@output/3.txt` if `path` names such a result, else ''."""
    match = _NAME.fullmatch(path) if isinstance(path, str) else None
    return match[1] if match else ""


def locate_output(view: FileView, outputs: OutputStore | None, path: str) -> tuple[FileView, str]:
    """Return the file view to read `path` in and its absolute path there: a stored result, or a file of the workspace.
    FileRefused for a result that is gone, PathRefused for a path outside of the workspace.
    """
    if outputs is None or not name_of(path):
        return view, view.roots.resolve(path)
    outputs.check(path)
    return outputs.view, outputs.view.roots.resolve(name_of(path))


def _number(path: Path) -> int:
    return int(path.stem) if path.stem.isdigit() else 0


def _ends(path: Path, limit: int) -> str:
    """Return the first and the last bytes of a file, `limit` in all, with a line between them that counts the rest."""
    half = limit // 2
    with path.open("rb") as file:
        head = file.read(half)
        size = file.seek(0, os.SEEK_END)
        file.seek(size - half)
        tail = file.read(half)
    missing = size - len(head) - len(tail)
    return f"{head.decode('utf-8', 'ignore')}\n[... {missing} bytes left out ...]\n{tail.decode('utf-8', 'ignore')}"


# Truncation of long text to its head and tail and the lines of interest between them, with lines that count the omitted
# characters. Pure functions.


def truncate(value: str, limit: int, whole: str = "", keywords: Sequence[str] = ()) -> str:
    """Return `value`, or of a longer one at most about `limit` bytes of UTF-8: head and tail, cut at line ends if
    possible, and between them, in up to a third, lines with errors or with one of `keywords`. `whole` is the place of
    the complete text, which the first line about omitted text names.
    """
    encoded = value.encode("utf-8", "surrogatepass")
    if len(encoded) <= limit:
        return value
    start = encoded.find(b"\n", limit * 4 // 9) + 1  # head and tail have two thirds at least
    between = LinesOfInterest(limit // 3, keywords)
    if start and limit // 3 >= LEAST_BETWEEN:
        between.add(encoded[start : len(encoded) - limit * 2 // 9])
    found = between.found()
    room = limit - sum(line.cost for line in found)
    head_size = room * 2 // 3
    head = _cut_back(encoded[:head_size].decode("utf-8", "ignore"))
    tail = _cut_front(encoded[len(encoded) - (room - head_size) :].decode("utf-8", "ignore"))
    at, end = (len(part.encode("utf-8", "surrogatepass")) for part in (head, tail))
    parts, where = [head], f"; all of it: {whole}" if whole else ""
    for line in (*found, None):
        begins = len(encoded) - end if line is None else start + line.start
        if begins < at or (line is not None and begins + line.size > len(encoded) - end):
            continue  # head or tail has it
        if encoded[at:begins].strip(b"\n") or line is None:
            count = len(encoded[at:begins].decode("utf-8", "surrogatepass"))
            parts.append(f"[... {count} characters left out{where} ...]")
            where = ""
        parts.append(tail if line is None else line.text)
        at = begins + (0 if line is None else line.size)
    return "\n".join(parts)


def _cut_back(value: str) -> str:
    position = value.rfind("\n")
    return value[:position] if position > len(value) // 2 else value


def _cut_front(value: str) -> str:
    position = value.find("\n")
    return value[position + 1 :] if 0 <= position < len(value) // 2 else value
