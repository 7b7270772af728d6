"""The last commit and the index of a repository, and what differs from them.

The differences are those of the index, or of the files as the user and the run have them now: staged text over buffers
over the disk, so that unsaved text counts, too. Contents are compared here and not by git, whose look at the work tree
can run programs that a repository names. Not here: how it is shown (`git_tools.py`).
"""

# ruff: noqa: PTH115, PTH118, PTH120 - paths of the workspace are plain strings and may be any bytes

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from codeagent_lsp.errors import FileRefused, PathRefused, ToolFailed
from codeagent_lsp.tools.git.calls import Repository, call
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.git_folders import top_of
from codeagent_lsp.workspace.text.encoding import decode

Status = Literal["A", "D", "M"]

MAX_CHANGES = 300
MAX_UNTRACKED = 200
_MAX_WALK = 20_000
_MAX_HASHED = 16 * 1024 * 1024
_LFS = "version https://git-lfs.github.com/spec/"

MAX_TEXT = 512 * 1024
GITLINK = "160000"
SYMLINK = "120000"

# `H 100644 OID 0<tab>name`; below, what `--debug` adds to each.
_INDEX_HEAD = re.compile(rb"(?P<tag>\S) (?P<mode>\d{6}) (?P<oid>[0-9a-f]+) (?P<stage>\d)\t(?P<name>.*)", re.DOTALL)
_INDEX_FACTS = re.compile(
    rb"  ctime: \d+:\d+\n  mtime: (?P<seconds>\d+):(?P<nanos>\d+)\n  dev: .*\n  uid: .*\n  size: (?P<size>\d+)\t.*\n"
)


@dataclass(frozen=True, slots=True)
class GitEntry:
    """A file in the last commit or the index: its mode, six octal digits, and the hash of its object.

    For the index, `size` (bytes) and `mtime_ns` are those of the file when git last read it (-1: unknown); `away` marks
    a file with the skip-worktree flag, `unmerged` one with a conflict.
    """

    mode: str
    oid: str
    size: int = -1
    mtime_ns: int = -1
    away: bool = False
    unmerged: bool = False


Entries = dict[str, GitEntry]


@dataclass(frozen=True, slots=True)
class Blob:
    """The text of an object; None, with a `note`, if it is binary, too large or missing."""

    text: str | None
    note: str = ""


async def head_of(repository: Repository, inner: str) -> Entries:
    """Return the files of the last commit at or below `inner` ('' for all), by their paths in the repository; {} before
    the first commit. ToolFailed if git fails.
    """
    if not await has_commits(repository):
        return {}
    output = await call(repository, "ls-tree", "-r", "-z", "--full-tree", "HEAD", *_only(inner))
    found: Entries = {}
    for item in output.split(b"\0"):
        facts, _, name = item.partition(b"\t")
        if name:
            mode, _, oid = facts.decode("ascii").split(" ")
            found[os.fsdecode(name)] = GitEntry(mode, oid)
    return found


async def index_of(repository: Repository, inner: str) -> Entries:
    """Return the files of the index at or below `inner` by their paths in the repository; for a conflict, our side if
    there is one. ToolFailed if git fails or is not understood.
    """
    output = await call(
        repository, "ls-files", "-z", "-t", "--stage", "--debug", "--no-recurse-submodules", *_only(inner)
    )
    found: Entries = {}
    position = 0
    while (end := output.find(b"\0", position)) >= 0:
        head = _INDEX_HEAD.fullmatch(output, position, end)
        facts = _INDEX_FACTS.match(output, end + 1)
        position = facts.end() if facts else end + 1
        if head is None:
            raise ToolFailed("This version of git lists its index in a way that is not known here.")
        name = os.fsdecode(head["name"])
        # A conflict is listed up to three times, as base (1), ours (2) and theirs (3).
        if head["stage"] in (b"0", b"2") or name not in found:
            found[name] = _entry(head, facts)
    return found


async def index_time(repository: Repository) -> int:
    """Return the modification time of the index in nanoseconds, 0 if it cannot be read; a file changed then or later
    may differ from it.
    """
    name = (await call(repository, "rev-parse", "--git-path", "index")).decode("utf-8", "surrogateescape")
    try:
        return (Path(repository.top) / name.rstrip("\n")).stat().st_mtime_ns
    except OSError:
        return 0


