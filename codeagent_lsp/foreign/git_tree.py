"""What git knows of the files of one repository: what was staged, the texts of it, and whether git is being used.

git reads its own data only, never the work tree, so that no filter of the repository is run. Not here: running git
(`tools/git/calls.py`).
"""

# ruff: noqa: PTH118 - paths of the workspace are plain strings

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from codeagent_lsp.foreign.disk import UNKNOWN, FileState, state_of
from codeagent_lsp.tools.git.calls import Repository, call
from codeagent_lsp.workspace.files.file_view import MAX_BYTES
from codeagent_lsp.workspace.files.git_folders import common_of, data_of

_FEW = 200  # more paths than that are no arguments of a command
_BATCH_BYTES = 16 << 20
_ENTRY = re.compile(
    rb"(?P<mode>\d+) (?P<digest>[0-9a-f]+) (?P<stage>\d)\t(?P<path>[^\0]+)\0"
    rb"  ctime: \d+:\d+\n  mtime: (?P<mtime>\d+):(?P<nanos>\d+)\n[^\n]*\n[^\n]*\n  size: (?P<size>\d+)\t[^\n]*\n"
)
_HEAD_MARKS = ("HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD", "rebase-merge", "rebase-apply")
_SHARED_MARKS = ("logs/refs/stash", "refs/stash", "packed-refs")


Mark = tuple[int, ...]
"""Time in nanoseconds, size and number of a file; nothing for no file."""


class Entry(NamedTuple):
    """A file in git's index: the hexadecimal hash of its content (SHA-1 or SHA-256), and size (bytes) and time
    (nanoseconds) of the file on the disk when git last looked. `is_file` is False for links and submodules.
    """

    digest: str
    size: int
    mtime: int
    is_file: bool


class Marks(NamedTuple):
    """Values that change when git is used: `head` with commits, checkouts, stashes and rebases, `staged` also with `git
    add`. `busy` says that git is at work right now.
    """

    head: tuple[Mark, ...]
    staged: Mark
    busy: bool


async def entries(repository: Repository, paths: Iterable[str] = ()) -> dict[str, Entry]:
    """Return git's index by absolute path, of these paths or, if there are none or over 200, of the whole repository.
    ToolFailed if git fails.
    """
    wanted = list(map(repository.inner, paths))
    few = wanted if len(wanted) <= _FEW else []
    return dict(
        _parse_index(await call(repository, "ls-files", "--stage", "--debug", "-z", "--", *few), repository.top)
    )


def _parse_index(output: bytes, top: str) -> Iterator[tuple[str, Entry]]:
    for match in _ENTRY.finditer(output):
        if match["stage"] != b"0":  # a conflict of a merge: what was there is in question
            continue
        mtime = int(match["mtime"]) * 1_000_000_000 + int(match["nanos"])
        is_file = match["mode"].startswith(b"100")
        path = os.path.join(top, os.fsdecode(match["path"]))
        yield path, Entry(match["digest"].decode(), int(match["size"]), mtime, is_file)


async def texts(repository: Repository, wanted: Mapping[str, Entry]) -> dict[str, FileState]:
    """Return the contents that git has of these entries, by path, as they would be on the disk; `UNKNOWN` for those
    that cannot be had: no regular files, too large, binary, or gone. ToolFailed if git fails.
    """
    found = dict.fromkeys(wanted, UNKNOWN)
    batch: list[tuple[str, Entry]] = []
    size = 0
    readable = [(path, entry) for path, entry in wanted.items() if entry.is_file and entry.size <= MAX_BYTES]
    for number, (path, entry) in enumerate(readable):
        batch.append((path, entry))
        size += entry.size
        if size >= _BATCH_BYTES or number == len(readable) - 1:
            found.update(await _batch(repository, batch))
            batch, size = [], 0
    return found


async def _batch(repository: Repository, batch: list[tuple[str, Entry]]) -> dict[str, FileState]:
    asked = "".join(f"{entry.digest}\n" for _, entry in batch).encode()
    output = await call(repository, "cat-file", "--batch", stdin=asked)
    found: dict[str, FileState] = {}
    at = 0
    for path, entry in batch:
        end = output.index(b"\n", at)
        words = output[at:end].split()
        at = end + 1
        if len(words) != 3:  # missing, as in a partial clone
            continue
        length = int(words[2])
        found[path] = _on_disk(output[at : at + length], entry.size)
        at += length + 1
    return found


def _on_disk(data: bytes, size: int) -> FileState:
    """Return a content of git as the file on the disk had it, by the size of that."""
    if len(data) == size:
        return state_of(data)
    windows = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    # Else some filter made the file, as for large files, and filters are not run.
    return state_of(windows) if len(windows) == size else UNKNOWN


def has_content(entry: Entry, data: bytes) -> bool:
    """Return whether `data` is the content that git has of a file, apart from CRLF line ends, by git's hash of it."""
    return any(_digest(each, len(entry.digest)) == entry.digest for each in {data, data.replace(b"\r\n", b"\n")})


def _digest(data: bytes, length: int) -> str:
    kind = hashlib.sha1(usedforsecurity=False) if length == 40 else hashlib.sha256()
    kind.update(b"blob %d\0" % len(data))
    kind.update(data)
    return kind.hexdigest()


def marks(repository: Repository) -> Marks | None:
    """Return the present marks of a repository; None if its data folder cannot be found. Reads a few file names and
    blocks shortly.
    """
    data = data_of(repository.top)
    if data is None:
        return None
    shared = common_of(data)
    head = [_mark(os.path.join(data, name)) for name in (*_HEAD_MARKS, "logs/HEAD")]
    head += [_mark(os.path.join(shared, name)) for name in _SHARED_MARKS]
    busy = any(os.path.lexists(os.path.join(data, name)) for name in ("index.lock", "HEAD.lock"))
    return Marks(tuple(head), _mark(os.path.join(data, "index")), busy)


def _mark(path: str) -> Mark:
    try:
        info = os.lstat(path)
    except OSError:
        return ()
    return (info.st_mtime_ns, info.st_size, info.st_ino)
