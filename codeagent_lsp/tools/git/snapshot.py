"""The contents of the last commit and the index of a repository: names, objects, texts of objects.

Names are relative to the top, with '/', as `os.fsdecode` gives them. Not here: what the user has now (`comparing.py`).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from codeagent_lsp.errors import FileRefused, ToolFailed
from codeagent_lsp.tools.git.calls import call
from codeagent_lsp.tools.git.repository import Repository
from codeagent_lsp.workspace.text.encoding import decode

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
    """Return the files of the last commit at or below `inner` ('' for all); none before the first commit."""
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
    """Return the files of the index at or below `inner`; for a conflict, our side if there is one."""
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
        if head["stage"] in (b"0", b"2") or name not in found:
            found[name] = _entry(head, facts)
    return found


async def index_time(repository: Repository) -> int:
    """Return the modification time of the index in nanoseconds; a file changed then or later may differ from it."""
    name = (await call(repository, "rev-parse", "--git-path", "index")).decode("utf-8", "surrogateescape")
    try:
        return (Path(repository.top) / name.rstrip("\n")).stat().st_mtime_ns
    except OSError:
        return 0


async def has_commits(repository: Repository) -> bool:
    """Return whether HEAD names a commit. ToolFailed if git cannot read the repository at all."""
    await call(repository, "rev-parse", "--git-dir")
    try:
        await call(repository, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
    except ToolFailed:
        return False
    return True


async def texts_of(repository: Repository, oids: Iterable[str]) -> dict[str, Blob]:
    """Return the texts of objects by hash. Objects larger than `MAX_TEXT` bytes are not read."""
    wanted = sorted(set(oids))
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
    """Return git's hash of a file with these bytes: SHA-256 if `like` has 64 digits, else SHA-1."""
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