async def has_commits(repository: Repository) -> bool:
    """Return whether HEAD names a commit. ToolFailed if git cannot read the repository at all."""
    # Else a repository that git refuses to read would look like one without commits.
    await call(repository, "rev-parse", "--git-dir")
    try:
        await call(repository, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
    except ToolFailed:
        return False
    return True


async def texts_of(repository: Repository, oids: Iterable[str]) -> dict[str, Blob]:
    """Return a `Blob` for each object by its hash, one with a note for a missing one. ToolFailed if git fails. Objects
    of more than 512 KiB are not read, and have a note instead.
    """
    wanted = sorted(set(oids))
    # Asked first: `--batch` would send a file of a gigabyte whole.
    sizes = await _sizes(repository, wanted)
    small = [oid for oid in wanted if 0 <= sizes.get(oid, -1) <= MAX_TEXT]
    found = {oid: Blob(None, "missing" if sizes.get(oid, -1) < 0 else "too large to show") for oid in wanted}
    output = await call(repository, "cat-file", "--batch", stdin=_lines(small)) if small else b""
    position = 0
    for oid in small:
        # Each object is a line `OID blob SIZE`, its bytes, and a line end.
        start = output.index(b"\n", position) + 1
        data = output[start : start + sizes[oid]]
        position = start + sizes[oid] + 1
        found[oid] = _blob(data)
    return found


def object_name(data: bytes, like: str) -> str:
    """Return git's hash, in hexadecimal, of a file (a blob object) with these bytes: SHA-256 if `like` has 64 digits,
    else SHA-1.
    """
    content = b"blob %d\0" % len(data) + data
    if len(like) == 64:
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


async def _sizes(repository: Repository, oids: list[str]) -> dict[str, int]:
    if not oids:
        return {}
    output = await call(repository, "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)",
                        stdin=_lines(oids))  # fmt: skip
    rows = (line.split(" ") for line in output.decode("ascii", "replace").splitlines())
    return {row[0]: int(row[2]) for row in rows if len(row) == 3 and row[1] == "blob"}


def _entry(head: re.Match[bytes], facts: re.Match[bytes] | None) -> GitEntry:
    size, mtime = (-1, -1)
    if facts is not None:
        size, mtime = int(facts["size"]), int(facts["seconds"]) * 10**9 + int(facts["nanos"])
    tag, unmerged = head["tag"], head["stage"] != b"0"
    return GitEntry(head["mode"].decode(), head["oid"].decode(), size, mtime, tag in (b"S", b"s"), unmerged)


def _blob(data: bytes) -> Blob:
    try:
        return Blob(decode(data).text)
    except FileRefused:
        return Blob(None, "binary")


def _only(inner: str) -> tuple[str, ...]:
    return ("--", inner) if inner else ()


def _lines(oids: list[str]) -> bytes:
    return "".join(f"{oid}\n" for oid in oids).encode("ascii")


@dataclass(frozen=True, slots=True)
class Change:
    """One changed file by absolute path, with its texts, None on a side without the file or without a text.

    `status` is A (added), D (deleted) or M (modified); if `textual` is False, the texts are incomplete and `note`
    explains.
    """

    path: str
    status: Status
    before: str | None
    after: str | None
    textual: bool = True
    note: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """Changed files, sorted by name, without those beyond the limit, which `more` counts.

    `untracked` are files, by absolute path, that neither the last commit nor the index nor the run knows; () for a
    comparison of the index.
    """

    items: tuple[Change, ...] = ()
    untracked: tuple[str, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a comparison: an object of git (`oid`), else a text or the reason why there is none (`blob`)."""

    oid: str = ""
    blob: Blob = Blob(None)
    mode: str = ""


_ABSENT = _Side()


async def in_index(repository: Repository, path: str) -> Changes:
    """Return the index's changes since the last commit at or below `path` (absolute): what `git commit` would record
    now. ToolFailed if git fails.
    """
    inner = repository.inner(path)
    head, index = await head_of(repository, inner), await index_of(repository, inner)
    # By bytes, as git sorts.
    names = sorted({*head, *index}, key=os.fsencode)
    pairs = {name: (_committed_side(head.get(name)), _committed_side(index.get(name))) for name in names}
    return await _resolve(repository, pairs)


async def in_view(repository: Repository, view: FileView, path: str) -> Changes:
    """Return the changes of the current files, unsaved and staged text included, since the last commit at or below
    `path` (absolute). ToolFailed if git fails.
    """
    inner = repository.inner(path)
    head, index = await head_of(repository, inner), await index_of(repository, inner)
    present = _Present(repository, view, head, index, await index_time(repository))
    pairs, untracked = await asyncio.to_thread(present.compare, path)
    changes = await _resolve(repository, pairs)
    return Changes(changes.items, untracked, changes.more)


class _Present:
    """The current files, compared with the last commit and the index. Methods block."""

    def __init__(self, repository: Repository, view: FileView, head: Entries, index: Entries, written: int) -> None:
        self._repository = repository
        self._view = view
        self._head = head
        self._index = index
        self._written = written
        self._over = view.over_disk()
        self._tops: dict[str, bool] = {}

    def compare(self, start: str) -> tuple[dict[str, tuple[_Side, _Side]], tuple[str, ...]]:
        """Return both sides of every file that may differ, by name, and the untracked files."""
        tracked = {*self._head, *self._index}
        fresh, untracked = self._others(start, tracked)
        pairs = {}
        for name in sorted({*tracked, *fresh}, key=os.fsencode):
            before = _committed_side(self._head.get(name))
            pairs[name] = (before, self._now(name, before))
        return pairs, untracked

    def _now(self, name: str, before: _Side) -> _Side:
        path, known = os.path.join(self._repository.top, name), self._index.get(name)
        # A submodule: its files are those of another repository.
        if known is not None and known.mode == GITLINK:
            return _committed_side(known)
        # Before the flags of the index: what the editor or the run has is newer than any of them.
        if path in self._over:
            return self._from_view(path)
        # Left out of a sparse checkout: absent from the disk, but not deleted.
        if known is not None and known.away:
            return _committed_side(known)
        try:
            info = os.lstat(path)
        except OSError:
            return _ABSENT
        if known is not None and self._is_untouched(known, info):
            return _committed_side(known)
        return self._from_disk(path, info, before)

    def _is_untouched(self, known: GitEntry, info: os.stat_result) -> bool:
        """Return whether the file is unchanged since the index was written, by its size and times, as git itself
        judges.
        """
        # The index has the lower 32 bits of a size.
        same = info.st_mtime_ns == known.mtime_ns and info.st_size & 0xFFFFFFFF == known.size
        # A change in the moment in which the index was written leaves size and time as they are there ("racy git").
        return same and info.st_mtime_ns < self._written and not known.unmerged

    def _from_view(self, path: str) -> _Side:
        try:
            return _Side(blob=Blob(self._view.read(path).text))
        except FileRefused:
            return _Side(blob=Blob(None, "binary or too large")) if self._view.exists(path) else _ABSENT

    def _from_disk(self, path: str, info: os.stat_result, before: _Side) -> _Side:
        if stat.S_ISLNK(info.st_mode):
            return _Side(blob=Blob(os.readlink(path)), mode=SYMLINK)
        if not stat.S_ISREG(info.st_mode):
            return _ABSENT
        try:
            data = self._view.roots.read_bytes(path, _MAX_HASHED)
            # Touched, or changed and changed back.
            if before.oid and object_name(data, before.oid) == before.oid:
                return before
            return _Side(blob=Blob(decode(data).text) if len(data) <= MAX_TEXT else Blob(None, "too large to show"))
        except PathRefused:  # beyond a link, so not where git has it
            return _ABSENT
        except FileRefused:
            return _Side(blob=Blob(None, "binary or too large"))

    def _others(self, start: str, tracked: set[str]) -> tuple[set[str], tuple[str, ...]]:
        """Return the untracked files: the names of those that the run staged, and the paths of all others."""
        fresh: set[str] = set()
        rest: list[str] = []
        for path in self._untracked_files(start, tracked):
            # A new file of the run is a change that it made; one that only the user has may be anything.
            if path in self._over and self._view.read(path).source == "staged":
                fresh.add(self._repository.inner(path))
            elif len(rest) < MAX_UNTRACKED:
                rest.append(path)
        return fresh, tuple(rest)

    def _untracked_files(self, start: str, tracked: set[str]) -> Iterator[str]:
        inner = self._view.walk(start, limit=_MAX_WALK)
        return (path for path in inner if self._is_ours(path) and self._repository.inner(path) not in tracked)

    def _is_ours(self, path: str) -> bool:
        """Return whether `path` is in no repository nested in this one."""
        folder = os.path.dirname(path)
        if folder not in self._tops:
            self._tops[folder] = top_of(folder) == self._repository.top
        return self._tops[folder]


def _committed_side(entry: GitEntry | None) -> _Side:
    if entry is None or entry.mode == GITLINK:  # another repository is shown by itself
        return _ABSENT
    return _Side(oid=entry.oid, mode=entry.mode)


async def _resolve(repository: Repository, pairs: dict[str, tuple[_Side, _Side]]) -> Changes:
    """Return the changes with their texts, without those whose texts are equal."""
    different = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    kept = dict(list(different.items())[:MAX_CHANGES])
    blobs = await texts_of(repository, (side.oid for pair in kept.values() for side in pair if side.oid))
    changes = (
        _change(os.path.join(repository.top, name), before, after, blobs) for name, (before, after) in kept.items()
    )
    return Changes(tuple(change for change in changes if change is not None), (), len(different) - len(kept))


def _change(path: str, before: _Side, after: _Side, blobs: dict[str, Blob]) -> Change | None:
    status: Status = "A" if before == _ABSENT else "D" if after == _ABSENT else "M"
    old, new = blobs.get(before.oid, before.blob), blobs.get(after.oid, after.blob)
    if old.text is not None and old.text.startswith(_LFS) and status == "M" and not after.oid:
        return Change(path, status, None, None, False, "kept by Git LFS, not compared")
    mode = f"mode {before.mode} is now {after.mode}" if before.mode and after.mode not in ("", before.mode) else ""
    note = ", ".join(dict.fromkeys(filter(None, (mode, old.note, new.note))))
    text = _with_ends_of(old.text, new.text)
    if old.text == text and status == "M" and not note:
        return None
    return Change(path, status, old.text, text, not (old.note or new.note), note)


def _with_ends_of(old: str | None, new: str | None) -> str | None:
    """Return `new` with LF if the repository has only LF: line ends on disk depend on a setting and are no change."""
    return new.replace("\r\n", "\n") if old is not None and new is not None and "\r" not in old else new
